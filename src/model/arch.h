// The architectures: a row in archs.def each, and a few lines in arch/.
#pragma once
#include <optional>
#include <set>
#include <string>

#include "model/config.h"
#include "program/builder.h"

namespace gimbal {

// What changes from step to step: R = rows of the step. Written by the runtime (runtime/session.h) before
// each submit.
struct StepInputs {
  Value tokens;     // i32[R]
  Value positions;  // i32[R]
  Value sequences;  // i32[R]: which row of `pages`
  Value pages;      // i32[pages of a sequence, sequences]
  Value rope;       // f32[rotated, R]: cos, sin per pair
  Value out_rows;   // i32[O]: the rows that logits are wanted of
};

// Records a model's forward pass: gives weights by their name in the file, and caches by layer.
class Recorder {
 public:
  Recorder(ProgramBuilder& builder, const Gguf& file, const Config& config, DType cache_type, int pages,
           StepInputs step)
      : p(builder), config(config), step(step), file_(file), cache_type_(cache_type), pages_(pages) {}

  ProgramBuilder& p;
  const Config& config;
  const StepInputs step;

  // Names are taken from the current layer on: inside layer(3), "attn_q.weight" is "blk.3.attn_q.weight".
  void layer(int index);
  void no_layer();
  bool has(const std::string& name) const;
  Value matrix(const std::string& name, int columns, int rows);
  Value vector(const std::string& name, int size);
  std::optional<Value> optional_vector(const std::string& name, int size);
  // The one value of a tensor of one, read now: it becomes a part of the program.
  std::optional<float> optional_number(const std::string& name);

  // Rotated, cached and attended; q, k, v are rows of whole heads. Gives rows of heads * head_dim.
  Value self_attention(Value q, Value k, Value v, float scale, int window = 0);

  // The first weight that is missing or has another shape than the model's numbers say, or that the
  // architecture left unused.
  std::optional<Error> error() const;
  // A weight was missing or misshapen: nothing recorded after it matters.
  bool failed() const { return error_.has_value(); }

 private:
  const GgufTensor* find(const std::string& name, int columns, int rows);

  const Gguf& file_;
  const DType cache_type_;
  const int pages_;
  std::string prefix_;
  std::set<std::string_view> used_;
  std::optional<Error> error_;
};

struct ModelArch {
  const char* name;  // general.architecture
  Status (*configure)(const Gguf& file,
                      Config&);  // changes what read_config() assumed; refuses what it cannot compute
  void (*record)(Recorder&);
};

// nullptr when this version does not know the architecture.
const ModelArch* find_arch(const std::string& name);
std::string known_archs();  // "llama, ..."

// Reads the numbers and lets the architecture have its say. Errors: Unsupported architecture (lists the known
// ones), Malformed.
Result<Config> configure(const Gguf& file);

}  // namespace gimbal
