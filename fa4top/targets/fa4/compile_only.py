"""Compile one setting of flash-attn-4 for any architecture, without a GPU.

In a process of its own: it replaces what the DSL asks the driver, and the architecture is read at import.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fa4top.records import Geometry, Shape
from fa4top.targets.launcher import TargetError

# SMs of the chips, for the tile scheduler
SM_COUNTS = {"sm_90a": 132, "sm_100a": 148, "sm_103a": 148}
# where probes would write: any address will do
BUFFER, CONFIG = 0x7FFF_0000_0000, 0x7FFE_0000_0000


class Hardware:
    """Answers the DSL's questions without a driver."""

    sms = 148

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def get_max_active_clusters(self, size: int, *args: Any, **kwargs: Any) -> int:
        """As many clusters as there are SMs for."""
        return self.sms // size

    def get_device_multiprocessor_count(self) -> int:
        """SMs of the chip."""
        return self.sms


@dataclass(frozen=True)
class Compiled:
    """One kernel: its cubin and PTX, the versions that made it, how it lays the problem out, and, with probes, their
    counts by role and what the injector noted."""

    cubin: bytes
    ptx: str
    versions: dict[str, str]
    geometry: Geometry
    probe_counts: dict[str, int]
    notes: tuple[str, ...]


def compile_only(shape: Shape, arch: str, knobs: dict[str, str], probe_set: str) -> Compiled:
    """Compile one setting.

    Args:
        probe_set: which probes are compiled in; '' for none.

    Raises:
        TargetError: the package is missing, or has no kernel for this.
    """
    if arch not in SM_COUNTS:
        raise TargetError("unsupported GPU", f"no {arch}; there are: {', '.join(SM_COUNTS)}", "--arch sm_103a")
    with tempfile.TemporaryDirectory(prefix="fa4top-compile-") as folder:
        os.environ.update(
            CUTE_DSL_ARCH=arch,
            FLASH_ATTENTION_ARCH=arch,
            FLASH_ATTENTION_NUM_SMS=str(SM_COUNTS[arch]),
            CUTE_DSL_KEEP_PTX="1",
            CUTE_DSL_KEEP_CUBIN="1",
            CUTE_DSL_DUMP_DIR=folder,
        )
        versions, geometry, injection = _forward(shape, arch, knobs, probe_set, folder)
        found = sorted(Path(folder).glob("*.cubin"))
        if not found:
            raise TargetError("compile error", "the DSL left no cubin", "fa4top doctor shows the DSL's version")
        ptx = next(iter(sorted(Path(folder).glob("*.ptx"))), None)
        text = ptx.read_text().replace("\0", "") if ptx else ""
        cubin = max(found, key=lambda path: path.stat().st_size).read_bytes()
        counts = dict(injection.probe_counts()) if injection else {}
        return Compiled(cubin, text, versions, geometry, counts, tuple(injection.notes) if injection else ())


def _forward(
    shape: Shape, arch: str, knobs: dict[str, str], probe_set: str, folder: str
) -> tuple[dict[str, str], Geometry, Any]:
    from fa4top.targets.fa4 import environment, package
    from fa4top.targets.fa4.geometry import kernel_geometry
    from fa4top.targets.fa4.launch import keywords
    from fa4top.targets.fa4.probes import FAMILIES

    environment.prepare(knobs, folder)
    kernels = package.Kernels(knobs)
    import cutlass.utils
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    Hardware.sms = SM_COUNTS[arch]
    cutlass.utils.HardwareInfo = Hardware
    injection = None
    if probe_set:
        from fa4top.targets.fa4 import inject

        probes = FAMILIES[arch]
        injection = inject.install(probes, next(s for s in probes.sets if s.name == probe_set), BUFFER, CONFIG)
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp8": torch.float8_e4m3fn}[shape.dtype]
    sizes = (
        (shape.seqlen_q, shape.heads, shape.head_dim),
        (shape.seqlen_k, shape.kv_heads, shape.head_dim),
        (shape.seqlen_k, shape.kv_heads, shape.head_dim_v),
    )
    with FakeTensorMode():
        q, k, v = (torch.empty(shape.batch, *size, dtype=kind, device="cuda") for size in sizes)
        kernels.forward(q, k, v, causal=shape.causal, **keywords(knobs))
    return package.versions(), kernel_geometry(kernels.kernel, shape, SM_COUNTS[arch]), injection
