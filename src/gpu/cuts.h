// Where the buffers of a program are cut when the device gives less memory at once than they need: between
// values, and between the tiles of packed matrices, so that every launch finds what it binds in one piece.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "device/abi.h"
#include "gpu/runtime.h"

namespace gimbal::simt {

// A piece begins at a multiple of this, so that bindings stay aligned: a little before its own first byte.
constexpr uint64_t kPieceAlignment = 256;

class Cuts {
 public:
  // Slots of at most `max_bytes` stay whole. Fails for a value that is larger than a piece and cannot be
  // cut.
  static Failure find(const gimbal_program&, uint64_t max_bytes, Cuts* out);

  struct Slot {
    uint64_t extent = 0;          // bytes that the program's values reach to
    std::vector<uint64_t> where;  // rising; each begins a piece
  };
  std::span<const Slot> slots() const { return slots_; }
  // The first cut behind a byte of a slot; UINT64_MAX when there is none.
  uint64_t behind(uint32_t slot, uint64_t offset) const;

 private:
  std::vector<Slot> slots_;
};

// For a buffer that no program is known for: wherever a piece is full.
std::vector<uint64_t> blind_cuts(uint64_t bytes, uint64_t max_bytes);

}  // namespace gimbal::simt
