// A libllama shared library, opened in this process: its functions, found by name, and the generation of its
// interface. Foreign code: only the child process (child.cpp) calls this.
#pragma once
#include <memory>
#include <string>

#include "llama/generations.h"

namespace gimbal::llama {

// llama_batch: equal in all generations but for three fields behind these, which older ones read only without
// positions.
struct TokenBatch {
  int32_t n_tokens;
  int32_t* token;
  float* embd;
  int32_t* pos;
  int32_t* n_seq_id;
  int32_t** seq_id;
  int8_t* logits;
  int64_t older[2];
};

// Return false to stop. `asks`: returns whether the tensor is wanted; else it is computed.
using EvalCallback = bool (*)(void* tensor, bool asks, void* user);

struct Functions {
#define GIMBAL_LLAMA_FUNCTION(member, result, parameters, need, ...) result(*member) parameters = nullptr;
#include "discovery/llama_functions.def"
};

class LlamaLibrary {
 public:
  // Loads the library and the CPU code beside it. Errors: NotFound; Unsupported with everything that is wrong
  // at once: no library for this machine, missing libraries, missing functions, an unknown generation.
  static Result<std::unique_ptr<LlamaLibrary>> open(const std::string& path);
  LlamaLibrary(const LlamaLibrary&) = delete;  // stays loaded to the end of the process

  const std::string& path() const { return path_; }
  const Functions& call() const { return functions_; }
  const Generation& generation() const { return *generation_; }
  const AnyStruct& model_defaults() const { return model_defaults_; }
  const AnyStruct& context_defaults() const { return context_defaults_; }
  // The evaluation callback's tensors can be read.
  bool shows_layers() const;
  std::string description() const;  // the instruction sets that it uses

 private:
  LlamaLibrary() = default;
  void load_cpu_code();

  std::string path_;
  void* handle_ = nullptr;
  Functions functions_;
  const Generation* generation_ = nullptr;
  AnyStruct model_defaults_, context_defaults_;
};

}  // namespace gimbal::llama
