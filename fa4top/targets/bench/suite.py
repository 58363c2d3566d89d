"""The suite: every kernel that is built and timed, as data made from the tables. No CUDA here."""

from __future__ import annotations

from dataclasses import dataclass, field

from fa4top.analysis.chip import chips
from fa4top.analysis.chip.chips import ARCHITECTURES, ISSUE_PER_CLOCK, arches_of, chip_by_key, chip_of
from fa4top.analysis.sass.listing import Expectation
from fa4top.targets.bench.instructions import BY_NAME, HOPPER, INSTRUCTIONS, MIXES, BenchOp

CHAINS = 8
RATE, TIME = "rate", "time"
OTHERS_SHARE = 0.07  # of a loop body, for its counter and branch, and a few moves
MMA_OTHERS_SHARE = 8.0  # descriptors and fences: they run beside the tensor cores
THREADS = (128, 256, 512, 1024)
GROUPS = ("throughput", "mix", "shared memory", "handoff", "tensor", "tensor memory")


@dataclass(frozen=True)
class Kernel:
    """One microbenchmark.

    ``kind`` rate: ``unit`` per clock and SM is ``amount`` x threads x iterations / cycles. ``kind`` time: cycles a unit
    of work are cycles / (iterations x ``amount`` x threads / ``worker_threads``; 0: whatever the threads). ``limit``: a
    rate above, or a time below, is refused; None where nobody publishes one. ``parts``: of a mix, (instruction, count).
    """

    name: str
    group: str
    source: str
    kind: str
    unit: str
    amount: float
    iterations: int
    threads: tuple[int, ...]
    expected: tuple[Expectation, ...]
    defines: dict[str, int] = field(default_factory=dict)
    header: str = ""
    chain_bytes: int = 4
    shared_bytes: int = 0
    ctas: int = 1
    worker_threads: int = 0
    limits: tuple[tuple[str, float], ...] = ()
    archs: tuple[str, ...] = ARCHITECTURES
    others_share: float = OTHERS_SHARE
    parts: tuple[tuple[str, int], ...] = ()
    results: int = 1

    def limit_on(self, arch: str) -> float | None:
        """The limit on this architecture, where there is one."""
        return dict(self.limits).get(arch)

    def value(self, cycles: float, threads: int) -> float:
        """The figure that so many cycles mean."""
        if self.kind == RATE:
            return self.amount * threads * self.iterations / cycles
        workers = threads / self.worker_threads if self.worker_threads else 1.0
        return cycles / (self.iterations * self.amount * workers)

    def problem(self, value: float, arch: str) -> str | None:
        """Why this figure can not be true; None when it can. Two percent are left to the clocks at both ends."""
        limit = self.limit_on(arch)
        if limit is None:
            return None
        if self.kind == RATE and value > 1.02 * limit:
            return f"{value:.1f} {self.unit} is above what the unit can do ({limit:g})"
        if self.kind == TIME and value < 0.98 * limit:
            return f"{value:.1f} {self.unit} is below what the unit can do ({limit:g})"
        return None

    def share_of_limit(self, value: float, arch: str) -> float | None:
        """1.0 is the limit."""
        limit = self.limit_on(arch)
        if not limit:
            return None
        return value / limit if self.kind == RATE else limit / value


