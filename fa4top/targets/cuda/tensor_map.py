"""TMA descriptors, by the driver's own encoder. Workers only."""

from __future__ import annotations

import ctypes

import numpy as np
import numpy.typing as npt

from fa4top.targets.cuda.by_value import by_value
from fa4top.targets.launcher import TargetError

WORDS = 16
# CUtensorMapDataType, CUtensorMapSwizzle, CUtensorMapL2promotion (cuda.h)
DATA_TYPES = {"u8": 0, "bf16": 9}
BYTES = {"u8": 1, "bf16": 2}
SWIZZLE_128B = 3
L2_256B = 3


def encode(address: int, kind: str, shape: tuple[int, ...], box: tuple[int, ...]) -> npt.NDArray[np.void]:
    """A descriptor of a dense tensor with 128-byte swizzle, as one kernel parameter of 128 bytes.

    Args:
        address: device address, 16-byte aligned.
        kind: ``bf16`` or ``u8``.
        shape: extents, innermost first. box: extents of one copy, innermost first.

    Raises:
        TargetError: the driver refused.
    """
    rank = len(shape)
    words = np.zeros(WORDS + 8, dtype=np.uint64)
    start = (-words.ctypes.data // 8) % 8  # the driver wants 64-byte alignment
    aligned = words[start : start + WORDS]
    strides = np.cumprod([BYTES[kind], *shape[:-1]])[1:]
    result = ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled(
        ctypes.c_void_p(aligned.ctypes.data),
        ctypes.c_int(DATA_TYPES[kind]),
        ctypes.c_uint32(rank),
        ctypes.c_void_p(address),
        (ctypes.c_uint64 * rank)(*shape),
        (ctypes.c_uint64 * (rank - 1))(*(int(s) for s in strides)),
        (ctypes.c_uint32 * rank)(*box),
        (ctypes.c_uint32 * rank)(*([1] * rank)),
        ctypes.c_int(0),
        ctypes.c_int(SWIZZLE_128B),
        ctypes.c_int(L2_256B),
        ctypes.c_int(0),
    )
    if result:
        raise TargetError("tensor map", f"cuTensorMapEncodeTiled says {result} for {kind} {shape}, box {box}")
    return by_value(aligned)
