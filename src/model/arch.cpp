#include "model/arch.h"

#include <charconv>

#include "base/format.h"
#include "tensor/quant.h"

namespace gimbal {

namespace arch {
#define GIMBAL_ARCH(name) extern const ModelArch name;
#include "model/archs.def"
#undef GIMBAL_ARCH
}  // namespace arch

static const ModelArch* const kArchs[] = {
#define GIMBAL_ARCH(name) &arch::name,
#include "model/archs.def"
#undef GIMBAL_ARCH
};

const ModelArch* find_arch(const std::string& name) {
  for (const ModelArch* a : kArchs)
    if (name == a->name) return a;
  return nullptr;
}

std::string known_archs() {
  std::string all;
  for (const ModelArch* a : kArchs) all += (all.empty() ? "" : ", ") + std::string(a->name);
  return all;
}

Result<Config> configure(const Gguf& file) {
  auto name = file.string("general.architecture");
  if (name)
    if (!find_arch(std::string(*name)))
      return Error{Code::Unsupported,
                   format("{}: the model's architecture '{}' is not known to this version of gimbal",
                          file.path(), *name),
                   "known: " + known_archs()};
  auto c = read_config(file);
  if (!c) return c.error();
  if (auto ok = find_arch(c->arch)->configure(file, *c); !ok) return ok.error();
  return c;
}

void Recorder::layer(int index) {
  prefix_ = format("blk.{}.", index);
  p.scope(format("blk.{}", index));
  p.layer(index);
}
void Recorder::no_layer() {
  prefix_.clear();
  p.scope("");
  p.layer(kAfterLayers);
}

bool Recorder::has(const std::string& name) const { return file_.tensor(prefix_ + name) != nullptr; }

const GgufTensor* Recorder::find(const std::string& name, int columns, int rows) {
  const std::string full = prefix_ + name;
  const GgufTensor* t = file_.tensor(full);
  if (!t) {
    if (!error_)
      error_ = Error{
          Code::Malformed,
          format("{}: tensor '{}' is missing; architecture {} needs it", file_.path(), full, config.arch),
          ""};
    return nullptr;
  }
  used_.insert(t->name);
  if (t->dim[0] != columns || t->dim[1] != rows || t->dim[2] != 1 || t->dim[3] != 1) {
    if (!error_)
      error_ = Error{Code::Malformed,
                     format("{}: tensor '{}' is {} x {} x {} x {}; the model's metadata asks for {} x {}",
                            file_.path(), full, t->dim[0], t->dim[1], t->dim[2], t->dim[3], columns, rows),
                     ""};
    return nullptr;
  }
  if (!can_decode(t->type)) {
    if (!error_)
      error_ = Error{Code::Unsupported,
                     format("{}: tensor '{}' is {}, which is not a format for weights", file_.path(), full,
                            info(t->type).name),
                     ""};
    return nullptr;
  }
  return t;
}

Value Recorder::matrix(const std::string& name, int columns, int rows) {
  const GgufTensor* t = find(name, columns, rows);
  return p.matrix(prefix_ + name, Shape(t ? t->type : DType::F32, {columns, rows}));
}

Value Recorder::vector(const std::string& name, int size) {
  find(name, size, 1);
  return p.vector(prefix_ + name, size);
}

std::optional<Value> Recorder::optional_vector(const std::string& name, int size) {
  if (!has(name)) return std::nullopt;
  return vector(name, size);
}

std::optional<float> Recorder::optional_number(const std::string& name) {
  if (!has(name)) return std::nullopt;
  float value = 0;
  if (const GgufTensor* t = find(name, 1, 1)) {
    if (auto bytes = file_.read(*t)) decode_tensor(t->type, bytes->data(), 1, &value);
    else if (!error_) error_ = bytes.error();
  }
  return value;
}

Value Recorder::self_attention(Value q, Value k, Value v, float scale, int window) {
  const int hd = config.head_dim;
  Value keys = p.cache(prefix_ + "keys", cache_type_, true, hd, config.kv_heads, pages_);
  Value values = p.cache(prefix_ + "values", cache_type_, false, hd, config.kv_heads, pages_);
  q = p.rope(p.split_heads(q, hd), step.rope, config.rope_pairs);
  k = p.rope(p.split_heads(k, hd), step.rope, config.rope_pairs);
  p.cache_write(keys, true, k, step.positions, step.sequences, step.pages);
  p.cache_write(values, false, p.split_heads(v, hd), step.positions, step.sequences, step.pages);
  return p.join_heads(
      p.attention(q, keys, values, step.positions, step.sequences, step.pages, scale, window));
}

// "blk.7.ffn_up.weight" is of layer 7; -1: of none.
static int layer_of(std::string_view tensor) {
  int layer = -1;
  if (tensor.starts_with("blk.")) std::from_chars(tensor.data() + 4, tensor.data() + tensor.size(), layer);
  return layer;
}

std::optional<Error> Recorder::error() const {
  if (error_) return error_;
  for (const GgufTensor& t : file_.tensors())
    // RopeAngles reads rope_freqs.weight. Anything else that is in the file and not used would mean another
    // model than the one computed.
    if (const int layer = layer_of(t.name);
        !used_.count(t.name) && t.name != "rope_freqs.weight" &&
        (layer < config.layers || layer >= config.layers + config.left_out))
      return Error{Code::Unsupported,
                   format("{}: tensor '{}' is not a part of architecture {} as this version computes it; "
                          "leaving it out would give wrong results",
                          file_.path(), t.name, config.arch),
                   ""};
  return std::nullopt;
}

}  // namespace gimbal
