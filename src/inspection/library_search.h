// The search for C++ inference libraries (libbitnet, libllama, libggml): the folders that the environment
// names, build trees of CMake, the program's folder and the system's. Nothing is loaded.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "inspection/verdict.h"

namespace gimbal {

// Folders to search, most important tier first. The application fills it, because only the application reads
// the environment (apps/toolkit/library_places.h).
struct LibraryPlaces {
  std::string library_folder;       // BITNET_CROSSVAL_LIBDIR: the libraries are in this very folder
  std::string root;                 // BITNET_CPP_DIR: a checkout, with its build tree
  std::string old_root;             // BITNET_CPP_PATH: the same under its old name, if `root` is empty
  std::string cached_root;          // ~/.cache/bitnet_cpp
  std::vector<std::string> beside;  // the program's folder and its lib
  std::vector<std::string> system;  // LD_LIBRARY_PATH, /usr/local/lib, ...
};

struct FoundLibrary {
  std::string path;  // without links
  std::string kind;  // "bitnet", "llama" or "ggml", by its file name
  std::string tier;  // "BITNET_CPP_DIR"
  size_t place = 0;  // in the order of the search
  Inspection inspection;
  LibraryVerdict verdict;
};

struct SearchedPlace {
  std::string tier, path;
  std::string outcome;  // "found", "no such folder", "no library in it", or the reason of the refusal
};

struct LibrarySearch {
  std::vector<FoundLibrary>
      found;  // of the first tier that has one: bitnet, llama, ggml; shared before static
  std::vector<SearchedPlace> searched;  // every folder and file, in order
  std::vector<std::string> notes;       // deprecated variables
  // Set if the environment names a folder without a usable library: an explicit request fails. NotFound.
  std::optional<Error> failure;

  const FoundLibrary* of(const std::string& kind) const;  // the first; null if there is none
};

// Reads at most kMostFolders folders and kMostLibraries files; links that lead in a circle are reported. A
// file is refused if it is damaged, made for another machine, or without a symbol of its kind.
constexpr size_t kMostFolders = 2000, kMostLibraries = 64;
LibrarySearch find_libraries(const LibraryPlaces&);

// The library, the libraries of the folder, or those of the checkout at this path. Without one: a failure.
LibrarySearch find_libraries_at(const std::string& path);

// "llama" of "libllama.so.1", "libllama.b8390.so" or "llama.dll"; "ggml" of "libggml-base.so", too; empty for
// other names.
std::string library_kind(const std::string& file_name);

}  // namespace gimbal
