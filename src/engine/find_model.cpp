#include "engine/find_model.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <filesystem>

#include "base/format.h"
#include "base/result.h"
#include "base/text.h"
#include "engine/change_metadata.h"
#include "engine/model_catalog.h"
#include "fetch/store.h"
#include "files/gguf.h"
#include "huggingface/folder.h"
#include "model/embedded_model.h"

namespace gimbal {
namespace {

Result<FoundModel> find_named(const std::string& name) {
  Catalog catalog = find_models();
  const std::vector<const CatalogEntry*> found = named(catalog, name);
  if (found.size() == 1) return FoundModel{found[0]->name, found[0]->path, found[0]->source};
  if (!found.empty()) {
    std::string list;
    for (const CatalogEntry* e : found) list += "\n  " + e->path;
    return Error{Code::Usage,
                 format("{} models are named '{}':{}", found.size(), name, list),
                 "give the path of the one you want",
                 reason::kAmbiguousModel,
                 "model",
                 name};
  }
  std::vector<std::string> known{"default", std::string(kEmbeddedModelName)};
  std::string places;
  for (const CatalogEntry& e : catalog.entries) known.push_back(e.name);
  for (const std::string& p : catalog.places) places += "\n  " + p;
  auto similar = nearest(name, known);
  Error e{Code::NotFound,
          format("there is no model '{}': no such file in {}, and none of the {} models found here has that "
                 "name:{}",
                 name, std::filesystem::current_path().string(), catalog.entries.size(), places),
          "",
          reason::kNoSuchModel,
          "model",
          name};
  if (similar) e.changes.push_back({"model", *similar, ""});
  return e;
}

Result<FoundModel> find_address(const std::string& model) {
  auto address = parse_address(model);
  if (!address) return address.error();
  auto path = find_fetched(*address);
  if (!path) return path.error();
  if (*path) {
    const std::string stem = std::filesystem::path(**path).stem().string();
    const bool hub = !address->repository.empty();
    if (is_folder(**path)) return FoundModel{address->repository, **path, "Hugging Face"};
    return FoundModel{hub ? address->repository + "/" + stem : stem, **path, hub ? "Hugging Face" : "gimbal"};
  }
  return Error{Code::NotFound,   format("{} is not on this machine", address->name()),
               "fetch it first", reason::kNotFetched,
               "model",          address->name()};
}

}  // namespace

Result<FoundModel> find_model(const std::string& model) {
  if (model.empty() || model == "default" || model == kEmbeddedModelName)
    return FoundModel{std::string(kEmbeddedModelName), "", ""};
  if (is_address(model)) return find_address(model);
  if (access(model.c_str(), F_OK) == 0) {
    if (!is_folder(model)) return FoundModel{std::filesystem::path(model).stem().string(), model, ""};
    std::string folder = model;
    while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
    return FoundModel{name_of_folder(folder), folder, ""};
  }
  // A link that leads nowhere is meant as a file, whatever it is called.
  struct stat link;
  const bool there = lstat(model.c_str(), &link) == 0;
  if (there || model[0] == '/' || model[0] == '.' || model.find(".gguf") != std::string::npos ||
      model.find(".GGUF") != std::string::npos) {
    std::error_code e;
    errno = 0;
    (void)!access(model.c_str(), F_OK);
    const int why = errno;
    const auto absolute = std::filesystem::absolute(model, e);
    if (there || why != ENOENT)
      return Error{why == ENOENT ? Code::NotFound : Code::Failed,
                   format("cannot open {}: {}", gimbal::quoted(absolute.string()),
                          why == ENOENT ? "it is a broken link" : strerror(why)),
                   "",
                   "",
                   "model",
                   model};
    return Error{Code::NotFound,
                 format("there is no file {}{}", gimbal::quoted(model),
                        absolute == model ? "" : format(" (looked for {})", escaped(absolute.string()))),
                 "",
                 reason::kNoSuchModel,
                 "model",
                 model};
  }
  return find_named(model);
}

Result<ModelFile> model_file(std::string name, const std::string& path, Result<ModelSource> file,
                             const ModelFileOptions& options) {
  if (!file) return file.error();
  if (auto ok = change_metadata(*file, options.changes); !ok) return ok.error();
  if (auto ok = apply_rope_changes(*file, options.rope); !ok) return ok.error();
  for (const Lora& l : options.lora)
    if (auto ok = add_lora(*file, l); !ok) return ok.error();
  return ModelFile{std::move(name), path, std::make_shared<const ModelSource>(std::move(*file))};
}

Result<ModelFile> open_model_file(const std::string& model, const ModelFileOptions& options) {
  auto found = find_model(model);
  if (!found) return found.error();
  const std::string& name = found->name;
  if (found->path.empty() && embedded_model().empty())
    return absent_feature_error("the built-in model", "model");
  if (found->path.empty())
    return model_file(name, "", parse_gguf(embedded_model(), name + " (inside the program)"), options);
  auto ternary = ternary_choice(options.kernel_config);
  if (!ternary) return ternary.error();
  return model_file(name, found->path, open_source(found->path, *ternary), options);
}

}  // namespace gimbal
