"""Device buffers to steps: events, layout, decoding, waits, timelines, hangs."""
