"""Reading SASS, and refusing timed regions that are not what was meant."""

from __future__ import annotations

import pytest

from fa4top.analysis.sass.listing import Expectation, RegionError, parse_sass, region_problem, timed_region

LISTING = """
\t.section\t.text.bench,"ax",@progbits
.text.bench:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   CS2R R2, SR_CLOCKLO ;
{before}
.L_x_1:
{loop}
        /*0900*/                   UIADD3 UR4, UR4, 0x1, URZ ;
        /*0910*/              @!P0 BRA `(.L_x_1) ;
{after}
        /*0a00*/                   CS2R R4, SR_CLOCKLO ;
        /*0a10*/                   EXIT ;
.L_x_2:
        /*0a20*/                   BRA `(.L_x_2);
"""


def listing(loop: int, before: int = 0, after: int = 0, opcode: str = "MUFU.EX2") -> str:
    def some(count: int, start: int) -> str:
        return "\n".join(f"        /*{start + 16 * i:04x}*/                   {opcode} R5, R5 ;" for i in range(count))

    return LISTING.format(before=some(before, 0x20), loop=some(loop, 0x100), after=some(after, 0x920))


WANT = (Expectation(r"MUFU\.EX2$", 16),)


def problem(text: str, want: tuple[Expectation, ...] = WANT, others: float = 0.1) -> str | None:
    return region_problem(timed_region(parse_sass(text)["bench"]), want, others)


def test_labels_and_opcodes_are_read() -> None:
    instructions = parse_sass(listing(2))["bench"]
    assert [i.opcode for i in instructions[:4]] == ["LDC", "CS2R", "MUFU.EX2", "MUFU.EX2"]
    branch = next(i for i in instructions if i.opcode == "BRA")
    assert (branch.predicate, branch.target) == ("@!P0", 0x100)
    assert sum(i.is_clock_read for i in instructions) == 2


def test_what_was_meant_passes() -> None:
    assert problem(listing(16)) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (listing(15), "15 MUFU.EX2 in the loop instead of 16"),
        (listing(17), "17 MUFU.EX2 in the loop instead of 16"),
        (listing(16, before=1), "1 MUFU.EX2 outside the loop"),
        (listing(16, after=2), "2 MUFU.EX2 outside the loop"),
        (listing(16, opcode="MUFU.RCP"), "0 MUFU.EX2 in the loop instead of 16"),
    ],
)
def test_moved_or_missing_work_is_refused(text: str, says: str) -> None:
    assert says in str(problem(text))


def test_other_instructions_are_counted() -> None:
    crowded = listing(16).replace("UIADD3 UR4, UR4, 0x1, URZ ;", "PRMT R1, R1, R1, R1 ;\n" + "\n".join(
        f"        /*{0x904 + i:04x}*/                   PRMT R1, R1, R1, R1 ;" for i in range(5)
    ))  # fmt: skip
    assert "other instructions in the loop" in str(problem(crowded))
    assert problem(crowded, others=1.0) is None


def test_a_loop_that_went_away_is_refused() -> None:
    straight = listing(16).replace("@!P0 BRA `(.L_x_1) ;", "NOP ;")
    with pytest.raises(RegionError, match="no loop between the clock reads"):
        timed_region(parse_sass(straight)["bench"])


def test_clock_reads_that_went_away_are_refused() -> None:
    with pytest.raises(RegionError, match="1 clock reads instead of 2"):
        timed_region(parse_sass(listing(16).replace("CS2R R4, SR_CLOCKLO", "MOV R4, RZ"))["bench"])
