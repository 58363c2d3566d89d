"""Whole kernels read from SASS: loops, roles, units, spills, comparison, conditions. Listings are our own kernel's."""

from __future__ import annotations

import gzip
from dataclasses import replace
from functools import cache

import pytest

from fa4top.analysis.sass.compare import (
    BadExpectation,
    compare,
    figures,
    headline,
    hold,
    side_by_side,
    spill_sentence,
    step_of,
)
from fa4top.analysis.sass.flowgraph import flow_graph, natural_loops
from fa4top.analysis.sass.kernel import KernelSass, NoKernel, mix_of, read_kernel, unit_of
from fa4top.analysis.sass.listing import Instruction, parse_sass
from tests.conftest import ROOT


@cache
def listing(mode: str) -> str:
    return gzip.decompress((ROOT / "tests" / "data" / f"builtin_sm90a_{mode}.sass.gz").read_bytes()).decode()


def kernel(mode: str = "bf16") -> KernelSass:
    return read_kernel(listing(mode), 128, 0)


def code(*opcodes: str) -> tuple[Instruction, ...]:
    return tuple(Instruction(16 * number, "", opcode, "") for number, opcode in enumerate(opcodes))


def test_the_builtin_kernel_has_its_three_roles_and_their_steps() -> None:
    found = kernel()
    roles = {role.name: role for role in found.roles}
    assert {name: role.register_limit for name, role in roles.items()} == {"mma": 240, "load": 40, "softmax": 112}
    # 64 exponentials a thread and step, and one for each of its two rows' rescaling; two bf16 a conversion
    assert (roles["softmax"].step_mix.ex2, roles["softmax"].step_mix.packs) == (66, 32)
    # two stages: 8 tiles of QK and 8 of PV each
    assert roles["mma"].step_units["tensor"] == 32 and roles["mma"].step_mix.ex2 == 0
    assert found.spills == 0 and found.clock_reads == 0 and found.mix.ex2 == 66
    assert sum(found.units.values()) == len(found.instructions)
    # in fp8 PV has half the tiles
    assert next(r for r in kernel("fp8").roles if r.name == "mma").step_units["tensor"] == 24


def test_loops_of_a_graph_by_hand() -> None:
    #  0 -> 1 -> 2 -> 3 -> 1, 2 -> 2, 3 -> 4; 5 can not be reached
    successors = [frozenset(s) for s in ({1}, {2}, {2, 3}, {1, 4}, set(), {1})]
    loops = sorted(natural_loops(successors), key=len)
    assert loops == [frozenset({2}), frozenset({1, 2, 3})]


def test_a_branch_into_a_wait_moved_out_of_line_is_no_loop_of_the_whole_kernel() -> None:
    text = """
	.text.k:
        /*0000*/   MOV R0, R1 ;
        /*0010*/   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R0] ;
        /*0020*/   @!P0 BRA `(.L_x_9) ;
.L_x_1:
        /*0030*/   MUFU.EX2 R2, R3 ;
        /*0040*/   @P1 BRA `(.L_x_1) ;
        /*0050*/   EXIT ;
.L_x_9:
        /*0060*/   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R0] ;
        /*0070*/   @!P0 BRA `(.L_x_9) ;
        /*0080*/   BRA `(.L_x_1) ;
"""
    (instructions,) = parse_sass(text.replace("\t.text", ".text")).values()
    graph = flow_graph(instructions)
    sizes = sorted(len(graph.instructions(loop)) for loop in graph.loops)
    assert sizes == [2, 2]  # the step and the wait; not everything from the wait back to the step


def test_an_indexed_branch_reaches_all_of_its_table() -> None:
    lines = [
        '        /*0000*/   BRX R2 -0x10 (*"BRANCH_TARGETS .L_x_1,.L_x_2"*);',
        ".L_x_1:",
        "        /*0010*/   EXIT ;",
        ".L_x_2:",
        "        /*0020*/   EXIT ;",
    ]
    (instructions,) = parse_sass(".text.k:\n" + "\n".join(lines)).values()
    assert instructions[0].table == (0x10, 0x20) and flow_graph(instructions).successors[0] == {1, 2}


