// Coarse probes for your own kernel: what fa4top's decoder reads (docs: kernels/README.md).
//
// Buffer: a header of 64 bytes for each role, then FA4TOP_CAPACITY events of 8 bytes for each role. An event is
// (tag, %clock); the tag holds the launch generation (31..22), the event id (7..2) and the kind (1..0: begin, end, mark),
// so it is never zero and a stale slot can not be decoded. Config: word 0 the CTA that records, word 1 the generation.
//
// One elected thread a role records; no atomics; the store is predicated, because a branch around it costs more on
// Hopper. With FA4TOP_TRACE 0 nothing of this is compiled.
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
constexpr u32 kHeaderBytes = 64, kEventBytes = 8, kGenerationShift = 22, kEventShift = 2;

// What stands in front of a role's events.
struct RoleHeader {
  u32 layout, generation, written, dropped, sm, cta, state, unused;
  u32 timer_begin[2], clock_begin[2], timer_end[2], clock_end[2];  // u64, low word first
};
static_assert(sizeof(RoleHeader) == kHeaderBytes, "a role's header");
enum Layout : u32 { kEventsOf8Bytes = 1 };
enum State : u32 { kStarted = 1, kFinished = 2 };

// By value in the kernel's parameters. With probes off both pointers may be null.
struct Trace {
  unsigned char* buffer;
  const u32* config;
};

// Clocks that are read where they matter and stored later: storing takes longer than reading.
struct Late {
  u32 begin = 0, end = 0;
};

class Recorder {
 public:
#if FA4TOP_TRACE
  // Call once a role, in all of its threads; `elected` is true in one of them.
  __device__ __forceinline__ Recorder(const Trace& trace, u32 role, bool elected)
      : trace_(trace), role_(role) {
    const u32 cta = trace.config[0], generation = trace.config[1];
    const u32 own = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const bool records = elected && own == cta;
    slots_ = reinterpret_cast<u64>(trace.buffer) + FA4TOP_ROLES * kHeaderBytes +
             static_cast<u64>(role) * FA4TOP_CAPACITY * kEventBytes;
    generation_ = generation << kGenerationShift;
    slot_ = records ? 0 : kNever;
    if (records) {
      RoleHeader& words = header();
      words.layout = kEventsOf8Bytes;
      words.generation = generation;
      words.written = words.dropped = 0;
      words.sm = sm_id();
      words.cta = own;
      words.state = kStarted;
      anchor(words.timer_begin);
    }
  }

  __device__ __forceinline__ void record(u32 event, u32 kind) { store(event << kEventShift | kind, clock()); }

  // Counts and end anchors; without it the role reads as unfinished.
  __device__ __forceinline__ void finish() {
    if (slot_ >= kNever) return;
    // a pair that met the end of the buffer left the last slot empty
    const u32 kept = slot_ <= FA4TOP_CAPACITY ? slot_ : FA4TOP_CAPACITY - 1;
    RoleHeader& words = header();
    words.written = kept;
    words.dropped = slot_ - kept;
    anchor(words.timer_end);
    words.state = kFinished;
  }

 private:
  static constexpr u32 kShownAfter = 100;  // tries, each suspended for as long as the hardware likes
  static constexpr u32 kNever = 0x80000000;  // slot of threads that do not record: above every capacity
  __device__ __forceinline__ static u32 clock() {
    u32 value;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(value)::"memory");
    return value;
  }
  __device__ __forceinline__ void store(u32 event_and_kind, u32 clock) {
    asm volatile("{ .reg .pred p; setp.lt.u32 p, %2, %4; @p st.global.v2.b32 [%0], {%1, %3}; }" ::"l"(slots_ +
                                                                                                  slot_ * 8ull),
                 "r"(generation_ | event_and_kind), "r"(slot_), "r"(clock), "n"(FA4TOP_CAPACITY)
                 : "memory");
    ++slot_;
  }
  __device__ __forceinline__ static u32 sm_id() {
    u32 id;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    return id;
  }
  __device__ __forceinline__ static void anchor(u32* kept) {
    u64 timer, clock;
    asm volatile("mov.u64 %0, %%globaltimer; mov.u64 %1, %%clock64;" : "=l"(timer), "=l"(clock)::"memory");
    reinterpret_cast<u64*>(kept)[0] = timer;
    reinterpret_cast<u64*>(kept)[1] = clock;
  }
  __device__ __forceinline__ RoleHeader& header() const {
    return *reinterpret_cast<RoleHeader*>(trace_.buffer + role_ * kHeaderBytes);
  }
  const Trace& trace_;  // in the kernel's parameters: costs no registers
  const u32 role_;
  u64 slots_;
  u32 generation_, slot_;

 public:
  // What a late wait or mark noted, into the buffer: call it where nobody waits for this role.
  __device__ __forceinline__ void flush(u32 event, Late& late) {
    // one predicate for both stores, no branch: two predicates cost 1.5 points of the H200's time, a branch one
    asm volatile(
        "{ .reg .pred p; setp.lt.u32 p, %2, %6; @p st.global.v2.b32 [%0], {%1, %3};"
        " @p st.global.v2.b32 [%0+8], {%4, %5}; }" ::"l"(slots_ + slot_ * 8ull),
        "r"(generation_ | event << kEventShift | kBegin), "r"(late.end ? slot_ : kNever), "r"(late.begin),
        "r"(generation_ | event << kEventShift | kEnd), "r"(late.end), "n"(FA4TOP_CAPACITY - 1)
        : "memory");
    slot_ += late.end ? 2 : 0;
    late.end = 0;
  }
  __device__ __forceinline__ void note(Late& late) { late.begin = clock(); }
  __device__ __forceinline__ void flush_mark(u32 event, const Late& late) { store(event << kEventShift | kMark, late.begin); }
  __device__ __forceinline__ void wait_late(u32 event, Late& late, u32 barrier, u32 parity) {
    if (barrier_test(barrier, parity)) return;
    late.begin = clock();
    // After many tries it may never end: its begin then goes where the flush will put it, so that a hang can be told.
    // All in one block: the way out of the wait is that of barrier_wait.
    asm volatile(
        "{ .reg .pred p, q; .reg .u32 tries; .reg .u64 slot; mov.u32 tries, 0;"
        " FA4TOP_AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra FA4TOP_READY;"
        " add.u32 tries, tries, 1; setp.eq.u32 q, tries, %2; @!q bra FA4TOP_AGAIN;"
        " setp.lt.u32 q, %4, %7; mad.wide.u32 slot, %4, 8, %3; @q st.global.v2.b32 [slot], {%5, %6};"
        " bra FA4TOP_AGAIN; FA4TOP_READY: }" ::"r"(barrier),
        "r"(parity), "n"(kShownAfter), "l"(slots_), "r"(slot_), "r"(generation_ | event << kEventShift | kBegin), "r"(late.begin),
        "n"(FA4TOP_CAPACITY)
        : "memory");
    late.end = clock();
  }
#else
  __device__ __forceinline__ Recorder(const Trace&, u32, bool) {}
  __device__ __forceinline__ void record(u32, u32) {}
  __device__ __forceinline__ void finish() {}
  __device__ __forceinline__ void flush(u32, Late&) {}
  __device__ __forceinline__ void note(Late&) {}
  __device__ __forceinline__ void flush_mark(u32, const Late&) {}
  __device__ __forceinline__ void wait_late(u32, Late&, u32 barrier, u32 parity) { barrier_wait(barrier, parity); }
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
