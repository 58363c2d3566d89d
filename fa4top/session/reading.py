"""Lines of a log to typed records, validated. Tolerant as the format promises: a torn last line, unknown kinds and
newer minor versions are skipped and counted; a newer major version is refused."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec

from fa4top.records import KINDS, SCHEMA_MAJOR, SCHEMA_MINOR, Envelope, Header
from fa4top.session.upgrade import Upgrade


class LogError(RuntimeError):
    """This file can not be read as a session log; the text says why."""


class _Line(msgspec.Struct):
    kind: str
    seq: int
    wall_ns: int
    mono_ns: int
    source: str
    body: msgspec.Raw
    simulated: bool = False


class _Version(msgspec.Struct):
    schema_major: int
    schema_minor: int = 0
    fa4top_version: str = "?"


_VERSION = msgspec.json.Decoder(_Version)
_DECODER = msgspec.json.Decoder(_Line)
_BODIES = {kind: msgspec.json.Decoder(body) for kind, body in KINDS.items()}


@dataclass
class Skipped:
    """What was passed over, for one notice to the reader."""

    unknown: int = 0
    broken: int = 0
    newer_minor: bool = False

    def sentence(self) -> str | None:
        """What to tell the person; None when nothing was skipped."""
        parts = []
        if self.newer_minor:
            parts.append("the log was written by a newer fa4top")
        if self.unknown:
            parts.append(f"{self.unknown} records of unknown kinds skipped")
        if self.broken:
            parts.append(f"{self.broken} damaged lines skipped")
        return "; ".join(parts) or None


def decode_line(line: bytes, skipped: Skipped, upgrade: Upgrade | None = None) -> Envelope | None:
    """One complete line to one record; None when it is to be skipped.

    Args:
        upgrade: brings records of an older log up to date; the log's header and plans must have gone through it.

    Raises:
        LogError: the header is of a newer major version.
    """
    if not line.strip():
        return None
    try:
        outer = _DECODER.decode(line)
    except msgspec.MsgspecError:
        skipped.broken += 1
        return None
    decoder = _BODIES.get(outer.kind)
    if decoder is None:
        skipped.unknown += 1
        return None
    try:
        if outer.kind == Header.kind:
            _check_version(_VERSION.decode(outer.body), skipped)
        body = decoder.decode(outer.body)
        body = upgrade.body(body) if upgrade is not None else body
    except msgspec.MsgspecError:
        skipped.broken += 1
        return None
    return Envelope(
        kind=outer.kind,
        seq=outer.seq,
        wall_ns=outer.wall_ns,
        mono_ns=outer.mono_ns,
        source=outer.source,
        body=body,
        simulated=outer.simulated,
    )


def _check_version(version: _Version, skipped: Skipped) -> None:
    if version.schema_major > SCHEMA_MAJOR:
        raise LogError(
            f"this log has schema {version.schema_major}.{version.schema_minor}, written by fa4top "
            f"{version.fa4top_version}; this fa4top reads up to {SCHEMA_MAJOR}.x: upgrade fa4top"
        )
    skipped.newer_minor |= (version.schema_major, version.schema_minor) > (SCHEMA_MAJOR, SCHEMA_MINOR)


def open_log(path: Path) -> IO[bytes]:
    """Open a log, a session folder or a gzipped log.

    Raises:
        LogError: there is nothing to read.
    """
    if path.is_dir():
        path = path / "log.jsonl"
    try:
        handle: IO[bytes] = path.open("rb")
    except OSError as error:
        raise LogError(f"{path}: {error.strerror}") from error
    if handle.read(2) == b"\x1f\x8b":
        handle.close()
        return gzip.open(path, "rb")  # type: ignore[return-value]
    handle.seek(0)
    return handle


def read_log(path: Path, skipped: Skipped | None = None) -> Iterator[Envelope]:
    """All records of a finished log, in order.

    Raises:
        LogError: not a session log, or of a newer major version.
    """
    skipped = skipped if skipped is not None else Skipped()
    upgrade = Upgrade()
    first = True
    with open_log(path) as handle:
        try:
            for line in handle:
                record = decode_line(line, skipped, upgrade)
                if record is None:
                    continue
                if first and not isinstance(record.body, Header):
                    raise LogError(f"{path} is not a session log: its first record is no header")
                first = False
                yield record
        except (OSError, EOFError):
            skipped.broken += 1  # a gzip file cut short
    if first:
        raise LogError(f"{path} is not a session log: no readable record in it")
