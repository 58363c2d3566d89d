"""Stand-in for flash-attention-fp4's flash_attn.cute, written from its contract: interfaces, buffer layouts and
environment behaviour. The arithmetic is torch on the CPU; nothing here is the fork's code."""
