// Tile sizes, the map of shared memory, barriers, the problem and its tiles: what all roles of attention share.
#pragma once

#include "events.cuh"
#include "trace.cuh"

using namespace fa4top;

namespace {

enum Role : u32 { kMmaRole = 0, kSoftmaxRole = 1, kLoadRole = 3 };

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
static_assert(kBarriers + 8 * kBarrierCount == SHARED_BYTES, "the host asks for other shared memory");

struct Problem {
  int batch, heads, kv_heads, queries, keys;
  float scale_log2;  // log2(e) / sqrt(head dim)
};
static_assert(sizeof(Problem) == PROBLEM_BYTES, "the host passes another Problem");

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

}  // namespace
