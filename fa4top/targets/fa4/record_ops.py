"""Device operations of the probes, as inline PTX through the CuTe DSL. Imported in workers only.

The clock must be inline PTX with side effects: a timer operation that counts as pure is optimised away. Every probe
leaves a comment in the PTX, so that the compiled probes can be counted per role.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from cutlass import Int32, cute
from cutlass.cute.arch import llvm
from cutlass.cutlass_dsl import T, dsl_user_op

from fa4top.analysis.trace.layout import (
    BEGIN,
    END,
    GENERATION_SHIFT,
    HEADER_BYTES,
    MARK,
    SLOT_BITS,
    SLOT_MASK,
    STATE_FINISHED,
    STATE_STARTED,
    WIDE,
    BufferLayout,
)

COMMENT = "// fa4top"


def _asm(result: Any, operands: list[Any], text: str, constraints: str) -> Any:
    return llvm.inline_asm(
        result,
        operands,
        text,
        constraints,
        has_side_effects=True,
        is_align_stack=False,
        asm_dialect=llvm.AsmDialect.AD_ATT,
    )


@dataclass(frozen=True)
class Place:
    """Where a compiled kernel writes: addresses are baked in as immediates."""

    layout: BufferLayout
    buffer: int
    config: int
    layout_id: int
    first_role: int = 0

    @property
    def header(self) -> int:
        """Address of the header of the first role that this code serves."""
        return self.buffer + self.first_role * HEADER_BYTES

    @property
    def slots(self) -> int:
        """Address of the first role's slots."""
        return self.buffer + self.layout.slots_offset


@dsl_user_op
def _start(index: Int32, place: Place, elected: int, *, loc: Any = None, ip: Any = None) -> Int32:
    """The state of a role's probes in one register: generation, role, slot. 0 for threads that do not record."""
    text = (
        "{ .reg .pred p,q; .reg .b32 c,g,l,x,y,z,n,m,s; .reg .b64 t,k,h;\n"
        f"mov.u64 h, {place.config:#x}; ld.global.v2.b32 {{c,g}}, [h];\n"
        "mov.u32 x,%ctaid.x; mov.u32 y,%ctaid.y; mov.u32 z,%ctaid.z; mov.u32 n,%nctaid.x; mov.u32 m,%nctaid.y;\n"
        "mad.lo.u32 l,z,m,y; mad.lo.u32 l,l,n,x;\n"
        # the thread index is read here, not through the DSL: shared with the kernel's own it costs sm_100a a spill
        f"mov.u32 x,%tid.x; and.b32 x,x,{elected}; setp.eq.u32 p,c,l; setp.eq.and.u32 q,x,0,p;\n"
        f"mul.wide.u32 h, $1, {HEADER_BYTES}; add.u64 h, h, {place.header:#x};\n"
        "mov.u32 s,%smid;\n"
        f"@q st.global.v4.b32 [h], {{{place.layout_id}, g, 0, 0}};\n"
        f"@q st.global.v4.b32 [h+16], {{s, l, {STATE_STARTED}, 0}};\n"
        "@q mov.u64 t,%globaltimer; @q mov.u64 k,%clock64;\n"
        "@q st.global.v2.b64 [h+32], {t, k};\n"
        f"shl.b32 g, g, {GENERATION_SHIFT}; shl.b32 s, $1, {SLOT_BITS}; add.u32 g, g, s;"
        f" add.u32 g, g, {place.first_role << SLOT_BITS}; selp.b32 $0, g, 0, q; }}"
    )
    return Int32(_asm(T.i32(), [index.ir_value()], text, "=r,r"))


