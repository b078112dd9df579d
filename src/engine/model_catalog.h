// The model files and folders on this machine: this folder, $GIMBAL_MODELS, downloads from plain URLs, and
// where Hugging Face, Ollama and LM Studio keep theirs.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace gimbal {

struct CatalogEntry {
  std::string name;    // as users type it: "llama3.2:1b", "tiny-q8_0"
  std::string source;  // "this folder", "GIMBAL_MODELS", "Hugging Face", "gimbal", "Ollama", "LM Studio"
  std::string path;
  uint64_t bytes = 0;
};

struct Catalog {
  std::vector<CatalogEntry> entries;
  std::vector<std::string> places;  // searched folders
  std::vector<std::string>
      skipped;           // folders that could not be read, with the reason: "'/x': Permission denied"
  bool complete = true;  // false: a folder had more entries than the search reads
};

// The entries that a name means: with this whole name, else with this last part, else NAME for NAME:latest
// and ORG/NAME for the one file of a repository. Ignores case. They belong to the catalog.
std::vector<const CatalogEntry*> named(const Catalog&, const std::string& name);

// Reads names and sizes only. Does not follow links to folders. Sorted by name.
Catalog find_models();

}  // namespace gimbal
