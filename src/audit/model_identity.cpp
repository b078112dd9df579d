#include "audit/model_identity.h"

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

std::string salt_digest(std::string_view secret) {
  Sha256 sha;
  sha.add("gimbal-salt-1"), sha.add(secret);
  return sha.hex();
}

Result<std::string> prefix_identity(const ModelFile& model, const std::vector<Lora>& adapters,
                                    const ModelPlan& plan, std::string_view salt) {
  if (const std::string key = changed_arithmetic(*model.file); !key.empty())
    return Error{Code::Unsupported,
                 format("the prefix store cannot hold pages of this model: a setting took the place of the "
                        "file's {}",
                        key),
                 "leave the setting or the prefix store out"};
  const auto made = certified_model(model, adapters, true);
  if (!made) return made.error();
  std::string all = format("arithmetic {} model {} ", kArithmetic, made->sha256);
  for (const Certificate::Adapter& a : made->adapters) all += format("adapter {} ", a.sha256);
  for (const RopeChange& c : rope_changes(*model.file))
    all += format("rope {} '{}' {} ", c.key, c.text, c.number);
  // The length of the context chooses between the two sets of longrope's factors.
  if (model.file->tensors().find("rope_factors_long.weight"))
    all += format("context {} ", plan.options.context);
  return format("{}salt {}", all, salt);
}

Result<std::unique_ptr<PrefixStore>> prefix_store_of(const ModelFile& file, const std::vector<Lora>& adapters,
                                                     const Model& model, std::shared_ptr<PageStore> pages,
                                                     std::string_view salt) {
  const auto identity = prefix_identity(file, adapters, model.plan(), salt);
  if (!identity) return identity.error();
  return PrefixStore::create(std::move(pages), *identity, model);
}

}  // namespace gimbal
