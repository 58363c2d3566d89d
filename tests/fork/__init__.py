"""A stand-in for the flash-attention-fp4 fork, written from its contract."""
