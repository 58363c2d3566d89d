"""What can be run: one package a target."""
