"""What `fa4top doctor` says of an interpreter for flash-attn-4. Nothing is imported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fa4top.targets.base import MISSING, NOTE, OK, Finding
from fa4top.targets.fa4.probes import KNOWN_GOOD

INTERFACE = "flash_attn.cute.interface"


def findings(modules: Mapping[str, str | None], versions: Mapping[str, str]) -> list[Finding]:
    """Torch, the DSL and its flavour, and whether package and DSL were seen to work together."""
    found = []
    for module, package in (("torch", "torch"), ("cutlass", "nvidia-cutlass-dsl")):
        there = bool(modules.get(module))
        text = versions.get(package, "there") if there else "not there"
        found.append(Finding(module, OK if there else MISSING, text, "" if there else "pip install 'fa4top[fa4]'"))
    flavour = [f for f in ("cu13", "cu12") if f"nvidia-cutlass-dsl-libs-{f}" in versions]
    fix = "" if flavour else "the flavour moves results: pip install 'nvidia-cutlass-dsl[cu13]'"
    found.append(Finding("DSL flavour", OK if flavour else NOTE, ", ".join(flavour) or "unknown", fix))
    return [*found, _package(modules.get(INTERFACE), versions)]


def _package(interface: str | None, versions: Mapping[str, str]) -> Finding:
    if not interface:
        return Finding("flash-attn-4", MISSING, "not there", "pip install --pre 'fa4top[fa4]', or --python PATH")
    version, dsl = versions.get("flash-attn-4", "?"), versions.get("nvidia-cutlass-dsl", "?")
    where = Path(interface).parent
    if dsl in KNOWN_GOOD.get(version, ()):
        return Finding("flash-attn-4", OK, f"{version} with DSL {dsl}: known good ({where})")
    tried = "; ".join(f"{p} with {', '.join(d)}" for p, d in KNOWN_GOOD.items())
    return Finding(
        "flash-attn-4",
        NOTE,
        f"{version} with DSL {dsl}: never tried ({where})",
        f"known good: {tried}; others are tried and verified by probe counts",
    )
