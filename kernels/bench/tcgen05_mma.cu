// tcgen05.mma, one thread issuing, operands of zeros in shared memory, accumulator in tensor memory. KIND: see
// tcgen05.cuh; PAIR 1: two CTAs as one (256 rows). 16 instructions an iteration; clocks around issue of the first and
// completion of the last.
#include "tcgen05.cuh"
#include "timing.cuh"

using namespace fa4top;

constexpr u32 kColumns = 512;

extern "C" __global__ void
#if PAIR
    __cluster_dims__(2, 1, 1)
#endif
        __launch_bounds__(128, 1) bench(int iterations, u64* clocks, u32* sink, u32, u32) {
  extern __shared__ __align__(1024) unsigned char memory[];
  __shared__ u32 place;
  __shared__ __align__(8) u64 done;
  for (u32 i = threadIdx.x; i < 16384; i += blockDim.x) reinterpret_cast<u32*>(memory)[i] = 0;
  const u32 barrier = shared_address(&done);
  if (threadIdx.x < 32) tensor_memory_take<PAIR>(shared_address(&place), kColumns);
  if (threadIdx.x == 0) {
    barrier_init(barrier, 1);
    barrier_init_fence();
  }
  async_proxy_fence();
#if PAIR
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
  u32 rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#else
  __syncthreads();
  const u32 rank = 0;
#endif
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  const u32 d = place, scales = d + 256;
  const u64 a = tcgen05_descriptor(shared_address(memory)), b = tcgen05_descriptor(shared_address(memory) + 16384);
  constexpr u32 instruction = instruction_descriptor(KIND, PAIR ? 256 : 128, 128);
  if (threadIdx.x == 0 && rank == 0) {
    const u64 begin = timed_clock();
#pragma unroll 1
    for (int i = 0; i < iterations; ++i) {
#pragma unroll
      for (int k = 0; k < 16; ++k)
        tcgen05_mma<KIND, PAIR>(d, a + (k % 4 * 32 >> 4), b + (k % 4 * 32 >> 4), instruction, scales, scales + 16, 1);
    }
    tcgen05_commit<PAIR>(barrier);
    barrier_wait(barrier, 0);
    const u64 end = timed_clock();
    write_clocks(clocks, begin, end);
  }
#if PAIR
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
#else
  __syncthreads();
#endif
  sink[threadIdx.x] = d;
  if (threadIdx.x < 32) tensor_memory_give<PAIR>(d, kColumns);
}
