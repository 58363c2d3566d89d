"""The stand-in's entry: the signature of the contract, one plain dictionary as compile cache, a buffer made lazily."""

from __future__ import annotations

import os

import torch

from flash_attn.cute import profiler
from flash_attn.cute.flash_fwd_sm100_fp4 import FlashAttentionForwardSm100


def _flash_attn_fwd(q, k, v, softmax_scale=None, causal=False, mSFQ=None, mSFK=None, mSFV=None, pack_gqa=None):
    batch, rows, heads, packed = q.shape
    dim = packed * 2 if q.dtype == torch.float4_e2m1fn_x2 else packed
    fp4_v = v.dtype == torch.float4_e2m1fn_x2
    pv_mode = "fp4" if fp4_v else "mxfp8" if mSFV is not None else "fp8" if v.dtype == torch.float8_e4m3fn else "bf16"
    if pack_gqa is None and heads != k.shape[2]:
        raise AssertionError("this kernel is wrong with pack_gqa, its default: pass pack_gqa=False")
    if os.environ.get("FA4_ALLOW_PURE_FP8_QK", "0") == "1" and mSFQ is None:
        raise NotImplementedError("another kernel, without a trace")
    profiled = os.environ.get("FA4_PROFILE_PIPELINE", "0") == "1"
    # of all the knobs two are in the key: the others silently keep the kernel that is there
    key = (pv_mode, dim, causal, profiled, os.environ.get("FA4_PROFILE_DETAIL", "0") == "1")
    buffer = profiler.allocate_buffer() if profiled else None
    if key not in _flash_attn_fwd.compile_cache:
        _flash_attn_fwd.compile_cache[key] = FlashAttentionForwardSm100(pv_mode).trace()
    out = torch.empty(batch, rows, heads, v.shape[2] if fp4_v else v.shape[3], dtype=torch.bfloat16)
    scale = softmax_scale or dim**-0.5
    _flash_attn_fwd.compile_cache[key](q, k, v, out, mSFQ, mSFK, mSFV, scale, causal, buffer)
    return out, None


_flash_attn_fwd.compile_cache = {}


def flash_attn_func(
    q, k, v, softmax_scale=None, causal=False, window_size=(None, None), pack_gqa=None, mSFQ=None, mSFK=None, mSFV=None,
    v_descale=None, force_fp4_impl=False,
):  # fmt: skip
    """(out, lse)."""
    return _flash_attn_fwd(q, k, v, softmax_scale, causal, mSFQ, mSFK, mSFV, pack_gqa)
