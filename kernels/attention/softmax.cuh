// The two softmax warpgroups: row maxima, exponentials, P stored and handed over with two signals.
#pragma once

#include "attention/layout.cuh"
#include "softmax_math.cuh"

namespace {

__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFF, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xFFFFFFFF, x, 2));
}

__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(0xFFFFFFFF, x, 1);
  return x + __shfl_xor_sync(0xFFFFFFFF, x, 2);
}

struct Row {
  float maximum, sum;

  // Takes the block's maximum in; returns the factor for O and the sum. The maximum may lag behind by kGrowth.
  __device__ __forceinline__ float grow(float block_maximum, float scale_log2, bool first) {
    if (first) {
      maximum = block_maximum;
      sum = 0.0f;
      return 1.0f;
    }
    const float growth = (block_maximum - maximum) * scale_log2;
    if (growth <= kGrowth) return 1.0f;
    const float factor = exp2_mufu(-growth);
    maximum = block_maximum;
    sum *= factor;
    return factor;
  }
};

// p = 2^(x scale - maximum scale + offset), four elements of two rows in place; the offset is folded into the argument
// or multiplied in afterwards (FOLD_SCALE).
template <int First>
__device__ __forceinline__ void exponentiate(float (&x)[64], float scale, float shift0, float shift1, Row& row0,
                                             Row& row1) {
#pragma unroll
  for (int i = First; i < First + 4; ++i) {
    const bool second = i % 4 >= 2;
    x[i] = exp2_mixed<EXP2_EIGHTHS>(__fmaf_rn(x[i], scale, second ? shift1 : shift0), i);
    if (second)
      row1.sum += x[i];
    else
      row0.sum += x[i];
#if PV_FP8 && !FOLD_SCALE
    x[i] *= 16.0f;  // 2^kOffset
#endif
  }
}

template <int Tile>
__device__ __forceinline__ void p_tile(float (&x)[64], float scale, float shift0, float shift1, Row& row0, Row& row1,
                                       u32 target, u32 warp, u32 lane) {
#if PV_FP8
  constexpr int i = Tile * 16;
  exponentiate<i>(x, scale, shift0, shift1, row0, row1);
  exponentiate<i + 4>(x, scale, shift0, shift1, row0, row1);
  exponentiate<i + 8>(x, scale, shift0, shift1, row0, row1);
  exponentiate<i + 12>(x, scale, shift0, shift1, row0, row1);
  store_matrices(fragment_address(target, warp, lane, Tile * 2), pack_e4m3(x[i], x[i + 1], x[i + 4], x[i + 5]),
                 pack_e4m3(x[i + 2], x[i + 3], x[i + 6], x[i + 7]),
                 pack_e4m3(x[i + 8], x[i + 9], x[i + 12], x[i + 13]),
                 pack_e4m3(x[i + 10], x[i + 11], x[i + 14], x[i + 15]));
#else
  constexpr int i = Tile * 8;
  exponentiate<i>(x, scale, shift0, shift1, row0, row1);
  exponentiate<i + 4>(x, scale, shift0, shift1, row0, row1);
  store_matrices(fragment_address(target + Tile / 4 * (kPBytes / 2), warp, lane, Tile % 4 * 2),
                 pack_bf16(x[i], x[i + 1]), pack_bf16(x[i + 2], x[i + 3]), pack_bf16(x[i + 4], x[i + 5]),
                 pack_bf16(x[i + 6], x[i + 7]));
#endif
}

template <int From, int To>
struct Tiles {
  static_assert(From < To, "a range of K-tiles goes upward");
  template <typename... Arguments>
  __device__ __forceinline__ static void run(Arguments&&... arguments) {
    p_tile<From>(arguments...);
    Tiles<From + 1, To>::run(arguments...);
  }
};
template <int To>
struct Tiles<To, To> {
  template <typename... Arguments>
  __device__ __forceinline__ static void run(Arguments&&...) {}
};

