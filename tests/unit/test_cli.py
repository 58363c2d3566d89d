"""The command line as a shell sees it: stdout is data, stderr is words, codes are documented."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fa4top.orders import exits
from fa4top.records import Header, Notice, TraceSample, stamp, to_line
from fa4top.session.reading import Skipped, decode_line
from fa4top.ui.plots import line_plot
from tests.conftest import run_cli, run_process

pytestmark = pytest.mark.usefixtures("copies")


def test_version_and_help() -> None:
    assert run_process("--version").stdout.startswith("fa4top, version")
    help_text = run_cli("--help").stdout
    assert "Examples:" in help_text and "Exit codes:" in help_text
    for command in ("live", "replay", "sessions", "attach", "doctor", "config", "knobs", "top"):
        assert command in help_text
        said = run_cli(command, "--help")
        assert said.returncode == 0 and "Example" in said.stdout, command


def test_live_json_prints_records_and_nothing_else(home: Path) -> None:
    done = run_process("live", "--target", "sim", "--seconds", "1", "--json")
    assert done.returncode == 0
    skipped = Skipped()
    records = [decode_line(line.encode(), skipped) for line in done.stdout.splitlines()]
    assert skipped.sentence() is None and all(records)
    assert records[0] is not None and isinstance(records[0].body, Header) and records[0].body.simulated
    assert sum(isinstance(r.body, TraceSample) for r in records if r) >= 3
    assert "target sim" in done.stderr and "recorded: fa4top replay" in done.stderr
    folder = next((home / "sessions").iterdir())
    again = run_cli("replay", "--json", str(folder))
    assert again.stdout.splitlines() == done.stdout.splitlines()
    listed = json.loads(run_cli("sessions", "--json").stdout)
    assert [entry["folder"] for entry in listed["recorded"]] == [str(folder)] and not listed["live"]


def test_without_a_terminal_it_prints_the_compact_form(monkeypatch: pytest.MonkeyPatch) -> None:
    from fa4top.cli import top

    done = run_cli("live", "--target", "sim", "--seconds", "1", "--no-record", "--set", "p_split=1/2")
    assert done.returncode == 0
    for words in ("SIMULATED", "p_split=1/2", "softmax0", "wait P 2nd", "kernel account", "probe effect", "TFLOP/s"):
        assert words in done.stdout
    assert done.stdout.rstrip().endswith("(SIMULATED)")
    assert top.HEADLESS_SECONDS == 10.0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--target", "nope"], exits.USAGE, "no target nope"),
        (["--target", "fa4"], exits.NOTHING_TO_RUN_ON, "needs a GPU"),
        (["--set", "p_split"], exits.USAGE, "KNOB=VALUE"),
        (["--set", "p_split=2"], exits.USAGE, "choose one of"),
        (["--set", "p_split=1/4"], exits.USAGE, "--unsafe"),
        (["--set", "q=1"], exits.USAGE, "no knob q"),
        (["--shape", "b1,x"], exits.USAGE, "not understood"),
        (["--shape", "h24,hk7"], exits.USAGE, "kv heads"),
        (["--sim-fault", "rain"], exits.USAGE, "droop"),
        (["--dtype", "int8"], exits.USAGE, "int8"),
        (["--record", "/proc/nowhere"], exits.FAULT, "--no-record"),
    ],
)
def test_what_can_not_run_says_why_in_a_sentence(arguments: list[str], code: int, words: str) -> None:
    done = run_cli("live", "--target", "sim", "--seconds", "1", *arguments)
    assert done.returncode == code and words in done.stderr and not done.stdout
    assert "Traceback" not in done.stderr


def test_a_wrong_output_is_exit_code_1_and_no_numbers() -> None:
    done = run_cli("live", "--target", "sim", "--seconds", "1", "--sim-fault", "check")
    assert done.returncode == exits.CHECK_FAILED and "FAILED" in done.stderr and "TFLOP/s" not in done.stdout


def test_faults_are_exit_code_4_with_the_reason() -> None:
    done = run_cli("live", "--target", "sim", "--seconds", "1", "--sim-fault", "compile")
    assert done.returncode == exits.FAULT and "registers" in done.stderr


def test_unsafe_runs_and_marks_the_session(home: Path) -> None:
    done = run_cli("live", "--target", "sim", "--seconds", "0.5", "--set", "p_split=1/4", "--unsafe")
    assert done.returncode == 0 and "UNSAFE" in done.stdout


def test_replay_of_text_tells_the_end_and_of_rubbish_says_so(tmp_path: Path) -> None:
    rubbish = tmp_path / "x.jsonl"
    rubbish.write_text("hello\n")
    done = run_cli("replay", "--text", str(rubbish))
    assert done.returncode == exits.USAGE and "not a session log" in done.stderr
    assert run_cli("replay", str(tmp_path / "none")).returncode == exits.USAGE
    assert "terminal" in run_cli("replay", str(_log(tmp_path))).stderr


def _log(folder: Path) -> Path:
    path = folder / "log.jsonl"
    path.write_bytes(
        to_line(
            stamp(
                Header(
                    session_id="i",
                    schema_major=1,
                    schema_minor=0,
                    fa4top_version="1",
                    argv=[],
                    python="3",
                    platform="x",
                    simulated=False,
                ),
                "engine",
                1,
            )
        )
        + to_line(stamp(Notice("info", "hi"), "engine", 2))
    )
    return path


def test_doctor_names_what_is_missing_and_the_command() -> None:
    done = run_cli("doctor")
    assert done.returncode in (exits.OK, exits.NOTHING_TO_RUN_ON)
    for words in ("GPU", "numpy", "flash-attn-4", "builtin", "terminal", "sessions", "config"):
        assert words in done.stdout
    found = json.loads(run_cli("doctor", "--json").stdout)
    assert all(
        f["fix"]
        for section in found.values()
        if isinstance(section, list)
        for f in section
        if f["state"] == "missing" and f["what"] != "sockets"
    )
    broken = run_cli("doctor", "--python", "/nowhere/python")
    assert "/nowhere/python does not exist" in broken.stdout


def test_config_and_knobs(home: Path) -> None:
    assert run_cli("config", "--path").stdout.strip() == str(home / "config.toml")
    assert "fa4top-light" in run_cli("config", "--themes").stdout and "zoom" in run_cli("config", "--keys").stdout
    (home / "config.toml").write_text("thme = 1")
    done = run_cli("config")
    assert done.returncode == exits.USAGE and "thme" in done.stderr
    knobs = json.loads(run_cli("knobs", "--json").stdout)
    assert {k["name"] for k in knobs["sim"]} == {"chip", "pv_mode", "p_split", "handicap"} and knobs["fa4"]
    assert "probe sets, sm_103a" in run_cli("knobs", "--target", "fa4").stdout


def test_python_is_remembered(home: Path) -> None:
    import sys

    run_cli("live", "--target", "sim", "--seconds", "0.3", "--python", sys.executable)
    assert sys.executable in (home / "config.toml").read_text()


def test_attach_without_a_session_says_so() -> None:
    done = run_cli("attach")
    assert done.returncode == exits.NOTHING_TO_RUN_ON and "no live session" in done.stderr


def test_plots_are_plain_text_of_the_asked_size() -> None:
    text = line_plot([0, 1, 2, 3], [5.0, float("nan"), 7.0, 6.0], 40, 8)
    assert "\x1b" not in text and max(map(len, text.splitlines())) <= 40 and "7" in text
    assert line_plot([], [], 40, 8) == ""
