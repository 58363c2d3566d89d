// Throughput of arithmetic instructions: 8 independent chains a thread, every output fed back. The instructions come
// from step.inc, generated from the table: CHAIN (register type), STEP(x, a, b) (one round over the 8 chains x[0..7]) and
// ROUNDS (rounds in a loop body).
#include "step.inc"
#include "timing.cuh"

using namespace fa4top;

extern "C" __global__ void __launch_bounds__(1024, 1)
    bench(int iterations, u64* clocks, CHAIN* sink, CHAIN a, CHAIN b) {
  a += threadIdx.x;  // not uniform: a constant in a uniform register costs some instructions a move
  b += threadIdx.x;
  CHAIN x[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) x[i] = a + (threadIdx.x + i) * 3;
  __syncthreads();
  const u64 begin = timed_clock();
#pragma unroll 1
  for (int i = 0; i < iterations; ++i) {
#pragma unroll
    for (int round = 0; round < ROUNDS; ++round) {
      STEP(x, a, b)
    }
  }
  const u64 end = timed_clock();
  CHAIN all = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) all ^= x[i];
  sink[threadIdx.x] = all;
  write_clocks(clocks, begin, end);
}
