#include "model/arch.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/format.h"
#include "base/text.h"
#include "tensor/quant.h"

namespace gimbal {

namespace arch {
#define GIMBAL_ARCH(name) extern const ModelArch name;
#include "model/archs.def"
#undef GIMBAL_ARCH
extern const ModelArch dflash, eagle3, gemma4_assistant;
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

const ModelArch* find_draft_head(const std::string& name) {
  for (const ModelArch* a : {&arch::dflash, &arch::eagle3, &arch::gemma4_assistant})
    if (name == a->name) return a;
  return nullptr;
}

const ModelArch* nextn_of(const ModelSource& file) {
  const auto name = file.metadata().string("general.architecture");
  const ModelArch* arch = name ? find_arch(std::string(*name)) : nullptr;
  if (!arch || !arch->nextn) return nullptr;
  // Files may declare such layers and not contain them.
  for (const StoredTensor& t : file.tensors())
    if (t.name.ends_with(".nextn.eh_proj.weight")) return arch->nextn;
  return nullptr;
}

static Error not_supported(const Metadata& metadata, const std::string& name) {
  std::vector<std::string> known;
  for (const ModelArch* a : kArchs) known.push_back(a->name);
  const auto near = nearest(name, known);
  return Error{Code::Unsupported,
               format("{}: architecture {} is not supported{}", metadata.source(), quoted(name),
                      near ? format("; the nearest name that is: '{}'", *near) : std::string()),
               format("supported: {}", fmt::join(known, ", "))};
}

Status check_generates(const ModelSource& file) {
  const auto name = file.metadata().string("general.architecture");
  const ModelArch* arch = name ? find_arch(std::string(*name)) : nullptr;
  if (name && file.tensors().find("cls.output.weight") &&
      file.metadata().unsigned_integer(std::string(*name) + ".pooling_type") == uint64_t(kRankPooling))
    return Error{
        Code::Usage,
        format("{}: this is a reranker: it scores how well two texts match, and generates none", file.path()),
        "use POST /v1/rerank of `gimbal serve`"};
  if (!arch || !arch->encoder) return Done{};
  return Error{
      Code::Usage,
      format("{}: {} is an encoder: it computes embeddings of texts, and generates none", file.path(), *name),
      "use `gimbal embed`"};
}

Status configure_attention(const Metadata& metadata, const TensorTable&, Config& c) {
  Hyperparameters read(metadata, c.arch);
  read.layers(c.layers);
  read_attention(read, c);
  if (read.error()) return *read.error();
  return Done{};
}

Status configure_without_nextn(const Metadata& metadata, const TensorTable& tensors, Config& c) {
  if (auto ok = configure_attention(metadata, tensors, c); !ok) return ok.error();
  Hyperparameters read(metadata, c.arch);
  c.left_out = read.count("nextn_predict_layers", 0, 0);
  if (c.left_out >= c.layers)
    read.fail(Code::Malformed, format("{}.nextn_predict_layers is {}, but there are only {} layers", c.arch,
                                      c.left_out, c.layers));
  if (read.error()) return *read.error();
  c.layers -= c.left_out;
  return Done{};
}

Result<Config> configure(const Metadata& metadata, const TensorTable& tensors, const ModelArch* arch) {
  auto name = metadata.string("general.architecture");
  if (!arch && name == "clip")
    return Error{Code::Unsupported,
                 format("{}: this is a projector file (mmproj), which encodes pictures for a text model",
                        metadata.source()),
                 "give the text model as the model, and this file as 'mmproj'"};
  if (name && !arch && find_draft_head(std::string(*name)))
    return Error{Code::Unsupported,
                 format("{}: this is a draft head ({}), which reads the states of another model",
                        metadata.source(), *name),
                 "give that model as the model, and this file as 'draft'"};
  if (name && !arch && !find_arch(std::string(*name))) return not_supported(metadata, std::string(*name));
  if (auto ok = tensors.readable(); !ok) return ok.error();
  auto c = read_config(metadata, tensors, arch && arch->patches);
  if (!c) return c.error();
  if (auto ok = (arch ? arch : find_arch(c->arch))->configure(metadata, tensors, *c); !ok) return ok.error();
  return c;
}

void Recorder::layer(int index, const char* stack) {
  layer_ = index;
  prefix_ = format("{}blk.{}.", stack, index);
  p.scope(format("{}blk.{}", stack, index));
  p.layer(index);
}
void Recorder::layer(int index, Value x) {
  layer(index);
  for (size_t i = 0; i < options.state_layers.size(); i++)
    if (options.state_layers[i] == index) layer_states_[i] = x;
}
void Recorder::result(Value x) {
  for (size_t i = 0; i < options.state_layers.size(); i++)
    if (options.state_layers[i] == config.layers) layer_states_[i] = x;
}
bool Recorder::asks_for_result() const {
  return std::ranges::find(options.state_layers, config.layers) != options.state_layers.end();
}
void Recorder::no_layer() {
  prefix_.clear();
  p.scope("");
  p.layer(kAfterLayers);
}

const StoredTensor* Recorder::stored(const std::string& name) const {
  return file_.tensors().find(prefix_ + name);
}
bool Recorder::has(const std::string& name) const { return stored(name) != nullptr; }
int Recorder::rows(const std::string& name) const {
  const StoredTensor* t = stored(name);
  return t ? int(std::min<int64_t>(t->dim[1], kMaxCount)) : 0;
}

void Recorder::fail(Code code, const std::string& message) {
  if (!error_) error_ = Error{code, format("{}: {}", file_.path(), message), ""};
}

const StoredTensor* Recorder::find(const std::string& name, Dims d) {
  const std::string full = prefix_ + name;
  const StoredTensor* t = stored(name);
  if (!t) {
    fail(Code::Malformed, format("tensor '{}' is missing; architecture {} needs it", full, config.arch));
    return nullptr;
  }
  used_[t->name];
  if (t->dim[0] != d.columns || t->dim[1] != d.rows || t->dim[2] != d.experts || t->dim[3] != 1) {
    const std::string asked = d.experts == 1 ? format("{} x {}", d.columns, d.rows)
                                             : format("{} x {} x {}", d.columns, d.rows, d.experts);
    fail(Code::Malformed, format("tensor '{}' is {} x {} x {} x {}; the model's metadata requires {}", full,
                                 t->dim[0], t->dim[1], t->dim[2], t->dim[3], asked));
    return nullptr;
  }
  if (!can_decode(t->type)) {
    fail(Code::Unsupported,
         format("tensor '{}' is {}, which is not a format for weights", full, info(t->type).name));
    return nullptr;
  }
  return t;
}

// Of a tensor that is missing: no index. Nothing is loaded then.
static uint32_t index_of(const StoredTensor* t) { return t ? t->index : WeightSource::kNone; }

static int64_t rows_in(const StoredTensor& t) { return t.dim[1] * t.dim[2] * t.dim[3]; }

Value Recorder::part(const std::string& name, Dims d, int64_t first, int rows, int64_t expert) {
  const StoredTensor* t = find(name, d);
  const bool whole = rows == d.rows && d.experts == 1;
  if (t) used_[t->name][expert * d.rows + first] = rows;
  // The scale of such a tensor follows its last row, so a part of the tensor does not have it.
  if (t && !whole && tensor_tail_bytes(t->type))
    fail(Code::Unsupported, format("tensor '{}' is {}, a format that cannot be computed in parts",
                                   prefix_ + name, stored_name(*t)));
  return p.matrix(prefix_ + name, Shape(t ? t->type : DType::F32, {d.columns, rows}),
                  {index_of(t), first, expert});
}

Value Recorder::matrix(const std::string& name, int columns, int rows) {
  return part(name, {columns, rows, 1}, 0, rows, 0);
}
Value Recorder::matrix_rows(const std::string& name, int columns, int first, int rows, int all) {
  return part(name, {columns, all, 1}, first, rows, 0);
}
Value Recorder::expert(const std::string& name, int columns, int rows, int index, int experts) {
  return part(name, {columns, rows, experts}, 0, rows, index);
}

Value Recorder::experts(const std::string& name, int columns, int rows, int experts) {
  const StoredTensor* t = find(name, {columns, rows, experts});
  if (t) used_[t->name][0] = int64_t(rows) * experts;
  return p.matrix(prefix_ + name, Shape(t ? t->type : DType::F32, {columns, int64_t(rows) * experts}),
                  {index_of(t)});
}
Value Recorder::table(const std::string& name, int columns, int rows) {
  const StoredTensor* there = stored(name);
  const bool flat = !there || there->dim[1] != 1 || there->dim[2] != rows;
  const StoredTensor* t = find(name, flat ? Dims{columns, rows, 1} : Dims{columns, 1, rows});
  if (t) used_[t->name][0] = rows;
  return p.vector(prefix_ + name, columns * rows, {index_of(t)});
}

// y and the products of this weight's adapters. The weights of all adapters are in every program, so that
// they lie at the same places; only the adapters of RecordOptions have ops.
Value Recorder::adapted(const std::string& name, Value y, const FindPair& find, const LowRank& low_rank) {
  constexpr int64_t kMaxRank = 1 << 16;
  const std::vector<Adapter>& all = file_.tensors().adapters();
  for (size_t i = 0; i < all.size(); i++) {
    const std::string a = name + ".weight.lora_a" + all[i].suffix,
                      b = name + ".weight.lora_b" + all[i].suffix;
    const StoredTensor* t = stored(a);
    if (!t) continue;
    const int64_t rank = t->dim[1];
    if (rank > kMaxRank) {
      fail(Code::Malformed, format("tensor '{}' has rank {}", t->name, rank));
      break;
    }
    const auto [down, up] = find(a, int(rank), b);
    if (options.adapters >> i & 1)
      y = p.add_scaled(y, low_rank(down, int(rank), up), adapter_factor(i, int(rank)));
  }
  return y;
}

Value Recorder::adapter_factor(size_t adapter, int rank) {
  const float alpha = file_.tensors().adapters()[adapter].alpha;
  return row_input(
      format("adapter {} rank {}", adapter, rank), DType::F32, 1, [=](const StepRow& r, std::byte* to) {
        const float scale = r.adapters[adapter], factor = alpha == 0 ? scale : scale * alpha / float(rank);
        std::memcpy(to, &factor, sizeof factor);
      });
}

Value Recorder::product(const std::string& name, int first, int rows, int all, Value x,
                        std::optional<Value> bias) {
  const int columns = int(p.shape(x).dim[0]);
  const Value y = p.linear(matrix_rows(name + ".weight", columns, first, rows, all), x, bias);
  return adapted(
      name, y,
      [&](const std::string& a, int rank, const std::string& b) {
        const Value down = matrix(a, columns, rank);
        return std::pair(down, matrix_rows(b, rank, first, rows, all));
      },
      [&](Value a, int, Value b) { return p.linear(b, p.linear(a, x)); });
}

Value Recorder::one_product(const std::string& name, int rows, int index, int all, Value x,
                            std::optional<Value> bias) {
  const int columns = int(p.shape(x).dim[0]);
  const Value y = p.linear(expert(name + ".weight", columns, rows, index, all), x, bias);
  return adapted(
      name, y,
      [&](const std::string& a, int rank, const std::string& b) {
        const Value down = expert(a, columns, rank, index, all);
        return std::pair(down, expert(b, rank, rows, index, all));
      },
      [&](Value a, int, Value b) { return p.linear(b, p.linear(a, x)); });
}

Value Recorder::expert_product(const std::string& name, int rows, int n, Value x, std::optional<Value> routes,
                               std::optional<Value> bias) {
  const int columns = int(p.shape(x).dim[0]);
  const Value y = p.expert_linear(experts(name + ".weight", columns, rows, n), rows, x, routes, bias);
  return adapted(
      name, y,
      [&](const std::string& a, int rank, const std::string& b) {
        const Value down = experts(a, columns, rank, n);
        return std::pair(down, experts(b, rank, rows, n));
      },
      [&](Value a, int rank, Value b) {
        return p.expert_linear(b, rows, p.expert_linear(a, rank, x, routes), routes);
      });
}

Value Recorder::row(const std::string& name, int columns, int index, int all) {
  const StoredTensor* t = stored(name);
  if (!t || t->dim[0] != columns || rows_in(*t) != all) {
    const std::string found = t ? format("is {} x {}", t->dim[0], rows_in(*t)) : "is missing";
    fail(Code::Malformed, format("tensor '{}' {}; architecture {} needs it as {} x {}", prefix_ + name, found,
                                 config.arch, columns, all));
  } else if (info(t->type).block > 1) {
    fail(Code::Unsupported,
         format("tensor '{}' is {}; rows of it are read as plain numbers", t->name, info(t->type).name));
  } else {
    used_[t->name][index] = 1;
  }
  return p.vector(prefix_ + name, columns, {index_of(t), int64_t(index) * columns});
}

Value Recorder::head_product(const std::string& name, Value x) {
  const Shape& s = p.shape(x);
  const StoredTensor* t = stored(name);
  if (!t || t->dim[0] * rows_in(*t) != s.dim[0] * s.dim[1])
    fail(Code::Malformed,
         format("tensor '{}' is missing, or does not have {} values for each of {} heads; architecture {} "
                "needs it",
                prefix_ + name, s.dim[0], s.dim[1], config.arch));
  else used_[t->name][0] = rows_in(*t);
  const Value weights =
      p.matrix(prefix_ + name, Shape(t ? t->type : DType::F32, {s.dim[0], s.dim[1]}), {index_of(t)});
  return p.expert_linear(weights, 1, x);
}

Value Recorder::vector(const std::string& name, int size) {
  const StoredTensor* t = find(name, {size, 1, 1});
  if (t) used_[t->name][0] = 1;
  return p.vector(prefix_ + name, size, {index_of(t)});
}

std::optional<Value> Recorder::optional_vector(const std::string& name, int size) {
  if (!has(name)) return std::nullopt;
  return vector(name, size);
}

std::optional<float> Recorder::optional_number(const std::string& name) {
  if (!has(name)) return std::nullopt;
  float value = 0;
  if (const StoredTensor* t = find(name, {1, 1, 1})) {
    used_[t->name][0] = 1;
    if (auto bytes = file_.read(*t)) decode_tensor(t->type, bytes->data(), 1, &value);
    else if (!error_) error_ = bytes.error();
  }
  return value;
}

std::vector<float> Recorder::read_values(const std::string& name, int columns, int rows) {
  std::vector<float> values(size_t(columns) * size_t(rows));
  const StoredTensor* t = find(name, {columns, rows, 1});
  if (!t) return values;
  used_[t->name][0] = rows;
  auto bytes = file_.read(*t);
  if (!bytes) {
    if (!error_) error_ = bytes.error();
    return values;
  }
  decode_tensor(t->type, bytes->data(), int64_t(values.size()), values.data());
  for (float x : values)
    if (!std::isfinite(x)) {
      fail(Code::Malformed, format("tensor '{}' has a value that is no finite number", t->name));
      break;
    }
  return values;
}

void Recorder::leave_out(const std::string& name) {
  if (const StoredTensor* t = stored(name)) used_[t->name][0] = rows_in(*t);
}

// "blk.7.ffn_up.weight" is of layer 7; -1: of none.
static int layer_of(std::string_view tensor) {
  int layer = -1;
  if (tensor.starts_with("blk.")) std::from_chars(tensor.data() + 4, tensor.data() + tensor.size(), layer);
  return layer;
}

std::optional<Error> Recorder::error() const {
  if (hyper.error()) return hyper.error();
  if (error_) return error_;
  for (size_t i = 0; i < layer_states_.size(); i++)
    if (!layer_states_[i])
      return Error{Code::Unsupported,
                   format("{}: architecture {} as this version computes it gives no state of layer {}, which "
                          "the draft head needs",
                          file_.path(), config.arch, options.state_layers[i]),
                   "use other drafts: 'draft' ngram, or a smaller model of the same family"};
  for (const StoredTensor& t : file_.tensors()) {
    // RopeAngles reads rope_freqs.weight and rope_factors_*. Anything else that is in the file and not used
    // would mean another model than the one computed.
    const int layer = layer_of(t.name);
    if (only_ && layer != *only_) continue;
    if (t.name == "rope_freqs.weight" || t.name.starts_with("rope_factors_") ||
        (!only_ && layer >= config.layers && layer < config.layers + config.left_out))
      continue;
    const auto used = used_.find(t.name);
    int64_t rows = 0;
    if (used != used_.end())
      for (const auto& [first, n] : used->second) rows += n;
    const int64_t all = rows_in(t);
    if (rows == all) continue;
    const std::string what = rows ? format("{} of {} rows of tensor {} are", all - rows, all, quoted(t.name))
                                  : format("tensor {} is", quoted(t.name));
    return Error{Code::Unsupported,
                 format("{}: {} not a part of architecture {} as this version computes it; leaving it out "
                        "would give wrong results",
                        file_.path(), what, config.arch),
                 ""};
  }
  return std::nullopt;
}

}  // namespace gimbal
