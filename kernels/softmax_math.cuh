// Arithmetic of a softmax step: exp2 on the MUFU or emulated on the FMA pipes, and the packing of P.
#pragma once

#include "ptx.cuh"

namespace fa4top {

__device__ __forceinline__ float exp2_mufu(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// 2^x by a cubic on the fraction (minimax in relative error on [0, 1): 7.5e-5, below half a bf16 ulp) and an integer
// add into the exponent.
__device__ __forceinline__ float exp2_fma(float x) {
  x = fmaxf(x, -126.0f);
  const float whole = __fadd_rd(x, 12582912.0f);  // 1.5 * 2^23: the integer part ends up in the low mantissa bits
  const float fraction = x - (whole - 12582912.0f);
  float y = __fmaf_rn(fraction, 0.07802452f, 0.22606716f);
  y = __fmaf_rn(y, fraction, 0.69583354f);
  y = __fmaf_rn(y, fraction, 0.99992522f);
  return __uint_as_float(__float_as_uint(y) + (__float_as_uint(whole) << 23));
}

// `index` is a constant after unrolling: every (8 / Eighths)-th element is emulated.
template <int Eighths>
__device__ __forceinline__ float exp2_mixed(float x, int index) {
  if (Eighths > 0 && (index * Eighths) % 8 < Eighths) return exp2_fma(x);
  return exp2_mufu(x);
}

// Low half first.
__device__ __forceinline__ u32 pack_bf16(float low, float high) {
  u32 packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

// Lowest byte first.
__device__ __forceinline__ u32 pack_e4m3(float a, float b, float c, float d) {
  u32 packed;
  asm("{ .reg .b16 x, y; cvt.rn.satfinite.e4m3x2.f32 x, %2, %1; cvt.rn.satfinite.e4m3x2.f32 y, %4, %3;"
      " mov.b32 %0, {x, y}; }"
      : "=r"(packed)
      : "f"(a), "f"(b), "f"(c), "f"(d));
  return packed;
}

}  // namespace fa4top
