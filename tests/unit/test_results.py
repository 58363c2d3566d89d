"""What a session was about is in every form of it: text, Markdown, HTML and tables say what the records say."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from click.testing import CliRunner

from fa4top.analysis.view.fold import fold_records
from fa4top.analysis.view.results import results
from fa4top.analysis.view.snapshot import Snapshot
from fa4top.cli.export import command as export
from fa4top.cli.replay import command as replay
from fa4top.session.reading import read_log
from tests.conftest import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.jsonl.gz"))


def snapshot_of(path: Path) -> Snapshot:
    return fold_records(read_log(path))


def exported(path: Path, kind: str, tmp_path: Path) -> str:
    out = tmp_path / kind
    done = CliRunner().invoke(export, [str(path), "--format", kind, "--out", str(out)])
    assert done.exit_code == 0, done.output
    return out.read_text()


def shown(path: Path, tmp_path: Path) -> dict[str, str]:
    text = CliRunner().invoke(replay, [str(path), "--text"])
    assert text.exit_code == 0, text.output
    unescaped = exported(path, "html", tmp_path).replace("&#x27;", "'").replace("&lt;", "<").replace("&gt;", ">")
    return {
        "text": text.output,
        "md": exported(path, "md", tmp_path).replace("\\", ""),
        "html": unescaped.replace("&amp;", "&").replace("&quot;", '"'),
    }


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_form_has_every_cell_of_every_table(path: Path, tmp_path: Path) -> None:
    forms = shown(path, tmp_path)
    found = results(snapshot_of(path))
    assert found
    for result in found:
        for name, form in forms.items():
            assert result.sentence in form or not result.sentence, (name, result.sentence)
            for table in result.tables:
                for row in table.rows:
                    missing = [cell for cell in row if cell.strip() and cell.strip() not in form]
                    assert not missing, (name, table.title, missing)


def test_an_a_b_has_both_arms_and_its_verdict(tmp_path: Path) -> None:
    path = ROOT / "examples" / "h200-ab-split.jsonl.gz"
    state = snapshot_of(path).ab
    assert state is not None and state.word == "faster"
    for form in shown(path, tmp_path).values():
        assert state.text in form and "p_split" in form and "1/2" in form and "3/4" in form


def test_a_bench_has_all_its_figures_in_a_table(tmp_path: Path) -> None:
    path = ROOT / "examples" / "h200-bench.jsonl.gz"
    measured = {result.name: result.value for result in snapshot_of(path).bench if result.value is not None}
    rows = list(csv.DictReader(io.StringIO(exported(path, "csv", tmp_path))))
    values = [float(row["value"]) for row in rows]
    assert len(measured) == 39, "58 less those that a Hopper chip lacks"
    for name, value in measured.items():
        assert any(value == pytest.approx(each, rel=1e-9) for each in values), name


def test_a_sweep_has_every_setting_in_a_table(tmp_path: Path) -> None:
    path = ROOT / "examples" / "h200-sweep-fp8.jsonl.gz"
    points = [point for point in snapshot_of(path).sweep_points if point.tflops]
    rows = list(csv.DictReader(io.StringIO(exported(path, "csv", tmp_path))))
    values = {float(row["value"]) for row in rows}
    assert len(points) == 8 and all(any(p.tflops == pytest.approx(v, rel=1e-9) for v in values) for p in points)
