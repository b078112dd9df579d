#include "model/config.h"

#include "base/format.h"

namespace gimbal {

static constexpr int kMaxFileHeadDim = 1 << 16;

Result<Config> read_config(const Metadata& metadata, const TensorTable& tensors, bool patches) {
  auto arch = metadata.string("general.architecture");
  if (!arch)
    return Error{
        Code::Malformed,
        format("{}: metadata key 'general.architecture' is missing: this is not a model that can be run",
               metadata.source()),
        ""};
  Config c;
  c.arch = *arch;
  Hyperparameters read(metadata, c.arch);
  c.layers = read.count("block_count");
  c.width = read.count("embedding_length");
  c.context = read.count("context_length");
  // Of RMS norms or layer norms: no file has both.
  const char* epsilon = "attention.layer_norm_rms_epsilon";
  c.norm_epsilon = float(read.number(read.has(epsilon) ? epsilon : "attention.layer_norm_epsilon", 1e-5, 0));
  if (read.error()) return *read.error();
  // Each layer has tensors of its own, so no honest file has fewer; and no loop over layers outlasts the
  // file.
  if (size_t(c.layers) > tensors.size())
    return Error{Code::Malformed,
                 format("{}: metadata key '{}.block_count' says {} layers, but the file has only {} tensors",
                        metadata.source(), c.arch, c.layers, tensors.size()),
                 ""};
  if (patches) {
    c.vocabulary = 1;
    return c;
  }
  const StoredTensor* table = tensors.find("token_embd.weight");
  if (!table || table->rank != 2)
    return Error{
        Code::Malformed,
        format("{}: tensor 'token_embd.weight' is missing or not a matrix: the file holds no model to run",
               metadata.source()),
        ""};
  c.vocabulary = int(table->dim[1]);
  // More rows than tokens is padding; more tokens than rows would leave tokens without a meaning.
  if (const MetadataArray* tokens = metadata.array("tokenizer.ggml.tokens");
      tokens && tokens->count > uint64_t(c.vocabulary))
    return Error{Code::Malformed,
                 format("{}: the tokenizer has {} tokens, but 'token_embd.weight' has rows for only {}",
                        metadata.source(), tokens->count, c.vocabulary),
                 ""};
  return c;
}

void read_attention(Hyperparameters& read, Config& c) {
  c.heads = read.most_of("attention.head_count");
  c.kv_heads = read.most_of("attention.head_count_kv", c.heads);
  if (c.width % c.heads && !read.has("attention.key_length"))
    return read.fail(
        Code::Malformed,
        format("embedding_length {} is not a multiple of attention.head_count {}", c.width, c.heads));
  c.head_dim = read.count("attention.key_length", c.width / c.heads);
  c.value_dim = read.count("attention.value_length", c.head_dim);
  for (int d : {c.head_dim, c.value_dim})
    if (d > kMaxFileHeadDim || int64_t(c.heads) * d > kMaxCount)
      return read.fail(
          Code::Malformed,
          format("{} attention heads of {} values are more than any model has (at most {} each, {} in all)",
                 c.heads, d, kMaxFileHeadDim, kMaxCount));
  if (c.heads % c.kv_heads)
    return read.fail(Code::Malformed,
                     format("attention.head_count {} is not a multiple of attention.head_count_kv {}",
                            c.heads, c.kv_heads));
  c.rotated = read.count("rope.dimension_count", c.head_dim);
  c.rope_base = read.number("rope.freq_base", 10000, 0);
  if (c.rotated > c.head_dim)
    read.fail(Code::Malformed,
              format("{}.rope.dimension_count {} exceeds a head's {} values", c.arch, c.rotated, c.head_dim));
}

}  // namespace gimbal
