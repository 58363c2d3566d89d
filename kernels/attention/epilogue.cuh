// The epilogue warp: O from shared memory to global memory, by TMA.
#pragma once

#include "attention/layout.cuh"

namespace {

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
