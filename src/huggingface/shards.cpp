#include "huggingface/shards.h"

#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "huggingface/folder_files.h"
#include "huggingface/json_text.h"

namespace gimbal {
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