@dsl_user_op
def _finish(state: Int32, place: Place, *, loc: Any = None, ip: Any = None) -> None:
    capacity = place.layout.capacity
    text = (
        "{ .reg .pred p; .reg .b32 u,w,d,s; .reg .b64 t,k,h;\n"
        f"setp.ge.u32 p, $0, {1 << GENERATION_SHIFT:#x}; and.b32 u, $0, {SLOT_MASK:#x};\n"
        f"min.u32 w, u, {capacity}; sub.u32 d, u, w;\n"
        f"bfe.u32 u, $0, {SLOT_BITS}, {GENERATION_SHIFT - SLOT_BITS};\n"
        f"mul.wide.u32 h, u, {HEADER_BYTES}; add.u64 h, h, {place.buffer:#x};\n"
        "mov.u64 t,%globaltimer; mov.u64 k,%clock64;\n"
        "@p st.global.v2.b32 [h+8], {w, d};\n"
        "@p st.global.v2.b64 [h+48], {t, k};\n"
        f"mov.u32 s, {STATE_FINISHED}; @p st.global.b32 [h+24], s; }}"
    )
    _asm(None, [state.ir_value()], text, "r")


@dsl_user_op
def _clock(label: str, *, loc: Any = None, ip: Any = None) -> Int32:
    return Int32(_asm(T.i32(), [], f"mov.u32 $0, %clock; {COMMENT} {label}", "=r"))


def _store(place: Place, state: str, event: int, kind: int, words: str) -> str:
    """PTX that stores (tag, words) if this thread records and has room, and counts the slot, stored or not.

    One register lives between probes, because softmax roles have none to spare: sm_103a spills at two. For the same
    reason a spread layout takes role and slot as the index as they stand: two temporaries less, and nothing spills.
    """
    width = place.layout.stride // 4
    generation = 0xFFFFFFFF << GENERATION_SHIFT & 0xFFFFFFFF
    if place.layout.spread:
        return (
            f"mov.b32 s, {state}; setp.eq.u32 p, s, 0; @p bra FA4TOP_SKIP;"
            f" and.b32 s, {state}, {SLOT_MASK:#x}; setp.lt.u32 p, s, {place.layout.capacity};"
            f" setp.ne.u32 q, s, {SLOT_MASK:#x}; and.b32 s, {state}, {~generation & 0xFFFFFFFF:#x};"
            f" mul.wide.u32 a, s, {place.layout.stride}; add.u64 a, a, {place.slots:#x};"
            f" and.b32 t, {state}, {generation:#x}; or.b32 t, t, {event << 2 | kind};"
            f" @p st.global.v{width}.b32 [a], {{t, {words}}}; selp.b32 s, 1, 0, q; add.u32 s, {state}, s;"
            " FA4TOP_SKIP: mov.b32 $0, s;"
        )
    return (
        f"and.b32 s, {state}, {SLOT_MASK:#x}; setp.lt.u32 p, s, {place.layout.capacity};"
        f" setp.ge.and.u32 p, {state}, {1 << GENERATION_SHIFT:#x}, p;"
        f" bfe.u32 l, {state}, {SLOT_BITS}, {GENERATION_SHIFT - SLOT_BITS};"
        f" mad.lo.u32 l, l, {place.layout.capacity}, s; mul.wide.u32 a, l, {place.layout.stride};"
        f" add.u64 a, a, {place.slots:#x}; and.b32 t, {state}, {generation:#x}; or.b32 t, t, {event << 2 | kind};"
        f" @p st.global.v{width}.b32 [a], {{t, {words}}}; add.u32 $0, {state}, 1;"
    )


_REGISTERS = ".reg .pred p,q; .reg .b32 c,t,l,s; .reg .b64 a;"


@dsl_user_op
def _event(state: Int32, event: int, kind: int, place: Place, label: str, *, loc: Any = None, ip: Any = None) -> Int32:
    text = f"{{ {_REGISTERS} mov.u32 c, %clock; {COMMENT} {label}\n{_store(place, '$1', event, kind, 'c')} }}"
    return Int32(_asm(T.i32(), [state.ir_value()], text, "=r,r"))


@dsl_user_op
def _wide(
    state: Int32, event: int, place: Place, words: tuple[Int32, Int32, Int32], *, loc: Any = None, ip: Any = None
) -> Int32:
    text = f"{{ {_REGISTERS} {_store(place, '$1', event, WIDE, '$2, $3, $4')} }}"
    operands = [state.ir_value(), *(Int32(w).ir_value() for w in words)]
    return Int32(_asm(T.i32(), operands, text, "=r,r,r,r,r"))