@pytest.mark.parametrize(
    ("opcode", "unit"),
    [("MUFU.EX2", "MUFU"), ("F2FP.BF16.F32.PACK_AB", "convert"), ("FFMA2.FTZ", "FMA"), ("FMNMX3", "ALU"),
     ("UTCHMMA.2CTA", "tensor"), ("HGMMA.64x128x16", "tensor"), ("UTMALDG.4D", "TMA"), ("LDTM.x32", "TMEM"),
     ("STL.64", "LSU"), ("SYNCS.ARRIVE", "barrier"), ("UIADD3", "uniform"), ("BRA", "control"), ("XYZ", "other")],
)  # fmt: skip
def test_units(opcode: str, unit: str) -> None:
    assert unit_of(opcode) == unit


def test_transitions_and_runs() -> None:
    mix = mix_of(code("MUFU.EX2", "FMUL", "MUFU.EX2", "F2FP.X", "MUFU.EX2", "MUFU.RCP", "F2FP.X", "F2FP.X"))
    assert (mix.ex2, mix.packs, mix.transitions, mix.runs, mix.longest_run) == (3, 3, 3, (2, 1, 1, 2), 2)
    assert mix_of([]).transitions == 0


def spilling() -> KernelSass:
    """The builtin kernel with local accesses put into its softmax step."""
    found = kernel()
    softmax = next(role for role in found.roles if role.name == "softmax")
    return replace(
        found,
        spills=7,
        stack_bytes=112,
        roles=tuple(replace(r, spills=7, step_spills=5) if r is softmax else r for r in found.roles),
    )


def test_spills_name_role_and_step() -> None:
    text = spill_sentence(spilling())
    assert text == (
        "spills: 7 local loads and stores, 112 bytes of stack: softmax (7 sites, 5 of them in every step, with 112 "
        "registers)"
    )
    assert spill_sentence(kernel()) == "" and headline(spilling()) == text
    assert headline(kernel()).startswith("no spills; a step of softmax has 430 instructions")


def test_conditions_hold_or_say_what_was_found() -> None:
    held = hold(
        spilling(), ["no-spill", "registers<=128", "softmax.step.spills==5", "correction.spills==0", "stack > 100"]
    )
    assert [(each.holds, each.found) for each in held] == [
        (False, 7), (True, 128), (True, 5), (False, None), (True, 112)
    ]  # fmt: skip
    assert all(each.holds for each in hold(kernel(), ["no-spill", "softmax.step.ex2==66", "mma.step.tensor>=32"]))
    for text, says in (
        ("registers", "write no-spill"),
        ("spils==0", "near: spills"),
        ("registers<=many", "write no-spill"),
    ):
        with pytest.raises(BadExpectation, match=says):
            hold(kernel(), [text])


def test_comparison_says_identical_only_when_it_is() -> None:
    a = kernel()
    assert compare(a, kernel()).word == "identical"
    other = tuple(replace(i, operands="R9") if i.opcode == "FMUL" else i for i in a.instructions)
    assert compare(a, replace(a, instructions=other)).word == "identical schedule"
    turned = tuple(reversed(a.instructions))
    assert compare(a, replace(a, instructions=turned)).word == "same instructions"
    found = compare(a, kernel("fp8"))
    assert found.word == "different" and found.units["tensor"] == (64, 48)
    assert found.figures["instructions"] == (2832, 2696) and "tensor 64 -> 48" in found.text


def test_the_listing_side_by_side_keeps_what_differs() -> None:
    rows = side_by_side(
        code("A", "B", "C", "D", "E", "F", "G", "X"), code("A", "B", "C", "D", "E", "F", "G", "Y", "Z"), 1
    )
    assert rows == [(" ", "A", "A"), (".", "5 equal", ""), (" ", "G", "G"), ("|", "X", "Y"), (">", "", "Z")]


def test_figures_have_a_name_for_every_role_and_no_kernel_is_said() -> None:
    known = figures(kernel())
    assert known["softmax.registers"] == 112 and known["registers"] == 128 and known["MUFU"] > 66
    assert step_of(kernel()) is not None
    with pytest.raises(NoKernel, match="whose name holds nothing"):
        read_kernel(listing("bf16"), name="nothing")
    with pytest.raises(NoKernel):
        read_kernel("no listing at all")
