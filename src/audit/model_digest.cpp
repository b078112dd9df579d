#include "audit/model_digest.h"

#include <algorithm>
#include <vector>

#include "audit/certificate.h"
#include "base/file.h"
#include "base/format.h"
#include "base/json.h"
#include "base/sha256.h"
#include "engine/machine_cache.h"
#include "huggingface/folder.h"
#include "model/embedded_model.h"

namespace gimbal {
namespace {

Result<Json> states_of(std::span<const std::string> paths) {
  Json all = Json::array();
  for (const std::string& path : paths) {
    auto file = InputFile::open(path);
    if (!file) return file.error();
    const auto s = file->state();
    if (!s) return s.error();
    all.push_back({s->device, s->inode, s->size, s->modified, s->changed});
  }
  return all;
}

Result<FileDigest> read_all(std::span<const std::string> paths) {
  Sha256 sha;
  FileDigest out;
  std::string piece;
  for (const std::string& path : paths) {
    auto file = InputFile::open(path);
    if (!file) return file.error();
    for (uint64_t at = 0; at < file->size(); at += piece.size()) {
      piece.resize(std::min<uint64_t>(file->size() - at, 1 << 20));
      if (auto ok = file->read(at, piece.data(), piece.size()); !ok) return ok.error();
      sha.add(piece);
    }
    out.bytes += file->size();
  }
  out.sha256 = sha.hex();
  return out;
}

}  // namespace

Result<FileDigest> digest_of_files(std::span<const std::string> paths, bool remembered) {
  if (!remembered) return read_all(paths);
  const auto before = states_of(paths);
  if (!before) return before.error();
  MachineCache kept("digests");
  const Json& entry = kept.find(*before);
  const auto bytes = entry.is_object() ? entry.find("bytes") : entry.end();
  if (const std::string sha256 = text_in(entry, "sha256");
      sha256.size() == 64 && bytes != entry.end() && bytes->is_number_unsigned())
    return FileDigest{sha256, bytes->get<uint64_t>()};
  auto made = read_all(paths);
  if (!made) return made;
  // A file that changed meanwhile has another digest next time. Without a cache folder, each start reads all.
  if (const auto after = states_of(paths); after && *after == *before)
    static_cast<void>(kept.put(*before, {{"sha256", made->sha256}, {"bytes", made->bytes}}));
  return made;
}

Result<Certificate::Model> certified_model(const ModelFile& model, const std::vector<Lora>& adapters,
                                           bool remembered) {
  if (const std::string key = changed_arithmetic(*model.file); !key.empty())
    return Error{Code::Usage,
                 format("a setting took the place of the file's {}, and no certificate can name it", key),
                 "leave the setting out"};
  Certificate::Model out{.name = model.name, .sha256 = {}, .bytes = 0, .adapters = {}};
  if (model.path.empty()) {
    const Bytes inside = embedded_model();
    Sha256 sha;
    sha.add({reinterpret_cast<const char*>(inside.data()), inside.size()});
    out.sha256 = sha.hex(), out.bytes = inside.size();
  } else {
    const auto parts = files_of_model(model.path);
    if (!parts) return parts.error();
    const auto digest = digest_of_files(*parts, remembered);
    if (!digest) return digest.error();
    out.sha256 = digest->sha256, out.bytes = digest->bytes;
  }
  for (const Lora& a : adapters) {
    const auto digest = digest_of_files({&a.path, 1}, remembered);
    if (!digest) return digest.error();
    out.adapters.push_back({digest->sha256, a.scale});
  }
  return out;
}

}  // namespace gimbal
