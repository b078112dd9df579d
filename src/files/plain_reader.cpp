#include "files/plain_reader.h"

#include <algorithm>

#include "base/format.h"
#include "base/hash.h"
#include "base/text.h"

namespace gimbal {

FileIdentity identity_of(const std::deque<FileBytes>& files) {
  Hash headers;
  uint64_t bytes = 0;
  int64_t last = 0;
  for (const FileBytes& file : files) {
    headers.add(file.size()).add(uint64_t(file.modified())).add(hash_of(file.loaded()));
    last = std::max(last, file.modified());
    bytes += file.size();
  }
  return {bytes, headers.value(), last};
}

Status check_inside(const std::string& name, const TensorTable& tensors, size_t tensor, uint64_t offset,
                    uint64_t bytes) {
  if (tensor >= tensors.size())
    return Error{Code::Failed, format("{}: tensor {} of {} was requested", name, tensor, tensors.size()), ""};
  const StoredTensor& t = tensors[tensor];
  if (offset > t.bytes || bytes > t.bytes - offset)
    return Error{Code::Failed,
                 format("bytes {} to {} are not inside tensor {} of {} bytes", offset, offset + bytes,
                        quoted(t.name), t.bytes),
                 ""};
  return Done{};
}

Status PlainReader::read(size_t tensor, uint64_t offset, void* to, size_t bytes) const {
  if (auto ok = check_inside(name_, tensors_, tensor, offset, bytes); !ok) return ok;
  if (!bytes) return Done{};
  const StoredTensor& t = tensors_[tensor];
  return files_[t.part].read(t.offset + offset, to, bytes);
}

Result<Bytes> PlainReader::map(size_t tensor) const {
  if (auto ok = check_inside(name_, tensors_, tensor, 0, 0); !ok) return ok.error();
  return mapped_.map(name_, files_, tensors_[tensor]);
}

uint64_t PlainReader::file_bytes() const { return identity().bytes; }
FileIdentity PlainReader::identity() const { return identity_of(files_); }

bool PlainReader::is(const std::string& path) const {
  return std::any_of(files_.begin(), files_.end(), [&](const FileBytes& f) { return f.is(path); });
}

}  // namespace gimbal
