"""Whole outcomes of jobs and of the rules, held against what was looked at and approved (tests/approved.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.approved import CASES, DATA, approved, differing, outcome, plain
from tests.approved_views import VIEWS


@pytest.mark.parametrize("name", CASES)
def test_a_job_records_what_was_approved(name: str, tmp_path: Path) -> None:
    found = list(differing(outcome(CASES[name], tmp_path), approved(name)))
    assert not found, "\n".join(found[:20])


@pytest.mark.parametrize("name", VIEWS)
def test_the_rules_say_what_was_approved(name: str) -> None:
    found = list(differing(plain(VIEWS[name]()), approved(name)))
    assert not found, "\n".join(found[:20])


def test_nothing_is_approved_that_is_not_tried() -> None:
    assert {path.stem for path in DATA.glob("*.json")} == {*CASES, *VIEWS}
