"""Which style a role or a wait has: the same on every screen."""

from __future__ import annotations

ROLE_STYLES: dict[str, str] = {
    "mma": "role-a",
    "mma0": "role-a",
    "mma1": "role-b",
    "mma2": "role-c",
    "softmax0": "role-b",
    "softmax1": "role-c",
    "correction": "role-d",
    "load": "role-d",
}
WAIT_STYLES: dict[str, str] = {
    "wait P": "wait-a",
    "wait P 2nd": "wait-b",
    "wait S": "wait-a",
    "wait corr": "wait-c",
    "wait stats": "wait-c",
    "turn": "wait-a",
    "wait K": "wait-b",
    "wait V": "wait-c",
    "wait KV": "wait-d",
    "wait Q": "wait-d",
    "wait P free": "wait-c",
    "wait S free": "wait-c",
    "wait slot": "wait-d",
    "wait sum": "wait-d",
}
SHORT: dict[str, str] = {"correction": "corr", "softmax0": "softmx0", "softmax1": "softmx1"}


def role_style(role: str) -> str:
    """Style name of a role."""
    return ROLE_STYLES.get(role, "role-a")


def wait_style(cause: str) -> str:
    """Style name of a wait's cause."""
    return WAIT_STYLES.get(cause, "wait-d")
