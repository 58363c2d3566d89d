"""The process environment of a fork worker. Must be set before flash_attn is imported: most knobs are not in the fork's
compile key, so one process serves one setting."""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping

from fa4top.targets.fa4.environment import CACHE_FOLDERS, CACHES_OFF
from fa4top.targets.fork.knobs import BY_NAME

AUTO = "auto"
DIRECT, INTERFACE = "the compiled function", "the package's interface"  # what a launch goes through
PATH_VARIABLE = "FA4TOP_FA4_PATH"  # from the engine: where the checkout is
PROFILE, DETAIL, RING, EMPTY = "FA4_PROFILE_PIPELINE", "FA4_PROFILE_DETAIL", "FA4_PROF_SMEM", "FA4_PROF_EMPTY"
OWN = frozenset({PROFILE, DETAIL, EMPTY})  # fa4top's business; no knobs of a setting
# the knob "probes": what the timed twin carries, to tell what probes cost
PROBES: dict[str, dict[str, str]] = {
    "off": {},
    "empty": {PROFILE: "1", EMPTY: "1"},
    "coarse": {PROFILE: "1", RING: "1"},
    "detail": {PROFILE: "1", DETAIL: "1", RING: "1"},
    "global": {PROFILE: "1", RING: "0"},
}


def chosen_knobs(knobs: Mapping[str, str]) -> dict[str, str]:
    """The FA4_* variables that a setting sets: those that are not left to the fork."""
    return {name: value for name, value in knobs.items() if name in BY_NAME and value != AUTO}


def variables(knobs: Mapping[str, str], twin: str, detail: bool) -> dict[str, str]:
    """All FA4_* variables of a worker. The fork looks at whether some are there at all, so nothing else may be."""
    found = chosen_knobs(knobs)
    if twin == "traced":
        found[PROFILE] = "1"
        if detail:
            found[DETAIL] = "1"
    else:
        found.update(PROBES[knobs.get("probes", "off")])
    return found


def strangers(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """FA4_* variables that a person's shell has exported: fa4top does not take them over."""
    return {name: value for name, value in sorted(environment.items()) if name in BY_NAME}


def prepare(
    knobs: Mapping[str, str], twin: str, detail: bool, private: str, environment: MutableMapping[str, str] = os.environ
) -> dict[str, str]:
    """Clear every FA4_* knob, set the setting's, and keep the DSL's caches out; returns what was set.

    Args:
        private: an existing folder of this worker's own.
    """
    for name in strangers(environment):
        del environment[name]
    found = variables(knobs, twin, detail)
    environment.update(CACHES_OFF)
    for name in CACHE_FOLDERS:
        environment[name] = private
    environment.update(found)
    return found
