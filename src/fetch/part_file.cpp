#include "fetch/part_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "base/format.h"
#include "base/json.h"
#include "base/json_cache.h"
#include "base/text.h"

namespace gimbal {
namespace {

constexpr uint64_t kUsefulPiece = 1 << 20;
constexpr size_t kMaxGaps = 64;

Error part_error(const char* doing, const std::string& path) {
  return {Code::Failed, format("cannot {} '{}': {}", doing, escaped(path), strerror(errno)), ""};
}

std::string note_of(const std::string& part) { return part + ".json"; }

// The missing ranges according to the note; nullopt if the note is for other content, is invalid, or claims
// more bytes than the file has.
std::optional<std::vector<Gap>> gaps_of(const std::string& part, uint64_t bytes, uint64_t in_file,
                                        const std::string& version) {
  auto text = read_file(note_of(part), 1 << 16);
  const Json j = text ? parse_json(*text) : Json();
  if (version.empty() || !j.is_object() || text_in(j, "version") != version) return std::nullopt;
  const auto size = j.find("bytes"), list = j.find("missing");
  if (size == j.end() || *size != bytes || list == j.end() || !list->is_array() || list->size() > kMaxGaps)
    return std::nullopt;
  std::vector<Gap> gaps;
  for (const Json& g : *list) {
    if (!g.is_array() || g.size() != 2 || !g[0].is_number_unsigned() || !g[1].is_number_unsigned())
      return std::nullopt;
    gaps.push_back({g[0].get<uint64_t>(), g[1].get<uint64_t>()});
    if (gaps.back().at > gaps.back().end || gaps.back().end > bytes) return std::nullopt;
  }
  std::sort(gaps.begin(), gaps.end(), [](const Gap& a, const Gap& b) { return a.at < b.at; });
  uint64_t reached = bytes;  // end of the last byte that is present
  for (auto g = gaps.rbegin(); g != gaps.rend() && g->end == reached; g++) reached = g->at;
  return in_file < reached ? std::nullopt : std::optional(std::move(gaps));
}

}  // namespace

Result<PartFile> PartFile::open(const std::string& target, uint64_t bytes, const std::string& version) {
  PartFile p;
  p.target_ = target, p.path_ = path_of(target), p.version_ = version, p.bytes_ = bytes;
  p.fd_ = ::open(p.path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (p.fd_ < 0) return part_error("write", p.path_);
  struct stat st;
  if (fstat(p.fd_, &st) != 0) return part_error("look at", p.path_);
  if (auto gaps = gaps_of(p.path_, bytes, uint64_t(st.st_size), version)) p.gaps = std::move(*gaps);
  else if (p.discarded_ = access(note_of(p.path_).c_str(), F_OK) == 0; !p.restart())
    return part_error("write", p.path_);
  return p;
}

PartFile::PartFile(PartFile&& o) noexcept
    : gaps(std::move(o.gaps)),
      target_(std::move(o.target_)),
      path_(std::move(o.path_)),
      version_(std::move(o.version_)),
      bytes_(o.bytes_),
      fd_(std::exchange(o.fd_, -1)),
      discarded_(o.discarded_) {}

PartFile::~PartFile() {
  if (fd_ >= 0) ::close(fd_);
}

uint64_t PartFile::missing() const {
  uint64_t sum = 0;
  for (const Gap& g : gaps) sum += g.end - g.at;
  return sum;
}

bool PartFile::restart() {
  gaps = {{0, bytes_}};
  return ftruncate(fd_, 0) == 0;
}

void PartFile::cut(size_t pieces) {
  std::erase_if(gaps, [](const Gap& g) { return g.at == g.end; });
  while (gaps.size() < pieces) {
    const auto largest = std::max_element(
        gaps.begin(), gaps.end(), [](const Gap& a, const Gap& b) { return a.end - a.at < b.end - b.at; });
    if (largest == gaps.end() || largest->end - largest->at < 2 * kUsefulPiece) return;
    const uint64_t half = (largest->end - largest->at) / 2;
    const Gap second{largest->at + half, largest->end};
    largest->end = second.at;
    gaps.push_back(second);
  }
}

Status PartFile::note() const {
  Json missing = Json::array();
  for (const Gap& g : gaps)
    if (g.at < g.end) missing.push_back({g.at, g.end});
  return replace_file(note_of(path_),
                      Json{{"version", version_}, {"bytes", bytes_}, {"missing", std::move(missing)}}.dump());
}

Status PartFile::finish() {
  if (ftruncate(fd_, off_t(bytes_)) != 0 || fsync(fd_) != 0) return part_error("write", path_);
  if (std::rename(path_.c_str(), target_.c_str()) != 0) return part_error("rename", path_);
  ::unlink(note_of(path_).c_str());
  return Done{};
}

void PartFile::remove() {
  ::unlink(path_.c_str());
  ::unlink(note_of(path_).c_str());
}

}  // namespace gimbal
