// Shared-memory bandwidth, 16 bytes a thread, no bank conflicts. Loads chase pointers (each word holds its own address),
// so that every load depends on the one before in its chain; all four words are used, or ptxas would narrow the load.
#include "timing.cuh"

using namespace fa4top;

extern "C" __global__ void __launch_bounds__(1024, 1) bench(int iterations, u64* clocks, u32* sink, u32 a, u32) {
  extern __shared__ __align__(16) unsigned char memory[];
  u32 address[8], rest = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    address[i] = shared_address(memory) + (i * blockDim.x + threadIdx.x) * 16;
    asm volatile("st.shared.v4.b32 [%0], {%0, %1, %1, %1};" ::"r"(address[i]), "r"(a) : "memory");
  }
  __syncthreads();
  const u64 begin = timed_clock();
#pragma unroll 1
  for (int i = 0; i < iterations; ++i) {
#pragma unroll
    for (int round = 0; round < 8; ++round) {
#pragma unroll
      for (int chain = 0; chain < 8; ++chain) {
#if STORE
        asm volatile("st.shared.v4.b32 [%0], {%1, %2, %1, %2};" ::"r"(address[chain]), "r"(a), "r"(rest) : "memory");
#else
        u32 x, y, z;
        asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%0];"
                     : "+r"(address[chain]), "=r"(x), "=r"(y), "=r"(z)
                     :
                     : "memory");
        rest ^= x ^ y ^ z;
#endif
      }
    }
  }
  const u64 end = timed_clock();
#pragma unroll
  for (int i = 0; i < 8; ++i) rest ^= address[i];
  sink[threadIdx.x] = rest;
  write_clocks(clocks, begin, end);
}