class Recorder:
    """The probes of one role while its code is traced: one register of state, one elected thread, no atomics.

    The one-element register tensor is promoted by the compiler, and carries its value through loops and branches
    without help from the kernel's code.
    """

    def __init__(self, place: Place, role_name: str, index: Any, elected: int) -> None:
        self.place = place
        self.role_name = role_name
        self.counts: Counter[str] = Counter()
        self.state = cute.make_rmem_tensor((1,), Int32)
        self.state[0] = _start(Int32(index), place, elected)
        self.scratch: dict[str, Any] = {}

    def register(self, name: str) -> Any:
        """A named one-element register, zero at first."""
        if name not in self.scratch:
            self.scratch[name] = cute.make_rmem_tensor((1,), Int32)
            self.scratch[name][0] = Int32(0)
        return self.scratch[name]

    def clock(self, label: str) -> Int32:
        """Read the SM clock here."""
        self.counts[label] += 1
        return _clock(f"{self.role_name} {label}")

    def event(self, event: int, kind: int) -> None:
        """Store (tag, clock) if there is room, and move on."""
        label = f"{event}.{kind}"
        self.counts[label] += 1
        self.state[0] = _event(self.state[0], event, kind, self.place, f"{self.role_name} {label}")

    def begin(self, event: int) -> None:
        """Begin of a span."""
        self.event(event, BEGIN)

    def end(self, event: int) -> None:
        """End of a span."""
        self.event(event, END)

    def mark(self, event: int) -> None:
        """A point in time."""
        self.event(event, MARK)

    def wide(self, event: int, words: tuple[Any, Any, Any]) -> None:
        """Store a 16-byte record."""
        self.state[0] = _wide(self.state[0], event, self.place, words)

    def finish(self) -> None:
        """Counts and end anchors into the header."""
        _finish(self.state[0], self.place)

    def operands(self) -> list[Any]:
        """The state, for PTX that records by itself."""
        return [self.state[0].ir_value()]


@dsl_user_op
def pack16(low: Int32, high: Int32, *, loc: Any = None, ip: Any = None) -> Int32:
    """Two unsigned numbers in one word, each saturating at 16 bits (low first)."""
    from cutlass._mlir.dialects import llvm as mlir_llvm

    text = "{ .reg .b32 a,b; min.u32 a,$1,65535; min.u32 b,$2,65535; shl.b32 b,b,16; or.b32 $0,a,b; }"
    return Int32(
        mlir_llvm.inline_asm(
            T.i32(),
            [low.ir_value(), high.ir_value()],
            text,
            "=r,r,r",
            has_side_effects=False,
            is_align_stack=False,
            asm_dialect=mlir_llvm.AsmDialect.AD_ATT,
        )
    )


def wait_with_events(recorder: Recorder, event: int, operands: str, hint: str, first: int) -> str:
    """PTX of a wait that records begin and end when it has to block.

    ``first`` numbers the state's operand. The asm block's result $0 is the new state.
    """

    def store(kind: int) -> str:
        recorder.counts[f"{event}.{kind}"] += 1
        return (
            f"{{ {_REGISTERS} mov.u32 c, %clock; {COMMENT} {recorder.role_name} {event}.{kind}\n\t"
            f"{_store(recorder.place, '$0', event, kind, 'c')} }}\n\t"
        )

    return (
        f"mov.b32 $0, ${first};\n\t"
        f"mbarrier.test_wait.parity.shared::cta.b64 P1, {operands};\n\t"
        "@P1 bra DONE;\n\t"
        + store(BEGIN)
        + f"LAB_WAIT:\n\tmbarrier.try_wait.parity.shared::cta.b64 P1, {operands}{hint};\n\t"
        "@P1 bra FA4TOP_READY;\n\tbra LAB_WAIT;\n\tFA4TOP_READY:\n\t" + store(END) + "DONE:"
    )
