"""The builtin target: our own attention kernel for Hopper with FA4's topology."""
