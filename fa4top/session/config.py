"""One TOML config: command line over FA4TOP_* over this file over defaults. Unknown keys are refused by name."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from fa4top.session.paths import config_file

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class ConfigError(ValueError):
    """The config can not be used; the text names the file, the key and what is allowed."""


@dataclass(frozen=True)
class Config:
    """Settings of a person. ``keys`` maps action ids to keys."""

    target: str = "auto"
    gpu: str = ""
    python: str = ""
    theme: str = "fa4top-dark"
    refresh_hz: float = 0.0
    ascii: bool = False
    mouse: bool = True
    idle_limit_min: float = 15.0
    record: bool = True
    sessions: str = ""
    keys: dict[str, str] = field(default_factory=dict)


HELP: dict[str, str] = {
    "target": "auto, fa4 or sim",
    "gpu": "NVML index, or UUID or the start of one; empty: the first that CUDA sees",
    "python": "interpreter that has the target's packages; empty: the present one",
    "theme": "a theme's name (fa4top config --themes lists them)",
    "refresh_hz": "redraws a second; 0: 4 locally, 2 over SSH",
    "ascii": "plain ASCII instead of blocks and lines",
    "mouse": "listen to the mouse",
    "idle_limit_min": "minutes that an engine goes on with nobody watching",
    "record": "keep sessions on disk",
    "sessions": "folder of recorded sessions; empty: the user's state folder",
    "keys": "action id = key, or several keys with commas between",
}


def _check(name: str, value: Any, where: str) -> Any:
    wanted = next((f for f in fields(Config) if f.name == name), None)
    if wanted is None:
        raise ConfigError(f"{where}: unknown key '{name}'; there are: {', '.join(f.name for f in fields(Config))}")
    default = getattr(Config(), name)
    if isinstance(default, bool):
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in ("0", "1", "true", "false", "yes", "no"):
            return value.lower() in ("1", "true", "yes")
    elif isinstance(default, float):
        try:
            return float(value)
        except (TypeError, ValueError):
            pass
    elif isinstance(default, dict):
        if isinstance(value, dict) and all(isinstance(v, str) for v in value.values()):
            return value
    elif isinstance(value, str):
        return value
    kind = {bool: "true or false", float: "a number", dict: "a table of strings"}.get(type(default), "a string")
    raise ConfigError(f"{where}: '{name}' must be {kind}, not {value!r}")


def load_config(path: Path | None = None, environment: Mapping[str, str] = os.environ) -> Config:
    """File and environment; a missing file is an empty one.

    Raises:
        ConfigError: a key that does not exist, a value of the wrong kind, or a file that is no TOML.
    """
    path = path or config_file()
    values: dict[str, Any] = {}
    try:
        loaded = tomllib.loads(path.read_text())
    except FileNotFoundError:
        loaded = {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    for name, value in loaded.items():
        values[name] = _check(name, value, str(path))
    for name in (f.name for f in fields(Config)):
        variable = f"FA4TOP_{name.upper()}"
        if name != "keys" and variable in environment:
            values[name] = _check(name, environment[variable], variable)
    return replace(Config(), **values)


def remember(name: str, value: str, path: Path | None = None) -> None:
    """Set one string in the config file and leave the rest, comments too, as it is."""
    import tomlkit

    path = path or config_file()
    document = tomlkit.parse(path.read_text()) if path.exists() else tomlkit.document()
    document[name] = value
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(tomlkit.dumps(document))
    temporary.replace(path)


def example() -> str:
    """A config file with every key at its default, explained."""
    lines = ["# fa4top's config. Every key is optional; these are the defaults.", ""]
    defaults = Config()
    for entry in fields(Config):
        value = getattr(defaults, entry.name)
        lines.append(f"# {HELP[entry.name]}")
        if isinstance(value, dict):
            lines += [f"[{entry.name}]", '# pause = "p"', ""]
        else:
            text = str(value).lower() if isinstance(value, bool) else repr(value).replace("'", '"')
            lines += [f"{entry.name} = {text}", ""]
    return "\n".join(lines)
