// The table of tensors of a GGUF file: after this, every tensor's bytes are known to lie inside the file, on
// their own, and to be as many as its dims and type say.
#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "files/gguf_parser.h"

namespace gimbal {
namespace {

constexpr uint32_t kMostDims = 4;
constexpr uint64_t kLargestDim = std::numeric_limits<int32_t>::max();  // kernels count in int32

std::string dims_text(const GgufTensor& t) {
  std::string text = "[";
  for (uint32_t i = 0; i < t.rank; i++) text += format("{}{}", i ? " x " : "", t.dim[i]);
  return text + "]";
}

}  // namespace

bool GgufParser::read_tensor() {
  const uint64_t at = cursor_.offset();
  GgufTensor tensor{};
  tensor.part = part_;
  if (!cursor_.name("name", tensor.name)) return false;
  cursor_.named(tensor.name);
  if (const GgufTensor* other = gguf_.tensor(tensor.name)) {
    const bool same_file = other->part == part_;
    return cursor_.fail(
        at, "name", "a tensor that is not there yet",
        same_file ? std::string("it a second time") : format("one that part {} has too", other->part + 1));
  }
  if (!read_dims(tensor)) return false;

  const uint64_t type_at = cursor_.offset();
  uint32_t type;
  if (!cursor_.read("type", type)) return false;
  const auto dtype = dtype_of_gguf(type);
  if (!dtype)
    return cursor_.fail(type_at, "type", "a tensor type that this build knows", format("type id {}", type),
                        Code::Unsupported,
                        "Use a file in another format (q8_0 and q4_k are safe choices), or update gimbal.");
  tensor.type = *dtype;
  if (tensor.dim[0] % info(tensor.type).block)
    return cursor_.fail(
        type_at, "type",
        format("rows of a multiple of {} values for {}", info(tensor.type).block, info(tensor.type).name),
        format("rows of {}", tensor.dim[0]));

  const uint64_t offset_at = cursor_.offset();
  if (!cursor_.read("offset", tensor.offset)) return false;
  if (tensor.offset % alignment_)
    return cursor_.fail(offset_at, "offset", format("a multiple of {}, the file's alignment", alignment_),
                        format("{}", tensor.offset));
  gguf_.tensor_index_.emplace(tensor.name, gguf_.tensors_.size());
  gguf_.tensors_.push_back(tensor);
  return true;
}

bool GgufParser::read_dims(GgufTensor& out) {
  const uint64_t rank_at = cursor_.offset();
  if (!cursor_.read("rank", out.rank)) return false;
  if (out.rank == 0 || out.rank > kMostDims)
    return cursor_.fail(rank_at, "rank", "1 to 4 dimensions", format("{}", out.rank));
  std::fill(std::begin(out.dim), std::end(out.dim), 1);
  for (uint32_t i = 0; i < out.rank; i++) {
    const uint64_t at = cursor_.offset();
    uint64_t dim;
    if (!cursor_.read("dimension", dim)) return false;
    if (dim == 0 || dim > kLargestDim)
      return cursor_.fail(at, format("dimension {}", i), format("1 to {}", kLargestDim), format("{}", dim));
    out.dim[i] = int64_t(dim);
  }
  return true;
}

// Bytes of the tensor's data with its tail. `at` is the byte to blame when they are more than 2^63.
bool GgufParser::size_of(const GgufTensor& t, uint64_t at, uint64_t& size) {
  auto rows = checked_mul(uint64_t(t.dim[1]), uint64_t(t.dim[2]));
  if (rows) rows = checked_mul(*rows, uint64_t(t.dim[3]));
  // Values are counted as well as bytes: a format of less than 8 bits would let them pass 2^63 alone.
  const auto values = rows ? checked_mul(*rows, uint64_t(t.dim[0])) : std::nullopt;
  auto bytes = rows ? checked_mul(*rows, uint64_t(row_bytes(t.type, t.dim[0]))) : std::nullopt;
  if (bytes) bytes = checked_add(*bytes, uint64_t(tensor_tail_bytes(t.type)));
  constexpr auto most = uint64_t(std::numeric_limits<int64_t>::max());
  if (!values || !bytes || *values > most || *bytes > most)
    return cursor_.fail(at, "dimensions", "fewer than 2^63 values and bytes in all", dims_text(t));
  size = *bytes;
  return true;
}

uint64_t GgufParser::offset_field(const GgufTensor& t) const {
  return cursor_.offset_of(t.name.data() + t.name.size()) + sizeof(uint32_t) + t.rank * sizeof(uint64_t) +
         sizeof(uint32_t);
}

bool GgufParser::place_tensors(size_t first) {
  const uint64_t file_size = cursor_.bytes().size();
  const uint64_t begin = align_up(cursor_.offset(), alignment_);
  for (size_t i = first; i < gguf_.tensors_.size(); i++) {
    GgufTensor& tensor = gguf_.tensors_[i];
    cursor_.enter("tensor", i - first + 1, gguf_.tensors_.size() - first);
    cursor_.named(tensor.name);
    const uint64_t at = offset_field(tensor);
    uint64_t size;
    if (!size_of(tensor, cursor_.offset_of(tensor.name.data() + tensor.name.size()), size)) return false;
    const auto start = checked_add(begin, tensor.offset);
    const auto end = start ? checked_add(*start, size) : std::nullopt;
    if (!end || *end > file_size)
      return cursor_.fail_truncated(at, "data",
                                    format("{} bytes ({} {}) at {} + {}", size, info(tensor.type).name,
                                           dims_text(tensor), begin, tensor.offset),
                                    format("a file of {} bytes", file_size));
    tensor.offset = *start;
    tensor.data = cursor_.bytes().subspan(*start, size);
  }
  return true;
}

bool GgufParser::check_overlaps(size_t first) {
  const auto& tensors = gguf_.tensors_;
  std::vector<size_t> order(tensors.size() - first);
  std::iota(order.begin(), order.end(), first);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(tensors[a].offset, a) < std::pair(tensors[b].offset, b);
  });
  // No tensor is empty, so it is enough to look at neighbours.
  for (size_t i = 1; i < order.size(); i++) {
    const GgufTensor &before = tensors[order[i - 1]], &after = tensors[order[i]];
    const uint64_t end = before.offset + before.data.size();
    if (end <= after.offset) continue;
    cursor_.enter("tensor", order[i] - first + 1, order.size());
    cursor_.named(after.name);
    return cursor_.fail(offset_field(after), "data",
                        format("bytes of its own, before {} or from {} on", before.offset, end),
                        format("bytes {} to {}, shared with tensor {}", after.offset,
                               after.offset + after.data.size() - 1, quoted(before.name)));
  }
  return true;
}

}  // namespace gimbal
