#include "files/packed_file.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "base/hash.h"
#include "base/text.h"

namespace gimbal {
namespace {

constexpr const char* kRemedy = "pack the model again, or remove the file";

Error damaged(std::string what) { return {Code::Malformed, std::move(what), kRemedy}; }

// Write access to the file means control of the model's answers. Trusted are this user, the administrator,
// and the owner of the model file, who has that control already.
bool is_trusted(const InputFile::State& s) {
  return (s.owner == uint32_t(geteuid()) || s.owner == 0) && !(s.mode & 022);
}

}  // namespace

Result<std::vector<PackedWeight>> PackedFile::parse(Bytes head, uint64_t file_bytes) {
  if (head.size() < kPackedMagic.size() ||
      std::memcmp(head.data(), kPackedMagic.data(), kPackedMagic.size()) != 0)
    return damaged("it is not a file of packed weights");
  if (head.size() < sizeof(PackedHead)) return damaged("it ends within its header");
  const auto h = read_le<PackedHead>(head.data());
  if (h.version != kPackedVersion)
    return damaged(format("it has version {} of the format, and this program reads version {}", h.version,
                          kPackedVersion));
  if (h.before != hash_of(head.first(offsetof(PackedHead, before)))) return damaged("its header is damaged");
  if (h.bytes != file_bytes)
    return damaged(format("it is incomplete: {} bytes expected, {} found", h.bytes, file_bytes));
  const uint64_t table = uint64_t(h.weights) * sizeof(PackedWeight);
  if (h.weights > kPackedMost || table > head.size() - sizeof h) return damaged("its table is incomplete");
  if (h.table != hash_of(head.subspan(sizeof h, table))) return damaged("its table is damaged");
  std::vector<PackedWeight> all(h.weights);
  if (table) std::memcpy(all.data(), head.data() + sizeof h, table);
  for (size_t i = 0; i < all.size(); i++) {
    const auto end = checked_add(all[i].offset, all[i].bytes);
    if (all[i].offset % 64 || all[i].offset < sizeof h + table || !end || *end > file_bytes ||
        (i && all[i].what <= all[i - 1].what))
      return damaged(format("entry {} of its table is damaged", i));
  }
  return all;
}

Error PackedFile::unusable(const std::string& why) const {
  return {Code::Failed, why, kRemedy, reason::kPackedUnusable, "", path_};
}

Result<std::shared_ptr<const PackedFile>> PackedFile::open(const std::string& path,
                                                           const FileIdentity& source) {
  auto p = std::make_shared<PackedFile>();
  p->path_ = path;
  auto file = InputFile::open(path);
  if (!file) return p->unusable(file.error().message);
  p->file_ = std::move(*file);
  auto state = p->file_.state();
  if (!state) return p->unusable(state.error().message);
  p->state_ = *state;
  if (!is_trusted(*state)) return p->unusable("other users may write to it");
  // Read, not accessed through the mapping, so the bytes cannot change after this check.
  std::vector<std::byte> begin(size_t(std::min<uint64_t>(state->size, sizeof(PackedHead))));
  if (auto ok = p->file_.read(0, begin.data(), begin.size()); !ok) return p->unusable(ok.error().message);
  PackedHead head{};
  if (!begin.empty())
    std::memcpy(&head, begin.data(), begin.size());  // an empty file has no address to copy from
  const uint64_t table = std::min(head.weights, kPackedMost) * uint64_t(sizeof(PackedWeight));
  begin.resize(size_t(std::min(state->size, sizeof head + table)));
  if (auto ok = p->file_.read(0, begin.data(), begin.size()); !ok) return p->unusable(ok.error().message);
  auto weights = parse(begin, state->size);
  if (!weights) return p->unusable(weights.error().message);
  if (head.source.bytes != source.bytes)
    return p->unusable(format("it was made from a model file of {} bytes, which now has {}",
                              head.source.bytes, source.bytes));
  if (head.source != source)
    return p->unusable(head.source.modified != source.modified ? "the model file was modified since"
                                                               : "the model file has another header");
  auto mapping = GuardedMapping::map(p->file_);
  if (!mapping) return p->unusable(mapping.error().message);
  p->mapping_ = std::move(*mapping);
  if (p->mapping_.bytes().size() != state->size) return p->unusable("it changed while it was opened");
  p->weights_ = std::move(*weights);
  p->layout_.assign(head.layout, strnlen(head.layout, sizeof head.layout));
  return std::shared_ptr<const PackedFile>(std::move(p));
}

const PackedWeight* PackedFile::find(uint64_t what) const {
  const auto at = std::lower_bound(weights_.begin(), weights_.end(), what,
                                   [](const PackedWeight& w, uint64_t x) { return w.what < x; });
  return at != weights_.end() && at->what == what ? &*at : nullptr;
}

Status PackedFile::check_weights() const {
  for (const PackedWeight& w : weights_)
    if (hash_of(bytes().subspan(w.offset, w.bytes)) != w.hash)
      return unusable(format("the bytes from {} on differ from those written", w.offset));
  return unchanged();
}

Status PackedFile::unchanged() const {
  if (mapping_.lost()) return unusable("it was truncated or unreadable while in use");
  auto now = file_.state();
  if (!now) return unusable(now.error().message);
  if (now->size != state_.size)
    return unusable(format("it had {} bytes and now has {}", state_.size, now->size));
  if (now->modified != state_.modified) return unusable("it was modified while in use");
  return Done{};
}

}  // namespace gimbal
