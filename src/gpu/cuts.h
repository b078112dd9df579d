// Splits a program's buffers that exceed the device's largest allocation: between values, and between the
// tiles of packed matrices, so that each binding of a launch lies in one piece.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "device/abi.h"
#include "gpu/runtime.h"

namespace gimbal::gpu {

// Pieces begin at multiples of this, slightly before their first byte, so that bindings stay aligned.
constexpr uint64_t kPieceAlignment = 256;

class Cuts {
 public:
  // Slots of at most `max_bytes` stay whole. Fails for a value that is
  // larger than a piece and cannot be cut.
  static Failure find(const gimbal_program&, uint64_t max_bytes, Cuts* out);

  struct Slot {
    uint64_t extent = 0;          // end of the program's last value, in bytes
    std::vector<uint64_t> where;  // increasing; each begins a piece
  };
  std::span<const Slot> slots() const { return slots_; }
  // The first cut after a byte of a slot; UINT64_MAX if there is none.
  uint64_t behind(uint32_t slot, uint64_t offset) const;

 private:
  std::vector<Slot> slots_;
};

// Cuts for a buffer without a known program: pieces of maximum size.
std::vector<uint64_t> blind_cuts(uint64_t bytes, uint64_t max_bytes);

}  // namespace gimbal::gpu
