// Attention forward for Hopper with FA4's topology: a load warp, one MMA warpgroup, two softmax warpgroups in ping-pong,
// an epilogue warp. S and P pass through shared memory; P is handed over with two signals. Head dim 128.
//
// It exists so that handoffs can be studied on a Hopper GPU. On Hopper accumulators live in registers, so S has to be
// stored by the MMA warpgroup and loaded by softmax: shared-memory bandwidth bounds this kernel, which FA4's Hopper
// kernel avoids by giving each warpgroup its own MMA.
//
// Per CTA: two stages (Q tiles) of 64 rows, KV blocks of 128. One KV step of the MMA warpgroup, for each stage s:
// issue S = Q K^T of the next block; wait for P of this block (first signal); rescale O if a row maximum grew; issue the
// first K-tiles of O += P V; wait for the second signal; issue the rest; store S for softmax. As in FA4, S of the next
// block comes after P of this one; S_EARLY stores it before waiting for P instead.
//
// Compile-time settings, all set by the host (fa4top/targets/builtin): PV_FP8, CAUSAL, KV_STAGES, P_CHUNKS (store chunks
// of P), P_FIRST (chunks before the first signal), PV_FIRST (K-tiles issued before waiting for the second),
// S_EARLY, EXP2_EIGHTHS, FOLD_SCALE, TILE_ORDER, LOST_SIGNAL.
//
// fp8: P and V are e4m3. wgmma wants both operands K-major in fp8, so V comes transposed, (batch, kv heads, 128, keys),
// with the keys of each 16 in the order 0 1 8 9 2 3 10 11 4 5 12 13 6 7 14 15: that is how the S fragment lies in
// registers, so P needs no shuffles.

// with a macro missing the templates below would unfold for ever
#if !defined(PV_FP8) || !defined(CAUSAL) || !defined(KV_STAGES) || !defined(P_CHUNKS) || !defined(P_FIRST) || \
    !defined(PV_FIRST)
#error "compile this through fa4top/targets/builtin/build.py, which sets its macros"
#endif

#ifndef EVERY_THREAD_ARRIVES
#define EVERY_THREAD_ARRIVES 0
#endif

#include "softmax_math.cuh"
#include "trace.cuh"
#include "wgmma.cuh"

using namespace fa4top;

