"""The flash-attention-fp4 fork: its knobs, the rules between them, its modes, its trace. Nothing of it was run here."""
