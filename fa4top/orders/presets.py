"""Shapes with a name: those of published tables. Data."""

from __future__ import annotations

# batch, length, heads, head dim
PRESETS: dict[str, tuple[int, int, int, int]] = {
    "b1-s256-h16": (1, 256, 16, 128),
    "b1-s1024-h16": (1, 1024, 16, 128),
    "b4-s4096-h16": (4, 4096, 16, 128),
    "b1-s32768-h16": (1, 32768, 16, 128),
    "b4-s4096-h32": (4, 4096, 32, 128),
    "b1-s4096-h12": (1, 4096, 12, 128),
    "b1-s32768-h12": (1, 32768, 12, 128),
    "b1-s4096-h24": (1, 4096, 24, 128),
    "b1-s32768-h24": (1, 32768, 24, 128),
    "b1-s32768-h24-d64": (1, 32768, 24, 64),
}
