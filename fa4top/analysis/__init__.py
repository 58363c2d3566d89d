"""Pure functions on arrays and records. NumPy only."""
