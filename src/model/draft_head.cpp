#include "model/draft_head.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

constexpr size_t kLayers = 3;  // that a head of EAGLE-3 reads
constexpr int kUsualBlock = 16;
constexpr const char *kTokens = "d2t", *kMask = "tokenizer.ggml.mask_token_id";

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

// Of EAGLE-3 and DFlash.
Status fit_reader(DraftHead& head, ModelSource& file, const ModelSource& target, const Config& c) {
  Hyperparameters read(file.metadata(), head.arch->name);
  const int width = read.count(head.block ? "embedding_length" : "target_hidden_size");
  if (read.error()) return *read.error();
  if (width != c.width)
    return does_not_fit(file, target,
                        format("it reads states of {} values, and the model's have {}", width, c.width));
  for (int layer : head.layers)
    if (layer >= c.layers)
      return does_not_fit(file, target,
                          format("it reads layer {}, and the model's last one is {}", layer, c.layers - 1));
  for (int32_t token : head.tokens)
    if (token >= c.vocabulary)
      return does_not_fit(
          file, target,
          format("it guesses token {}, and the model's last one is {}", token, c.vocabulary - 1));
  if (head.mask >= c.vocabulary)
    return does_not_fit(
        file, target,
        format("its mask is token {}, and the model's last one is {}", head.mask, c.vocabulary - 1));
  for (const char* name : {"output.weight", "token_embd.weight"}) {
    // A head of DFlash with a table has its logits by it, too.
    if (file.tensors().find(name) || (head.block && file.tensors().find("token_embd.weight"))) continue;
    const char* there = target.tensors().find(name) ? name : "token_embd.weight";
    if (!file.borrow(target, there, name))
      return malformed(file, format("tensor '{}' is missing, and {} has none", name, target.path()));
  }
  const char* table = file.tensors().find("output.weight") ? "output.weight" : "token_embd.weight";
  const auto named = int64_t(head.tokens.size()), logits = file.tensors().find(table)->dim[1];
  if (named && named != logits)
    return malformed(
        file, format("tensor '{}' names {} tokens, but '{}' gives {} logits", kTokens, named, table, logits));
  if (!named && logits > c.vocabulary)
    return does_not_fit(file, target,
                        format("it has {} logits, and the model {} tokens", logits, c.vocabulary));
  if (!head.block) return Done{};
  auto markov = MarkovHead::open(file, logits);
  if (!markov) return markov.error();
  head.markov = std::move(*markov);
  head.from_first = head.markov && read.flag("sample_from_anchor", true);
  if (read.error()) return *read.error();
  return Done{};
}

// What must be equal for both to have the same keys.
constexpr const char* kOfKeys[] = {"attention.key_length",     "attention.key_length_swa",
                                   "attention.sliding_window", "attention.layer_norm_rms_epsilon",
                                   "rope.dimension_count",     "rope.dimension_count_swa",
                                   "rope.freq_base",           "rope.freq_base_swa"};

// The last layers with keys of their own, with a window and without.
Status find_layers(DraftHead& head, const ModelSource& file, const ModelSource& target, const Config& c) {
  Hyperparameters read(target.metadata(), c.arch);
  read.layers(c.layers + c.left_out);
  int windowed = -1, all = -1;
  const int own = c.layers - read.count("attention.shared_kv_layers", 0, 0);
  for (int i = 0; i < own && !read.error(); i++)
    (read.flag_of("attention.sliding_window_pattern", i) ? windowed : all) = i;
  const int window = read.count("attention.sliding_window");
  if (read.error()) return *read.error();
  if (windowed < 0 || all < 0 || window < 2)
    return does_not_fit(file, target,
                        "it attends to layers with a window of at least 2 and to layers without one");
  head.layers = {windowed, all, c.layers};
  return Done{};
}

