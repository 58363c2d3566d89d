// Hopper's warpgroup MMA (wgmma), tile 64 x 128, FP32 accumulators: 64 registers a thread.
//
// Fragment of thread t of the warpgroup: rows 16 (t / 32) + (t % 32) / 4 and that + 8; element 4 n + {0, 1} is the first
// row, 4 n + {2, 3} the second, at columns 8 n + 2 (t % 4) + {0, 1}.
#pragma once

#include "ptx.cuh"

namespace fa4top {

// Shared-memory matrix descriptor, 128-byte swizzle. Strides in bytes. K-major: group_stride between groups of 8 rows,
// block_stride unused. MN-major: block_stride between blocks of 64 elements along MN, group_stride between groups of 8
// along K. (PTX ISA, "Matrix-descriptor".)
__device__ __forceinline__ u64 matrix_descriptor(u32 address, u32 block_stride, u32 group_stride) {
  return static_cast<u64>((address & 0x3FFFF) >> 4) | static_cast<u64>(block_stride >> 4) << 16 |
         static_cast<u64>(group_stride >> 4) << 32 | 1ull << 62;
}

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

template <int Pending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

// Keeps the compiler from moving uses of accumulators across asynchronous instructions.
__device__ __forceinline__ void pin(float (&d)[64]) {
#pragma unroll
  for (int i = 0; i < 64; ++i) asm volatile("" : "+f"(d[i])::"memory");
}


// The 64 accumulators as operands %0 to %63, in the text and in the list of outputs.
#define FA4TOP_ACCUMULATORS                                                            \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"             \
  " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31,"   \
  " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,"   \
  " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
#define FA4TOP_OUTPUTS(d)                                 \
      "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]),     \
      "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),     \
      "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),   \
      "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), \
      "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), \
      "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), \
      "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), \
      "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), \
      "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), \
      "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), \
      "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), \
      "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), \
      "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), \
      "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), \
      "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), \
      "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])

// bf16, A and B from shared memory. TransposeB: B is MN-major.
template <int TransposeB>
__device__ __forceinline__ void wgmma_bf16(float (&d)[64], u64 a, u64 b, int accumulate) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %66, 0;"
               "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " FA4TOP_ACCUMULATORS
               "%64, %65, p, 1, 1, 0, %67; }"
               : FA4TOP_OUTPUTS(d)
               : "l"(a), "l"(b), "r"(accumulate), "n"(TransposeB));
}

// bf16, A from registers.
template <int TransposeB>
__device__ __forceinline__ void wgmma_bf16_registers(float (&d)[64], const u32 (&a)[4], u64 b, int accumulate) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %69, 0;"
               "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " FA4TOP_ACCUMULATORS
               "{%64, %65, %66, %67}, %68, p, 1, 1, %70; }"
               : FA4TOP_OUTPUTS(d)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(TransposeB));
}

// e4m3, A and B from shared memory, both K-major.
__device__ __forceinline__ void wgmma_e4m3(float (&d)[64], u64 a, u64 b, int accumulate) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %66, 0;"
               "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 " FA4TOP_ACCUMULATORS
               "%64, %65, p, 1, 1; }"
               : FA4TOP_OUTPUTS(d)
               : "l"(a), "l"(b), "r"(accumulate));
}

// e4m3, A from registers.
__device__ __forceinline__ void wgmma_e4m3_registers(float (&d)[64], const u32 (&a)[4], u64 b, int accumulate) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %69, 0;"
               "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 " FA4TOP_ACCUMULATORS
               "{%64, %65, %66, %67}, %68, p, 1, 1; }"
               : FA4TOP_OUTPUTS(d)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}

#undef FA4TOP_ACCUMULATORS
#undef FA4TOP_OUTPUTS

}  // namespace fa4top
