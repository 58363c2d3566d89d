"""The stand-in's tensor factories, with the contract's signatures and layouts."""

from __future__ import annotations

import torch

from flash_attn.cute import formats


def _create(mode, batch, seqlen_q, seqlen_k, nheads, nheads_kv, headdim, headdim_v, pv_mode):
    def draw(length, heads, dim):
        return torch.randn(batch, length, heads, dim).to(torch.bfloat16)

    def quantised(values):  # (b, s, h, d): blocks along d
        packed, scales = formats.quantise(values.float().transpose(1, 2), mode)
        return packed.transpose(1, 2), scales

    q_ref, k_ref, v_ref = (
        draw(seqlen_q, nheads, headdim),
        draw(seqlen_k, nheads_kv, headdim),
        draw(seqlen_k, nheads_kv, headdim_v),
    )
    (q, q_sf), (k, k_sf) = quantised(q_ref), quantised(k_ref)
    v, v_sf = v_ref, None
    if pv_mode == "fp8":
        v = v_ref.to(torch.float8_e4m3fn)
    elif pv_mode in ("fp4", "mxfp8"):  # blocks along the keys
        v, v_sf = formats.quantise(v_ref.float().permute(0, 2, 3, 1), "nvfp4" if pv_mode == "fp4" else "mxfp8")
        if pv_mode == "mxfp8":
            v = v.permute(0, 3, 1, 2)  # logical (b, s, h, d), stride 1 along s
    return q, k, v, q_sf, k_sf, v_sf, q_ref, k_ref, v_ref.float()


def create_nvfp4_attention_tensors(
    batch, seqlen_q, seqlen_k, nheads, nheads_kv, headdim, headdim_v, device="cuda", dtype_gen=torch.bfloat16,
    pv_mode="bf16", pv_fp8_dtype=None,
):  # fmt: skip
    """Q and K in NVFP4."""
    return _create("nvfp4", batch, seqlen_q, seqlen_k, nheads, nheads_kv, headdim, headdim_v, pv_mode)


def create_mxfp8_attention_tensors(
    batch, seqlen_q, seqlen_k, nheads, nheads_kv, headdim, headdim_v, device="cuda", dtype_gen=torch.bfloat16,
    pv_mode="bf16", pv_fp8_dtype=None,
):  # fmt: skip
    """Q and K in MXFP8."""
    assert pv_mode in ("bf16", "fp8")
    return _create("mxfp8", batch, seqlen_q, seqlen_k, nheads, nheads_kv, headdim, headdim_v, pv_mode)
