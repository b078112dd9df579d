#include "fetch/choice.h"

#include <strings.h>

#include <algorithm>
#include <optional>

#include "base/bytes.h"
#include "base/format.h"
#include "base/text.h"
#include "files/gguf.h"

namespace gimbal {
namespace {

constexpr const char* kOrder[] = {"Q4_K_M", "Q4_K_S", "IQ4_XS", "IQ4_NL", "Q4_0", "Q4_1",  "Q5_K_M",
                                  "Q5_K_S", "Q5_0",   "Q5_1",   "Q6_K",   "Q8_0", "MXFP4", "Q3_K_M",
                                  "Q3_K_L", "Q3_K_S", "Q2_K",   "BF16",   "F16",  "F32"};

std::string in_capitals(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = char(c - 'a' + 'A');
  return out;
}

bool digit(std::string_view text, size_t at) {
  return at < text.size() && text[at] >= '0' && text[at] <= '9';
}

// Whether a quantization's name begins here.
bool begins_quant(std::string_view t) {
  for (const char* whole : {"BF16", "FP16", "F16", "FP32", "F32", "MXFP4", "NVFP4", "I2_S"})
    if (t.starts_with(whole)) return true;
  if (t.starts_with('I') || t.starts_with('T')) t.remove_prefix(1);
  return t.starts_with('Q') && digit(t, 1) && t.size() > 3 && t[2] == '_';
}

// "UD-Q4_K_XL" of "Model-7B-UD-Q4_K_XL": the last such name.
std::string quant_of(const std::string& path) {
  const std::string stem = in_capitals(path.substr(path.rfind('/') + 1));
  for (size_t at = stem.size(); at-- > 0;) {
    const bool separate = at == 0 || stem[at - 1] == '-' || stem[at - 1] == '.' || stem[at - 1] == '_';
    if (!separate || !begins_quant(std::string_view(stem).substr(at))) continue;
    std::string quant = stem.substr(at, stem.find_first_of("-.", at) - at);
    if (quant.starts_with("FP")) quant.erase(1, 1);  // FP16 is F16
    return (at >= 3 && stem.compare(at - 3, 3, "UD-") == 0 ? "UD-" : "") + quant;
  }
  return "";
}

std::string listed(const std::vector<FileChoice>& all) {
  std::string list;
  for (const FileChoice& c : all)
    list +=
        format("\n  {:<12} {:>9}  {}{}", c.quant.empty() ? "-" : c.quant, human_bytes(c.bytes),
               escaped(c.path), c.files.size() > 1 ? format(" and {} more parts", c.files.size() - 1) : "");
  return list;
}

std::vector<FileChoice> those(const std::vector<FileChoice>& all, auto&& meant) {
  std::vector<FileChoice> out;
  for (const FileChoice& c : all)
    if (meant(c)) out.push_back(c);
  return out;
}

// A repository as transformers writes it: one model, with all of its shards.
std::optional<FileChoice> folder_among(const std::vector<RemoteName>& files) {
  FileChoice c;
  const auto take = [&](const std::string& path) {
    const auto at = std::find_if(files.begin(), files.end(), [&](auto& f) { return f.path == path; });
    if (at == files.end()) return false;
    c.files.push_back(size_t(at - files.begin())), c.bytes += at->bytes;
    return true;
  };
  if (!take(kFolderMark) || !take("tokenizer.json")) return std::nullopt;
  for (const char* name : {"generation_config.json", "tokenizer_config.json", "chat_template.jinja"})
    take(name);
  c.path = kFolderMark;
  if (take("model.safetensors")) return c;
  if (!take("model.safetensors.index.json")) return std::nullopt;
  // model-00001-of-00003.safetensors and its siblings, as parts of GGUF files are named.
  constexpr std::string_view kEnd = ".safetensors";
  for (const RemoteName& f : files) {
    if (!f.path.ends_with(kEnd)) continue;
    const auto part = split_name(f.path.substr(0, f.path.size() - kEnd.size()) + ".gguf");
    if (!part || part->number != 1 || part->stem != "model") continue;
    for (uint32_t n = 1; n <= part->count; n++) {
      const std::string name = part->path(n);
      if (!take(name.substr(0, name.size() - 5) + std::string(kEnd))) return std::nullopt;
    }
    return c;
  }
  return std::nullopt;
}

}  // namespace

std::span<const char* const> default_quants() { return kOrder; }

std::vector<FileChoice> choices(const std::vector<RemoteName>& files) {
  std::vector<FileChoice> all;
  for (size_t i = 0; i < files.size(); i++) {
    const std::string& path = files[i].path;
    if (path.size() < 6 || strcasecmp(path.c_str() + path.size() - 5, ".gguf") != 0) continue;
    const std::string name = in_capitals(path.substr(path.rfind('/') + 1));
    if (name.find("MMPROJ") != name.npos || name.find("IMATRIX") != name.npos) continue;
    const auto part = split_name(path);
    if (part && part->number != 1) continue;
    FileChoice c{quant_of(part ? part->stem : path.substr(0, path.size() - 5)), {i}, files[i].bytes, path};
    for (uint32_t n = 2; part && n <= part->count; n++) {
      const std::string other = part->path(n);
      const auto at = std::find_if(files.begin(), files.end(), [&](auto& f) { return f.path == other; });
      if (at == files.end()) break;
      c.files.push_back(size_t(at - files.begin())), c.bytes += at->bytes;
    }
    if (!part || c.files.size() == part->count) all.push_back(std::move(c));
  }
  return all;
}

Result<FileChoice> choose(const std::vector<RemoteName>& files, const ModelAddress& a) {
  const std::vector<FileChoice> all = choices(files);
  if (all.empty() && a.file.empty() && a.quant.empty())
    if (auto folder = folder_among(files)) return *std::move(folder);
  if (all.empty())
    return Error{
        Code::NotFound,
        format("{} has no GGUF model{}", a.name(),
               a.file.empty() && a.quant.empty() ? ", and no config.json with tokenizer.json and safetensors"
                                                 : ""),
        "look for a repository whose name ends with -GGUF, or convert the model with the tools of "
        "llama.cpp",
        reason::kNoSuchModel,
        "model",
        a.name()};
  std::vector<FileChoice> found;
  if (!a.file.empty()) {
    found = those(all, [&](const FileChoice& c) { return c.path == a.file; });
  } else if (!a.quant.empty()) {
    const std::string wanted = in_capitals(a.quant);
    found = those(all, [&](const FileChoice& c) { return c.quant == wanted; });
    if (found.empty()) found = those(all, [&](const FileChoice& c) { return c.quant == "UD-" + wanted; });
    if (found.empty())  // the name of a file, or its end
      found = those(all, [&](const FileChoice& c) {
        const std::string stem = in_capitals(c.path.substr(c.path.rfind('/') + 1));
        return stem == wanted || stem == wanted + ".GGUF" || stem.ends_with("-" + wanted + ".GGUF");
      });
  } else if (all.size() == 1) {
    found = all;
  } else {
    for (const char* quant : kOrder)
      if (found = those(all, [&](const FileChoice& c) { return c.quant == quant; }); !found.empty()) break;
    if (found.empty()) found = all;
  }
  if (found.size() == 1) return found[0];
  if (!found.empty())
    return Error{Code::Usage,
                 format("{} has {} matching models:{}", a.name(), found.size(), listed(found)),
                 format("name one: hf.co/{}/FILE.gguf", a.repository),
                 reason::kAmbiguousModel,
                 "model",
                 a.name()};
  return Error{Code::NotFound,
               format("{}: there is no {}; the repository has:{}", "hf.co/" + a.repository,
                      gimbal::quoted(a.file.empty() ? a.quant : a.file), listed(all)),
               format("name one: hf.co/{}:{}", a.repository, all[0].quant.empty() ? "QUANT" : all[0].quant),
               reason::kNoSuchModel,
               "model",
               a.name()};
}

}  // namespace gimbal