namespace {

enum Role : u32 { kMma = 0, kSoftmax = 1, kLoad = 3 };
// ids of fa4top/analysis/events.py
enum Event : u32 {
  kStep = 1,
  kTile = 2,
  kWaitKV = 6,
  kWaitP = 7,
  kWaitPRest = 8,
  kWaitS = 9,
  kWaitQ = 12,
  kEpilogue = 18,
  kRowMax = 21,
  kExp2 = 22,
  kWaitFreeP = 26,
  kWaitFreeKV = 27,
  kWaitSum = 28,
  kWaitFreeS = 29,
};

constexpr u32 kRows = 64, kBlock = 128, kDim = 128;
constexpr u32 kQBytes = kRows * kDim * 2;          // one stage, two halves of 64 columns
constexpr u32 kSlotBytes = kBlock * kDim * 2;      // one K or V block
constexpr u32 kVBytes = PV_FP8 ? kBlock * kDim : kSlotBytes;
constexpr u32 kSBytes = kRows * kBlock * 4;
constexpr u32 kPBytes = kRows * kBlock * 2;        // fp8 uses half; O is staged here too
constexpr u32 kQ = 0, kKV = kQ + 2 * kQBytes, kS = kKV + KV_STAGES * kSlotBytes, kP = kS + 2 * kSBytes;
constexpr u32 kScale = kP + 2 * kPBytes, kSum = kScale + 2 * kRows * 4, kBarriers = kSum + 2 * kRows * 4;
constexpr int kTiles = PV_FP8 ? 4 : 8;             // K-tiles of PV: 32 or 16 keys
constexpr int kTilesPerChunk = kTiles / P_CHUNKS;
constexpr float kGrowth = PV_FP8 ? 4.0f : 8.0f;    // the maximum may lag by this many powers of two before O is rescaled
constexpr float kOffset = PV_FP8 ? 4.0f : 0.0f;    // P times 2^offset: uses e4m3's range, cancels in O / sum
constexpr u32 kEveryWarp = EVERY_THREAD_ARRIVES ? 128 : 4;

static_assert(kTiles % P_CHUNKS == 0 && P_FIRST >= 1 && P_FIRST < P_CHUNKS + (P_CHUNKS == 1), "P_CHUNKS, P_FIRST");
static_assert(PV_FIRST >= 1 && PV_FIRST < kTiles, "PV_FIRST");

// barriers, 8 bytes each; those with two stages take two places
enum Barrier : u32 {
  kQFull = 0,
  kQEmpty = 2,
  kSFull = 4,
  kPFirst = 6,
  kPRest = 8,
  kPEmpty = 10,
  kSumFull = 12,
  kOFull = 14,
  kSEmpty = 16,
  kKVFull = 18,
  kKVEmpty = kKVFull + KV_STAGES,
  kBarrierCount = kKVEmpty + KV_STAGES,
};

struct Problem {
  int batch, heads, kv_heads, queries, keys;
  float scale_log2;  // log2(e) / sqrt(head dim)
};

struct Tile {
  int row, head, batch, blocks;
};

__device__ __forceinline__ int tile_count(const Problem& p) { return p.batch * p.heads * (p.queries / int(2 * kRows)); }

__device__ __forceinline__ Tile tile_at(const Problem& p, int index) {
  const int row_tiles = p.queries / int(2 * kRows), groups = p.batch * p.heads;
  // 0: rows of a head first; 1: heads first; 2: heads first, last (under a causal mask: longest) rows first
  const int group = TILE_ORDER == 0 ? index / row_tiles : index % groups;
  int row = TILE_ORDER == 0 ? index % row_tiles : index / groups;
  if (TILE_ORDER == 2) row = row_tiles - 1 - row;
  Tile tile{row * int(2 * kRows), group % p.heads, group / p.heads, p.keys / int(kBlock)};
#if CAUSAL
  tile.blocks = (tile.row + p.keys - p.queries) / int(kBlock) + 1;
#endif
  return tile;
}

struct Ring {
  u32 slot = 0, phase = 0;
  __device__ __forceinline__ void advance() {
    if (++slot == KV_STAGES) {
      slot = 0;
      phase ^= 1;
    }
  }
};

struct Shared {
  u32 base;
  __device__ __forceinline__ u32 barrier(u32 which) const { return base + kBarriers + which * 8; }
  __device__ __forceinline__ u32 q(u32 stage) const { return base + kQ + stage * kQBytes; }
  __device__ __forceinline__ u32 kv(u32 slot) const { return base + kKV + slot * kSlotBytes; }
  __device__ __forceinline__ u32 s(u32 stage) const { return base + kS + stage * kSBytes; }
  __device__ __forceinline__ u32 p(u32 stage) const { return base + kP + stage * kPBytes; }
  __device__ __forceinline__ u32 scale(u32 stage) const { return base + kScale + stage * kRows * 4; }
  __device__ __forceinline__ u32 sum(u32 stage) const { return base + kSum + stage * kRows * 4; }
};

// One arrival a warp, which covers all its threads. compute-sanitizer's racecheck follows single threads only: for it,
// EVERY_THREAD_ARRIVES makes each thread arrive by itself.
__device__ __forceinline__ void arrive_warp(u32 barrier) {
#if EVERY_THREAD_ARRIVES
  barrier_arrive(barrier);
#else
  __syncwarp();
  if (threadIdx.x % 32 == 0) barrier_arrive(barrier);
#endif
}

// Address of this lane's 16-byte row for store_matrices, in a K-major tile with 128-byte rows and swizzle.
__device__ __forceinline__ u32 fragment_address(u32 tile, u32 warp, u32 lane, u32 chunk) {
  const u32 row = warp * 16 + lane % 8 + (lane / 8 % 2) * 8;
  return tile + row * 128 + ((chunk + lane / 16) ^ (row % 8)) * 16;
}

// ---------------------------------------------------------------- load

__device__ void load_role(const Shared& shared, const Problem& p, const TensorMap* q, const TensorMap* k,
                          const TensorMap* v, Recorder& recorder) {
  Ring ring;
  u32 tiles = 0;
  Late slot_wait;
  auto load = [&](const TensorMap* map, bool is_v, int block, const Tile& tile, int kv_head) {
    recorder.wait_late(kWaitFreeKV, slot_wait, shared.barrier(kKVEmpty + ring.slot), ring.phase ^ 1);
    const u32 full = shared.barrier(kKVFull + ring.slot), target = shared.kv(ring.slot);
    barrier_expect(full, is_v ? kVBytes : kSlotBytes);
    const int key = block * int(kBlock);
    if (PV_FP8 && is_v) {
      tensor_load(target, map, full, key, 0, kv_head, tile.batch);
    } else {
      tensor_load(target, map, full, 0, kv_head, key, tile.batch);
      tensor_load(target + kSlotBytes / 2, map, full, 64, kv_head, key, tile.batch);
    }
    recorder.flush(kWaitFreeKV, slot_wait);
    ring.advance();
  };
  for (int index = blockIdx.x; index < tile_count(p); index += gridDim.x, ++tiles) {
    const Tile tile = tile_at(p, index);
    const int kv_head = tile.head / (p.heads / p.kv_heads);
    for (u32 stage = 0; stage < 2; ++stage) {
      barrier_wait(shared.barrier(kQEmpty + stage), tiles & 1 ^ 1);
      const u32 full = shared.barrier(kQFull + stage);
      barrier_expect(full, kQBytes);
      const int row = tile.row + int(stage * kRows);
      tensor_load(shared.q(stage), q, full, 0, tile.head, row, tile.batch);
      tensor_load(shared.q(stage) + kQBytes / 2, q, full, 64, tile.head, row, tile.batch);
    }
    load(k, false, tile.blocks - 1, tile, kv_head);
    for (int block = tile.blocks - 1; block >= 0; --block) {
      if (block > 0) load(k, false, block - 1, tile, kv_head);
      load(v, true, block, tile, kv_head);
    }
    recorder.mark(kTile);
  }
}

// ---------------------------------------------------------------- MMA

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
    recorder.wait_late(kWaitPRest, rest_wait, shared.barrier(kPRest + stage), p_phase);
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
    traced_wait(recorder, kWaitSum, shared.barrier(kSumFull + stage), tiles & 1);
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
    recorder.mark(kStep);
  }

  __device__ __forceinline__ void flush() {
    recorder.flush(kWaitP, p_wait);
    recorder.flush(kWaitPRest, rest_wait);
  }

  __device__ __forceinline__ void hand_over_s(float (&s)[64], u32 stage, u32 thread) {
    pin(s);
    traced_wait(recorder, kWaitFreeS, shared.barrier(kSEmpty + stage), s_phase ^ 1);
    store_s(s, stage, thread);
  }

  __device__ __forceinline__ void multiply_p(float (&o)[64], u32 stage, const Ring& v, bool accumulate, u32 first_row) {
    recorder.wait_late(kWaitP, p_wait, shared.barrier(kPFirst + stage), p_phase);
    if (accumulate) rescale(o, stage, first_row);
    if (stage == 0) traced_wait(recorder, kWaitKV, shared.barrier(kKVFull + v.slot), v.phase);
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
    traced_wait(recorder, kWaitKV, shared.barrier(kKVFull + k.slot), k.phase);
    start_s(s, 0, k.slot);
    if (S_EARLY) {
      wgmma_wait<0>();
      if (!first) release_pv(1, held_v);
      hand_over_s(s, 0, thread);
      multiply_p(o0, 0, v, !first, first_row);
      start_s(s, 1, k.slot);
      wgmma_wait<0>();
      release_pv(0);
      arrive_warp(shared.barrier(kKVEmpty + k.slot));
      hand_over_s(s, 1, thread);
      multiply_p(o1, 1, v, !first, first_row);
    } else {
      multiply_p(o0, 0, v, !first, first_row);
      wgmma_wait<2>();  // S is there; both parts of PV go on
      hand_over_s(s, 0, thread);
      start_s(s, 1, k.slot);
      wgmma_wait<1>();
      release_pv(0);
      multiply_p(o1, 1, v, !first, first_row);
      wgmma_wait<2>();
      arrive_warp(shared.barrier(kKVEmpty + k.slot));
      hand_over_s(s, 1, thread);
      wgmma_wait<0>();
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
    traced_wait(recorder, kWaitKV, shared.barrier(kKVFull + mma.next.slot), mma.next.phase);
#pragma unroll
    for (u32 stage = 0; stage < 2; ++stage) {
      traced_wait(recorder, kWaitQ, shared.barrier(kQFull + stage), mma.tiles & 1);
      mma.start_s(s, stage, mma.next.slot);
      wgmma_wait<0>();
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
    wgmma_wait<0>();
    if (S_EARLY && accumulate) mma.release_pv(1, mma.held_v);
    const Ring v = mma.next;
    mma.next.advance();
    mma.multiply_p(o0, 0, v, accumulate, first_row);
    mma.flush();
    mma.multiply_p(o1, 1, v, accumulate, first_row);
    mma.p_phase ^= 1;
    mma.flush();
    recorder.begin(kEpilogue);
    wgmma_wait<2>();
    pin(o0);
    mma.stage_out(o0, 0, warp, lane, first_row);
    wgmma_wait<0>();
    pin(o1);
    arrive_warp(shared.barrier(kKVEmpty + v.slot));
    mma.stage_out(o1, 1, warp, lane, first_row);
    recorder.end(kEpilogue);
    recorder.mark(kTile);
  }
}

// ---------------------------------------------------------------- softmax

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
      recorder.wait_late(kWaitS, s_wait, shared.barrier(kSFull + stage), phase);
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
      recorder.detail_begin(kRowMax);
      float max0 = x[0], max1 = x[2];
#pragma unroll
      for (int i = 0; i < 64; i += 4) {
        max0 = fmaxf(max0, fmaxf(x[i], x[i + 1]));
        max1 = fmaxf(max1, fmaxf(x[i + 2], x[i + 3]));
      }
      const float factor0 = row0.grow(quad_max(max0), p.scale_log2, step == 0);
      const float factor1 = row1.grow(quad_max(max1), p.scale_log2, step == 0);
      arrive_warp(shared.barrier(kSEmpty + stage));  // S is in registers
      recorder.detail_end(kRowMax);
      recorder.wait_late(kWaitFreeP, p_free_wait, shared.barrier(kPEmpty + stage), phase ^ 1);
      if (lane % 4 == 0) {
        store_word(shared.scale(stage) + first_row * 4, factor0);
        store_word(shared.scale(stage) + first_row * 4 + 32, factor1);
      }
      const float offset = FOLD_SCALE ? kOffset : 0.0f;
      const float shift0 = offset - row0.maximum * p.scale_log2, shift1 = offset - row1.maximum * p.scale_log2;
      recorder.detail_begin(kExp2);
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
      recorder.flush_mark(kStep, step_begin);
      recorder.flush(kWaitS, s_wait);
      recorder.flush(kWaitFreeP, p_free_wait);
      recorder.detail_end(kExp2);
      phase ^= 1;
    }
    const float scaled0 = quad_sum(row0.sum), scaled1 = quad_sum(row1.sum);
    if (lane % 4 == 0) {
      constexpr float back = PV_FP8 && !FOLD_SCALE ? 0.0625f : 1.0f;  // 2^-kOffset
      store_word(shared.sum(stage) + first_row * 4, back / scaled0);
      store_word(shared.sum(stage) + first_row * 4 + 32, back / scaled1);
    }
    arrive_warp(shared.barrier(kSumFull + stage));
    recorder.mark(kTile);
  }
}

