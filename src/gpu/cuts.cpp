#include "gpu/cuts.h"

#include <algorithm>

#include "base/format.h"
#include "packing/layout.h"

namespace gimbal::gpu {
namespace {

// Memory that must stay in one piece, but for the tiles of a packed matrix.
struct Block {
  uint64_t begin, end;
  uint64_t tile;  // bytes; 0: not to be cut at all
};

std::vector<Block> blocks_of(const gimbal_program& p, uint32_t slot) {
  std::vector<Block> all;
  for (size_t i = 0; i < p.n_values; i++) {
    const gimbal_value& v = p.values[i];
    if (v.slot != slot) continue;
    const bool packed = v.layout == GIMBAL_PACKED;
    all.push_back(
        {v.offset, v.offset + v.bytes, packed ? uint64_t(packing::tile_bytes(DType(v.dtype), v.dim[0])) : 0});
  }
  std::sort(all.begin(), all.end(), [](const Block& a, const Block& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  std::vector<Block> merged;  // values that share memory are one block
  for (const Block& b : all) {
    if (merged.empty() || merged.back().end <= b.begin) {
      merged.push_back(b);
      continue;
    }
    Block& last = merged.back();
    if (last.begin != b.begin || last.end != b.end || last.tile != b.tile) last.tile = 0;
    last.end = std::max(last.end, b.end);
  }
  return merged;
}

// The last place up to `limit` where memory can be cut.
uint64_t last_cut(const std::vector<Block>& blocks, uint64_t limit) {
  uint64_t cut = 0;
  for (const Block& b : blocks) {
    if (b.begin > limit) break;
    cut = b.begin;
    if (b.end <= limit) cut = b.end;
    else if (b.tile) cut = b.begin + (limit - b.begin) / b.tile * b.tile;
  }
  return cut;
}

uint64_t base_of(uint64_t cut) { return cut / kPieceAlignment * kPieceAlignment; }

}  // namespace

Failure Cuts::find(const gimbal_program& p, uint64_t most, Cuts* out) {
  Cuts c;
  for (size_t i = 0; i < p.n_values; i++) {
    const gimbal_value& v = p.values[i];
    if (v.slot >= c.slots_.size()) c.slots_.resize(v.slot + 1);
    uint64_t& extent = c.slots_[v.slot].extent;
    extent = std::max(extent, v.offset + v.bytes);
  }
  for (uint32_t slot = 0; slot < c.slots_.size(); slot++) {
    Slot& s = c.slots_[slot];
    if (s.extent <= most) continue;
    const std::vector<Block> blocks = blocks_of(p, slot);
    for (uint64_t begin = 0; s.extent - base_of(begin) > most;) {
      const uint64_t cut = last_cut(blocks, base_of(begin) + most);
      if (cut <= begin)
        return {Failure::Unsupported, format("a value needs more than {} bytes, the device's largest "
                                             "allocation: use a smaller 'context', 'batch' or 'cache_type'",
                                             most)};
      s.where.push_back(begin = cut);
    }
  }
  *out = std::move(c);
  return {};
}

uint64_t Cuts::behind(uint32_t slot, uint64_t offset) const {
  if (slot >= slots_.size()) return UINT64_MAX;
  const auto& where = slots_[slot].where;
  const auto next = std::upper_bound(where.begin(), where.end(), offset);
  return next == where.end() ? UINT64_MAX : *next;
}

std::vector<uint64_t> blind_cuts(uint64_t bytes, uint64_t most) {
  std::vector<uint64_t> where;
  const uint64_t step = std::max(kPieceAlignment, base_of(most));
  for (uint64_t at = step; at < bytes; at += step) where.push_back(at);
  return where;
}

}  // namespace gimbal::gpu
