"""Text graphics as pure functions: bars, blocks, frames, axes. Rows are lists of (text, style name)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Run = tuple[str, str]
Row = list[Run]

EIGHTHS = " ▁▂▃▄▅▆▇█"
HALVES_ASCII = " .:#"


@dataclass(frozen=True)
class Glyphs:
    """One set of characters."""

    full: str
    thin: str
    steps: str
    corners: str
    horizontal: str
    vertical: str
    dot: str
    arrow: str
    tick: str
    cross: str


UNICODE = Glyphs("█", "─", EIGHTHS, "┌┐└┘", "─", "│", "·", "▶", "✓", "✗")
ASCII = Glyphs("#", "-", HALVES_ASCII, "++++", "-", "|", ".", ">", "ok", "X")


def glyphs(ascii_only: bool) -> Glyphs:
    """The set for a terminal."""
    return ASCII if ascii_only else UNICODE


def blocks(values: Sequence[float | None], height: int, low: float, high: float, steps: str = EIGHTHS) -> list[str]:
    """Columns as bars in ``height`` text rows, top row first; None leaves a gap. A value at ``low`` shows one step."""
    span = max(high - low, 1e-9)
    parts = len(steps) - 1
    levels = [
        None if value is None else max(1, min(height * parts, math.ceil((value - low) / span * height * parts)))
        for value in values
    ]
    rows = []
    for row in range(height - 1, -1, -1):
        base = row * parts
        rows.append("".join(" " if level is None else steps[max(0, min(parts, level - base))] for level in levels))
    return rows


def buckets(points: Sequence[tuple[float, float]], end: float, span_s: float, width: int) -> list[float | None]:
    """Medians of points in ``width`` equal buckets of the last ``span_s`` seconds. Bucket edges are multiples of the
    bucket's length, so columns move as a whole and values do not jitter between buckets."""
    size = span_s / width
    last = math.floor(end / size)
    first = last - width + 1
    columns: list[list[float]] = [[] for _ in range(width)]
    for time_s, value in points:
        index = int(time_s // size) - first
        if 0 <= index < width:
            columns[index].append(value)
    return [sorted(column)[len(column) // 2] if column else None for column in columns]


def nice_range(low: float, high: float, least_share: float = 0.04) -> tuple[float, float]:
    """A round interval that holds [low, high] and spans at least ``least_share`` of the values."""
    middle = (low + high) / 2
    span = max(high - low, abs(middle) * least_share, 1e-6)
    step = 10 ** math.floor(math.log10(span))
    for factor in (0.2, 0.25, 0.5, 1.0, 2.0):
        if span / (step * factor) <= 6:
            step *= factor
            break
    return math.floor(min(low, middle - span / 2) / step) * step, math.ceil(max(high, middle + span / 2) / step) * step


def bar(share: float, width: int, full: str) -> str:
    """A horizontal bar; any share above 0 shows at least one cell."""
    cells = round(max(0.0, min(1.0, share)) * width)
    return full * (max(1, cells) if share > 0.002 else cells)


def fit(row: Row, width: int) -> Row:
    """Cut or pad a row to exactly ``width`` cells."""
    if length(row) == width:
        return row
    out: Row = []
    used = 0
    for text, style in row:
        if used >= width:
            break
        part = text[: width - used]
        out.append((part, style))
        used += len(part)
    if used < width:
        out.append((" " * (width - used), "text"))
    return out


def merged(row: Row) -> Row:
    """Neighbouring runs of the same style as one: fewer escape sequences."""
    out: Row = []
    for text, style in row:
        if not text:
            continue
        if out and out[-1][1] == style:
            out[-1] = (out[-1][0] + text, style)
        else:
            out.append((text, style))
    return out


def length(row: Row) -> int:
    """Cells of a row. All glyphs in use are one cell wide."""
    return sum(len(text) for text, _ in row)


def frame(
    rows: list[Row], width: int, height: int, title: str, g: Glyphs, right: str = "", foot: str = ""
) -> list[Row]:
    """Put rows into a box of exactly ``width`` x ``height`` with a title, a right title and a foot."""
    inner = width - 2
    top_left, top_right, bottom_left, bottom_right = tuple(g.corners)
    head = f" {title} " if title else ""
    tail = f" {right} " if right else ""
    if len(head) + len(tail) > inner - 2:
        tail = tail if len(tail) <= inner - 2 else ""
        head = head[: max(0, inner - 2 - len(tail))]
    fill = g.horizontal * (inner - len(head) - len(tail) - 1)
    top: Row = [
        (top_left, "frame"),
        (head, "title"),
        (fill, "frame"),
        (tail, "strong"),
        (g.horizontal + top_right, "frame"),
    ]
    note = f" {foot} "[: inner - 1] if foot else ""
    bottom: Row = [
        (bottom_left + g.horizontal * bool(note), "frame"),
        (note, "dim"),
        (g.horizontal * (inner - len(note) - bool(note)) + bottom_right, "frame"),
    ]
    body = [
        [(g.vertical, "frame"), *fit(rows[i] if i < len(rows) else [], inner), (g.vertical, "frame")]
        for i in range(height - 2)
    ]
    return [top, *body, bottom]


def number(value: float | None, digits: int = 0) -> str:
    """A number with a thin separator for thousands, '?' when it is not known."""
    if value is None or not math.isfinite(value):
        return "?"
    return f"{value:,.{digits}f}".replace(",", " ")
