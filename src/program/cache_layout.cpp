#include "program/cache_layout.h"

#include <cstring>
#include <vector>

#include "base/format.h"
#include "packing/layout.h"
#include "program/builder.h"
#include "program/place.h"
#include "tensor/block_encode.h"

namespace gimbal {
namespace {

// A cache of one page, and the value of each dimension, head and position in it.
struct Trial {
  DType type;
  bool is_key;
  int64_t head_dim, heads;

  std::vector<float> rows() const {
    std::vector<float> all(size_t(head_dim * heads * kPagePositions));
    for (size_t i = 0; i < all.size(); i++) all[i] = float(int(i * 7919 % 2003) - 1001) / 512;
    return all;
  }
  size_t row_at(int64_t head, int64_t position) const { return size_t((position * heads + head) * head_dim); }
};

void put_number(DType type, float x, std::byte* to) {
  const uint16_t half = type == DType::F16 ? float_to_half(x) : float_to_bf16(x);
  if (type == DType::F32) std::memcpy(to, &x, 4);
  else std::memcpy(to, &half, 2);
}

void put_numbers(const Trial& t, const float* row, int64_t position, std::byte* head) {
  const int64_t bytes = t.type == DType::F32 ? 4 : 2;
  for (int64_t d = 0; d < t.head_dim; d++) {
    const int64_t at = t.is_key ? position / 16 * 16 * t.head_dim + d * 16 + position % 16
                                : position * packing::up(t.head_dim, 16) + d;
    put_number(t.type, row[d], head + at * bytes);
  }
}

void put_blocks(const Trial& t, const float* row, int64_t position, std::byte* head) {
  const int64_t blocks = t.head_dim / packing::kCacheBlock, codes = packing::cache_code_bytes(t.type),
                halves = packing::cache_halves(t.type);
  for (int64_t b = 0; b < blocks; b++) {
    uint8_t block[kMostBlockBytes];
    encode_cached(t.type, row + 32 * b, block);
    std::byte* tile = head + (position / 16 * blocks + b) * packing::cache_tile_bytes(t.type);
    for (int64_t h = 0; h < halves; h++) std::memcpy(tile + 32 * h + 2 * (position % 16), block + 2 * h, 2);
    tile += 32 * halves;
    for (int64_t j = 0; j < codes; j++)
      tile[t.is_key ? 16 * j + position % 16 : position % 16 * codes + j] = std::byte(block[2 * halves + j]);
  }
}

std::vector<std::byte> expected(const Trial& t, const std::vector<float>& rows) {
  const int64_t head_bytes = packing::cache_head_bytes(t.type, t.is_key, t.head_dim);
  std::vector<std::byte> page(size_t(t.heads * head_bytes));
  for (int64_t head = 0; head < t.heads; head++)
    for (int64_t position = 0; position < kPagePositions; position++) {
      const auto put = packing::cache_tile_bytes(t.type) ? put_blocks : put_numbers;
      put(t, rows.data() + t.row_at(head, position), position, page.data() + head * head_bytes);
    }
  return page;
}

}  // namespace

Status check_cache_layout(const Device& device, DType type, bool is_key, int head_dim, int heads) {
  const Trial t{type, is_key, head_dim, heads};
  const auto differs = [&](const char* how) {
    return Error{
        Code::Unsupported,
        format("{} keeps {} of {} in {}", device.id(), is_key ? "keys" : "values", info(type).name, how), ""};
  };
  ProgramBuilder p(device, kPagePositions, 1);
  const Value cache = p.cache("cache", type, is_key, head_dim, heads, 1);
  const Value x = p.input("rows", Shape(DType::F32, {head_dim, heads, kPagePositions}));
  const Shape each(DType::I32, {kPagePositions});
  const Value position = p.input("position", each), sequence = p.input("sequence", each);
  const Value pages = p.input("pages", Shape(DType::I32, {1, 1}));
  p.cache_write(cache, is_key, x, position, sequence, pages);
  auto program = std::move(p).finish();
  if (!program) return program.error();
  const std::vector<float> rows = t.rows();
  const std::vector<std::byte> wanted = expected(t, rows);
  std::vector<std::byte> found(program->values[cache.id].bytes);
  if (found.size() != wanted.size()) return differs("pages of another size than other devices");
  if (auto chosen = assign_kernels(*program, device, {}); !chosen) return chosen.error();
  Buffer buffers[kSlots];
  gimbal_buffer* slots[kSlots];
  for (size_t i = 0; i < kSlots; i++) {
    auto b = device.allocate(program->slot_bytes[i]);
    if (!b) return b.error();
    buffers[i] = std::move(*b), slots[i] = buffers[i].handle();
  }
  std::vector<int32_t> counted(kPagePositions);
  for (size_t i = 0; i < counted.size(); i++) counted[i] = int32_t(i);
  const auto fill = [&](Value v, const void* data, size_t bytes) {
    const gimbal_value& at = program->values[v.id];
    return device.write(buffers[at.slot], at.offset, data, bytes);
  };
  const std::vector<int32_t> zeros(kPagePositions);
  if (auto ok = fill(x, rows.data(), rows.size() * 4); !ok) return ok;
  if (auto ok = fill(position, counted.data(), counted.size() * 4); !ok) return ok;
  if (auto ok = fill(sequence, zeros.data(), zeros.size() * 4); !ok) return ok;
  if (auto ok = fill(pages, zeros.data(), 4); !ok) return ok;
  auto e = device.compile(program->view());
  if (!e) return e.error();
  if (auto ok = device.submit(*e, slots, kSlots, {kPagePositions, 0}); !ok) return ok;
  if (auto ok = device.wait(); !ok) return ok;
  if (auto ok = device.read(buffers[size_t(Slot::Cache)], program->values[cache.id].offset, found.data(),
                            found.size());
      !ok)
    return ok;
  if (found != wanted) return differs("another order than other devices");
  return Done{};
}

}  // namespace gimbal
