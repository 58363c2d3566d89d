"""Tests on a real GPU."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What launches kernels in this process comes last: a process that has used the GPU is a stranger to fa4top, which
    then rightly compares nothing."""
    items.sort(key=lambda item: item.get_closest_marker("inside") is not None)
