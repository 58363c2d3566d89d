// What all microbenchmarks share: clocks around the timed region, one pair a warp.
#pragma once

#include "ptx.cuh"

namespace fa4top {

// %clock64 with a memory clobber: no memory access and no volatile instruction moves across it.
__device__ __forceinline__ u64 timed_clock() {
  u64 value;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(value)::"memory");
  return value;
}

// clocks: (warps, 2) begin and end. The host takes the earliest begin and the latest end.
__device__ __forceinline__ void write_clocks(u64* clocks, u64 begin, u64 end) {
  if (threadIdx.x % 32 == 0) {
    clocks[threadIdx.x / 32 * 2] = begin;
    clocks[threadIdx.x / 32 * 2 + 1] = end;
  }
}

}  // namespace fa4top
