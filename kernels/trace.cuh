// Coarse probes for your own kernel: what fa4top's decoder reads (docs: kernels/README.md).
//
// Buffer: a header of 64 bytes for each role, then FA4TOP_CAPACITY events of 8 bytes for each role. An event is
// (tag, %clock); the tag holds the launch generation (31..22), the event id (7..2) and the kind (1..0: begin, end, mark),
// so it is never zero and a stale slot can not be decoded. Config: word 0 the CTA that records, word 1 the generation.
//
// The state of a role's probes is one register: generation << 22 | role << 20 | slot; below 1 << 22 for threads that do
// not record. One elected thread a role records; no atomics; the store is predicated, because a branch around it costs
// more on Hopper. With FA4TOP_TRACE 0 nothing of this is compiled.
#pragma once

#include "ptx.cuh"

#ifndef FA4TOP_TRACE
#define FA4TOP_TRACE 0  // 0 off, 1 coarse, 2 detail
#endif
#ifndef FA4TOP_ROLES
#define FA4TOP_ROLES 4  // up to 4
#endif
#ifndef FA4TOP_CAPACITY
#define FA4TOP_CAPACITY 131072  // events a role, below 2^20
#endif

namespace fa4top {

enum Kind : u32 { kBegin = 0, kEnd = 1, kMark = 2 };

// By value in the kernel's parameters. With probes off both pointers may be null.
struct Trace {
  unsigned char* buffer;
  const u32* config;
};

class Recorder {
 public:
#if FA4TOP_TRACE
  // Call once a role, in all of its threads; `elected` is true in one of them.
  __device__ __forceinline__ Recorder(const Trace& trace, u32 role, bool elected) : buffer_(trace.buffer) {
    const u32 cta = trace.config[0], generation = trace.config[1];
    const u32 own = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const bool records = elected && own == cta;
    state_ = records ? generation << 22 | role << 20 : 0;
    if (records) {
      u32* header = header_of(role);
      header[0] = 1;  // layout: 8-byte events
      header[1] = generation;
      header[2] = header[3] = 0;
      header[4] = sm_id();
      header[5] = own;
      header[6] = 1;  // started
      anchor(header + 8);
    }
  }

  __device__ __forceinline__ void record(u32 event, u32 kind) {
    const u32 slot = state_ & 0xFFFFF;
    const u32 index = (state_ >> 20 & 3) * FA4TOP_CAPACITY + slot;
    const u64 address = reinterpret_cast<u64>(buffer_) + FA4TOP_ROLES * 64 + static_cast<u64>(index) * 8;
    const u32 tag = (state_ & 0xFFC00000) | event << 2 | kind;
    asm volatile(
        "{ .reg .pred p; .reg .b32 c; mov.u32 c, %%clock;"
        " setp.lt.u32 p, %2, %4; setp.ge.and.u32 p, %3, 0x400000, p;"
        " @p st.global.v2.b32 [%0], {%1, c}; }" ::"l"(address),
        "r"(tag), "r"(slot), "r"(state_), "n"(FA4TOP_CAPACITY)
        : "memory");
    state_ += slot != 0xFFFFF;
  }

  // Counts and end anchors; without it the role reads as unfinished.
  __device__ __forceinline__ void finish() {
    if (state_ < 1u << 22) return;
    u32* header = header_of(state_ >> 20 & 3);
    const u32 count = state_ & 0xFFFFF;
    const u32 kept = count < FA4TOP_CAPACITY ? count : FA4TOP_CAPACITY;
    header[2] = kept;
    header[3] = count - kept;
    anchor(header + 12);
    header[6] = 2;  // finished
  }

 private:
  __device__ __forceinline__ u32* header_of(u32 role) const {
    return reinterpret_cast<u32*>(buffer_ + role * 64);
  }
  __device__ __forceinline__ static u32 sm_id() {
    u32 id;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    return id;
  }
  __device__ __forceinline__ static void anchor(u32* words) {
    u64 timer, clock;
    asm volatile("mov.u64 %0, %%globaltimer; mov.u64 %1, %%clock64;" : "=l"(timer), "=l"(clock)::"memory");
    reinterpret_cast<u64*>(words)[0] = timer;
    reinterpret_cast<u64*>(words)[1] = clock;
  }
  unsigned char* buffer_;
  u32 state_;
#else
  __device__ __forceinline__ Recorder(const Trace&, u32, bool) {}
  __device__ __forceinline__ void record(u32, u32) {}
  __device__ __forceinline__ void finish() {}
#endif
 public:
  __device__ __forceinline__ void begin(u32 event) { record(event, kBegin); }
  __device__ __forceinline__ void end(u32 event) { record(event, kEnd); }
  __device__ __forceinline__ void mark(u32 event) { record(event, kMark); }
  // For points inside a compute stream: proportions only.
  __device__ __forceinline__ void detail_begin(u32 event) {
#if FA4TOP_TRACE > 1
    record(event, kBegin);
#endif
  }
  __device__ __forceinline__ void detail_end(u32 event) {
#if FA4TOP_TRACE > 1
    record(event, kEnd);
#endif
  }
};

// A wait that records begin and end only when it has to block: clocks are read on the slow path alone.
__device__ __forceinline__ void traced_wait(Recorder& recorder, u32 event, u32 barrier, u32 parity) {
#if FA4TOP_TRACE
  if (barrier_test(barrier, parity)) return;
  recorder.begin(event);
  barrier_wait(barrier, parity);
  recorder.end(event);
#else
  barrier_wait(barrier, parity);
#endif
}

}  // namespace fa4top
