// The load warp: Q of both stages, and K and V of each block, by TMA.
#pragma once

#include "attention/layout.cuh"

namespace {

__device__ void load_role(const Shared& shared, const Problem& p, const TensorMap* q, const TensorMap* k,
                          const TensorMap* v, Recorder& recorder) {
  Ring ring;
  u32 tiles = 0;
  Late slot_wait;
  auto load = [&](const TensorMap* map, bool is_v, int block, const Tile& tile, int kv_head) {
    recorder.wait_late(event::kWaitSlot, slot_wait, shared.barrier(kKVEmpty + ring.slot), ring.phase ^ 1);
    const u32 full = shared.barrier(kKVFull + ring.slot), target = shared.kv(ring.slot);
    barrier_expect(full, is_v ? kVBytes : kSlotBytes);
    const int key = block * int(kBlock);
    if (PV_FP8 && is_v) {
      tensor_load(target, map, full, key, 0, kv_head, tile.batch);
    } else {
      tensor_load(target, map, full, 0, kv_head, key, tile.batch);
      tensor_load(target + kSlotBytes / 2, map, full, 64, kv_head, key, tile.batch);
    }
    recorder.flush(event::kWaitSlot, slot_wait);
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
    recorder.mark(event::kTile);
  }
}

}  // namespace
