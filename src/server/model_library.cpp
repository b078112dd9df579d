#include "server/model_library.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/clock.h"
#include "base/file.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/text.h"
#include "engine/find_model.h"
#include "fetch/address.h"
#include "fetch/store.h"

namespace gimbal {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostDescribed = 1000;
constexpr size_t kMostOfADescription = 1 << 20;  // bytes
constexpr size_t kLongestName = 250;

std::string canonical(const std::string& path) {
  std::error_code e;
  return fs::weakly_canonical(path, e).string();
}

void look_at(LibraryModel& m) {
  struct stat s {};
  if (m.path.empty() || stat(m.path.c_str(), &s) != 0) return;
  m.bytes = uint64_t(s.st_size), m.modified = int64_t(s.st_mtime);
  m.device = uint64_t(s.st_dev), m.inode = uint64_t(s.st_ino);
}

LibraryModel model_of(const CatalogEntry& e) {
  std::error_code ignored;
  LibraryModel m;
  m.id = e.name, m.source = e.source;
  m.path = fs::absolute(e.path, ignored).lexically_normal().string();
  look_at(m);
  return m;
}

std::string text_of(const Json& j, const char* name) {
  const auto at = j.find(name);
  return at != j.end() && at->is_string() ? at->get<std::string>() : "";
}

// A file that somebody else wrote counts for nothing.
std::optional<LibraryModel> parse_description(const std::string& text) {
  const Json j = parse_json(text);
  if (!j.is_object()) return {};
  LibraryModel m;
  m.id = text_of(j, "name"), m.path = text_of(j, "path"), m.source = "described";
  if (ModelLibrary::wrong_name(m.id)) return {};
  m.pulled = j.value("pulled", Json()) == true;
  auto preset = std::make_shared<ModelPreset>();
  preset->system = text_of(j, "system"), preset->chat_template = text_of(j, "template");
  if (const auto at = j.find("options"); at != j.end() && at->is_object()) preset->options = *at;
  m.preset = std::move(preset);
  std::error_code e;
  if (!m.path.empty() && !fs::exists(m.path, e)) return {};  // its file is gone
  look_at(m);
  return m;
}

}  // namespace

ModelLibrary::ModelLibrary(std::string folder, std::function<Catalog()> find)
    : folder_(std::move(folder)), find_(std::move(find)) {}

std::optional<std::string> ModelLibrary::wrong_name(const std::string& name) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._-:/@+").find(c) != std::string_view::npos;
  };
  if (name.empty() || name.size() > kLongestName)
    return format("a name has 1 to {} characters", kLongestName);
  if (!std::all_of(name.begin(), name.end(), good))
    return "a name has letters, digits and . _ - : / @ + only";
  if (std::strchr("./:-", name[0]) || name.find("..") != name.npos)
    return "a name begins with a letter or digit, and has no two dots in a row";
  return {};
}

std::string ModelLibrary::file_of(const std::string& name) const {
  return format("{}/{:016x}.json", folder_, Hash().add(name).value());
}

void ModelLibrary::read(double fresh) {
  if (now() - read_at_ < fresh) return;
  catalog_ = find_();
  described_.clear();
  std::error_code e;
  for (auto at = fs::directory_iterator(folder_, e);
       !e && at != fs::directory_iterator() && described_.size() < kMostDescribed; at.increment(e)) {
    if (at->path().extension() != ".json") continue;
    const auto text = read_file(at->path().string(), kMostOfADescription);
    if (!text) continue;
    if (auto m = parse_description(*text)) described_.push_back(std::move(*m));
  }
  read_at_ = now();
}

void ModelLibrary::refresh() {
  const std::lock_guard lock(mutex_);
  read_at_ = -1e9;
}

const LibraryModel* ModelLibrary::described(const std::string& name) const {
  for (const bool exact : {true, false})
    for (const LibraryModel& m : described_)
      if (exact ? m.id == name : m.id + ":latest" == name || m.id == name + ":latest") return &m;
  return nullptr;
}

std::vector<LibraryModel> ModelLibrary::list() {
  const std::lock_guard lock(mutex_);
  read(kFresh);
  std::vector<LibraryModel> all = described_;
  // A fetched model has the name that the client had it fetched by.
  std::set<std::string> names, fetched;
  for (const LibraryModel& m : described_) {
    names.insert(m.id);
    if (m.pulled) fetched.insert(canonical(m.path));
  }
  for (const CatalogEntry& e : catalog_.entries)
    if (!names.contains(e.name) && (fetched.empty() || !fetched.contains(canonical(e.path))))
      all.push_back(model_of(e));
  std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.id < b.id; });
  return all;
}

