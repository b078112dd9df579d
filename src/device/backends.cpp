#include "device/backends.h"

#include <dirent.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "base/format.h"
#include "device/reason.h"

namespace gimbal {
namespace {

constexpr std::string_view kBegin = "libgimbal-backend-", kEnd = ".so";

// "toy" of "libgimbal-backend-toy.so"; empty for other files.
std::string backend_in(std::string_view file) {
  if (file.size() <= kBegin.size() + kEnd.size() || !file.starts_with(kBegin) || !file.ends_with(kEnd))
    return "";
  file.remove_prefix(kBegin.size()), file.remove_suffix(kEnd.size());
  const bool word = std::all_of(file.begin(), file.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  return word ? std::string(file) : "";
}

// Names of the backends with a plugin in this folder, sorted: folder order is arbitrary.
std::vector<std::string> plugins_in(const std::string& folder) {
  std::vector<std::string> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> d(opendir(folder.c_str()), closedir);
  if (!d) return all;
  while (const dirent* e = readdir(d.get()))
    if (std::string name = backend_in(e->d_name); !name.empty()) all.push_back(std::move(name));
  std::sort(all.begin(), all.end());
  return all;
}

std::string in_capitals(std::string name) {
  for (char& c : name)
    if (c >= 'a' && c <= 'z') c = char(c - 'a' + 'A');
  return name;
}

}  // namespace

Status check_name(const Library& plugin, const std::string& name) {
  if (plugin.name() == name) return Done{};
  return Error{Code::NoBackend,
               format("the plugin {} holds the backend '{}', not '{}'", plugin.path(), plugin.name(), name),
               "name the file after its backend", reason::kBrokenPlugin};
}

Backends::Backends(const std::vector<std::string>& folders, LinkedBackends linked) {
  auto entry = [&](const std::string& name) -> Entry& {
    if (Entry* known = find(name)) return *known;
    entries_.push_back({{name, "", false, false}, nullptr, {}});
    return entries_.back();
  };
  for (const char* name : kBackendOrder) entry(name);
  for (LinkedBackends e = linked; *e; ++e) {
    Entry& mine = entry((*e)()->name);
    mine.library = Library::linked(*e);
    mine.source.linked = mine.source.present = true;
  }
  for (const std::string& folder : folders)
    for (const std::string& name : plugins_in(folder))
      if (Source& s = entry(name).source; !s.present)
        s.present = true, s.path = format("{}/{}{}{}", folder, kBegin, name, kEnd);
}

Backends::Entry* Backends::find(const std::string& name) {
  for (Entry& e : entries_)
    if (e.source.name == name) return &e;
  return nullptr;
}

std::vector<std::string> Backends::names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> all;
  for (const Entry& e : entries_) all.push_back(e.source.name);
  return all;
}

Backends::Source Backends::source(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  for (const Entry& e : entries_)
    if (e.source.name == name) return e.source;
  return {name, "", false, false};
}

Result<LibraryPtr> Backends::library(const std::string& name) {
  const std::lock_guard lock(mutex_);
  Entry* e = find(name);
  if (e && e->library) return e->library;
  if (e && e->error) return *e->error;
  if (!e || !e->source.present)
    return Error{
        Code::NoBackend,
        format("this program was built without the {} backend, and there is no plugin {}{}{} either", name,
               kBegin, name, kEnd),
        e ? format("build gimbal with -DGIMBAL_BACKEND_{}=ON, or put the plugin beside the program or "
                   "into a folder of GIMBAL_BACKEND_PATH",
                   in_capitals(name))
          : "put the plugin beside the program, or name its folder in GIMBAL_BACKEND_PATH",
        reason::kNotBuilt};
  auto opened = Library::open(e->source.path);
  if (opened)
    if (auto named = check_name(**opened, name); !named) opened = named.error();
  if (!opened) return *(e->error = opened.error());
  return e->library = *opened;
}

Result<Backends::Exchange> Backends::reload(const std::string& path,
                                            const std::function<Status(const LibraryPtr&)>& validate) {
  const std::lock_guard one(reloading_);
  auto opened = Library::open(path);
  if (!opened) return opened.error();
  if (validate)
    if (auto valid = validate(*opened); !valid) {
      Error why = valid.error();
      if (!*why.reason) why.reason = reason::kVerificationFailed;
      return why;
    }
  // Destroying the old library here may take a while: do it outside the lock.
  LibraryPtr old;
  const std::lock_guard lock(mutex_);
  Entry* e = find((*opened)->name());
  if (!e) e = &entries_.emplace_back();
  old = std::move(e->library);
  Exchange done{std::move(e->source), old ? old->build_id() : "", old && old.use_count() > 1, *opened};
  done.before.name = (*opened)->name();
  *e = {{(*opened)->name(), path, false, true}, *opened, {}};
  return done;
}

}  // namespace gimbal
