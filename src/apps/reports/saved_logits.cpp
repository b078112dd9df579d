#include "apps/reports/saved_logits.h"

#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

constexpr char kMagic[] = "gimbal-logits-1\n";
constexpr size_t kMagicBytes = sizeof kMagic - 1;

}  // namespace

Status write_shape(BinaryOutput& out, const LogitsShape& s) {
  if (auto ok = out.write(kMagic, kMagicBytes); !ok) return ok;
  const int32_t numbers[] = {s.vocabulary, s.window, s.scored, s.windows};
  return out.write(numbers, sizeof numbers);
}

Result<SavedLogits> SavedLogits::open(const std::string& path) {
  SavedLogits saved;
  saved.path_ = path;
  saved.file_.reset(std::fopen(path.c_str(), "rbe"));
  if (!saved.file_)
    return Error{errno == ENOENT ? Code::NotFound : Code::Failed,
                 format("cannot open {}: {}", gimbal::quoted(path), std::strerror(errno)), ""};
  char magic[kMagicBytes];
  int32_t numbers[4];
  if (!saved.read(magic, sizeof magic) || std::memcmp(magic, kMagic, kMagicBytes) != 0 ||
      !saved.read(numbers, sizeof numbers))
    return Error{Code::Usage, format("{} does not hold saved logits", gimbal::quoted(path)),
                 "--save-logits writes such a file"};
  saved.shape_ = {numbers[0], numbers[1], numbers[2], numbers[3]};
  return saved;
}

Status SavedLogits::read(void* to, size_t bytes) {
  if (std::fread(to, 1, bytes, file_.get()) == bytes) return Done{};
  return Error{Code::Failed, format("{} ends too early", gimbal::quoted(path_)),
               "write it again with --save-logits"};
}

}  // namespace gimbal
