// Attention forward for Hopper with FA4's topology: a load warp, one MMA warpgroup, two softmax warpgroups in ping-pong,
// an epilogue warp. S and P pass through shared memory; P is handed over with two signals. Head dim 128.
//
// It exists so that handoffs can be studied on a Hopper GPU. On Hopper accumulators live in registers, so S has to be
// stored by the MMA warpgroup and loaded by softmax: shared-memory bandwidth bounds this kernel, which FA4's Hopper
// kernel avoids by giving each warpgroup its own MMA.
//
// Per CTA: two stages (Q tiles) of 64 rows, KV blocks of 128. One KV step of the MMA warpgroup, for each stage s:
// issue S = Q K^T of the next block; wait for P of this block (first signal); rescale O if a row maximum grew; issue the
// first K-tiles of O += P V; wait for the second signal; issue the rest; store S for softmax. As in FA4, S of the next
// block comes after P of this one; S_EARLY stores it before waiting for P instead.
//
// Compile-time settings, all set by the host (fa4top/targets/builtin): PV_FP8, CAUSAL, KV_STAGES, P_CHUNKS (store chunks
// of P), P_FIRST (chunks before the first signal), PV_FIRST (K-tiles issued before waiting for the second),
// S_EARLY, EXP2_EIGHTHS, FOLD_SCALE, TILE_ORDER, LOST_SIGNAL. SHARED_BYTES and PROBLEM_BYTES are what the host reckons
// with. The roles are in attention/, a file each, on top of attention/layout.cuh.
//
// fp8: P and V are e4m3. wgmma wants both operands K-major in fp8, so V comes transposed, (batch, kv heads, 128, keys),
// with the keys of each 16 in the order 0 1 8 9 2 3 10 11 4 5 12 13 6 7 14 15: that is how the S fragment lies in
// registers, so P needs no shuffles.

// with a macro missing the templates below would unfold for ever
#if !defined(PV_FP8) || !defined(CAUSAL) || !defined(KV_STAGES) || !defined(P_CHUNKS) || !defined(P_FIRST) || \
    !defined(PV_FIRST) || !defined(SHARED_BYTES) || !defined(PROBLEM_BYTES)
#error "compile this through fa4top/targets/builtin/build.py, which sets its macros"
#endif

#ifndef EVERY_THREAD_ARRIVES
#define EVERY_THREAD_ARRIVES 0
#endif

#include "attention/epilogue.cuh"
#include "attention/load.cuh"
#include "attention/mma.cuh"
#include "attention/softmax.cuh"

extern "C" __global__ void __launch_bounds__(512, 1)
    attention(const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,
              const __grid_constant__ TensorMap v, const __grid_constant__ TensorMap out,
              const __grid_constant__ Problem p, const __grid_constant__ Trace trace) {
  extern __shared__ __align__(1024) unsigned char memory[];
  const Shared shared{shared_address(memory)};
  const u32 warp = threadIdx.x / 32, group = threadIdx.x / 128;
  if (threadIdx.x == 0) {
    for (u32 stage = 0; stage < 2; ++stage) {
      barrier_init(shared.barrier(kQFull + stage), 1);
      barrier_init(shared.barrier(kQEmpty + stage), kEveryWarp);
      barrier_init(shared.barrier(kSFull + stage), kEveryWarp);
      barrier_init(shared.barrier(kSEmpty + stage), kEveryWarp);
      barrier_init(shared.barrier(kPFirst + stage), kEveryWarp);
      barrier_init(shared.barrier(kPRest + stage), kEveryWarp);
      barrier_init(shared.barrier(kPEmpty + stage), kEveryWarp);
      barrier_init(shared.barrier(kSumFull + stage), kEveryWarp);
      barrier_init(shared.barrier(kOFull + stage), kEveryWarp);
    }
    for (u32 slot = 0; slot < KV_STAGES; ++slot) {
      barrier_init(shared.barrier(kKVFull + slot), 1);
      barrier_init(shared.barrier(kKVEmpty + slot), kEveryWarp);
    }
    barrier_init_fence();
  }
  __syncthreads();
  if (group == 0) {
    registers_give<40>();
    if (warp == 0 && threadIdx.x == 0) {
      prefetch_map(&q);
      prefetch_map(&k);
      prefetch_map(&v);
      Recorder recorder(trace, kLoadRole, true);
      load_role(shared, p, &q, &k, &v, recorder);
      recorder.finish();
    } else if (warp == 1 && threadIdx.x == 32) {
      prefetch_map(&out);
      epilogue_role(shared, p, &out);
    }
  } else if (group == 1) {
    registers_take<240>();
    Recorder recorder(trace, kMmaRole, threadIdx.x % 128 == 0);
    mma_role(shared, p, recorder);
    recorder.finish();
  } else {
    registers_give<112>();
    const u32 stage = group - 2;
    Recorder recorder(trace, kSoftmaxRole + stage, threadIdx.x % 128 == 0);
    softmax_role(shared, p, stage, recorder);
    recorder.finish();
  }
}
