"""Which style a role or a wait has: the same on every screen, by its place in the target's own list."""

from __future__ import annotations

from fa4top.analysis.view.snapshot import Snapshot

ROLE_STYLES = ("role-a", "role-b", "role-c", "role-d")
WAIT_STYLES = ("wait-a", "wait-b", "wait-c", "wait-d")


def role_style(snapshot: Snapshot, role: str) -> str:
    """Style name of a role; a fifth and later ones share the last."""
    names = snapshot.role_map.names if snapshot.role_map else [view.role for view in snapshot.roles]
    return ROLE_STYLES[min(names.index(role), len(ROLE_STYLES) - 1)] if role in names else ROLE_STYLES[0]


def wait_style(snapshot: Snapshot, role: str, cause: str) -> str:
    """Style name of a wait: by its place among the waits of its role."""
    view = snapshot.role(role)
    causes = sorted(name for name, _ in view.waits_cycles) if view else []
    return WAIT_STYLES[min(causes.index(cause), len(WAIT_STYLES) - 1)] if cause in causes else WAIT_STYLES[-1]
