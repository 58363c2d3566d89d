"""What `fa4top doctor` says of a checkout of flash-attention-fp4. Nothing of it is imported."""

from __future__ import annotations

from pathlib import Path

from fa4top.targets.base import MISSING, NOTE, OK, Finding
from fa4top.targets.fork.checkout import KERNEL, PACKAGE, NoCheckout, inspect_checkout


def is_checkout(folder: Path) -> bool:
    """Does this folder hold the fork?"""
    return (folder / PACKAGE / KERNEL).is_file()


def checkout_findings(folder: Path) -> list[Finding]:
    """What of the fork's contract holds for a checkout."""
    try:
        found = inspect_checkout(folder)
    except NoCheckout as error:
        return [Finding("checkout", MISSING, str(error), "--fa4-path DIR, the top folder of the checkout")]
    where = f"{found.package}{f', commit {found.commit}' if found.commit else ''}"
    findings = [Finding("checkout", OK, where)]
    for row in found.rows:
        fix = "" if row.holds else f"expected: {row.expected}. Send this table to fa4top's authors"
        findings.append(Finding(row.what, OK if row.holds else MISSING, row.found, fix))
    if found.split_default:
        text = f"fp8 split {found.split_default}/{4 if found.split_default == '3' else 2} by default"
        old = found.split_default != "3"
        findings.append(Finding("split", NOTE if old else OK, text, "set 3/4: 1/2 cost 24% on a GB300" if old else ""))
    if found.unknown_knobs:
        findings.append(Finding("knobs", NOTE, f"not in fa4top's table: {', '.join(found.unknown_knobs)}"))
    if found.absent_knobs:
        findings.append(Finding("knobs", NOTE, f"not in this checkout: {', '.join(found.absent_knobs)}"))
    return findings
