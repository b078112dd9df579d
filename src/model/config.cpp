#include "model/config.h"

#include <cmath>

#include "base/format.h"

namespace gimbal {
namespace {

constexpr int kMaxFileHeadDim = 1 << 16;
constexpr int64_t kMax = 1 << 24;  // larger than any real count; keeps products inside 64 bits

struct Reader {
  const Gguf& file;
  std::string arch;
  std::optional<Error> error;

  int count(const std::string& key, std::optional<int64_t> otherwise = {}) {
    const std::string full = arch + "." + key;
    auto v = file.unsigned_integer(full);
    if (!v && !file.find(full) && otherwise) return int(*otherwise);
    if (v && *v >= 1 && *v <= uint64_t(kMax)) return int(*v);
    if (!error) {
      std::string found = v ? std::to_string(*v) : file.find(full) ? "a value of another kind" : "nothing";
      if (auto n = file.number(full); n && !v) found = format("{}", *n);
      error = Error{Code::Malformed,
                    format("{}: metadata key '{}': expected a whole number from 1 to {}, found {}",
                           file.path(), full, kMax, found),
                    ""};
    }
    return 1;
  }

  // A float that must be finite and not below `least`. A key of another kind is an error, never the default.
  double number(const std::string& key, double least, double otherwise) {
    const std::string full = arch + "." + key;
    if (!file.find(full)) return otherwise;
    auto v = file.number(full);
    if (v && *v >= least && std::isfinite(float(*v))) return *v;
    if (!error)
      error = Error{Code::Malformed,
                    format("{}: metadata key '{}': expected a finite number of at least {}, found {}",
                           file.path(), full, least, v ? format("{}", *v) : "a value of another kind"),
                    ""};
    return otherwise;
  }
};

}  // namespace

Result<Config> read_config(const Gguf& file) {
  auto arch = file.string("general.architecture");
  if (!arch)
    return Error{
        Code::Malformed,
        format("{}: metadata key 'general.architecture' is missing: this is not a model that can be run",
               file.path()),
        ""};
  Reader read{file, std::string(*arch), {}};
  Config c;
  c.arch = *arch;
  c.layers = read.count("block_count");
  c.width = read.count("embedding_length");
  c.ff_width = read.count("feed_forward_length");
  c.heads = read.count("attention.head_count");
  c.kv_heads = read.count("attention.head_count_kv", c.heads);
  c.context = read.count("context_length");
  if (read.error) return *read.error;
  if (c.width % c.heads && !file.find(c.arch + ".attention.key_length"))
    return Error{Code::Malformed,
                 format("{}: embedding_length {} is not a multiple of attention.head_count {}", file.path(),
                        c.width, c.heads),
                 ""};
  c.head_dim = read.count("attention.key_length", c.width / c.heads);
  if (read.error) return *read.error;
  // Each layer has tensors of its own, so no honest file has fewer; and no loop over layers outlasts the
  // file.
  if (size_t(c.layers) > file.tensors().size())
    return Error{Code::Malformed,
                 format("{}: metadata key '{}.block_count' says {} layers, but the file has only {} tensors",
                        file.path(), c.arch, c.layers, file.tensors().size()),
                 ""};
  if (c.head_dim > kMaxFileHeadDim || int64_t(c.heads) * c.head_dim > kMax)
    return Error{
        Code::Malformed,
        format("{}: {} attention heads of {} values are more than any model has (at most {} each, {} in all)",
               file.path(), c.heads, c.head_dim, kMaxFileHeadDim, kMax),
        ""};
  if (c.heads % c.kv_heads)
    return Error{Code::Malformed,
                 format("{}: attention.head_count {} is not a multiple of attention.head_count_kv {}",
                        file.path(), c.heads, c.kv_heads),
                 ""};
  c.norm_epsilon = float(read.number("attention.layer_norm_rms_epsilon", 0, 1e-5));

  const GgufTensor* table = file.tensor("token_embd.weight");
  if (!table || table->rank != 2)
    return Error{
        Code::Malformed,
        format("{}: tensor 'token_embd.weight' is missing or not a matrix: the file holds no model to run",
               file.path()),
        ""};
  c.vocabulary = int(table->dim[1]);
  // More rows than tokens is padding; more tokens than rows would leave tokens without a meaning.
  if (const GgufArray* tokens = file.array("tokenizer.ggml.tokens");
      tokens && tokens->count > uint64_t(c.vocabulary))
    return Error{Code::Malformed,
                 format("{}: the tokenizer has {} tokens, but 'token_embd.weight' has rows for only {}",
                        file.path(), tokens->count, c.vocabulary),
                 ""};

  const int rotated = read.count("rope.dimension_count", c.head_dim);
  const double base = read.number("rope.freq_base", 0, 10000);
  if (read.error) return *read.error;
  if (rotated > c.head_dim)
    return Error{Code::Malformed,
                 format("{}: {}.rope.dimension_count {} exceeds a head's {} values", file.path(), c.arch,
                        rotated, c.head_dim),
                 ""};
  auto rope = RopeAngles::create(file, c.arch, rotated, base);
  if (!rope) return rope.error();
  c.rope = std::move(*rope);
  return c;
}

}  // namespace gimbal
