// --backend llama.cpp: the model runs in a libllama, in a process of its own, in place of gimbal's engine.
#pragma once
#include <initializer_list>
#include <string>
#include <utility>

#include "apps/options/options.h"
#include "llama/library_text.h"

namespace gimbal {

// The options name it, by --backend or by --library.
bool in_library(const CommonOptions&);

// Other options of a command that only gimbal's own engine has, and whether each is given.
using OwnOptions = std::initializer_list<std::pair<const char*, bool>>;
// Errors: Usage for options that only gimbal's own engine has, and for another --backend beside --library.
Status check_library_options(const CommonOptions&, OwnOptions = {});

struct ChosenLibrary {
  std::string path;
  std::string why;  // "--library", or the tier of the search that has it
  llama::LibraryTexts texts;
};

// The library that computes a model file with these options. Runs nothing. Errors: those above; NotFound,
// with every place that was searched, if there is no libllama.
Result<ChosenLibrary> choose_library(const CommonOptions&, const ModelSource&);
// Starts it, and loads the model. Errors: those of LlamaProcess.
Result<llama::LlamaProcess> start_library(const ChosenLibrary&, const std::string& model_path);
// "libllama of release b8390, PATH (--library): in a process of its own; ..." for stderr.
std::string describe(const ChosenLibrary&, const llama::LibraryFacts&);

}  // namespace gimbal
