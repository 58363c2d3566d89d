"""Attention problems as people write them: ``b1,s8192,h24,d128``."""

from __future__ import annotations

import re
from dataclasses import replace

from fa4top.orders.presets import PRESETS
from fa4top.records import Shape

DTYPES = ("bf16", "fp16", "fp8")
CAUSAL = "causal"

_FIELD = {
    "b": "batch",
    "s": "seqlen",
    "sq": "seqlen_q",
    "sk": "seqlen_k",
    "h": "heads",
    "hk": "kv_heads",
    "d": "head_dim",
    "dv": "head_dim_v",
}
_PART = re.compile(r"(sq|sk|hk|dv|b|s|h|d)=?(\d+)$")


class ShapeError(ValueError):
    """A shape that can not be read; the text says why."""


def parse_shape(text: str, default: Shape) -> Shape:
    """Read ``b1,s8192,h24,d128``; parts left out keep the default's values, ``s`` sets both lengths. Or a preset.

    Raises:
        ShapeError: with one sentence.
    """
    if (preset := PRESETS.get(text.strip())) is not None:
        batch, length, heads, dim = preset
        text = f"b{batch},s{length},h{heads},d{dim}"
    values: dict[str, int] = {}
    for part in filter(None, re.split(r"[,\s]+", text.strip())):
        match = _PART.fullmatch(part)
        if match is None:
            raise ShapeError(
                f"shape part '{part}' is not understood; write b1,s8192,h24,d128 "
                "(also sq, sk for lengths apart, hk for kv heads, dv for V's head dim), or a published shape: "
                + ", ".join(PRESETS)
            )
        values[_FIELD[match[1]]] = int(match[2])
    if any(number < 1 for number in values.values()):
        raise ShapeError("every number in a shape must be at least 1")
    if "seqlen" in values:
        length = values.pop("seqlen")
        values.setdefault("seqlen_q", length)
        values.setdefault("seqlen_k", length)
    if "heads" in values:
        values.setdefault("kv_heads", values["heads"])
    if "head_dim" in values:
        values.setdefault("head_dim_v", values["head_dim"])
    return replace(default, **values)  # type: ignore[arg-type]


def format_shape(shape: Shape) -> str:
    """The short form that ``parse_shape`` reads."""
    lengths = f"s{shape.seqlen_q}" if shape.seqlen_q == shape.seqlen_k else f"sq{shape.seqlen_q},sk{shape.seqlen_k}"
    kv = "" if shape.kv_heads == shape.heads else f",hk{shape.kv_heads}"
    dv = "" if shape.head_dim_v == shape.head_dim else f",dv{shape.head_dim_v}"
    return f"b{shape.batch},{lengths},h{shape.heads}{kv},d{shape.head_dim}{dv}"


def shape_words(shape: Shape) -> str:
    """The short form with mask and dtype behind it, as ``parse_problem`` reads it and screens show it."""
    return " ".join([format_shape(shape), *([CAUSAL] if shape.causal else []), shape.dtype])


def parse_problem(text: str, default: Shape) -> Shape:
    """Read sizes, ``causal`` and a dtype, in any order, with commas or blanks between. Without ``causal`` there is no
    mask; without a dtype the default's stays.

    Raises:
        ShapeError: with one sentence; every word is taken or named.
    """
    words = [word for word in re.split(r"[,\s]+", text.strip()) if word]
    sizes = [word for word in words if word not in (*DTYPES, CAUSAL)]
    if wrong := [word for word in sizes if re.fullmatch(r"(bf|fp|f|e\dm)\d+\w*", word)]:
        raise ShapeError(f"dtype {wrong[0]} is unknown; choose one of {', '.join(DTYPES)}")
    dtypes = [word for word in words if word in DTYPES]
    if len(set(dtypes)) > 1:
        raise ShapeError(f"{' and '.join(dict.fromkeys(dtypes))}: a problem has one dtype")
    shape = parse_shape(",".join(sizes), default)
    return replace(shape, causal=CAUSAL in words, dtype=dtypes[0] if dtypes else default.dtype)
