// The configure step's view of C++ inference libraries (cmake/external_llama.cmake): prints the libraries
// and writes them as a header. Usage: library_search auto|PATH HEADER
#include <cstdio>
#include <set>
#include <string>

#include "apps/toolkit/library_places.h"
#include "base/file.h"
#include "base/format.h"

namespace {

using namespace gimbal;

bool uses(const LibrarySearch& s, const char* gpu) {
  for (const FoundLibrary& l : s.found)
    for (const std::string& g : l.verdict.gpus)
      if (g == gpu) return true;
  return false;
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::string path_of(const LibrarySearch& s, const char* kind) {
  const FoundLibrary* l = s.of(kind);
  return l ? l->path : "";
}

std::string c_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string header(const LibrarySearch& s) {
  std::string out = "// Written by the configure step: GIMBAL_EXTERNAL_LLAMA.\n#pragma once\n";
  const auto flag = [&](const char* name, bool value) {
    out += format("#define BITNET_CPP_{} {}\n", name, int(value));
  };
  flag("FOUND", !s.found.empty());
  flag("HAS_BITNET_LIB", s.of("bitnet"));
  flag("HAS_LLAMA_LIB", s.of("llama"));
  flag("HAS_GGML_LIB", s.of("ggml"));
  flag("HAS_CUDA", uses(s, "CUDA"));
  flag("HAS_HIP", uses(s, "HIP"));
  flag("HAS_VULKAN", uses(s, "Vulkan"));
  flag("HAS_METAL", uses(s, "Metal"));
  flag("HAS_OPENCL", uses(s, "OpenCL"));
  for (const char* kind : {"bitnet", "llama", "ggml"}) {
    std::string name = kind;
    for (char& c : name) c = char(c - 'a' + 'A');
    out += format("#define BITNET_CPP_{}_PATH {}\n", name, c_string(path_of(s, kind)));
  }
  return out;
}

void report(const LibrarySearch& s) {
  std::set<std::string> folders, gpus;
  size_t bitnet = 0;
  for (const FoundLibrary& l : s.found) {
    folders.insert(folder_of(l.path));
    gpus.insert(l.verdict.gpus.begin(), l.verdict.gpus.end());
    bitnet += l.verdict.of(SymbolFamily::Bitnet).names.count();
  }
  std::printf("Libraries found in %zu dir(s)\n", folders.size());
  for (const FoundLibrary& l : s.found) std::printf("  %s: %s\n", l.path.c_str(), summary(l.verdict).c_str());
  std::printf("  Standard paths checked:\n");
  std::set<std::string> listed;
  for (const SearchedPlace& p : s.searched) {
    const bool file = !library_kind(p.path.substr(p.path.rfind('/') + 1)).empty();
    if (const std::string f = file ? folder_of(p.path) : p.path; listed.insert(f).second)
      std::printf("    - %s\n", f.c_str());
  }
  std::printf("  Backends detected: [CPU%s%s]\n", gpus.empty() ? "" : ", ",
              fmt::to_string(fmt::join(gpus, ", ")).c_str());
  std::printf("Detected backends:\n  CUDA support: %s\n  Bitnet symbols: %zu\n",
              uses(s, "CUDA") ? "true" : "false", bitnet);
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return std::fprintf(stderr, "usage: library_search auto|PATH HEADER\n"), 2;
  const std::string where = words[1];
  const LibrarySearch s = where == "auto" ? find_libraries(library_places()) : find_libraries_at(where);
  for (const std::string& n : s.notes) std::printf("note: %s\n", n.c_str());
  if (s.failure) {
    std::fprintf(stderr, "%s\n  %s\n", s.failure->message.c_str(), s.failure->remedy.c_str());
    for (const SearchedPlace& p : s.searched)
      std::fprintf(stderr, "  %s: %s\n", p.path.c_str(), p.outcome.c_str());
    return 1;
  }
  if (s.found.empty())
    std::printf("No C++ inference library was found: gimbal's own engine computes everything.\n");
  else report(s);
  const std::string text = header(s);
  // An unchanged header keeps its time, so nothing is compiled again.
  if (auto old = read_file(words[2]); old && *old == text) return 0;
  if (auto written = replace_file(words[2], text); !written)
    return std::fprintf(stderr, "%s\n", written.error().message.c_str()), 1;
  return 0;
}