def _step_header(parts: tuple[tuple[BenchOp, int], ...], rounds: int) -> str:
    """step.inc: one round over the chains, in the order in which a softmax step meets them."""
    bits = parts[0][0].bits
    constraint, kind = ("l", "unsigned long long") if bits == 64 else ("r", "unsigned int")
    lines = []
    chain = 0
    for instruction, count in parts:
        asm = instruction.ptx.format(x="%0", a="%1", b="%2")
        for _ in range(count // instruction.per_ptx):
            operands = f'"+{constraint}"(x[{chain % CHAINS}]) : "{constraint}"(a), "{constraint}"(b)'
            lines.append(f'  asm volatile("{asm}" : {operands});')
            chain += 1
    body = " \\\n".join(lines)
    return f"#define CHAIN {kind}\n#define ROUNDS {rounds}\n#define STEP(x, a, b) \\\n{body}\n"


def _throughput(name: str, group: str, parts: tuple[tuple[BenchOp, int], ...], archs: tuple[str, ...]) -> Kernel:
    per_round = sum(count for _, count in parts)
    rounds = max(1, 256 // per_round)
    limits = []
    for arch in archs:
        if len(parts) == 1:
            limits.append((arch, parts[0][0].limit_on(arch)))
        else:
            limits.append((arch, ISSUE_PER_CLOCK))
    counts: dict[str, int] = {}
    for instruction, count in parts:
        steps = count // instruction.per_ptx * rounds
        for pattern, each in ((instruction.sass, instruction.per_ptx), *instruction.helpers):
            counts[pattern] = counts.get(pattern, 0) + each * steps
    return Kernel(
        name,
        group,
        "bench/throughput.cu",
        RATE,
        "instructions/clk",
        float(per_round * rounds),
        16,
        THREADS,
        tuple(Expectation(pattern, count) for pattern, count in counts.items()),
        header=_step_header(parts, rounds),
        chain_bytes=parts[0][0].bits // 8,
        limits=tuple(limits),
        archs=archs,
        parts=tuple((instruction.name, count) for instruction, count in parts),
        results=parts[0][0].results if len(parts) == 1 else 1,
    )


def _archs(exists: object) -> tuple[str, ...]:
    return tuple(arch for arch in ARCHITECTURES if exists.exists_on(arch))  # type: ignore[attr-defined]


def _shared(store: int) -> Kernel:
    return Kernel(
        "shared-memory stores, 16 B a thread" if store else "shared-memory loads, 16 B a thread",
        "shared memory",
        "bench/shared_memory.cu",
        RATE,
        "B/clk",
        64.0 * 16,
        16,
        THREADS,
        (Expectation(r"STS\.128" if store else r"LDS\.128", 64),),
        defines={"STORE": store},
        shared_bytes=1024 * 16 * CHAINS,
        limits=tuple((arch, 128.0) for arch in ARCHITECTURES),
        others_share=2.1,  # the loaded words are folded into one, so that no load is narrowed
    )


def _handoff(named: int) -> Kernel:
    expected = (Expectation(r"BAR\.SYNC|BAR\.ARV", 4),) if named else (Expectation(r"SYNCS\.ARRIVE", 2),)
    return Kernel(
        "named barrier, arrive to wake" if named else "mbarrier, arrive to wake",
        "handoff",
        "bench/handoff.cu",
        TIME,
        "cycles",
        2.0,
        256,
        (64,),
        expected,
        defines={"NAMED": named},
        limits=tuple((arch, 8.0) for arch in ARCHITECTURES),  # fewer than it takes to issue both sides
        others_share=40.0,
    )


def _wgmma(e4m3: int, registers: int) -> Kernel:
    count = 2 * (4 if e4m3 else 8)
    a_bytes, b_bytes = (8192, 16384) if e4m3 else (16384, 32768)
    return Kernel(
        f"wgmma {'e4m3' if e4m3 else 'bf16'} 64x128x128, A from {'registers' if registers else 'shared memory'}",
        "tensor",
        "bench/wgmma.cu",
        TIME,
        "cycles/tile",
        2.0,
        64,
        (128, 256) if registers else (128, 256, 512),
        (Expectation(r"QGMMA" if e4m3 else r"HGMMA", count),),
        defines={"E4M3": e4m3, "A_REGISTERS": registers},
        shared_bytes=4 * a_bytes + b_bytes,
        worker_threads=128,
        limits=_least_cycles((HOPPER,), 2.0 * 64 * 128 * 128, "fp8" if e4m3 else "bf16"),
        archs=(HOPPER,),
        others_share=MMA_OTHERS_SHARE,
    )


def _least_cycles(archs: tuple[str, ...], flop: float, kind: str) -> tuple[tuple[str, float], ...]:
    """Cycles that so much work needs at least, by architecture."""
    return tuple((arch, flop / chip.tensor_limit(kind)) for arch in archs if (chip := chip_of(arch)))


# kind of tcgen05.mma: name, number in the kernel, K of one instruction, format, SASS
_TCGEN05 = (
    ("bf16", 0, 16, "bf16", r"UTCHMMA"),
    ("e4m3", 1, 32, "fp8", r"UTCQMMA"),
    ("mxf8", 2, 32, "mxfp8", r"UTCQMMA"),
    ("nvfp4", 3, 64, "nvfp4", r"UTCOMMA"),
)
_BLACKWELLS = arches_of(chips.BLACKWELL)


def _tcgen05(kind: tuple[str, int, int, str, str], pair: int) -> Kernel:
    name, number, k, operands, sass = kind
    rows = 256 if pair else 128
    return Kernel(
        f"tcgen05.mma {name} {rows}x128x{k}{', 2 CTAs' if pair else ''}",
        "tensor",
        "bench/tcgen05_mma.cu",
        TIME,
        "cycles/tile",
        16.0,
        64,
        (128,),
        (Expectation(sass, 16),),
        defines={"KIND": number, "PAIR": pair},
        shared_bytes=65536,
        ctas=2 if pair else 1,
        limits=_least_cycles(_BLACKWELLS, 2.0 * 128 * 128 * k, operands),
        archs=_BLACKWELLS,
        others_share=MMA_OTHERS_SHARE,
    )


def _tensor_memory(name: str, mode: int, sass: str, archs: tuple[str, ...]) -> Kernel:
    return Kernel(
        f"tcgen05.{name} 32x32b.x32",
        "tensor memory",
        "bench/tensor_memory.cu",
        RATE,
        "B/clk",
        32.0 * 128,
        16,
        (128, 256, 512),
        (Expectation(sass, 32),),
        defines={"MODE": mode},
        archs=archs,
        others_share=MMA_OTHERS_SHARE,
    )


def _all() -> tuple[Kernel, ...]:
    single = [_throughput(i.name, "throughput", ((i, CHAINS * i.per_ptx),), _archs(i)) for i in INSTRUCTIONS]
    mixed = [
        _throughput(m.name, "mix", tuple((BY_NAME[name], count) for name, count in m.parts), _archs(m)) for m in MIXES
    ]
    return (
        *single,
        *mixed,
        _shared(0),
        _shared(1),
        _handoff(0),
        _handoff(1),
        *(_wgmma(e4m3, registers) for e4m3 in (0, 1) for registers in (0, 1)),
        *(_tcgen05(kind, pair) for kind in _TCGEN05 for pair in (0, 1)),
        _tensor_memory("ld", 0, r"LDTM", _BLACKWELLS),
        _tensor_memory("ld.red", 1, r"LDTM", (chip_by_key("gb300").arch,)),
        _tensor_memory("st", 2, r"STTM", _BLACKWELLS),
    )


SUITE: tuple[Kernel, ...] = _all()
