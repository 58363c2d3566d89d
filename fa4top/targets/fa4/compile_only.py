"""Compile one setting of flash-attn-4 for any architecture, without a GPU.

In a process of its own: it replaces what the DSL asks the driver, and the architecture is read at import.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from fa4top.analysis.chip.chips import NEWEST, Chip, chip_of
from fa4top.records import Geometry, Shape
from fa4top.targets.fa4.probes import PROBES, choose_set
from fa4top.targets.launcher import Compiled, TargetError

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


def compile_only(shape: Shape, arch: str, knobs: dict[str, str], probe_set: str) -> Compiled:
    """Compile one setting.

    Args:
        probe_set: which probes are compiled in; '' for none.

    Raises:
        TargetError: the package is missing, or has no kernel for this.
    """
    chip = chip_of(arch)
    if chip is None or arch not in PROBES:
        raise TargetError("unsupported GPU", f"no {arch}; there are: {', '.join(PROBES)}", f"--arch {NEWEST}")
    with tempfile.TemporaryDirectory(prefix="fa4top-compile-") as folder:
        os.environ.update(
            CUTE_DSL_ARCH=arch,
            FLASH_ATTENTION_ARCH=arch,
            FLASH_ATTENTION_NUM_SMS=str(chip.sms),
            CUTE_DSL_KEEP_PTX="1",
            CUTE_DSL_KEEP_CUBIN="1",
            CUTE_DSL_DUMP_DIR=folder,
        )
        versions, geometry, injection = _forward(shape, chip, knobs, probe_set, folder)
        found = sorted(Path(folder).glob("*.cubin"))
        if not found:
            raise TargetError("compile error", "the DSL left no cubin", "fa4top doctor shows the DSL's version")
        ptx = next(iter(sorted(Path(folder).glob("*.ptx"))), None)
        text = ptx.read_text().replace("\0", "") if ptx else ""
        cubin = max(found, key=lambda path: path.stat().st_size).read_bytes()
        counts = dict(injection.probe_counts()) if injection else {}
        return Compiled(
            cubin=cubin,
            ptx=text,
            versions=versions,
            geometry=geometry,
            probe_counts=counts,
            notes=tuple(injection.notes) if injection else (),
        )


def _forward(
    shape: Shape, chip: Chip, knobs: dict[str, str], probe_set: str, folder: str
) -> tuple[dict[str, str], Geometry, Any]:
    from fa4top.targets.fa4 import environment, package
    from fa4top.targets.fa4.geometry import kernel_geometry
    from fa4top.targets.fa4.launch import keywords

    environment.prepare(knobs, folder)
    kernels = package.Kernels(knobs)
    import cutlass.utils
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    Hardware.sms = chip.sms
    cutlass.utils.HardwareInfo = Hardware
    injection = None
    if probe_set:
        from fa4top.targets.fa4 import injection as injecting

        probes = PROBES[chip.arch]
        injection = injecting.install(probes, choose_set(probes, probe_set), BUFFER, CONFIG)
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp8": torch.float8_e4m3fn}[shape.dtype]
    sizes = (
        (shape.seqlen_q, shape.heads, shape.head_dim),
        (shape.seqlen_k, shape.kv_heads, shape.head_dim),
        (shape.seqlen_k, shape.kv_heads, shape.head_dim_v),
    )
    with FakeTensorMode():
        q, k, v = (torch.empty(shape.batch, *size, dtype=kind, device="cuda") for size in sizes)
        kernels.forward(q, k, v, causal=shape.causal, **keywords(knobs))
    return package.versions(), kernel_geometry(kernels.kernel, shape, chip.sms), injection
