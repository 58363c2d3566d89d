"""A session's spans and counters as Chrome's trace JSON."""

from __future__ import annotations

import json

from fa4top.analysis.view.spans import Exported, SpanRow


def chrome(found: Exported) -> bytes:
    """Chrome's JSON: microseconds; a thread for each role and kind of span."""
    label = found.label
    events: list[dict[str, object]] = []
    threads: dict[tuple[str, str], int] = {}

    def thread(span: SpanRow) -> int:
        key = (span.role, span.name)
        if key not in threads:
            threads[key] = len(threads) + 1
            name = {"name": f"{label}{span.role} (traced): {span.name}"}
            events.append({"ph": "M", "pid": 1, "tid": threads[key], "name": "thread_name", "args": name})
        return threads[key]

    for span in found.spans:
        events.append(
            {
                "ph": "X",
                "pid": 1,
                "tid": thread(span),
                "name": span.name,
                "ts": span.begin_ns / 1000.0,
                "dur": span.duration_ns / 1000.0,
                "args": {"launch": span.launch, "CTA": span.cta, "SM": span.sm},
            }
        )
    for counter in found.counters:
        name = f"{label}{counter.name}"
        events.append(
            {"ph": "C", "pid": 1, "name": name, "ts": counter.time_ns / 1000.0, "args": {counter.unit: counter.value}}
        )
    return json.dumps({"traceEvents": events, "otherData": {"simulated": found.simulated, **found.about}}).encode()
