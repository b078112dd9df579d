// Sizes of a plan: no sum of a slot wraps around, and values that are alive together share no byte of memory
// (src/program/lifetimes.h). Sums that stop at a limit (src/base/saturating.h).
#include "base/saturating.h"
#include "checker.h"
#include "program/lifetimes.h"

using namespace gimbal;

// One more value in a slot, from any state: values lie one behind the other, and the slot stays below its
// limit. So a sum over eight slots stays below 2^63. 64 is kAlignment.
static void slot_with(const uint64_t alignment) {
  const uint64_t end = nondet_ulong(), bytes = nondet_ulong();
  ASSUME(end <= kMaxSlotBytes && (end & (alignment - 1)) == 0);
  const auto next = slot_end(end, bytes, alignment);
  if (!next) {
    CLAIM(bytes > kMaxSlotBytes - end);
    return;
  }
  CLAIM(*next >= end && *next - end >= bytes && *next - end - bytes < alignment);
  CLAIM(*next <= kMaxSlotBytes && (*next & (alignment - 1)) == 0);
}

extern "C" void slots_do_not_wrap() { slot_with(64); }

// One more activation beside three with any lifetimes, sizes and places.
extern "C" void living_values_share_no_byte() {
  constexpr int kPlaced = 3;
  Lifetime all[kPlaced];
  const Lifetime* placed[kPlaced];
  for (int i = 0; i < kPlaced; i++) {
    all[i].first = nondet_ulong(), all[i].last = nondet_ulong();
    all[i].offset = nondet_ulong(), all[i].bytes = nondet_ulong();
    ASSUME(all[i].first <= all[i].last);
    ASSUME(all[i].offset <= kMaxSlotBytes && all[i].bytes <= kMaxSlotBytes - all[i].offset);
    if (i) ASSUME(all[i - 1].offset <= all[i].offset);
    placed[i] = &all[i];
  }
  Lifetime next;
  next.first = nondet_ulong(), next.last = nondet_ulong(), next.bytes = nondet_ulong();
  ASSUME(next.first <= next.last);
  const auto at = lowest_free(placed, kPlaced, next);
  if (!at) return;
  CLAIM(*at <= kMaxSlotBytes && next.bytes <= kMaxSlotBytes - *at);
  for (int i = 0; i < kPlaced; i++)
    if (next.first <= all[i].last && all[i].first <= next.last)
      CLAIM(*at + next.bytes <= all[i].offset || all[i].offset + all[i].bytes <= *at || next.bytes == 0 ||
            all[i].bytes == 0);
}

extern "C" void sums_stop_at_their_limit() {
  const uint64_t most = nondet_ulong(), a = nondet_ulong(), b = nondet_ulong();
  ASSUME(a <= most);
  const uint64_t sum = sum_up_to(most, a, b);
  CLAIM(sum >= a && sum <= most && (sum == most || sum - a == b));
  CLAIM(difference_or_zero(a, b) == (a > b ? a - b : 0));
  const int x = nondet_int(), y = nondet_int(), z = saturating_sum(x, y);
  if (y >= 0) CLAIM(z >= x);
  else CLAIM(z <= x);
  if (x >= 0 && y <= 0) CLAIM(z == x + y);
}
