#include "huggingface/folder_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "files/gguf_split.h"
#include "huggingface/folder.h"

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

}  // namespace gimbal
