"""One TOML config: command line over FA4TOP_* over this file over defaults. Unknown keys are refused by name."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import msgspec
from msgspec import Meta

from fa4top.session.paths import config_file

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


WORDS = {"yes": "true", "no": "false"}  # besides what msgspec takes for true and false


class ConfigError(ValueError):
    """The config can not be used; the text names the file, the key and what is allowed."""


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of a person; each says what it is where it stands."""

    target: Annotated[str, Meta(description="auto, fa4 or sim")] = "auto"
    gpu: Annotated[str, Meta(description="NVML index, or UUID or its start; empty: the first that CUDA sees")] = ""
    python: Annotated[str, Meta(description="interpreter that has the target's packages; empty: the present one")] = ""
    theme: Annotated[str, Meta(description="a theme's name (fa4top config --themes lists them)")] = "fa4top-dark"
    refresh_hz: Annotated[float, Meta(description="redraws a second; 0: 4 locally, 2 over SSH")] = 0.0
    ascii: Annotated[bool, Meta(description="plain ASCII instead of blocks and lines")] = False
    mouse: Annotated[bool, Meta(description="listen to the mouse")] = True
    idle_limit_min: Annotated[float, Meta(description="minutes that an engine goes on with nobody watching")] = 15.0
    record: Annotated[bool, Meta(description="keep sessions on disk")] = True
    sessions: Annotated[str, Meta(description="folder of recorded sessions; empty: the user's state folder")] = ""
    keys: Annotated[dict[str, str], Meta(description="action id = key, or several keys with commas between")] = (
        msgspec.field(default_factory=dict)
    )


HELP: dict[str, str] = {
    name: kind.__metadata__[0].description for name, kind in get_type_hints(Config, include_extras=True).items()
}
KINDS = {bool: "true or false", float: "a number", str: "a string"}


def _read(values: Mapping[str, Any], where: str, strict: bool) -> Config:
    """The values as a config; from the environment (not ``strict``) all are strings."""
    if unknown := [name for name in values if name not in HELP]:
        raise ConfigError(f"{where}: unknown key '{unknown[0]}'; there are: {', '.join(HELP)}")
    try:
        return msgspec.convert(values, Config, strict=strict)
    except msgspec.ValidationError as error:
        name = str(error).rpartition("$.")[2].rstrip("`").partition("[")[0]
        wanted = KINDS.get(type(getattr(Config(), name)), "a table of strings")
        raise ConfigError(f"{where}: '{name}' must be {wanted}, not {values[name]!r}") from error


def load_config(path: Path | None = None, environment: Mapping[str, str] = os.environ) -> Config:
    """File and environment; a missing file is an empty one.

    Raises:
        ConfigError: a key that does not exist, a value of the wrong kind, or a file that is no TOML.
    """
    path = path or config_file()
    try:
        loaded = tomllib.loads(path.read_text())
    except FileNotFoundError:
        loaded = {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    config = _read(loaded, str(path), strict=True)
    for name in HELP:
        variable = f"FA4TOP_{name.upper()}"
        if name != "keys" and (text := environment.get(variable)) is not None:
            said = WORDS.get(text.lower(), text) if isinstance(getattr(config, name), bool) else text
            value = getattr(_read({name: said}, variable, strict=False), name)
            config = msgspec.structs.replace(config, **{name: value})
    return config


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
    for name, text in HELP.items():
        value = getattr(defaults, name)
        lines.append(f"# {text}")
        if isinstance(value, dict):
            lines += [f"[{name}]", '# pause = "p"', ""]
        else:
            shown = str(value).lower() if isinstance(value, bool) else repr(value).replace("'", '"')
            lines += [f"{name} = {shown}", ""]
    return "\n".join(lines)
