"""Quantised inputs, made once by the checkout's own factory and kept: they are not reproducible across processes.

A file holds the bytes of every tensor with its dtype and strides, some rows of attention in FP32 computed from the
factory's unquantised tensors, and a hash. Every worker of a shape and mode reads the same file.
"""

from __future__ import annotations

import fcntl
import hashlib
import inspect
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fa4top.records import Shape
from fa4top.targets import reference
from fa4top.targets.launcher import TargetError

FACTORIES = {"nvfp4": "create_nvfp4_attention_tensors", "mxfp8": "create_mxfp8_attention_tensors"}
NAMES = ("q", "k", "v", "q_sf", "k_sf", "v_sf")
REFERENCES = ("q_ref", "k_ref", "v_ref")
CHECK_ROWS = 24
KEPT_BYTES = 8 << 30
SUFFIX = ".inputs.npz"


@dataclass(frozen=True)
class Inputs:
    """Tensors by name (``v_sf`` may be missing), and what the check compares with.

    ``rows`` are (batch, head, row) and ``references`` (rows, head_dim_v) of FP32 attention on the factory's unquantised
    values. ``digest`` names the bytes; ``fresh`` when this process made them.
    """

    tensors: dict[str, Any]
    rows: list[tuple[int, int, int]]
    references: npt.NDArray[np.float32]
    digest: str
    fresh: bool


def inputs_folder() -> Path:
    """Where inputs are kept: $XDG_CACHE_HOME/fa4top/inputs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "fa4top" / "inputs"


def inputs_key(shape: Shape, qk_mode: str, pv_mode: str, seed: int, factory: str) -> str:
    """Names a file: what the tensors depend on. ``factory`` is the text of the factory's module."""
    described = json.dumps([asdict(shape), qk_mode, pv_mode, seed, hashlib.sha256(factory.encode()).hexdigest()])
    return hashlib.sha256(described.encode()).hexdigest()[:20]


def load_or_make(
    torch: Any, bench: Any, shape: Shape, qk_mode: str, pv_mode: str, seed: int, device: str, say: Callable[[str], None]
) -> Inputs:
    """The kept tensors of this shape and mode; made and kept when there are none. Workers that start together wait for
    the one that makes them.

    Raises:
        TargetError: the factory is not there, or failed.
    """
    folder = inputs_folder()
    key = inputs_key(shape, qk_mode, pv_mode, seed, Path(bench.__file__).read_text(errors="replace"))
    path = folder / f"{key}{SUFFIX}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder / f"{key}.lock"):
            if (kept := _read(torch, path, device)) is not None:
                os.utime(path)
                return kept
            say("making the inputs with the checkout's own factory")
            made = _make(torch, bench, shape, qk_mode, pv_mode, seed, device)
            _write(path, made)
            _prune(folder, path)
    except OSError as error:
        raise TargetError(
            "inputs not kept",
            f"the quantised inputs can not be kept in {folder}: {error.strerror or error}",
            "every worker must get the same bytes: make room there, or point XDG_CACHE_HOME elsewhere",
        ) from error
    kept = _read(torch, path, device)
    assert kept is not None
    return Inputs(kept.tensors, kept.rows, kept.references, kept.digest, True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _make(torch: Any, bench: Any, shape: Shape, qk_mode: str, pv_mode: str, seed: int, device: str) -> dict[str, Any]:
    name = FACTORIES[qk_mode]
    factory = getattr(bench, name, None)
    if factory is None:
        raise TargetError(
            "unknown package layout",
            f"{bench.__file__} has no {name}",
            "fa4top doctor --fa4-path shows what was expected",
        )
    torch.manual_seed(seed)
    sizes = (shape.batch, shape.seqlen_q, shape.seqlen_k, shape.heads, shape.kv_heads, shape.head_dim, shape.head_dim_v)
    # pv_mode by keyword where the factory has it: the legacy one has not
    options = {"device": device, "pv_mode": pv_mode}
    accepted = inspect.signature(factory).parameters
    made = factory(*sizes, **{key: value for key, value in options.items() if key in accepted})
    if len(made) != len(NAMES) + len(REFERENCES):
        raise TargetError(
            "unknown package layout",
            f"{name} returned {len(made)} tensors; expected {', '.join((*NAMES, *REFERENCES))}",
            "fa4top doctor --fa4-path shows what was expected",
        )
    tensors = dict(zip((*NAMES, *REFERENCES), made, strict=True))
    rows = reference.sample_rows(shape, CHECK_ROWS, seed)
    ratio = shape.heads // shape.kv_heads
    found = []
    for batch, head, row in rows:
        q, k, v = (
            tensors[name].detach()[
                batch, slice(None) if name != "q_ref" else row, head // (1 if name == "q_ref" else ratio)
            ]
            for name in REFERENCES
        )
        found.append(reference.reference_row(_float(q), _float(k), _float(v), row, shape))
    arrays: dict[str, Any] = {"rows": np.array(rows, dtype=np.int64), "references": np.stack(found)}
    about: dict[str, Any] = {}
    digest = hashlib.sha256()
    for name in NAMES:
        if tensors[name] is None:
            continue
        arrays[name], about[name] = _bytes_of(torch, tensors[name])
        digest.update(arrays[name].tobytes())
    about["digest"] = digest.hexdigest()[:16]
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    return arrays


def _float(tensor: Any) -> npt.NDArray[np.float32]:
    values: npt.NDArray[np.float32] = tensor.float().cpu().numpy()
    return values


def _bytes_of(torch: Any, tensor: Any) -> tuple[npt.NDArray[np.uint8], dict[str, Any]]:
    """A tensor's whole storage as bytes, and how to see the tensor in it."""
    storage = tensor.untyped_storage()
    flat = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage).cpu().numpy()
    about = {
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": list(tensor.shape),
        "stride": list(tensor.stride()),
        "offset": tensor.storage_offset(),
    }
    return flat, about


def _tensor_of(torch: Any, data: npt.NDArray[np.uint8], about: dict[str, Any], device: str) -> Any:
    dtype = getattr(torch, about["dtype"])
    flat = torch.from_numpy(data.copy()).to(device)
    # strides first, on integers: not every dtype of a quantised tensor can be restrided
    width = torch.empty(0, dtype=dtype).element_size()
    integers = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[width]
    return flat.view(integers).as_strided(about["shape"], about["stride"], about["offset"]).view(dtype)


def _read(torch: Any, path: Path, device: str) -> Inputs | None:
    try:
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(file["about"].tobytes())
            tensors = {name: _tensor_of(torch, file[name], about[name], device) for name in NAMES if name in about}
            rows = [(int(b), int(h), int(r)) for b, h, r in file["rows"]]
            return Inputs(tensors, rows, file["references"], str(about["digest"]), False)
    except (FileNotFoundError, zipfile.BadZipFile, ValueError, KeyError, EOFError):
        return None  # not there, or cut short by a full disk: it is made again


def _write(path: Path, arrays: dict[str, Any]) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **arrays)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _prune(folder: Path, keep: Path) -> None:
    """Oldest files go when all together are too large."""
    files = sorted(folder.glob(f"*{SUFFIX}"), key=lambda path: path.stat().st_mtime, reverse=True)
    total = 0
    for path in files:
        total += path.stat().st_size
        if total > KEPT_BYTES and path != keep:
            path.unlink(missing_ok=True)
