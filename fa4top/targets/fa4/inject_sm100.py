"""Probes of FA4's Blackwell kernel. Workers only."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

from fa4top.analysis.trace.events import event_id
from fa4top.targets.fa4.injection import Injection, InjectionError
from fa4top.targets.fa4.injection import wrap as wrap_method


def wrap(kernel: Any, injection: Injection) -> None:
    """Blackwell: every probe is an 8-byte event; the second part of P is timed inside the PV GEMM's own PTX."""
    helpers = importlib.import_module("flash_attn.cute.blackwell_helpers")

    def step(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            recorder = injection.current
            if recorder is None:
                return original(self, *args, **kwargs)
            recorder.mark(event_id("step"))
            recorder.scratch["in step"] = True
            try:
                return original(self, *args, **kwargs)
            finally:
                recorder.scratch["in step"] = False

        return wrapped

    def span(event: int, point: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapped(*args: Any, **kwargs: Any) -> Any:
                recorder = injection.current
                if recorder is None or not injection.has(point):
                    return original(*args, **kwargs)
                recorder.begin(event)
                result = original(*args, **kwargs)
                recorder.end(event)
                return result

            return wrapped

        return make

    for role in injection.probes.roles:
        for name in role.steps:
            wrap_method(kernel, name, step)
        for name, event in role.spans:
            wrap_method(kernel, name, span(event_id(event), "correction"))
        for name, event in role.gemms:
            wrap_method(helpers, name, span(event_id(event), "gemms"))
    setattr(helpers, "llvm", _GemmAsm(getattr(helpers, "llvm"), injection))  # noqa: B009, B010 - untyped module

    def kernel_body(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            shift = injection.probes.register_shift
            whole = self.num_regs_softmax * 2 + self.num_regs_correction + self.num_regs_other
            if (
                shift
                and whole == 512  # two softmax warpgroups share the register file with two others
                and self.num_regs_softmax <= shift.softmax_at_most
                and self.num_regs_other - 2 * shift.to_softmax >= shift.least_other
            ):
                before = (self.num_regs_softmax, self.num_regs_correction, self.num_regs_other)
                self.num_regs_softmax += shift.to_softmax
                self.num_regs_other -= 2 * shift.to_softmax
                after = (self.num_regs_softmax, self.num_regs_correction, self.num_regs_other)
                injection.notes.append(f"traced twin: registers softmax/correction/other {after}, clean {before}")
            return original(self, *args, **kwargs)

        return wrapped

    wrap_method(kernel, "kernel", kernel_body)
    if injection.has("phases"):
        softmax = importlib.import_module("flash_attn.cute.softmax").SoftmaxSm100
        for name, event in (
            ("update_row_max", "row max"),
            ("update_row_max_precomputed", "row max"),
            ("apply_exp2_convert", "exp2"),
        ):
            if hasattr(softmax, name):
                wrap_method(softmax, name, span(event_id(event), "phases"))


class _GemmAsm:
    """Stands in for the `llvm` module in blackwell_helpers: rewrites the one asm block that waits for P's rest."""

    WAIT = re.compile(
        r"LAB_WAIT:\s*mbarrier\.try_wait\.parity\.shared::cta\.b64 P1, (?P<operands>[^;]*?)(?P<hint>, \d+)?;\s*"
        r"@P1 bra DONE;\s*bra\s+LAB_WAIT;\s*DONE:"
    )

    def __init__(self, llvm: Any, injection: Injection) -> None:
        self._llvm = llvm
        self._injection = injection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._llvm, name)

    def inline_asm(self, result: Any, operands: Any, text: str, constraints: str, **kwargs: Any) -> Any:
        recorder = self._injection.current
        if recorder is None or result is not None or "LAB_WAIT" not in text or not self._injection.has("waits"):
            return self._llvm.inline_asm(result, operands, text, constraints, **kwargs)
        from cutlass import Int32
        from cutlass.cutlass_dsl import T

        from fa4top.targets.fa4.record_ops import wait_with_events

        shifted = re.sub(r"\$(\d+)", lambda m: f"${int(m.group(1)) + 1}", text)
        first = len(operands) + 1
        match = self.WAIT.search(shifted)
        if match is None:
            raise InjectionError("the wait inside gemm_ptx_partial is not written as the probes expect")
        replacement = wait_with_events(recorder, event_id("wait P 2nd"), match["operands"], match["hint"] or "", first)
        shifted = shifted[: match.start()] + replacement + shifted[match.end() :]
        state = self._llvm.inline_asm(
            T.i32(), [*operands, *recorder.operands()], shifted, f"=&r,{constraints},r", **kwargs
        )
        recorder.state[0] = Int32(state)
        return None