// ---------------------------------------------------------------- epilogue

__device__ void epilogue_role(const Shared& shared, const Problem& p, const TensorMap* out) {
  u32 phase = 0;
  for (int index = blockIdx.x; index < tile_count(p); index += gridDim.x, phase ^= 1) {
    const Tile tile = tile_at(p, index);
    for (u32 stage = 0; stage < 2; ++stage) {
      barrier_wait(shared.barrier(kOFull + stage), phase);
      const int row = tile.row + int(stage * kRows);
      tensor_store(out, shared.p(stage), 0, tile.head, row, tile.batch);
      tensor_store(out, shared.p(stage) + kPBytes / 2, 64, tile.head, row, tile.batch);
      store_commit();
      store_wait_read();
      barrier_arrive_many(shared.barrier(kPEmpty + stage), kEveryWarp);  // P's place is free again
    }
  }
  store_wait();
}

}  // namespace

extern "C" __global__ void __launch_bounds__(512, 1)
    attention(const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,
              const __grid_constant__ TensorMap v, const __grid_constant__ TensorMap out,
              const __grid_constant__ Problem p, const __grid_constant__ Trace trace) {
  extern __shared__ __align__(1024) unsigned char memory[];
  const Shared shared{shared_address(memory)};
  const u32 warp = threadIdx.x / 32, group = threadIdx.x / 128;
  if (threadIdx.x == 0) {
    for (u32 stage = 0; stage < 2; ++stage) {
      barrier_init(shared.barrier(kQFull + stage), 1);
      barrier_init(shared.barrier(kQEmpty + stage), kEveryWarp);
      barrier_init(shared.barrier(kSFull + stage), kEveryWarp);
      barrier_init(shared.barrier(kSEmpty + stage), kEveryWarp);
      barrier_init(shared.barrier(kPFirst + stage), kEveryWarp);
      barrier_init(shared.barrier(kPRest + stage), kEveryWarp);
      barrier_init(shared.barrier(kPEmpty + stage), kEveryWarp);
      barrier_init(shared.barrier(kSumFull + stage), kEveryWarp);
      barrier_init(shared.barrier(kOFull + stage), kEveryWarp);
    }
    for (u32 slot = 0; slot < KV_STAGES; ++slot) {
      barrier_init(shared.barrier(kKVFull + slot), 1);
      barrier_init(shared.barrier(kKVEmpty + slot), kEveryWarp);
    }
    barrier_init_fence();
  }
  __syncthreads();
  if (group == 0) {
    registers_give<40>();
    if (warp == 0 && threadIdx.x == 0) {
      prefetch_map(&q);
      prefetch_map(&k);
      prefetch_map(&v);
      Recorder recorder(trace, kLoad, true);
      load_role(shared, p, &q, &k, &v, recorder);
      recorder.finish();
    } else if (warp == 1 && threadIdx.x == 32) {
      prefetch_map(&out);
      epilogue_role(shared, p, &out);
    }
  } else if (group == 1) {
    registers_take<240>();
    Recorder recorder(trace, kMma, threadIdx.x % 128 == 0);
    mma_role(shared, p, recorder);
    recorder.finish();
  } else {
    registers_give<112>();
    const u32 stage = group - 2;
    Recorder recorder(trace, kSoftmax + stage, threadIdx.x % 128 == 0);
    softmax_role(shared, p, stage, recorder);
    recorder.finish();
  }
}
