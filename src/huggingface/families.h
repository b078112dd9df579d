// The families of models: what transformers calls them, the architecture that computes them here, how their
// tensors are called on both sides, and which further numbers they have.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "huggingface/metadata_builder.h"
#include "huggingface/model_config.h"

namespace gimbal {

// What happens to a tensor on its way. `Rows` of heads: from pairs of halves to pairs of neighbours.
enum class Turn : uint8_t {
  None,
  QueryRows,   // by the heads of queries
  KeyRows,     // by the heads of keys
  Norm,        // the weights of a family with `norms_plus_one` get 1 added
  Drop,        // follows from the config, or is not computed
  FirstHalf,   // the first half of the rows (of every expert)
  SecondHalf,  // the other one
};

// Names without ".weight" and ".bias". '#' stands for the number of a layer, '@' for that of an expert or a
// head, which are stacked.
struct NameRule {
  const char *from, *to;
  Turn turn = Turn::None;
};

// For the further values of a family's config: keys of `arch`, and errors for values that its architecture
// does not compute.
struct ArchKeys {
  ModelConfig& config;
  MetadataBuilder& out;
  std::string arch;

  std::string full(const std::string& key) const { return arch + "." + key; }
  void u32(const std::string& key, int64_t v) { out.u32(full(key), uint64_t(v)); }
  void f32(const std::string& key, double v) { out.f32(full(key), v); }
  void flag(const std::string& key, bool v) { out.flag(full(key), v); }
};

struct Family {
  const char* model_type;                // of config.json; several are separated by spaces
  const char* arch;                      // of archs.def
  std::span<const NameRule> names = {};  // go before the usual names
  void (*more)(ArchKeys&) = nullptr;
  bool turns_heads = false;     // q and k are stored for pairs of halves, and computed in neighbours
  bool norms_plus_one = false;  // norms are stored less 1
  const char* activations = "silu swish";  // those of config.json that the architecture computes
  double rotated_part = 1;                 // of each head, if config.json does not specify it
};

std::span<const Family> families();
std::span<const Family> mixture_families();  // further ones with experts
// nullptr if unknown.
const Family* family_of(std::string_view model_type);
std::string family_names();  // "cohere, cohere2, ..."

// The names that most families share.
std::span<const NameRule> usual_names();

// config.json as metadata under GGUF's keys.

// The facts that the conversion of tensors needs, too.
struct ModelShape {
  int64_t layers = 0, heads = 0, kv_heads = 0, head_dim = 0, rotated = 0, vocabulary = 0;
  bool tied = false;  // the output is the table of embeddings, even if the files have both
  std::map<std::string, std::vector<float>>
      made;  // tensors that follow from the config: factors of the rotation
};

// Adds the keys. Errors: Malformed, with file, name, expected and found; Unsupported.
Result<ModelShape> add_config(ModelConfig&, const Family&, MetadataBuilder& out);

}  // namespace gimbal
