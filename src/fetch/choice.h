// Which files of a repository are the model that is meant: one quantization, all parts of it.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fetch/address.h"

namespace gimbal {

struct RemoteName {
  std::string path;  // in the repository
  uint64_t bytes = 0;
};

// A model that a repository has.
struct FileChoice {
  std::string quant;          // "Q4_K_M", in capitals; empty where the name tells none
  std::vector<size_t> files;  // of the list, in the order of the parts
  uint64_t bytes = 0;         // of all of them
  std::string path;           // of the first
};

// Those quantizations that are taken where none is named, most wanted first.
std::span<const char* const> default_quants();

// Every model among the files. Vision projectors (mmproj) and importance matrices are none. A split model
// that lacks a part is left out.
std::vector<FileChoice> choices(const std::vector<RemoteName>& files);

// The one that the address names. Errors: NotFound with what there is, with sizes; Usage (ambiguous-model)
// where several are equally good.
Result<FileChoice> choose(const std::vector<RemoteName>& files, const ModelAddress&);

}  // namespace gimbal
