#include "huggingface/folder_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "files/gguf.h"
#include "huggingface/folder.h"
#include "huggingface/json_text.h"

namespace gimbal {

bool file_exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

bool is_folder(const std::string& path) {
  struct stat s;
  return stat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode);
}

std::string name_of_folder(const std::string& path) {
  std::error_code e;
  const auto whole = std::filesystem::weakly_canonical(without_slash(path), e);
  return (e ? std::filesystem::path(path) : whole).filename().string();
}

bool is_model_folder(const std::string& path) {
  return is_folder(path) && file_exists(without_slash(path) + "/" + kFolderConfig);
}

Result<ModelSource> open_source(const std::string& path, const TernaryChoice& choice) {
  if (!is_folder(path) && path.ends_with(".safetensors") && file_exists(path))
    return Error{Code::Unsupported, format("'{}' has weights alone, not what they mean", escaped(path)),
                 "Give the folder, in which config.json and tokenizer.json lie beside it."};
  return is_folder(path) ? open_folder(path) : open_gguf(path, choice);
}

Result<std::vector<std::string>> files_of_model(const std::string& path) {
  if (is_folder(path)) return files_of_folder(path);
  std::vector<std::string> all;
  const auto split = split_name(path);
  for (uint32_t part = 1; part <= (split ? split->count : 1); part++)
    all.push_back(split ? split->path(part) : path);
  return all;
}

namespace {

constexpr const char* kOne = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr uint64_t kMaxIndex = 64 << 20;
constexpr size_t kMaxShards = 4096;

// Names of files alone: an index must not lead out of its folder.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.size() < 256 && name.find('/') == name.npos && name.find('\\') == name.npos &&
         name.find('\0') == name.npos && name.front() != '.' && name.ends_with(".safetensors");
}

class WeightMap final : public JsonText {
 public:
  std::vector<std::pair<std::string, std::string>> entries;

 private:
  bool passes(const std::string& path) override { return path == "weight_map"; }
  void text(const std::string&, int depth, const std::string& name, std::string& value) override {
    if (depth == 1) entries.emplace_back(name, value);
  }
};

}  // namespace

Result<Shards> find_shards(const std::string& folder) {
  Shards out;
  if (file_exists(folder + "/" + kOne)) {
    out.names.push_back(kOne);
    return out;
  }
  const std::string path = folder + "/" + kIndex;
  if (!file_exists(path)) {
    std::string found;
    for (const char* other : {"pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5",
                              "adapter_model.safetensors", "consolidated.safetensors"})
      if (file_exists(folder + "/" + other)) found = other;
    return Error{
        Code::Malformed,
        format("'{}' has no weights: neither {} nor {}{}", escaped(folder), kOne, kIndex,
               found.empty() ? "" : format("; it has {}, which is not read", found)),
        "Get the folder with its safetensors files, or save the model with transformers' save_pretrained()."};
  }
  const auto text = read_file(path, kMaxIndex);
  if (!text) return text.error();
  WeightMap map;
  const auto wrong = [&](const std::string& what) {
    return Error{Code::Malformed, format("'{}': {}", escaped(path), what),
                 "The folder is damaged or incomplete: get it again."};
  };
  if (auto ok = map.parse(*text, path); !ok) return ok.error();
  if (map.entries.empty()) return wrong("'weight_map' is missing or empty");
  std::set<std::string> names;
  for (const auto& [tensor, file] : map.entries) {
    if (!is_plain_name(file))
      return wrong(format("tensor {}: expected the name of a safetensors file in this folder, found {}",
                          gimbal::quoted(tensor), gimbal::quoted(file)));
    names.insert(file);
  }
  if (names.size() > kMaxShards) return wrong(format("{} files of weights are too many", names.size()));
  out.index = kIndex;
  out.names.assign(names.begin(), names.end());
  for (const auto& [tensor, file] : map.entries) {
    const auto at = size_t(std::lower_bound(out.names.begin(), out.names.end(), file) - out.names.begin());
    if (!out.tensors.emplace(tensor, at).second)
      return wrong(format("tensor {} is there twice", gimbal::quoted(tensor)));
  }
  for (const std::string& name : out.names)
    if (!file_exists(folder + "/" + name))
      return Error{Code::Malformed,
                   format("'{}' lacks {}, which {} names", escaped(folder), gimbal::quoted(name), kIndex),
                   "Download all files of the model into one folder."};
  return out;
}

}  // namespace gimbal
