"""A session's figures as a long table: CSV, or Parquet (the `export` extra)."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, fields

from fa4top.analysis.view.long_table import TableRow
from fa4top.analysis.view.spans import Exported


def table_csv(found: Exported) -> bytes:
    """The long table."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [each.name for each in fields(TableRow)])
    writer.writeheader()
    writer.writerows(asdict(row) for row in found.rows)
    return text.getvalue().encode()


def parquet(found: Exported) -> bytes:
    """The long table; facts about the session are in the file's metadata."""
    import pyarrow
    from pyarrow import parquet as writer

    table = pyarrow.Table.from_pylist([asdict(row) for row in found.rows])
    known = {**found.about, "simulated": str(found.simulated)}
    table = table.replace_schema_metadata({key.encode(): value.encode() for key, value in known.items()})
    made = io.BytesIO()
    writer.write_table(table, made)
    return made.getvalue()
