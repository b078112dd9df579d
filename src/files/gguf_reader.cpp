#include "files/gguf_reader.h"

#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "files/plain_reader.h"
#include "tensor/format.h"

namespace gimbal {

uint64_t GgufReader::file_bytes() const { return identity().bytes; }
FileIdentity GgufReader::identity() const { return identity_of(files_); }

namespace {

bool has_checked_codes(const StoredTensor& t) { return t.type == DType::I2_S || t.type == DType::I2_S64; }

// As in the other orders of ternary weights: a code that is no weight means damage, or another order.
Status check_codes(const std::string& name, const StoredTensor& t, uint64_t offset, const void* data,
                   size_t bytes) {
  const uint64_t codes = t.bytes - uint64_t(tensor_tail_bytes(t.type));
  const size_t count = offset < codes ? size_t(std::min<uint64_t>(bytes, codes - offset)) : 0;
  const size_t wrong = find_code_3(data, count);
  if (wrong == count) return Done{};
  return Error{
      Code::Malformed,
      format("{}: tensor {}: byte {} of the codes has the code 3; expected 0, 1 and 2, for the weights "
             "-1, 0 and 1",
             name, quoted(t.name), offset + wrong),
      "the file is damaged: fetch or convert it again"};
}

}  // namespace

Status GgufReader::read(size_t index, uint64_t offset, void* to, size_t bytes) const {
  if (auto ok = check_inside(name_, tensors_, index, offset, bytes); !ok) return ok;
  const StoredTensor& tensor = tensors_[index];
  if (tensor.ternary != Ternary::None) return read_relaid(tensor, offset, static_cast<std::byte*>(to), bytes);
  if (auto ok = files_[tensor.part].read(tensor.offset + offset, to, bytes); !ok) return ok;
  return has_checked_codes(tensor) ? check_codes(name_, tensor, offset, to, bytes) : Done{};
}

Result<Bytes> GgufReader::map(size_t index) const {
  if (auto ok = check_inside(name_, tensors_, index, 0, 0); !ok) return ok.error();
  const StoredTensor& tensor = tensors_[index];
  if (tensor.ternary != Ternary::None || has_checked_codes(tensor)) return TensorReader::map(index);
  return mapped_.map(name_, files_, tensor);
}

// Rows as blocks of i2_s64, followed by the scale.
Status GgufReader::read_relaid(const StoredTensor& t, uint64_t offset, std::byte* to, size_t bytes) const {
  if (auto ok = ternary_tiles(t.ternary, t.dim[1], t.dim[0], choice_); !ok) return ok.error();
  struct Source {
    const FileBytes& file;
    uint64_t begin;
  } source{files_[t.part], t.offset};
  const auto read = +[](const void* from, uint64_t at, void* into, size_t n) {
    const auto& s = *static_cast<const Source*>(from);
    return s.file.read(s.begin + at, into, n);
  };
  const auto row_size = uint64_t(row_bytes(t.type, t.dim[0])), tail_at = row_size * uint64_t(t.dim[1]);
  if (offset < tail_at && bytes) {
    const auto end = std::min(offset + bytes, tail_at);
    const uint64_t first = offset / row_size, last = (end + row_size - 1) / row_size;
    std::vector<uint8_t> codes(size_t(last - first) * size_t(t.dim[0]));
    if (auto ok =
            read_ternary_rows(t.ternary, t.tiles, read, &source, int64_t(first), int64_t(last), codes.data());
        !ok) {
      Error e = ok.error();
      e.message = format("{}: tensor {}: {}", name_, quoted(t.name), e.message);
      return e;
    }
    for (uint64_t at = offset; at < end; at++) {  // four values, 16 apart
      const uint8_t* four = &codes[size_t((at - first * row_size) / 16 * 64 + at % 16)];
      *to++ = std::byte(four[0] << 6 | four[16] << 4 | four[32] << 2 | four[48]);
    }
    bytes -= size_t(end - offset), offset = end;
  }
  const uint64_t scale = align_up(ternary_bytes(t.ternary, t.dim[1], t.dim[0]), uint64_t(32));
  return bytes ? read(&source, scale + (offset - tail_at), to, bytes) : Status(Done{});
}

bool GgufReader::is(const std::string& path) const {
  return std::any_of(files_.begin(), files_.end(), [&](const FileBytes& f) { return f.is(path); });
}

}  // namespace gimbal
