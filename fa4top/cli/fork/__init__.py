"""What the commands know of flash-attention-fp4."""
