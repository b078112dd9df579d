// gimbal convert: writes a model as GGUF, from a folder as Hugging Face has it or from GGUF files: joined or
// split, with other metadata, with adapters added to the weights, or the vocabulary alone. Apart from
// adapters the numbers stay as they are: the file computes the same bits.
#include <algorithm>
#include <filesystem>

#include "apps/commands/command.h"
#include "apps/commands/open_model.h"
#include "apps/options/options.h"
#include "apps/toolkit/input_output.h"
#include "apps/toolkit/terminal.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"
#include "files/gguf_writer.h"
#include "files/metadata_edits.h"
#include "huggingface/folder.h"
#include "quantize/merged_weights.h"

namespace gimbal {
namespace {

// Of the parts of a split model, which have their own.
bool of_a_split(std::string_view key) { return key.starts_with("split."); }

class Convert final : public Command {
 public:
  void declare(Arguments& a) override {
    a.positional("MODEL",
                 "folder with config.json and safetensors files, or a GGUF file, also in several parts",
                 model_);
    a.positional("OUT.gguf", "the file to write", out_);
    a.flag("--force", "replace files that exist", force_);
    a.texts("--set", "KEY=VALUE", "another value in the metadata", set_);
    a.texts("--remove", "KEY", "leave this key out of the metadata", remove_);
    a.flag("--vocab-only", "write the metadata with the vocabulary, no weights", vocabulary_only_);
    a.text("--split-max-size", "SIZE", "write parts of at most this size: 500M, 2G", split_size_);
    a.whole("--split-max-tensors", "N", "write parts of at most this number of tensors", split_tensors_, 1,
            1 << 20);
    gimbal::declare(a, engine_setting("lora"), options_);
    a.example("gimbal convert ./Qwen3-0.6B qwen3-0.6b.gguf");
    a.example("gimbal convert model.gguf named.gguf --set general.name=Ada");
  }

  Result<int> run() override {
    if (!model_ || !out_)
      return Error{Code::Usage, "a model and the file to write are both needed",
                   "for example: gimbal convert ./folder out.gguf"};
    auto source = open_header(*model_, file_options(options_), quiet);
    if (!source) return source.error();
    const ModelSource& f = *source->file;
    if (auto ok = f.tensors().readable(); !ok) return ok.error();
    auto merged = MergedWeights::of(f);
    if (!merged) return merged.error();
    auto edits = wanted_edits(f.metadata());
    if (!edits) return edits.error();
    auto parts = parts_of(f, *merged);
    if (!parts) return parts.error();
    const std::vector<std::string> paths = paths_of_parts(*out_, parts->size());
    for (const std::string& path : paths)
      if (auto ok = may_write(f, path, force_); !ok) return ok.error();
    size_t tensors = 0;
    uint64_t bytes = 0;
    for (const auto& part : *parts)
      for (const StoredTensor* t : part) tensors++, bytes += t->bytes;
    std::vector<GgufWriter> writers = writers_of_parts(parts->size(), tensors);
    for (const auto& [key, entry] : edits->applied(f.metadata()))
      if (!of_a_split(key)) writers[0].add(key, entry);
    for (size_t i = 0; i < parts->size(); i++) {
      for (const StoredTensor* t : (*parts)[i]) writers[i].tensor(*t);
      const auto read = [&](size_t tensor, uint64_t offset, void* to, size_t n) {
        return merged->read(*(*parts)[i][tensor], offset, to, n);
      };
      if (auto ok = writers[i].write_file(paths[i], read); !ok) return ok.error();
    }
    if (json)
      print_json({{"model", source->name},
                  {"path", paths[0]},
                  {"paths", paths},
                  {"tensors", tensors},
                  {"bytes", bytes},
                  {"merged", merged->changed()}});
    else
      print(format("{}: {} tensors, {} of weights{}{}\n", printable(paths[0]), tensors, human_bytes(bytes),
                   paths.size() > 1 ? format(", in {} files", paths.size()) : "",
                   merged->changed() ? format(", {} with adapters", merged->changed()) : ""));
    return kDone;
  }

 private:
  Result<MetadataEdits> wanted_edits(const Metadata& metadata) const {
    MetadataEdits edits;
    const auto told = [](Error e, const char* option) {
      e.message = format("{}: {}", option, e.message);
      return e;
    };
    for (const std::string& text : set_)
      if (auto ok = edits.set(metadata, text); !ok) return told(ok.error(), "--set");
    for (const std::string& key : remove_)
      if (auto ok = edits.remove(metadata, key); !ok) return told(ok.error(), "--remove");
    return edits;
  }

  using Part = std::vector<const StoredTensor*>;
  Result<std::vector<Part>> parts_of(const ModelSource& f, const MergedWeights& merged) const {
    const std::optional<uint64_t> most = split_size_ ? bytes_named(*split_size_) : std::nullopt;
    if (split_size_ && !most)
      return Error{Code::Usage,
                   format("--split-max-size: expected a size such as 500M or 2G, got {}",
                          gimbal::quoted(*split_size_)),
                   ""};
    std::vector<Part> parts(1);
    uint64_t bytes = 0;
    for (const StoredTensor& t : f.tensors()) {
      if (vocabulary_only_ || merged.is_adapter(t)) continue;
      const bool full = (most && bytes + t.bytes > *most) ||
                        (split_tensors_ && parts.back().size() == size_t(*split_tensors_));
      if (full && !parts.back().empty()) parts.emplace_back(), bytes = 0;
      parts.back().push_back(&t), bytes += t.bytes;
    }
    if (parts.size() > 0xffff)
      return Error{Code::Usage, format("{} parts are too many: a model has at most 65535", parts.size()),
                   "choose larger parts"};
    return parts;
  }

  std::optional<std::string> model_, out_, split_size_;
  std::vector<std::string> set_, remove_;
  std::optional<int> split_tensors_;
  bool force_ = false, vocabulary_only_ = false;
  CommonOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_convert() { return std::make_unique<Convert>(); }

}  // namespace gimbal
