#include "engine/find_model.h"

#include <strings.h>
#include <unistd.h>

#include <filesystem>

#include "base/format.h"
#include "base/text.h"
#include "engine/model_catalog.h"
#include "model/embedded_model.h"

namespace gimbal {
namespace {

Result<ModelFile> open_path(std::string name, const std::string& path) {
  auto file = Gguf::open(path);
  if (!file) return file.error();
  return ModelFile{std::move(name), path, std::make_shared<const Gguf>(std::move(*file))};
}

std::string last_part(const std::string& name) { return name.substr(name.rfind('/') + 1); }

Result<ModelFile> open_named(const std::string& name) {
  Catalog catalog = find_models();
  std::vector<const CatalogEntry*> found;
  // The whole name, or what follows the last slash of it.
  for (bool whole : {true, false}) {
    for (const CatalogEntry& e : catalog.entries)
      if (strcasecmp((whole ? e.name : last_part(e.name)).c_str(), name.c_str()) == 0) found.push_back(&e);
    if (!found.empty()) break;
  }
  if (found.size() == 1) return open_path(found[0]->name, found[0]->path);
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

}  // namespace

Result<ModelFile> open_model_file(const std::string& model) {
  if (model.empty() || model == "default" || model == kEmbeddedModelName) {
    auto file = Gguf::parse(embedded_model(), std::string(kEmbeddedModelName) + " (inside the program)");
    if (!file) return file.error();
    return ModelFile{std::string(kEmbeddedModelName), "", std::make_shared<const Gguf>(std::move(*file))};
  }
  if (access(model.c_str(), F_OK) == 0) return open_path(std::filesystem::path(model).stem().string(), model);
  if (model[0] == '/' || model[0] == '.' || model.find(".gguf") != std::string::npos) {
    std::error_code e;
    const auto absolute = std::filesystem::absolute(model, e);
    return Error{Code::NotFound,
                 format("there is no file '{}'{}", model,
                        absolute == model ? "" : format(" (looked for {})", absolute.string())),
                 "",
                 reason::kNoSuchModel,
                 "model",
                 model};
  }
  return open_named(model);
}

}  // namespace gimbal