__device__ void softmax_role(const Shared& shared, const Problem& p, u32 stage, Recorder& recorder) {
  const u32 thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32, first_row = warp * 16 + lane / 4;
  u32 phase = 0;
  for (int index = blockIdx.x; index < tile_count(p); index += gridDim.x) {
    const Tile tile = tile_at(p, index);
    Row row0, row1;
    Late step_begin, s_wait, p_free_wait;
    for (int step = 0; step < tile.blocks; ++step) {
      float x[64];
      recorder.note(step_begin);
      recorder.wait_late(event::kWaitS, s_wait, shared.barrier(kSFull + stage), phase);
      const u32 source = shared.s(stage) + thread * 16;
#pragma unroll
      for (u32 i = 0; i < 16; ++i)
        load_words(source + i * 2048, x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]);
#if CAUSAL
      if (step == 0) {  // blocks go from the last to the first: only this one meets the diagonal
        const int limit = int(stage * kRows + first_row);
#pragma unroll
        for (int i = 0; i < 64; ++i) {
          const int column = i / 4 * 8 + int(lane % 4) * 2 + i % 2;
          if (column > limit + (i % 4 >= 2 ? 8 : 0)) x[i] = __int_as_float(0xFF800000);
        }
      }
#endif
      recorder.detail_begin(event::kRowMax);
      float max0 = x[0], max1 = x[2];
#pragma unroll
      for (int i = 0; i < 64; i += 4) {
        max0 = fmaxf(max0, fmaxf(x[i], x[i + 1]));
        max1 = fmaxf(max1, fmaxf(x[i + 2], x[i + 3]));
      }
      const float factor0 = row0.grow(quad_max(max0), p.scale_log2, step == 0);
      const float factor1 = row1.grow(quad_max(max1), p.scale_log2, step == 0);
      arrive_warp(shared.barrier(kSEmpty + stage));  // S is in registers
      recorder.detail_end(event::kRowMax);
      recorder.wait_late(event::kWaitPFree, p_free_wait, shared.barrier(kPEmpty + stage), phase ^ 1);
      if (lane % 4 == 0) {
        store_word(shared.scale(stage) + first_row * 4, factor0);
        store_word(shared.scale(stage) + first_row * 4 + 32, factor1);
      }
      const float offset = FOLD_SCALE ? kOffset : 0.0f;
      const float shift0 = offset - row0.maximum * p.scale_log2, shift1 = offset - row1.maximum * p.scale_log2;
      recorder.detail_begin(event::kExp2);
      Tiles<0, P_FIRST * kTilesPerChunk>::run(x, p.scale_log2, shift0, shift1, row0, row1, shared.p(stage), warp, lane);
      async_proxy_fence();
      arrive_warp(shared.barrier(kPFirst + stage));
      Tiles<P_FIRST * kTilesPerChunk, kTiles>::run(x, p.scale_log2, shift0, shift1, row0, row1, shared.p(stage), warp,
                                                   lane);
      async_proxy_fence();
#if LOST_SIGNAL
      if (index != int(blockIdx.x) || step != 5 || stage != 1)
#endif
        arrive_warp(shared.barrier(kPRest + stage));
      recorder.flush_mark(event::kStep, step_begin);
      recorder.flush(event::kWaitS, s_wait);
      recorder.flush(event::kWaitPFree, p_free_wait);
      recorder.detail_end(event::kExp2);
      phase ^= 1;
    }
    const float scaled0 = quad_sum(row0.sum), scaled1 = quad_sum(row1.sum);
    if (lane % 4 == 0) {
      constexpr float back = PV_FP8 && !FOLD_SCALE ? 0.0625f : 1.0f;  // 2^-kOffset
      store_word(shared.sum(stage) + first_row * 4, back / scaled0);
      store_word(shared.sum(stage) + first_row * 4 + 32, back / scaled1);
    }
    arrive_warp(shared.barrier(kSumFull + stage));
    recorder.mark(event::kTile);
  }
}

}  // namespace
