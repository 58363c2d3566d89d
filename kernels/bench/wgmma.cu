// wgmma: 64 x 128 x 128 a warpgroup and tile, operands of zeros. E4M3 0 or 1; A_REGISTERS 0 or 1. Two tiles an iteration;
// one tile stays in flight while the next is issued.
#include "timing.cuh"
#include "wgmma.cuh"

using namespace fa4top;

constexpr int kInstructions = E4M3 ? 4 : 8;  // of a tile
constexpr u32 kABytes = 64 * 128 * (E4M3 ? 1 : 2), kBBytes = 128 * 128 * (E4M3 ? 1 : 2);

extern "C" __global__ void __launch_bounds__(A_REGISTERS ? 256 : 512, 1) bench(int iterations, u64* clocks, u32* sink, u32 a_word, u32) {
  extern __shared__ __align__(1024) unsigned char memory[];
  for (u32 i = threadIdx.x; i < (4 * kABytes + kBBytes) / 4; i += blockDim.x) reinterpret_cast<u32*>(memory)[i] = 0;
  async_proxy_fence();
  float d[64];
  u32 a[4];
#pragma unroll
  for (int i = 0; i < 64; ++i) d[i] = 0.0f;
#pragma unroll
  for (int i = 0; i < 4; ++i) asm volatile("add.u32 %0, %1, %2;" : "=r"(a[i]) : "r"(a_word), "r"(threadIdx.x & 0));
  const u64 b = matrix_descriptor(shared_address(memory), 16, 1024);
  const u64 a_shared = matrix_descriptor(shared_address(memory) + kBBytes + threadIdx.x / 128 * kABytes, 16, 1024);
  __syncthreads();
  const u64 begin = timed_clock();
#pragma unroll 1
  for (int i = 0; i < iterations; ++i) {
#pragma unroll
    for (int tile = 0; tile < 2; ++tile) {
      wgmma_fence();
#pragma unroll
      for (u32 k = 0; k < kInstructions; ++k) {
        const u32 column = k % 4 * 32, half = k / 4;
        const u64 b_at = b + ((half * kBBytes / 2 + column) >> 4), a_at = a_shared + ((half * kABytes / 2 + column) >> 4);
#if E4M3 && A_REGISTERS
        wgmma_e4m3_registers(d, a, b_at, 1);
#elif E4M3
        wgmma_e4m3(d, a_at, b_at, 1);
#elif A_REGISTERS
        wgmma_bf16_registers<0>(d, a, b_at, 1);
#else
        wgmma_bf16<0>(d, a_at, b_at, 1);
#endif
      }
      wgmma_commit();
      wgmma_wait<1>();
    }
  }
  wgmma_wait<0>();
  pin(d);
  const u64 end = timed_clock();
  float all = 0.0f;
#pragma unroll
  for (int i = 0; i < 64; ++i) all += d[i];
  sink[threadIdx.x] = __float_as_uint(all);
  write_clocks(clocks, begin, end);
}
