// From an arrive to the wake of who waits for it, inside one CTA: two warps hand over to each other and back.
// NAMED 0: mbarriers; 1: named barriers (bar.arrive, bar.sync). One iteration is two handoffs.
#include "timing.cuh"

using namespace fa4top;

extern "C" __global__ void __launch_bounds__(64, 1) bench(int iterations, u64* clocks, u32* sink, u32, u32) {
  __shared__ __align__(8) u64 barriers[2];
  const u32 there = shared_address(barriers), back = there + 8;
  if (threadIdx.x == 0) {
    barrier_init(there, 1);
    barrier_init(back, 1);
    barrier_init_fence();
  }
  __syncthreads();
  const bool first = threadIdx.x < 32;
  u32 phase = 0;
  const u64 begin = timed_clock();
#pragma unroll 1
  for (int i = 0; i < iterations; ++i) {
#if NAMED
    if (first) {
      asm volatile("bar.arrive 1, 64;" ::: "memory");
      asm volatile("bar.sync 2, 64;" ::: "memory");
    } else {
      asm volatile("bar.sync 1, 64;" ::: "memory");
      asm volatile("bar.arrive 2, 64;" ::: "memory");
    }
#else
    if (first) {
      if (threadIdx.x == 0) barrier_arrive(there);
      barrier_wait(back, phase);
    } else {
      barrier_wait(there, phase);
      if (threadIdx.x == 32) barrier_arrive(back);
    }
    phase ^= 1;
#endif
  }
  const u64 end = timed_clock();
  sink[threadIdx.x] = phase;
  write_clocks(clocks, begin, end);
}
