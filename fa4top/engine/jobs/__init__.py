"""The jobs: one a file."""
