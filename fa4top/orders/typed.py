"""What a person types for a job, on the command line or in a form, as values. Errors are sentences for the person."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from math import isfinite


def settings(words: Iterable[str], flag: str = "") -> dict[str, str]:
    """``KNOB=VALUE`` words as a setting.

    Args:
        flag: what stands in front of each on the command line, for the sentence.

    Raises:
        ValueError: a word is none; the text names it.
    """
    chosen: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or not value:
            typed = f"{flag} {word}".strip() if flag else f"'{word}'"
            raise ValueError(f"{typed}: write KNOB=VALUE, for example {f'{flag} ' if flag else ''}p_split=1/2")
        chosen[name] = value
    return chosen


def setting_words(knobs: dict[str, str]) -> str:
    """A setting as ``settings`` reads it, with blanks between."""
    return " ".join(f"{name}={value}" for name, value in knobs.items())


def knob_values(text: str) -> tuple[str, list[str]]:
    """``KNOB=VALUE,VALUE`` as a person types it; a value that comes twice counts once.

    Raises:
        ValueError: with the sentence for the person.
    """
    name, equals, rest = text.partition("=")
    values = [value.strip() for value in rest.split(",") if value.strip()]
    if not equals or not name.strip() or not values:
        raise ValueError(f"'{text}': write KNOB=VALUE,VALUE, for example p_split=1/4,1/2,3/4")
    return name.strip(), list(dict.fromkeys(values))


def margin_share(text: str) -> float:
    """``1%`` or ``0.01`` as a relative number.

    Raises:
        ValueError: with the sentence for the person.
    """
    match = re.fullmatch(r"\s*([\d.]+)\s*(%?)\s*", text)
    try:
        share = float(Decimal(match[1]) / (100 if match[2] else 1)) if match else 0.0
    except InvalidOperation:
        share = 0.0
    if not 0.0 < share < 0.5:
        raise ValueError(f"margin {text}: write a share between 0 and 50%, for example 1%")
    return share


def margin_text(share: float) -> str:
    """A share as ``margin_share`` reads it."""
    return f"{(100 * Decimal(repr(share))).normalize():f}%"


def budget_seconds(text: str) -> float:
    """``30s``, ``2m`` or ``45`` as seconds.

    Raises:
        ValueError: with the sentence for the person.
    """
    match = re.fullmatch(r"\s*([\d.]+)\s*(s|m|min)?\s*", text)
    try:
        seconds = float(match[1]) * (60.0 if match[2] in ("m", "min") else 1.0) if match else 0.0
    except ValueError:
        seconds = 0.0
    if seconds <= 0 or not isfinite(seconds):
        raise ValueError(f"budget {text}: write a time, for example 30s or 2m")
    return seconds


def budget_text(seconds: float) -> str:
    """Seconds as ``budget_seconds`` reads them."""
    return f"{Decimal(repr(seconds)).normalize():f}s"
