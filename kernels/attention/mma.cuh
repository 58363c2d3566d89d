// The MMA warpgroup: S = Q K^T, O += P V in two parts, O rescaled and staged.
#pragma once

#include "attention/layout.cuh"
#include "softmax_math.cuh"
#include "wgmma.cuh"

namespace {

// Groups of wgmma in flight are said at each wait: QK is one group, PV two (issue_pv).
struct Mma {
  const Shared& shared;
  Recorder& recorder;
  Ring next;
  u32 s_phase = 0, p_phase = 0, tiles = 0, held_v = 0;  // held_v: slot of the V that PV in flight reads
  Late p_wait, rest_wait;

  __device__ __forceinline__ void issue_qk(float (&s)[64], u32 stage, u32 k_slot) {
    const u64 q = matrix_descriptor(shared.q(stage), 16, 1024), k = matrix_descriptor(shared.kv(k_slot), 16, 1024);
    pin(s);
    wgmma_fence();
#pragma unroll
    for (u32 tile = 0; tile < 8; ++tile) {
      const u32 half = tile / 4, column = tile % 4 * 32;
      wgmma_bf16<0>(s, q + ((half * (kQBytes / 2) + column) >> 4), k + ((half * (kSlotBytes / 2) + column) >> 4),
                    tile > 0);
    }
    wgmma_commit();
  }

  __device__ __forceinline__ void pv_tile(float (&o)[64], u64 p, u64 v, u32 tile, int accumulate) {
#if PV_FP8
    wgmma_e4m3(o, p + (tile * 32 >> 4), v + (tile * 32 >> 4), accumulate);
#else
    wgmma_bf16<1>(o, p + ((tile / 4 * (kPBytes / 2) + tile % 4 * 32) >> 4), v + (tile * 2048 >> 4), accumulate);
#endif
  }

  // O += P V in two parts; the second part waits for the second signal. Two groups, because ptxas makes two of them at
  // the branch of the wait in any case, and waits by count would then wait for the first part too.
  __device__ __forceinline__ void issue_pv(float (&o)[64], u32 stage, u32 v_slot, int accumulate) {
    const u64 p = matrix_descriptor(shared.p(stage), 16, 1024);
    const u64 v = PV_FP8 ? matrix_descriptor(shared.kv(v_slot), 16, 1024)
                         : matrix_descriptor(shared.kv(v_slot), kSlotBytes / 2, 1024);
    pin(o);
    wgmma_fence();
#pragma unroll
    for (u32 tile = 0; tile < PV_FIRST; ++tile) pv_tile(o, p, v, tile, tile > 0 ? 1 : accumulate);
    wgmma_commit();
    recorder.wait_late(event::kWaitP2nd, rest_wait, shared.barrier(kPRest + stage), p_phase);
#pragma unroll
    for (u32 tile = PV_FIRST; tile < kTiles; ++tile) pv_tile(o, p, v, tile, 1);
    wgmma_commit();
  }

  __device__ __forceinline__ void rescale(float (&o)[64], u32 stage, u32 first_row) {
    const float a = load_word(shared.scale(stage) + first_row * 4);
    const float b = load_word(shared.scale(stage) + first_row * 4 + 32);
    if (__any_sync(0xFFFFFFFF, a != 1.0f || b != 1.0f)) {
      pin(o);
#pragma unroll
      for (int i = 0; i < 64; i += 4) {
        o[i] *= a;
        o[i + 1] *= a;
        o[i + 2] *= b;
        o[i + 3] *= b;
      }
      pin(o);
    }
  }

  // The S fragment as it lies in registers: softmax's thread t takes what thread t put.
  __device__ __forceinline__ void store_s(float (&s)[64], u32 stage, u32 thread) {
    const u32 address = shared.s(stage) + thread * 16;
#pragma unroll
    for (u32 i = 0; i < 16; ++i)
      store_words(address + i * 2048, s[4 * i], s[4 * i + 1], s[4 * i + 2], s[4 * i + 3]);
    arrive_warp(shared.barrier(kSFull + stage));
  }

  __device__ __forceinline__ void stage_out(float (&o)[64], u32 stage, u32 warp, u32 lane, u32 first_row) {
    traced_wait(recorder, event::kWaitSum, shared.barrier(kSumFull + stage), tiles & 1);
    const float a = load_word(shared.sum(stage) + first_row * 4), b = load_word(shared.sum(stage) + first_row * 4 + 32);
#pragma unroll
    for (u32 tile = 0; tile < 8; ++tile) {
      const float* x = o + tile * 8;
      store_matrices(fragment_address(shared.p(stage) + tile / 4 * (kPBytes / 2), warp, lane, tile % 4 * 2),
                     pack_bf16(x[0] * a, x[1] * a), pack_bf16(x[2] * b, x[3] * b), pack_bf16(x[4] * a, x[5] * a),
                     pack_bf16(x[6] * b, x[7] * b));
    }
    async_proxy_fence();
    arrive_warp(shared.barrier(kOFull + stage));
  }

  // The step mark stands where the tensor cores have work queued, so that recording costs nothing.
  __device__ __forceinline__ void start_s(float (&s)[64], u32 stage, u32 k_slot) {
    issue_qk(s, stage, k_slot);
    flush();
    recorder.mark(event::kStep);
  }

  __device__ __forceinline__ void flush() {
    recorder.flush(event::kWaitP, p_wait);
    recorder.flush(event::kWaitP2nd, rest_wait);
  }

