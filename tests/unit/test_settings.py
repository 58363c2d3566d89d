"""Config, themes, keys, and files that travel with the wheel."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from fa4top.resources import resource_folder
from fa4top.session.config import Config, ConfigError, example, load_config, remember
from fa4top.ui.actions import ACTIONS, KeyMapError, key_map
from fa4top.ui.app import default_hz
from fa4top.ui.themes import DEFAULT_THEME, ThemeError, load_themes, read_theme
from tests.conftest import ROOT


def test_no_file_means_defaults(tmp_path: Path) -> None:
    assert load_config(tmp_path / "none.toml", {}) == Config()


def test_the_example_is_a_valid_config_with_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(example())
    assert load_config(path, {}) == Config()


def test_environment_wins_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('theme = "fa4top-light"\nrefresh_hz = 1\n[keys]\npause = "u"\n')
    config = load_config(path, {"FA4TOP_THEME": "fa4top-16", "FA4TOP_ASCII": "1"})
    assert (config.theme, config.refresh_hz, config.ascii, config.keys) == ("fa4top-16", 1.0, True, {"pause": "u"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("colour = 1", ["unknown key 'colour'", "theme"]),
        ("theme = 3", ["'theme' must be a string"]),
        ("mouse = 'maybe'", ["true or false"]),
        ("refresh_hz = 'fast'", ["a number"]),
        ("[keys]\npause = 1", ["table of strings"]),
        ("theme = ", ["config.toml"]),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, words: list[str]) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(path, {})
    assert all(word in str(caught.value) for word in [*words, "config.toml"])


def test_remembering_keeps_what_a_person_wrote(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config.toml"
    remember("python", "/a/python", path)
    path.write_text("# mine\n" + path.read_text() + '[keys]\npause = "u"\n')
    remember("python", "/b/python", path)
    assert "# mine" in path.read_text() and load_config(path, {}).python == "/b/python"
    assert load_config(path, {}).keys == {"pause": "u"}


def test_all_themes_are_complete_and_one_uses_sixteen_colours() -> None:
    themes = {theme.name: theme for theme in load_themes()}
    assert {DEFAULT_THEME, "fa4top-light", "fa4top-16"} <= set(themes)
    assert not themes["fa4top-light"].dark
    standard = {f"#{r:02x}{g:02x}{b:02x}" for level in (0x80, 0xFF) for r in (0, level) for g in (0, level)
                for b in (0, level)} | {"#c0c0c0"}  # fmt: skip
    used = {*themes["fa4top-16"].colors.values(), *themes["fa4top-16"].variables.values()}
    assert used <= standard


def test_a_persons_own_theme_is_found(home: Path) -> None:
    (home / "themes").mkdir()
    text = (resource_folder("themes") / "fa4top-dark.toml").read_text()
    (home / "themes" / "mine.toml").write_text(text.replace('"fa4top-dark"', '"mine"').replace("#87d787", "#00ff00"))
    mine = next(theme for theme in load_themes() if theme.name == "mine")
    assert mine.colors["success"] == "#00ff00" and mine.to_textual().name == "mine"


@pytest.mark.parametrize(
    ("change", "word"),
    [(("primary", "primry"), "primry"), (("#5fafff", "bluish"), "bluish"), (('fa-good = "#87d787"\n', ""), "fa-good")],
)
def test_a_broken_theme_is_refused_by_name(tmp_path: Path, change: tuple[str, str], word: str) -> None:
    text = (resource_folder("themes") / "fa4top-dark.toml").read_text()
    path = tmp_path / "broken.toml"
    path.write_text(text.replace(*change))
    with pytest.raises(ThemeError, match=word):
        read_theme(path)


def test_keys_survive_tmux_and_can_be_changed() -> None:
    keys = key_map({})
    assert len({a.id for a in ACTIONS}) == len(ACTIONS) and set(keys) == {a.id for a in ACTIONS}
    for value in keys.values():
        assert not {"ctrl+b", "ctrl+a", "ctrl+s", "ctrl+j", "ctrl+m", "ctrl+h"} & set(value.split(","))
    assert key_map({"pause": "u"})["pause"] == "u"


@pytest.mark.parametrize(
    ("chosen", "word"), [({"dance": "u"}, "dance"), ({"pause": "ctrl+b"}, "eat"), ({"pause": "z"}, "zoom")]
)
def test_bad_keys_are_refused_by_name(chosen: dict[str, str], word: str) -> None:
    with pytest.raises(KeyMapError, match=word):
        key_map(chosen)


def test_redraw_rate() -> None:
    assert default_hz(0, {}) == 4 and default_hz(0, {"SSH_CONNECTION": "x"}) == 2
    assert default_hz(1, {"SSH_CONNECTION": "x"}) == 1 and default_hz(99, {}) == 10


def test_the_checkout_and_the_wheel_carry_themes_and_kernels(tmp_path: Path) -> None:
    assert (resource_folder("themes") / "fa4top-dark.toml").exists() and resource_folder("kernels").is_dir()
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(tmp_path), str(ROOT)],
        check=True, capture_output=True,
    )  # fmt: skip
    wheel = next(tmp_path.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); import fa4top.resources as r;"
        "assert str(r.PACKAGE).startswith(sys.path[0]), r.PACKAGE;"
        "from fa4top.ui.themes import load_themes; print([t.name for t in load_themes()], r.resource_folder('kernels'))"
    )
    said = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "fa4top-light" in said and "_data/kernels" in said