Status fit_assistant(DraftHead& head, ModelSource& file, const ModelSource& target, const Config& c) {
  if (c.arch != "gemma4")
    return does_not_fit(file, target, format("it was made for gemma4, and the model is {}", quoted(c.arch)));
  Hyperparameters own(file.metadata(), head.arch->name), there(target.metadata(), c.arch);
  const int width = own.count("embedding_length_out");
  for (const char* key : kOfKeys)
    if (const double a = own.number(key, 0), b = there.number(key, 0); a != b && !own.error())
      return does_not_fit(file, target, format("its {} is {}, and the model's is {}", key, a, b));
  if (own.error()) return *own.error();
  if (width != c.width)
    return does_not_fit(file, target,
                        format("it reads states of {} values, and the model's have {}", width, c.width));
  if (auto ok = find_layers(head, file, target, c); !ok) return ok;
  const auto take = [&](const std::string& name, const std::string& as, bool needed = true) -> Status {
    if (file.borrow(target, name, as) || !needed) return Done{};
    return malformed(target, format("tensor '{}' is missing, and the draft head needs it", name));
  };
  for (const auto& [layer, as] : {std::pair(head.layers[0], kTargetWindow), {head.layers[1], kTargetAll}})
    for (const char* name : {"attn_norm.weight", "attn_k.weight", "attn_k_norm.weight", "attn_v.weight"})
      if (auto ok = take(format("blk.{}.{}", layer, name), std::string(as) + name, name[5] != 'v'); !ok)
        return ok;
  if (auto ok = take("token_embd.weight", std::string(kTarget) + "token_embd.weight"); !ok) return ok;
  if (!file.tensors().find("rope_freqs.weight"))
    (void)file.borrow(target, "rope_freqs.weight", "rope_freqs.weight");
  const StoredTensor* table = file.tensors().find("token_embd.weight");
  if (!table) return malformed(file, "tensor 'token_embd.weight' is missing");
  if (table->dim[1] > c.vocabulary)
    return does_not_fit(file, target,
                        format("it has {} logits, and the model {} tokens", table->dim[1], c.vocabulary));
  return Done{};
}

// The layers that a head of EAGLE-3 or DFlash names.
Status read_layers(const ModelSource& file, DraftHead& head) {
  const std::string key = std::string(head.arch->name) + ".target_layers";
  const MetadataArray* layers = file.metadata().array(key);
  const std::vector<int64_t> numbers = layers ? layers->integers() : std::vector<int64_t>();
  if (head.block ? numbers.empty() : numbers.size() != kLayers)
    return malformed(file, format("metadata key '{}' has {} numbers of layers; {} expected", key,
                                  numbers.size(), head.block ? "one or more are" : "3 are"));
  for (int64_t n : numbers) {
    if (n < 0 || n >= kMaxCount)
      return malformed(file, format("metadata key '{}' has {}, which is no number of a layer", key, n));
    head.layers.push_back(int(n));
  }
  return Done{};
}

Status read_block(const ModelSource& file, DraftHead& head) {
  Hyperparameters read(file.metadata(), head.arch->name);
  head.block = read.count("block_size", kUsualBlock, 2);
  if (read.error()) return *read.error();
  const auto mask = file.metadata().unsigned_integer(kMask);
  if (!mask || *mask >= uint64_t(kMaxCount))
    return malformed(file, format("metadata key '{}' is {}; a head of DFlash has a token there", kMask,
                                  mask ? "larger than any token" : "missing or no number"));
  head.mask = int32_t(*mask);
  return Done{};
}

}  // namespace

Result<std::optional<DraftHead>> read_draft_head(const ModelSource& file) {
  const auto name = file.metadata().string("general.architecture");
  const ModelArch* arch = name ? find_draft_head(std::string(*name)) : nullptr;
  if (!arch) return std::optional<DraftHead>();
  DraftHead head{arch, {}, {}};
  head.stays = arch->name == std::string_view("gemma4-assistant");
  if (head.stays) return std::optional(std::move(head));
  if (arch->name == std::string_view("dflash"))
    if (auto ok = read_block(file, head); !ok) return ok.error();
  if (auto ok = read_layers(file, head); !ok) return ok.error();
  auto tokens = read_tokens(file);
  if (!tokens) return tokens.error();
  head.tokens = std::move(*tokens);
  return std::optional(std::move(head));
}

Status fit_draft_head(DraftHead& head, ModelSource& file, const ModelSource& target) {
  auto c = configure(target);
  if (!c) return c.error();
  return head.stays ? fit_assistant(head, file, target, *c) : fit_reader(head, file, target, *c);
}

}  // namespace gimbal