  __device__ __forceinline__ void hand_over_s(float (&s)[64], u32 stage, u32 thread) {
    pin(s);
    traced_wait(recorder, event::kWaitSFree, shared.barrier(kSEmpty + stage), s_phase ^ 1);
    store_s(s, stage, thread);
  }

  __device__ __forceinline__ void multiply_p(float (&o)[64], u32 stage, const Ring& v, bool accumulate, u32 first_row) {
    recorder.wait_late(event::kWaitP, p_wait, shared.barrier(kPFirst + stage), p_phase);
    if (accumulate) rescale(o, stage, first_row);
    if (stage == 0) traced_wait(recorder, event::kWaitKV, shared.barrier(kKVFull + v.slot), v.phase);
    issue_pv(o, stage, v.slot, accumulate);
  }

  // One KV step: S of the next block, O of this one. ptxas serialises all wgmmas (C7514) when accumulators that ordinary
  // instructions touch, as in rescale, are in flight across a loop's back edge and are not waited for at once.
  __device__ __forceinline__ void step(float (&s)[64], float (&o0)[64], float (&o1)[64], bool first, u32 thread,
                                       u32 first_row) {
    const Ring k = next;
    next.advance();
    const Ring v = next;
    next.advance();
    traced_wait(recorder, event::kWaitKV, shared.barrier(kKVFull + k.slot), k.phase);
    start_s(s, 0, k.slot);
    if (S_EARLY) {
      wgmma_wait<0>();  // in flight: PV1 of the step before (2), QK0; left: none
      if (!first) release_pv(1, held_v);
      hand_over_s(s, 0, thread);
      multiply_p(o0, 0, v, !first, first_row);
      start_s(s, 1, k.slot);
      wgmma_wait<0>();  // in flight: PV0 (2), QK1; left: none
      release_pv(0);
      arrive_warp(shared.barrier(kKVEmpty + k.slot));
      hand_over_s(s, 1, thread);
      multiply_p(o1, 1, v, !first, first_row);
    } else {
      multiply_p(o0, 0, v, !first, first_row);
      wgmma_wait<2>();  // in flight: QK0, PV0 (2); left: PV0
      hand_over_s(s, 0, thread);
      start_s(s, 1, k.slot);
      wgmma_wait<1>();  // in flight: PV0 (2), QK1; left: QK1
      release_pv(0);
      multiply_p(o1, 1, v, !first, first_row);
      wgmma_wait<2>();  // in flight: QK1, PV1 (2); left: PV1
      arrive_warp(shared.barrier(kKVEmpty + k.slot));
      hand_over_s(s, 1, thread);
      wgmma_wait<0>();  // in flight: PV1 (2); left: none
      release_pv(1, v.slot);
    }
    held_v = v.slot;
    s_phase ^= 1;
    p_phase ^= 1;
  }

  // PV of a stage is over: its P may be written again; after the second stage V's slot is free too.
  __device__ __forceinline__ void release_pv(u32 stage) { arrive_warp(shared.barrier(kPEmpty + stage)); }
  __device__ __forceinline__ void release_pv(u32 stage, u32 v_slot) {
    release_pv(stage);
    arrive_warp(shared.barrier(kKVEmpty + v_slot));
  }
};

__device__ void mma_role(const Shared& shared, const Problem& p, Recorder& recorder) {
  const u32 thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32, first_row = warp * 16 + lane / 4;
  Mma mma{shared, recorder};
  float s[64], o0[64], o1[64];
  for (int index = blockIdx.x; index < tile_count(p); index += gridDim.x, ++mma.tiles) {
    const Tile tile = tile_at(p, index);
    // S of the first block
    traced_wait(recorder, event::kWaitKV, shared.barrier(kKVFull + mma.next.slot), mma.next.phase);
#pragma unroll
    for (u32 stage = 0; stage < 2; ++stage) {
      traced_wait(recorder, event::kWaitQ, shared.barrier(kQFull + stage), mma.tiles & 1);
      mma.start_s(s, stage, mma.next.slot);
      wgmma_wait<0>();  // in flight: QK of this stage; left: none
      mma.hand_over_s(s, stage, thread);
    }
    mma.s_phase ^= 1;
    arrive_warp(shared.barrier(kKVEmpty + mma.next.slot));
    mma.next.advance();

    for (int step = 0; step + 1 < tile.blocks; ++step) mma.step(s, o0, o1, step == 0, thread, first_row);

    // last block: nothing left to multiply with Q
    const bool accumulate = tile.blocks > 1;
    arrive_warp(shared.barrier(kQEmpty + 0));
    arrive_warp(shared.barrier(kQEmpty + 1));
    wgmma_wait<0>();  // in flight: with S_EARLY, PV1 of the last step (2); left: none
    if (S_EARLY && accumulate) mma.release_pv(1, mma.held_v);
    const Ring v = mma.next;
    mma.next.advance();
    mma.multiply_p(o0, 0, v, accumulate, first_row);
    mma.flush();
    mma.multiply_p(o1, 1, v, accumulate, first_row);
    mma.p_phase ^= 1;
    mma.flush();
    recorder.begin(event::kEpilogue);
    wgmma_wait<2>();  // in flight: PV0 (2), PV1 (2); left: PV1
    pin(o0);
    mma.stage_out(o0, 0, warp, lane, first_row);
    wgmma_wait<0>();  // in flight: PV1 (2); left: none
    pin(o1);
    arrive_warp(shared.barrier(kKVEmpty + v.slot));
    mma.stage_out(o1, 1, warp, lane, first_row);
    recorder.end(event::kEpilogue);
    recorder.mark(event::kTile);
  }
}

}  // namespace
