// Datacenter Blackwell's tensor cores (tcgen05): allocation of tensor memory, MMA, commit, descriptors.
#pragma once

#include "ptx.cuh"

namespace fa4top {

// Kinds of tcgen05.mma that attention uses.
enum MmaKind : int { kBf16 = 0, kE4m3 = 1, kMxf8 = 2, kNvfp4 = 3 };

// Shared-memory descriptor, K-major, 128-byte swizzle: groups of 8 rows 1024 bytes apart; bit 46 and layout 2 in bits
// 61..63 are fixed for this generation. (PTX ISA, "tcgen05 shared memory descriptor".)
__device__ __forceinline__ u64 tcgen05_descriptor(u32 address) {
  return static_cast<u64>((address & 0x3FFFF) >> 4) | 1ull << 16 | static_cast<u64>(1024 >> 4) << 32 | 1ull << 46 |
         2ull << 61;
}

// Instruction descriptor: FP32 accumulators, both operands K-major. (PTX ISA, "Instruction descriptor".)
__device__ __forceinline__ constexpr u32 instruction_descriptor(int kind, u32 rows, u32 columns) {
  const u32 shape = columns / 8 << 17 | rows / 16 << 24;
  if (kind == kBf16) return shape | 1 << 4 | 1 << 7 | 1 << 10;
  if (kind == kE4m3) return shape | 1 << 4;
  if (kind == kMxf8) return shape | 1u << 23;     // scales in UE8M0
  return shape | 1 << 7 | 1 << 10;                // E2M1 operands, scales in UE4M3
}

template <int Pair>
__device__ __forceinline__ void tensor_memory_take(u32 place, u32 columns) {
  if (Pair) {
    asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(place), "r"(columns)
                 : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;");
  } else {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(place), "r"(columns)
                 : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
  }
}

template <int Pair>
__device__ __forceinline__ void tensor_memory_give(u32 address, u32 columns) {
  if (Pair)
    asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns));
  else
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns));
}

#define FA4TOP_TCGEN05_MMA(GROUP, KIND)                                                                          \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma." GROUP "." KIND " [%0], %1, %2, %3, p; }" ::"r"(d), \
               "l"(a), "l"(b), "r"(instruction), "r"(accumulate)                                                 \
               : "memory")
#define FA4TOP_TCGEN05_MMA_SCALED(GROUP, KIND)                                                                    \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0; tcgen05.mma." GROUP "." KIND                                \
               " [%0], %1, %2, %3, [%4], [%5], p; }" ::"r"(d),                                                     \
               "l"(a), "l"(b), "r"(instruction), "r"(a_scales), "r"(b_scales), "r"(accumulate)                    \
               : "memory")

// D in tensor memory += A B, both from shared memory; one thread issues for the CTA, or for the pair.
template <int Kind, int Pair>
__device__ __forceinline__ void tcgen05_mma(u32 d, u64 a, u64 b, u32 instruction, u32 a_scales, u32 b_scales,
                                            int accumulate) {
  if (Kind == kBf16 && Pair) FA4TOP_TCGEN05_MMA("cta_group::2", "kind::f16");
  if (Kind == kBf16 && !Pair) FA4TOP_TCGEN05_MMA("cta_group::1", "kind::f16");
  if (Kind == kE4m3 && Pair) FA4TOP_TCGEN05_MMA("cta_group::2", "kind::f8f6f4");
  if (Kind == kE4m3 && !Pair) FA4TOP_TCGEN05_MMA("cta_group::1", "kind::f8f6f4");
  if (Kind == kMxf8 && Pair) FA4TOP_TCGEN05_MMA_SCALED("cta_group::2", "kind::mxf8f6f4.block_scale.scale_vec::1X");
  if (Kind == kMxf8 && !Pair) FA4TOP_TCGEN05_MMA_SCALED("cta_group::1", "kind::mxf8f6f4.block_scale.scale_vec::1X");
  if (Kind == kNvfp4 && Pair) FA4TOP_TCGEN05_MMA_SCALED("cta_group::2", "kind::mxf4nvf4.block_scale.scale_vec::4X");
  if (Kind == kNvfp4 && !Pair) FA4TOP_TCGEN05_MMA_SCALED("cta_group::1", "kind::mxf4nvf4.block_scale.scale_vec::4X");
}

// The barrier is arrived at once all MMAs issued so far are over.
template <int Pair>
__device__ __forceinline__ void tcgen05_commit(u32 barrier) {
  if (Pair)
    asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier)
                 : "memory");
  else
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier)
                 : "memory");
}

}  // namespace fa4top
