"""What the commands print: one job's result a file."""
