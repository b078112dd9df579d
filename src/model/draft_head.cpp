#include "model/draft_head.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

constexpr size_t kLayers = 3;  // that a head of EAGLE-3 reads
constexpr const char* kTokens = "d2t";

Error malformed(const ModelSource& file, const std::string& what) {
  return {Code::Malformed, format("{}: {}", file.path(), what), ""};
}

// The token of each logit: whole numbers of 64 bits.
Result<std::vector<int32_t>> read_tokens(const ModelSource& file) {
  std::vector<int32_t> tokens;
  const StoredTensor* t = file.tensors().find(kTokens);
  if (!t) return tokens;
  if (t->type != DType::I64 || t->rank != 1)
    return malformed(file, format("tensor '{}' is {} with {} dimensions; a list of i64 is expected", kTokens,
                                  stored_name(*t), t->rank));
  auto bytes = file.read(*t);
  if (!bytes) return bytes.error();
  for (size_t i = 0; i < size_t(t->dim[0]); i++) {
    int64_t token;
    std::memcpy(&token, bytes->data() + i * sizeof token, sizeof token);
    if (token < 0 || token >= kMaxCount)
      return malformed(file, format("tensor '{}' names the token {} for logit {}", kTokens, token, i));
    tokens.push_back(int32_t(token));
  }
  return tokens;
}

Error does_not_fit(const ModelSource& file, const ModelSource& target, const std::string& what) {
  return {Code::Usage, format("{} cannot draft for {}: {}", file.path(), target.path(), what),
          "use the draft head that was trained for this model, or 'draft' ngram", reason::kOutOfRange,
          "draft"};
}

}  // namespace

Result<std::optional<DraftHead>> read_draft_head(const ModelSource& file) {
  const auto name = file.metadata().string("general.architecture");
  const ModelArch* arch = name ? find_draft_head(std::string(*name)) : nullptr;
  if (!arch) return std::optional<DraftHead>();
  DraftHead head{arch, {}, {}};
  const std::string key = std::string(arch->name) + ".target_layers";
  const MetadataArray* layers = file.metadata().array(key);
  const std::vector<int64_t> numbers = layers ? layers->integers() : std::vector<int64_t>();
  if (numbers.size() != kLayers)
    return malformed(file, format("metadata key '{}' has {} numbers of layers; {} are expected", key,
                                  numbers.size(), kLayers));
  for (int64_t n : numbers) {
    if (n < 0 || n >= kMaxCount)
      return malformed(file, format("metadata key '{}' has {}, which is no number of a layer", key, n));
    head.layers.push_back(int(n));
  }
  auto tokens = read_tokens(file);
  if (!tokens) return tokens.error();
  head.tokens = std::move(*tokens);
  return std::optional(std::move(head));
}

Status fit_draft_head(const DraftHead& head, ModelSource& file, const ModelSource& target) {
  auto c = configure(target);
  if (!c) return c.error();
  Hyperparameters read(file.metadata(), head.arch->name);
  const int width = read.count("target_hidden_size");
  if (read.error()) return *read.error();
  if (width != c->width)
    return does_not_fit(file, target,
                        format("it reads states of {} values, and the model's have {}", width, c->width));
  for (int layer : head.layers)
    if (layer >= c->layers)
      return does_not_fit(file, target,
                          format("it reads layer {}, and the model's last one is {}", layer, c->layers - 1));
  for (int32_t token : head.tokens)
    if (token >= c->vocabulary)
      return does_not_fit(
          file, target,
          format("it guesses token {}, and the model's last one is {}", token, c->vocabulary - 1));
  for (const char* name : {"output.weight", "token_embd.weight"}) {
    if (file.tensors().find(name)) continue;
    const char* there = target.tensors().find(name) ? name : "token_embd.weight";
    if (!file.borrow(target, there, name))
      return malformed(file, format("tensor '{}' is missing, and {} has none", name, target.path()));
  }
  const auto named = int64_t(head.tokens.size()), logits = file.tensors().find("output.weight")->dim[1];
  if (named && named != logits)
    return malformed(file, format("tensor '{}' names {} tokens, but 'output.weight' gives {} logits", kTokens,
                                  named, logits));
  if (!named && logits > c->vocabulary)
    return does_not_fit(file, target,
                        format("it has {} logits, and the model {} tokens", logits, c->vocabulary));
  return Done{};
}

}  // namespace gimbal
