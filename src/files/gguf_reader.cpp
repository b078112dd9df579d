#include "files/gguf_reader.h"

#include <algorithm>

#include "base/format.h"
#include "base/hash.h"
#include "base/text.h"

namespace gimbal {

uint64_t GgufReader::file_bytes() const {
  uint64_t sum = 0;
  for (const GgufBytes& file : files_) sum += file.size();
  return sum;
}

FileIdentity GgufReader::identity() const {
  Hash headers;
  int64_t last = 0;
  for (const GgufBytes& file : files_) {
    headers.add(file.size()).add(uint64_t(file.modified())).add(hash_of(file.loaded()));
    last = std::max(last, file.modified());
  }
  return {file_bytes(), headers.value(), last};
}

Status GgufReader::read(size_t index, uint64_t offset, void* to, size_t bytes) const {
  if (index >= tensors_.size())
    return Error{Code::Failed, format("{}: tensor {} of {} was requested", name_, index, tensors_.size()),
                 ""};
  const StoredTensor& tensor = tensors_[index];
  if (offset > tensor.bytes || bytes > tensor.bytes - offset)
    return Error{Code::Failed,
                 format("bytes {} to {} are not inside tensor {} of {} bytes", offset, offset + bytes,
                        quoted(tensor.name), tensor.bytes),
                 ""};
  if (tensor.ternary != Ternary::None) return read_relaid(tensor, offset, static_cast<std::byte*>(to), bytes);
  return files_[tensor.part].read(tensor.offset + offset, to, bytes);
}

// Rows as blocks of i2_s64, followed by the scale.
Status GgufReader::read_relaid(const StoredTensor& t, uint64_t offset, std::byte* to, size_t bytes) const {
  if (auto ok = ternary_tiles(t.ternary, t.dim[1], t.dim[0], choice_); !ok) return ok.error();
  struct Source {
    const GgufBytes& file;
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
  return std::any_of(files_.begin(), files_.end(), [&](const GgufBytes& f) { return f.is(path); });
}

}  // namespace gimbal
