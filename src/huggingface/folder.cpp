#include "huggingface/folder.h"

#include <algorithm>
#include <map>

#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "files/safetensors.h"
#include "huggingface/families.h"
#include "huggingface/folder_files.h"
#include "huggingface/json_text.h"
#include "huggingface/recipe.h"
#include "huggingface/tensor_names.h"
#include "huggingface/tokenizer_json.h"

namespace gimbal {
namespace {

// Beside the weights: what decides how texts become tokens, and when an answer ends.
constexpr const char* kTexts[] = {kFolderConfig, "generation_config.json", "tokenizer.json",
                                  "tokenizer_config.json", "chat_template.jinja"};
constexpr uint64_t kMaxConfig = 4 << 20;
// The shards of the folder, each parsed; their tensors lie where the index names them.
Result<std::shared_ptr<PlainReader>> open_shards(const std::string& folder, TensorTable& stored) {
  const auto shards = find_shards(folder);
  if (!shards) return shards.error();
  auto reader = std::make_shared<PlainReader>(escaped(folder));
  for (size_t i = 0; i < shards->names.size(); i++) {
    const std::string path = folder + "/" + shards->names[i];
    auto file = FileBytes::open(path);
    if (!file) return file.error();
    if (auto ok = add_safetensors(*reader, reader->add(std::move(*file)), path, uint32_t(i), stored, nullptr);
        !ok)
      return ok.error();
  }
  for (const auto& [name, file] : shards->tensors) {
    const StoredTensor* t = stored.find(name);
    if (!t || t->part != file)
      return Error{Code::Malformed,
                   format("'{}': {} has no tensor {}, though {} names it", escaped(folder),
                          gimbal::quoted(shards->names[file]), gimbal::quoted(name), shards->index),
                   "The files do not belong together: download all of them again."};
  }
  reader->serve(stored);
  return reader;
}

// GGUF's numbers of the formats that such folders have; the format of most bytes counts.
void add_file_type(const TensorTable& tensors, MetadataBuilder& out) {
  std::map<DType, uint64_t> bytes;
  for (const StoredTensor& t : tensors) bytes[t.type] += t.bytes;
  const auto most =
      std::max_element(bytes.begin(), bytes.end(), [](auto& a, auto& b) { return a.second < b.second; });
  if (most == bytes.end()) return;
  for (const auto& [type, number] : {std::pair{DType::F32, 0}, {DType::F16, 1}, {DType::BF16, 32}})
    if (most->first == type) out.u32("general.file_type", uint64_t(number));
}

struct Memory {
  std::shared_ptr<const void> metadata;
  std::deque<std::string> names;
};

}  // namespace

Result<ModelSource> open_folder(const std::string& given) {
  const std::string path = without_slash(given);
  const std::string config_path = path + "/" + kFolderConfig;
  if (!file_exists(config_path))
    return Error{Code::Malformed,
                 format("the folder '{}' has no {}: it is not a model", escaped(path), kFolderConfig),
                 "Give a GGUF file, or a folder as Hugging Face has it, with config.json, tokenizer.json and "
                 "safetensors files."};
  auto json = read_json_object(config_path, kMaxConfig);
  if (!json) return json.error();
  ModelConfig config(std::move(*json), format("'{}'", escaped(config_path)));
  const std::string type = config.text({"model_type"});
  if (type.empty()) config.fail(Code::Malformed, "'model_type' is missing");
  if (config.error()) return *config.error();
  const Family* family = family_of(type);
  if (!family)
    return Error{Code::Unsupported,
                 format("'{}': the model type {} is not known; known are {}", escaped(config_path),
                        gimbal::quoted(type), family_names()),
                 "A GGUF file of the model may work: docs/models.md lists what those compute."};
  TensorTable stored;
  auto shards = open_shards(path, stored);
  if (!shards) return shards.error();

  MetadataBuilder out(escaped(path));
  out.text("general.name", name_of_folder(path));
  const auto shape = add_config(config, *family, out);
  if (!shape) return shape.error();
  auto memory = std::make_shared<Memory>();
  auto named = name_tensors(stored, *family, *shape, config, format("'{}'", escaped(path)), memory->names);
  if (!named) return named.error();
  add_file_type(named->tensors, out);
  int64_t rows = shape->vocabulary;
  if (const StoredTensor* table = named->tensors.find("token_embd.weight"); table && table->rank == 2)
    rows = table->dim[1];
  const auto texts = read_tokenizer_texts(path);
  if (!texts) return texts.error();
  if (auto ok = add_tokenizer(*texts, config, rows, out); !ok) return ok.error();
  memory->metadata = out.memory();

  std::deque<FileBytes> others;
  for (const char* name : kTexts) {
    const std::string file = path + "/" + name;
    if (!file_exists(file)) continue;
    auto bytes = FileBytes::open(file);
    if (!bytes) return bytes.error();
    // All of it is header: the identity of the folder counts it.
    if (auto ok = bytes->head(std::min(bytes->size(), FileBytes::kMaxHeader)); !ok) return ok.error();
    others.push_back(std::move(*bytes));
  }
  auto reader = std::make_shared<FolderReader>(escaped(path), std::move(*shards), std::move(stored),
                                               std::move(others), memory);
  reader->serve(named->tensors, std::move(named->recipes));
  return ModelSource({"safetensors", 1}, out.metadata(), std::move(named->tensors), std::move(reader));
}

Result<std::vector<std::string>> files_of_folder(const std::string& path) {
  const std::string folder = without_slash(path);
  std::vector<std::string> all;
  for (const char* name : kTexts)
    if (file_exists(folder + "/" + name)) all.push_back(folder + "/" + name);
  const auto shards = find_shards(folder);
  if (!shards) return shards.error();
  for (const std::string& name : shards->names) all.push_back(folder + "/" + name);
  return all;
}

}  // namespace gimbal
