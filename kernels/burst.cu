// What stands around timed launches: stamps of both clocks, from which the SM clock during a burst follows, and a delay of
// known length, the positive control of an A/B.
#include "ptx.cuh"

using namespace fa4top;

// One CTA for each SM. out[2 smid] is the global timer (ns), out[2 smid + 1] the SM's clock (cycles). Clocks of different
// SMs have different origins, so only stamps of the same SM may be subtracted.
extern "C" __global__ void stamp(u64* out, u32 capacity) {
  u32 id;
  u64 timer, clock;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  asm volatile("mov.u64 %0, %%globaltimer; mov.u64 %1, %%clock64;" : "=l"(timer), "=l"(clock)::"memory");
  if (threadIdx.x == 0 && id < capacity) {
    out[2 * id] = timer;
    out[2 * id + 1] = clock;
  }
}

extern "C" __global__ void delay(u64 cycles) {
  u64 begin, now;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(begin)::"memory");
  do {
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)::"memory");
  } while (now - begin < cycles);
}
