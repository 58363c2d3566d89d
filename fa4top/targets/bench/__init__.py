"""Microbenchmarks: what is measured (data), how it is checked, how it is run."""
