#include "files/npy.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "base/text.h"
#include "files/gguf.h"
#include "files/plain_reader.h"
#include "files/safetensors.h"
#include "files/zip.h"

namespace gimbal {
namespace {

class NpzReader final : public TensorReader {
 public:
  NpzReader(FileBytes file, std::string name) : name_(std::move(name)) { files_.push_back(std::move(file)); }

  Result<TensorTable> parse() {
    auto entries = read_zip_directory(files_.front(), name_);
    if (!entries) return entries.error();
    entries_ = std::move(*entries);
    for (ZipEntry& e : entries_) {
      const std::string about = format("'{}': entry {}", escaped(name_), gimbal::quoted(e.name));
      auto array = header(e, about);
      if (!array) return array.error();
      array->array.name = e.name;
      if (array->array.name.ends_with(".npy")) array->array.name.remove_suffix(4);
      if (!tensors_.add(array->array))
        return Error{Code::Malformed, format("{} has the name of another one", about), ""};
    }
    return tensors_;
  }

  // Unpacks to the end of the entry, because the checksum counts.
  Status read(size_t tensor, uint64_t offset, void* to, size_t bytes) const override {
    if (auto ok = check_inside(name_, tensors_, tensor, offset, bytes); !ok) return ok;
    const uint64_t begin = tensors_[tensor].offset + offset, end = begin + bytes;
    uint64_t at = 0;
    return unpack_zip_entry(files_.front(), entries_[tensor], name_, [&](Bytes piece) {
      const uint64_t from = std::max(at, begin), upto = std::min(at + piece.size(), end);
      if (from < upto)
        std::memcpy(static_cast<std::byte*>(to) + (from - begin), piece.data() + (from - at),
                    size_t(upto - from));
      at += piece.size();
      return true;
    });
  }
  uint64_t file_bytes() const override { return files_.front().size(); }
  FileIdentity identity() const override { return identity_of(files_); }
  bool is(const std::string& path) const override { return files_.front().is(path); }

 private:
  // Unpacks the header alone. An entry as small as that is unpacked whole.
  Result<NpyHeader> header(const ZipEntry& e, const std::string& about) const {
    std::vector<std::byte> head;
    uint64_t needed = kNpyStart;
    Status problem = Done{};
    const auto ok = unpack_zip_entry(files_.front(), e, name_, [&](Bytes piece) {
      head.insert(head.end(), piece.begin(), piece.end());
      if (head.size() >= needed && needed == kNpyStart) {
        const auto size = npy_header_bytes(Bytes(head).first(kNpyStart), about);
        if (!size) problem = size.error();
        else needed = *size;
      }
      return problem && head.size() < needed;
    });
    if (!ok) return ok.error();
    if (problem && head.size() < kNpyStart) {
      const auto size = npy_header_bytes(head, about);  // its error names the missing bytes
      if (!size) return size.error();
    }
    if (!problem) return problem.error();
    if (head.size() < needed) return Error{Code::Malformed, format("{} ends within its header", about), ""};
    auto array = parse_npy_header(Bytes(head).first(size_t(needed)), about);
    if (array && array->array.bytes > e.bytes - array->begin)
      return Error{Code::Malformed,
                   format("{}: expected {} bytes of values, found {}", about, array->array.bytes,
                          e.bytes - array->begin),
                   ""};
    return array;
  }

  std::deque<FileBytes> files_;  // one
  std::string name_;
  std::vector<ZipEntry> entries_;  // of the tensors, in their order
  TensorTable tensors_;
};

Result<ModelSource> npz_of(FileBytes file, const std::string& path) {
  auto reader = std::make_shared<NpzReader>(std::move(file), path);
  auto tensors = reader->parse();
  if (!tensors) return tensors.error();
  return ModelSource({"npz", 1}, Metadata(escaped(path)), std::move(*tensors), std::move(reader));
}

}  // namespace

Result<ModelSource> open_npz(const std::string& path) {
  auto file = FileBytes::open(path);
  if (!file) return file.error();
  return npz_of(std::move(*file), path);
}

Result<ModelSource> parse_npz(Bytes bytes, const std::string& name) { return npz_of(FileBytes(bytes), name); }

Result<ModelSource> open_arrays(const std::string& path) {
  auto file = FileBytes::open(path);
  if (!file) return file.error();
  char start[6] = {};
  if (auto ok = file->read(0, start, size_t(std::min<uint64_t>(file->size(), sizeof start))); !ok)
    return ok.error();
  const std::string_view begin(start, sizeof start);
  if (begin.starts_with("GGUF")) return open_gguf(path);
  if (begin.starts_with("\x93NUMPY")) return open_npy(path);
  if (begin.starts_with("PK")) return open_npz(path);
  return open_safetensors(path);
}

}  // namespace gimbal
