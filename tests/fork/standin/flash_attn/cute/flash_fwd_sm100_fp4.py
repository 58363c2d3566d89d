"""The stand-in's kernel: reads its knobs when the real one does, computes on the CPU, writes the trace as it would."""

from __future__ import annotations

import os
import time

from flash_attn.cute import formats, profiler, tracing

# read by the real kernel, and without effect on a stand-in
OTHERS = (
    "FA4_DEBUG_FORCE_GENERIC_MXFP8_QK",
    "FA4_DEBUG_SF_OFFSETS",
    "FA4_DEBUG_SKIP_SFQ_S2T",
    "FA4_E2E_FREQ",
    "FA4_E2E_START_FRG",
    "FA4_FORCE_E2E",
    "FA4_FP4_PV_P_SPLIT_DEN",
    "FA4_FP4_PV_P_SPLIT_NUM",
    "FA4_FP4_PV_QUANT_STORE_PIPELINE",
    "FA4_FP4_PV_TMEM_STORE_REP",
    "FA4_FP8_PV_KV_STAGE_CAP",
    "FA4_FP8_PV_PACK_STORE_PIPELINE",
    "FA4_FP8_PV_P_LOG2_OFFSET",
    "FA4_FP8_PV_RANGE_UNROLL",
    "FA4_FP8_PV_USE_EXPLICIT_PACK",
    "FA4_FP8_PV_USE_FUSED_PACK",
    "FA4_FP8_PV_ZERO_FILL_REGS",
    "FA4_LDRED_ROWMAX",
    "FA4_MXFP8_USE_INLINE_PTX",
    "FA4_SFQK_TMEM_SLOT",
)


class FlashAttentionForwardSm100:
    """Knobs "at init" are read here."""

    def __init__(self, pv_mode, sf_dtype_pv=None):
        self.pv_mode = pv_mode
        self.detail = os.environ.get("FA4_PROFILE_DETAIL", "0") == "1"
        self.log2_quant = os.environ.get("FA4_FP4_PV_LOG2_QUANT", "1") == "1"
        self.skip_scales = os.environ.get("FA4_DEBUG_SKIP_SFK_S2T", "0") == "1"
        self.others = {name: os.environ.get(name) for name in OTHERS}
        if pv_mode == "mxfp8":
            assert self.log2_quant, "MXFP8 PV requires the log-domain quant path"

    def trace(self):
        """Knobs "at trace" are read here; returns the compiled function."""
        numerator = int(os.environ.get("FA4_FP8_PV_P_SPLIT_NUM", "3"))
        denominator = int(os.environ.get("FA4_FP8_PV_P_SPLIT_DEN", "4"))
        rep = int(os.environ.get("FA4_FP8_PV_TMEM_STORE_REP", "8"))
        ring = hasattr(profiler, "prof_flush") and os.environ.get("FA4_PROF_SMEM", "1") == "1"
        empty = os.environ.get("FA4_PROF_EMPTY", "0") == "1"
        profiled = os.environ.get("FA4_PROFILE_PIPELINE", "0") == "1"
        chunks = 32 // rep
        fp8 = self.pv_mode == "fp8"
        consumer = max(1, min(3, 4 * numerator // denominator))
        producer = max(1, min(chunks - 1, chunks * numerator // denominator)) if chunks > 1 else 1
        print("Total shared memory used: 159744")  # the real kernel prints while it is traced

        known = []

        def kernel(q, k, v, out, sfq, sfk, sfv, scale, causal, buffer):
            if fp8 and consumer == 1:
                raise RuntimeError("CUDA error: an illegal instruction was encountered")
            if os.environ.get("FA4TOP_STAND_IN_HANG") == "1":
                if profiled:
                    tracing.write(buffer, hang=True, ring=ring, detail=self.detail, steps=k.shape[1] // 128)
                time.sleep(3600)
            if not known or known[0][0] is not q:  # the CPU takes long: the same inputs give the same
                known[:] = [(q, attention(q, k, v, sfq, sfk, sfv, scale, causal, self.skip_scales))]
            result = known[0][1]
            if fp8 and producer * 4 < consumer * chunks:
                result = result * 1.5  # P read before it was written
            out.copy_(result)
            if profiled and not empty:
                tracing.write(buffer, hang=False, ring=ring, detail=self.detail, steps=k.shape[1] // 128)

        return kernel


def attention(q, k, v, sfq, sfk, sfv, scale, causal, skip_scales):
    """softmax(q k^T) v in FP32, a head at a time; q, k, v as the interface takes them. (b, s, h, d) in bf16."""
    import torch

    q = formats.dequantise(q.transpose(1, 2), sfq)
    k = formats.dequantise(k.transpose(1, 2), sfk) * (0.25 if skip_scales else 1.0)
    if v.dtype == torch.float4_e2m1fn_x2:
        v = formats.dequantise(v, sfv).transpose(2, 3)  # (b, h, d, s / 2)
    elif sfv is not None:
        v = formats.dequantise(v.permute(0, 2, 3, 1), sfv).transpose(2, 3)
    else:
        v = v.float().transpose(1, 2)
    batch, heads, rows, _ = q.shape
    keys, ratio = k.shape[2], heads // k.shape[1]
    out = torch.empty(batch, rows, heads, v.shape[3])
    for b in range(batch):
        for h in range(heads):
            scores = q[b, h] @ k[b, h // ratio].T * scale
            if causal:
                late = torch.arange(keys)[None] > torch.arange(rows)[:, None] + keys - rows
                scores.masked_fill_(late, float("-inf"))
            out[b, :, h] = torch.softmax(scores, dim=1) @ v[b, h // ratio]
    return out.to(torch.bfloat16)
