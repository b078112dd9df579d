// gimbal models: the model files on this machine, with facts from their headers.
#include <algorithm>
#include <cctype>

#include "apps/commands/command.h"
#include "apps/toolkit/terminal.h"
#include "base/json.h"
#include "engine/model_catalog.h"
#include "files/gguf.h"
#include "files/model_source.h"
#include "huggingface/folder.h"
#include "model/arch.h"
#include "model/embedded_model.h"

namespace gimbal {
namespace {

// Formats have small letters in all commands.
std::string format_of(const ModelSource& file) {
  std::string name = quantization_of(file);
  for (char& c : name) c = char(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

class ModelsCommand final : public Command {
 public:
  void declare(Arguments& a) override { a.example("GIMBAL_MODELS=/data/models:$HOME/gguf gimbal list"); }

  Result<int> run() override {
    Catalog catalog = find_models();
    Table table("lrllll");
    table.row({bold("NAME"), bold("SIZE"), bold("FORMAT"), bold("ARCHITECTURE"), bold("FROM"), bold("PATH")});
    Json list = Json::array();
    std::string unreadable;
    auto add = [&](const CatalogEntry& e, const Result<ModelSource>& file) {
      std::string arch =
          file ? std::string(file->metadata().string("general.architecture").value_or("")) : "";
      const std::string type = file ? format_of(*file) : "";
      const bool runs = file && configure(*file);  // header alone
      Json j{{"name", e.name},
             {"source", e.source},
             {"path", e.path.empty() ? Json() : Json(e.path)},
             {"bytes", e.bytes},
             {"format", type.empty() ? Json() : Json(type)},
             {"architecture", arch.empty() ? Json() : Json(arch)},
             {"supported", runs}};
      if (!file) j["error"] = {{"code", name_of(file.error().code)}, {"message", file.error().message}};
      list.push_back(std::move(j));
      if (!file)
        unreadable += gimbal::format("  {}\n", printable(file.error().message));  // it names the file
      std::string what = file ? printable(arch) + (runs ? "" : " (not supported yet)") : "unreadable";
      table.row({printable(e.name), human_bytes(e.bytes), type, what, e.source,
                 e.path.empty() ? "-" : printable(e.path)});
    };
    const Bytes inside = embedded_model();
    if (!inside.empty())
      add({std::string(kEmbeddedModelName), "inside the program", "", inside.size()},
          parse_gguf(inside, "the model inside the program"));
    for (CatalogEntry& e : catalog.entries) {
      auto file = open_source(e.path);
      if (file) e.bytes = file->file_bytes();  // of all parts
      add(e, file);
    }
    if (!catalog.complete && !quiet) note("note: a folder has too many files; the list is not complete");
    constexpr size_t kNamed = 5;
    for (size_t i = 0; i < std::min(catalog.skipped.size(), kNamed) && !quiet; i++)
      note("note: not looked into: " + printable(catalog.skipped[i]));
    if (catalog.skipped.size() > kNamed && !quiet)
      note(format("note: nor into {} more folders", catalog.skipped.size() - kNamed));
    if (json) {
      print_json({{"models", std::move(list)},
                  {"places", catalog.places},
                  {"skipped", catalog.skipped},
                  {"complete", catalog.complete}});
    } else {
      print(table.text());
      if (!unreadable.empty()) print("\nUnreadable:\n" + unreadable);
      if (catalog.entries.empty() && !quiet)
        note(
            "No files were found. `gimbal pull hf.co/OWNER/REPO` fetches one; or put a .gguf file into this "
            "folder, or name folders: GIMBAL_MODELS=/data/models gimbal list");
    }
    return kDone;
  }
};

}  // namespace

std::unique_ptr<Command> make_models() { return std::make_unique<ModelsCommand>(); }

}  // namespace gimbal
