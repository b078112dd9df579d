#include "base/folders.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>

namespace gimbal {
namespace {

// NAME in the user's cache folder. By the XDG
// specification a relative path counts as not set.
std::string in_user_cache(const char* name) {
  for (const auto& [variable_name, below] : {std::pair("XDG_CACHE_HOME", ""), std::pair("HOME", "/.cache")})
    if (const std::string at = environment_variable(variable_name); at.starts_with('/'))
      return at + below + "/" + name;
  return "";
}

}  // namespace

std::string environment_variable(const char* name) {
  const char* v = std::getenv(name);
  return v ? v : "";
}

std::string program_path() {
  std::error_code e;
  return std::filesystem::read_symlink("/proc/self/exe", e).string();
}

std::string library_path() {
  Dl_info here{};
  void* map = nullptr;
  if (!dladdr1(reinterpret_cast<const void*>(&library_path), &here, &map, RTLD_DL_LINKMAP)) return "";
  // The program itself has no name here. (`here` has its argv[0], which may name any other file.)
  std::error_code e;
  return std::filesystem::canonical(static_cast<const link_map*>(map)->l_name, e).string();
}

std::string cache_folder() { return in_user_cache("gimbal"); }

std::string hub_home_folder() {
  const std::string home = environment_variable("HF_HOME");
  return home.empty() ? in_user_cache("huggingface") : home;
}

std::string hub_cache_folder() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (std::string at = environment_variable(name); !at.empty()) return at;
  const std::string home = hub_home_folder();
  return home.empty() ? "" : home + "/hub";
}

}  // namespace gimbal