// From the last scan. Nothing if it has no such model, or if the file is gone.
Result<std::optional<LibraryModel>> ModelLibrary::known(const std::string& name) const {
  std::optional<LibraryModel> nothing;
  const auto there = [&](LibraryModel m) {
    m.inode = 0, look_at(m);
    return m.path.empty() || m.inode ? std::optional(std::move(m)) : nothing;
  };
  if (const LibraryModel* m = described(name)) return there(*m);
  if (is_address(name)) {
    const auto address = parse_address(name);
    const auto path = address ? find_fetched(*address) : Result<std::optional<std::string>>(address.error());
    if (!path || !*path) return nothing;
    for (const CatalogEntry& e : catalog_.entries)
      if (canonical(e.path) == canonical(**path)) return there(model_of(e));
    return nothing;
  }
  std::vector<const CatalogEntry*> found = named(catalog_, name);
  constexpr std::string_view kLatest = ":latest";  // of Ollama's clients, for any model
  if (found.empty() && name.ends_with(kLatest))
    found = named(catalog_, name.substr(0, name.size() - kLatest.size()));
  if (found.size() > 1)
    return Error{Code::Usage,
                 format("{} models have the name {}", found.size(), gimbal::quoted(name)),
                 "use a longer name",
                 reason::kAmbiguousModel,
                 "model",
                 name};
  return found.empty() ? nothing : there(model_of(*found[0]));
}

Result<LibraryModel> ModelLibrary::find(const std::string& name) {
  const std::lock_guard lock(mutex_);
  // Folders are read again only for a name that is not known: it may be of a file that has just come.
  for (const double fresh : {kAnyAge, 1.0}) {
    read(fresh);
    auto m = known(name);
    if (!m) return m.error();
    if (*m) return std::move(**m);
  }
  return Error{Code::NotFound,
               format("there is no model {}", gimbal::quoted(name)),
               "",
               reason::kNoSuchModel,
               "model",
               name};
}

Status ModelLibrary::describe(const LibraryModel& m) {
  if (auto why = wrong_name(m.id)) return Error{Code::Usage, *why, "", "", "model", m.id};
  if (folder_.empty())
    return Error{Code::Failed, "there is no folder for descriptions: neither XDG_CACHE_HOME nor HOME is set",
                 "set one of them"};
  const std::lock_guard lock(mutex_);
  read(kFresh);
  if (described_.size() >= kMostDescribed && !described(m.id))
    return Error{Code::Usage, format("there are {} described models already", kMostDescribed),
                 "delete one of them"};
  Json j = {
      {"name", m.id}, {"path", m.path.empty() ? "" : fs::absolute(m.path).string()}, {"pulled", m.pulled}};
  if (m.preset) {
    j["system"] = m.preset->system, j["template"] = m.preset->chat_template;
    j["options"] = m.preset->options;
  }
  const std::string text = j.dump(1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kMostOfADescription)
    return Error{Code::Usage, format("a description has at most {} bytes", kMostOfADescription), ""};
  read_at_ = -1e9;
  return replace_file(file_of(m.id), text);
}

Status ModelLibrary::remove(const std::string& name) {
  auto found = find(name);
  if (!found) return found.error();
  const LibraryModel& m = *found;
  const std::lock_guard lock(mutex_);
  const bool described = m.source == "described";
  const auto needs = [&](const LibraryModel& o) {
    return o.id != m.id && !o.path.empty() && canonical(o.path) == canonical(m.path);
  };
  const auto other = std::find_if(described_.begin(), described_.end(), needs);
  if (!described && m.source != "gimbal")
    return Error{Code::Usage,
                 format("the file of {} lies in no folder of gimbal's ({})", gimbal::quoted(m.id), m.source),
                 "remove it on the server: `gimbal rm`", reason::kNotOurs};
  if (!described && other != described_.end())
    return Error{Code::Usage, format("{} is made of {}", gimbal::quoted(other->id), gimbal::quoted(m.id)),
                 "delete that first", reason::kNotOurs};
  read_at_ = -1e9;
  if (described && ::unlink(file_of(m.id).c_str()) != 0 && errno != ENOENT)
    return Error{
        Code::Failed,
        format("cannot remove the description of {}: {}", gimbal::quoted(m.id), std::strerror(errno)), ""};
  if ((described && !m.pulled) || other != described_.end()) return Done{};
  auto what = removal_of(m.path);
  if (!what) return what.error();
  return gimbal::remove(*what);
}

}  // namespace gimbal
