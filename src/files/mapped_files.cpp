#include "files/mapped_files.h"

#include "base/format.h"

namespace gimbal {
namespace {

constexpr const char* kOpenAgain = "The file changed while it was in use: open it again.";

}  // namespace

Result<Bytes> MappedFiles::map(const std::string& name, const std::deque<FileBytes>& files,
                               const StoredTensor& t) {
  const std::lock_guard lock(mutex_);
  auto mapping = mappings_.find(t.part);
  if (mapping == mappings_.end()) {
    auto made = files[t.part].map();
    if (!made) return made.error();
    mapping = mappings_.emplace(t.part, std::move(*made)).first;
  }
  const Bytes all = mapping->second.bytes();
  if (t.offset > all.size() || t.bytes > all.size() - t.offset)
    return Error{Code::Malformed,
                 format("{}: the file had {} bytes and now has {}", name, files[t.part].size(), all.size()),
                 kOpenAgain};
  return all.subspan(t.offset, t.bytes);
}

Status MappedFiles::whole(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [part, mapping] : mappings_)
    if (mapping.lost())
      return Error{Code::Malformed,
                   format("{}: a part of the file could not be read while its tensors were in use: it became "
                          "shorter, or its disk failed",
                          name),
                   kOpenAgain};
  return Done{};
}

}  // namespace gimbal
