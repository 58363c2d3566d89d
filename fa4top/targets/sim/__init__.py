"""A simulated device."""
