// Tensor memory to registers and back: 32 lanes x 32 columns of 32 bits an instruction and warp. MODE 0: tcgen05.ld;
// 1: tcgen05.ld.red with a maximum (SM 10.3); 2: tcgen05.st. 32 instructions an iteration. Loads go into
// two arrays in turn and one value of each is used, or ptxas would drop all loads but the last.
#include "tcgen05.cuh"
#include "timing.cuh"

using namespace fa4top;

constexpr u32 kColumns = 512;

// x: 32 columns of this warp's lanes; returns the maximum that came with them, where MODE asks for it.
__device__ __forceinline__ u32 load(u32 (&x)[32], u32 address) {
  u32 maximum = 0;
#if MODE == 1
  asm volatile(
      "tcgen05.ld.red.sync.aligned.32x32b.x32.max.u32 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
      "}, %32, [%33];"
      : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]), "=r"(x[4]), "=r"(x[5]), "=r"(x[6]), "=r"(x[7]),
        "=r"(x[8]), "=r"(x[9]), "=r"(x[10]), "=r"(x[11]), "=r"(x[12]), "=r"(x[13]), "=r"(x[14]), "=r"(x[15]),
        "=r"(x[16]), "=r"(x[17]), "=r"(x[18]), "=r"(x[19]), "=r"(x[20]), "=r"(x[21]), "=r"(x[22]), "=r"(x[23]),
        "=r"(x[24]), "=r"(x[25]), "=r"(x[26]), "=r"(x[27]), "=r"(x[28]), "=r"(x[29]), "=r"(x[30]), "=r"(x[31]),
        "=r"(maximum)
      : "r"(address)
      : "memory");
#else
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
      "}, [%32];"
      : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]), "=r"(x[4]), "=r"(x[5]), "=r"(x[6]), "=r"(x[7]),
        "=r"(x[8]), "=r"(x[9]), "=r"(x[10]), "=r"(x[11]), "=r"(x[12]), "=r"(x[13]), "=r"(x[14]), "=r"(x[15]),
        "=r"(x[16]), "=r"(x[17]), "=r"(x[18]), "=r"(x[19]), "=r"(x[20]), "=r"(x[21]), "=r"(x[22]), "=r"(x[23]),
        "=r"(x[24]), "=r"(x[25]), "=r"(x[26]), "=r"(x[27]), "=r"(x[28]), "=r"(x[29]), "=r"(x[30]), "=r"(x[31])
      : "r"(address)
      : "memory");
#endif
  return maximum;
}

__device__ __forceinline__ void store(const u32 (&x)[32], u32 address) {
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x32.b32 [%32], {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
      "};" ::"r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(x[5]), "r"(x[6]), "r"(x[7]),
        "r"(x[8]), "r"(x[9]), "r"(x[10]), "r"(x[11]), "r"(x[12]), "r"(x[13]), "r"(x[14]), "r"(x[15]),
        "r"(x[16]), "r"(x[17]), "r"(x[18]), "r"(x[19]), "r"(x[20]), "r"(x[21]), "r"(x[22]), "r"(x[23]),
        "r"(x[24]), "r"(x[25]), "r"(x[26]), "r"(x[27]), "r"(x[28]), "r"(x[29]), "r"(x[30]), "r"(x[31]),
        "r"(address)
      : "memory");
}

extern "C" __global__ void __launch_bounds__(512, 1) bench(int iterations, u64* clocks, u32* sink, u32 a, u32) {
  __shared__ u32 place;
  if (threadIdx.x < 32) tensor_memory_take<0>(shared_address(&place), kColumns);
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  // a warp reaches the 32 lanes of its place in its warpgroup
  const u32 base = place + (threadIdx.x / 32 % 4 << 21);
  u32 x[32], y[32], rest = 0;
#pragma unroll
  for (int i = 0; i < 32; ++i) x[i] = a + i;
  __syncthreads();
  const u64 begin = timed_clock();
#pragma unroll 1
  for (int i = 0; i < iterations; ++i) {
#pragma unroll
    for (int pair = 0; pair < 16; ++pair) {
      const u32 address = base + pair % 4 * 64;
#if MODE == 2
      store(x, address);
      store(x, address + 32);
#else
      rest ^= load(x, address) ^ load(y, address + 32);
      asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
      rest ^= x[0] ^ y[31];
#endif
    }
#if MODE == 2
    asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
#endif
  }
  const u64 end = timed_clock();
#pragma unroll
  for (int i = 0; i < 32; ++i) rest ^= x[i];
  sink[threadIdx.x] = rest;
  write_clocks(clocks, begin, end);
  __syncthreads();
  if (threadIdx.x < 32) tensor_memory_give<0>(place, kColumns);
}
