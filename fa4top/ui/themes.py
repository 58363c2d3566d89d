"""Colour themes: TOML files, ours and the person's own."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fa4top.resources import resource_folder
from fa4top.session.paths import user_themes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from textual.theme import Theme

DEFAULT_THEME = "fa4top-dark"
COLORS = frozenset(
    {"primary", "secondary", "accent", "warning", "error", "success", "foreground", "background", "surface", "panel"}
)
VARIABLES = frozenset(
    {
        "fa-text",
        "fa-dim",
        "fa-strong",
        "fa-frame",
        "fa-good",
        "fa-warn",
        "fa-bad",
        "fa-role-a",
        "fa-role-b",
        "fa-role-c",
        "fa-role-d",
        "fa-wait-a",
        "fa-wait-b",
        "fa-wait-c",
        "fa-wait-d",
        "fa-on-role",
    }
)


class ThemeError(ValueError):
    """A theme file can not be used; the text names the file and the key."""


@dataclass(frozen=True)
class ThemeFile:
    """One theme as read from its file."""

    name: str
    dark: bool
    colors: dict[str, str]
    variables: dict[str, str]
    source: str

    def to_textual(self) -> Theme:
        """For Textual."""
        from textual.theme import Theme

        return Theme(name=self.name, dark=self.dark, variables=dict(self.variables), **self.colors)  # type: ignore[arg-type]


def read_theme(path: Path) -> ThemeFile:
    """Read and check one file.

    Raises:
        ThemeError: no TOML, a missing or unknown colour, or a colour that is none.
    """
    from textual.color import Color, ColorParseError

    try:
        data: dict[str, Any] = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ThemeError(f"{path}: {error}") from error
    name, colors, variables = data.get("name"), data.get("colors", {}), data.get("variables", {})
    if not isinstance(name, str) or not isinstance(colors, dict) or not isinstance(variables, dict):
        raise ThemeError(f"{path}: a theme has name, dark, [colors] and [variables]")
    if unknown := sorted(set(colors) - COLORS):
        raise ThemeError(f"{path}: unknown colour {', '.join(unknown)}; there are {', '.join(sorted(COLORS))}")
    if missing := sorted((COLORS - set(colors)) | (VARIABLES - set(variables))):
        raise ThemeError(f"{path}: missing {', '.join(missing)}")
    for key, value in {**colors, **variables}.items():
        try:
            Color.parse(str(value))
        except ColorParseError as error:
            raise ThemeError(f"{path}: {key} = {value!r} is no colour") from error
    return ThemeFile(name, bool(data.get("dark", True)), colors, variables, str(path))


def load_themes() -> list[ThemeFile]:
    """Ours first, then the person's own (which may replace ours by name). Broken files of theirs are an error."""
    themes = {theme.name: theme for theme in map(read_theme, sorted(resource_folder("themes").glob("*.toml")))}
    own = user_themes()
    if own.is_dir():
        for path in sorted(own.glob("*.toml")):
            theme = read_theme(path)
            themes[theme.name] = theme
    return list(themes.values())
