"""flash-attn-4, unmodified, with probes put in at trace time."""
