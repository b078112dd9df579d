#include "huggingface/tensor_names.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>

#include "base/format.h"
#include "base/text.h"
#include "files/array_types.h"
#include "tensor/quant.h"

namespace gimbal {
namespace {

constexpr int64_t kMaxNumber = 1 << 20;  // of a layer or an expert
constexpr std::string_view kBlockScales = ".weight_scale_inv", kScales = ".weight_scale";

// A stored name, taken apart: "model.layers.3.mlp.experts.7.up_proj.weight".
struct Parts {
  std::string pattern;  // "model.layers.#.mlp.experts.@.up_proj"
  std::string suffix;   // ".weight", ".bias", or empty
  int64_t layer = -1, member = -1;
};

Parts take_apart(std::string_view name) {
  Parts p;
  // fp8's scales by blocks ("inverse" by name only), and by matrices or rows.
  for (const std::string_view suffix :
       {std::string_view(".weight"), std::string_view(".bias"), kBlockScales, kScales})
    if (name.ends_with(suffix)) {
      p.suffix = suffix;
      name.remove_suffix(suffix.size());
    }
  while (!name.empty()) {
    const size_t end = std::min(name.find('.'), name.size());
    const std::string_view word = name.substr(0, end);
    int64_t number = 0;
    bool is_number = !word.empty();
    for (char c : word) {
      is_number = is_number && c >= '0' && c <= '9' && number < kMaxNumber;
      if (is_number) number = number * 10 + (c - '0');
    }
    if (!p.pattern.empty()) p.pattern += '.';
    if (is_number && p.layer < 0) p.layer = number, p.pattern += '#';
    else if (is_number && p.member < 0) p.member = number, p.pattern += '@';
    else p.pattern += word;
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return p;
}

// The prefixes under which the text model lies beside others, and those others.
constexpr std::array kTextPrefixes = {"language_model.model.", "model.language_model.", "language_model.",
                                      "text_model."};
constexpr std::array kOtherModels = {"vision_tower.", "vision_model.", "multi_modal_projector.",
                                     "visual.",       "audio_tower.",  "embed_vision.",
                                     "embed_audio."};

bool starts_with_any(std::string_view name, std::span<const char* const> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](const char* p) {
    return name.starts_with(p) || (name.starts_with("model.") && name.substr(6).starts_with(p));
  });
}

// The name as in a folder of the text model alone: with "model." and nothing before it.
std::string usual_form(std::string_view name) {
  for (const char* prefix : kTextPrefixes)
    if (name.starts_with(prefix)) {
      name.remove_prefix(std::strlen(prefix));
      break;
    }
  const bool whole = name.starts_with("model.") || name.starts_with("lm_head");
  return (whole ? "" : "model.") + std::string(name);
}

// One tensor of the result, while its pieces are found.
struct Growing {
  std::string name;
  Turn turn;
  std::map<int64_t, uint32_t> members;  // stored tensors by number; -1 for one that is no member
};

class Naming {
 public:
  Naming(const TensorTable& stored, const Family& family, const ModelShape& shape, const ModelConfig& config,
         const std::string& folder, std::deque<std::string>& names)
      : stored_(stored), family_(family), shape_(shape), config_(config), folder_(folder), names_(names) {
    for (const auto rules : {family.names, usual_names()})
      for (const NameRule& r : rules)
        // The family's rules come first and replace usual ones of the same name.
        if (auto& list = rules_[r.from]; list.empty() || list.front().second == rules.data())
          list.emplace_back(&r, rules.data());
  }

  Result<NamedTensors> all() {
    for (const StoredTensor& t : stored_)
      if (auto ok = place(t); !ok) return ok.error();
    for (const auto& [name, values] : shape_.made) add_made(name, values);
    // Tensors of the whole model first, then layer by layer, as files have them.
    std::stable_sort(growing_.begin(), growing_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [layer, g] : growing_)
      if (auto ok = finish(g); !ok) return ok.error();
    return std::move(out_);
  }

 private:
  Status place(const StoredTensor& t) {
    if (config_.has_text_config() && starts_with_any(t.name, kOtherModels)) {
      out_.left_out.emplace_back(t.name);
      return Done{};
    }
    const Parts p = take_apart(usual_form(t.name));
    if (p.suffix == kBlockScales || p.suffix == kScales) return Done{};  // found with their matrix
    const auto found = rules_.find(p.pattern);
    if (found == rules_.end()) {
      if (p.layer >= shape_.layers) return out_.left_out.emplace_back(t.name), Done{};
      return Error{Code::Unsupported,
                   format("{}: tensor {} is none of those that a model of the type '{}' has", folder_,
                          gimbal::quoted(t.name), config_type()),
                   "The folder may be of a newer variant: use a newer gimbal, or a GGUF file of the model."};
    }
    for (const auto& [rule, of] : found->second) {
      // Layers that predict further tokens lie behind the others.
      if (rule->turn == Turn::Drop || p.layer >= shape_.layers ||
          (shape_.tied && std::string_view(rule->to) == "output")) {
        out_.left_out.emplace_back(t.name);
        continue;
      }
      std::string name = rule->to;
      if (const size_t at = name.find('#'); at != name.npos) name.replace(at, 1, std::to_string(p.layer));
      const bool whole = name.ends_with(".bias");
      if (!whole) name += p.suffix.empty() ? ".weight" : p.suffix;
      auto [known, fresh] = places_.emplace(name, growing_.size());
      if (fresh) growing_.push_back({p.layer, {name, rule->turn, {}}});
      Growing& g = growing_[known->second].second;
      if (!g.members.emplace(p.member, t.index).second || (p.member < 0) != (g.members.begin()->first < 0))
        return Error{Code::Malformed,
                     format("{}: tensor {} and another one both stand for '{}'", folder_,
                            gimbal::quoted(t.name), name),
                     ""};
    }
    return Done{};
  }

  std::string config_type() const { return family_.model_type; }

  void add_made(const std::string& name, const std::vector<float>& values) {
    Recipe r;
    r.made.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    StoredTensor t{};
    t.type = DType::F32, t.rank = 1;
    std::fill(std::begin(t.dim), std::end(t.dim), 1);
    t.dim[0] = int64_t(values.size());
    t.bytes = t.stored = r.made.size();
    t.name = names_.emplace_back(name);
    out_.tensors.add(t);
    out_.recipes.push_back(std::move(r));
  }

  Error bad(const Growing& g, Code code, const std::string& what) const {
    return {
        code,
        format("{}: tensor {}: {}", folder_, gimbal::quoted(stored_[g.members.begin()->second].name), what),
        ""};
  }

  // Matrices that decide which experts compute, and those without a row order of their own, are exact as f32.
  static bool is_small(const std::string& name, uint32_t rank) {
    return rank < 2 || name.find("ffn_gate_inp") != name.npos || name.find("_norm.") != name.npos;
  }

  Status finish(const Growing& g) {
    const StoredTensor& first = stored_[g.members.begin()->second];
    const bool stacked = g.members.begin()->first >= 0;
    int64_t next = stacked ? 0 : -1;
    for (const auto& [number, index] : g.members) {
      const StoredTensor& m = stored_[index];
      if (number != next++)
        return bad(g, Code::Malformed, format("number {} of its kind is missing for '{}'", next - 1, g.name));
      if (m.type != first.type || m.rank != first.rank || !std::equal(m.dim, std::end(m.dim), first.dim))
        return bad(g, Code::Malformed, format("{} has another shape or format", gimbal::quoted(m.name)));
    }
    StoredTensor t = first;
    if (stacked) {
      if (t.rank >= 3) return bad(g, Code::Unsupported, "a stack of more than matrices");
      t.dim[t.rank++] = int64_t(g.members.size());
    }
    if (t.rank < 1 || t.rank > 4 || t.values() == 0)
      return bad(g, Code::Unsupported, format("{} dims", t.rank));
    Recipe r;
    r.row_values = t.rank == 1 ? 1 : t.dim[0];
    const int64_t rows = first.values() / r.row_values;
    const int64_t per_expert = first.rank > 2 ? first.dim[1] : rows;
    for (const auto& [number, index] : g.members) {
      if (g.turn != Turn::FirstHalf && g.turn != Turn::SecondHalf) {
        r.pieces.push_back({index, 0, rows});
        continue;
      }
      if (per_expert % 2) return bad(g, Code::Malformed, format("an odd number of rows, {}", per_expert));
      const int64_t half = per_expert / 2;
      for (int64_t at = g.turn == Turn::SecondHalf ? half : 0; at < rows; at += per_expert)
        r.pieces.push_back({index, at, half});
      t.dim[1] = half;
    }
    if (auto ok = turn_heads(g, rows, r); !ok) return ok;
    for (Recipe::Piece& p : r.pieces)
      if (auto ok = find_scales(p, t.dim[0]); !ok) return ok;
    if (r.pieces.front().scales >= 0) t.type = DType::BF16;
    if (!can_decode(t.type))
      return bad(g, Code::Unsupported,
                 format("the format {}; computed are f32, f16 and bf16", info(t.type).name));
    r.to_f32 = t.type != DType::F32 && is_small(g.name, t.rank);
    if (g.turn == Turn::Norm && family_.norms_plus_one && !g.name.ends_with(".bias"))
      r.change = Recipe::Change::AddOne, r.to_f32 = true;
    if (r.to_f32) t.type = DType::F32;
    t.bytes = t.stored = uint64_t(row_bytes(t.type, t.values()));
    t.name = names_.emplace_back(g.name);
    if (!out_.tensors.add(t)) return bad(g, Code::Malformed, format("'{}' is there twice", g.name));
    out_.recipes.push_back(std::move(r));
    return Done{};
  }

  // The scales of fp8 lie beside their matrix, under its name.
  Status find_scales(Recipe::Piece& p, int64_t columns) const {
    const StoredTensor& t = stored_[p.tensor];
    if (t.rank != 2 || dtype_named("f8_e4m3") != t.type) return Done{};
    const std::string stem(
        t.name.substr(0, t.name.size() - std::min(t.name.size(), std::string_view(".weight").size())));
    const auto wrong = [&](const std::string& what) {
      return Error{Code::Malformed, format("{}: tensor {} of fp8: {}", folder_, gimbal::quoted(t.name), what),
                   ""};
    };
    const StoredTensor* s = stored_.find(stem + std::string(kBlockScales));
    const bool blocks = s != nullptr;
    if (!s) s = stored_.find(stem + std::string(kScales));
    if (!s || !can_decode(s->type)) return wrong("its scales are missing");
    const int64_t rows = t.dim[1];
    if (blocks && s->rank == 2) {
      // Blocks are squares of a size that config.json names.
      const int64_t size = config_.block_size();
      p.block_rows = p.block_columns = size;
      if (size < 1 || s->dim[0] != (columns + size - 1) / size || s->dim[1] != (rows + size - 1) / size)
        return wrong(format("{} scales do not cover {} blocks of {}", dims_text({s->dim, s->rank}),
                            dims_text({t.dim, t.rank}), size));
    } else if (s->values() == 1 || (s->values() == rows && s->dim[s->rank > 1 ? 1 : 0] == rows)) {
      p.block_rows = s->values() == 1 ? rows : 1, p.block_columns = columns;
    } else {
      return wrong(format("its scales have the shape {}", dims_text({s->dim, s->rank})));
    }
    p.scales = int32_t(s->index);
    return Done{};
  }

  // Row 2i + s of a head is row i of its half s. Values of a head that are not rotated stay.
  Status turn_heads(const Growing& g, int64_t rows, Recipe& r) {
    if (!family_.turns_heads || (g.turn != Turn::QueryRows && g.turn != Turn::KeyRows)) return Done{};
    const int64_t heads = g.turn == Turn::QueryRows ? shape_.heads : shape_.kv_heads;
    if (rows % heads || r.pieces.size() != 1)
      return bad(g, Code::Malformed, format("{} rows are no multiple of {} heads", rows, heads));
    const int64_t size = rows / heads, half = std::min(size, shape_.rotated) / 2;
    r.order.resize(size_t(rows));
    for (int64_t row = 0; row < rows; row++) {
      const int64_t within = row % size;
      const int64_t from = within < 2 * half ? within % 2 * half + within / 2 : within;
      r.order[size_t(row)] = uint32_t(row - within + from);
    }
    return Done{};
  }

  const TensorTable& stored_;
  const Family& family_;
  const ModelShape& shape_;
  const ModelConfig& config_;
  const std::string& folder_;
  std::deque<std::string>& names_;
  std::map<std::string_view, std::vector<std::pair<const NameRule*, const NameRule*>>>
      rules_;                                         // and whose they are
  std::vector<std::pair<int64_t, Growing>> growing_;  // by layer
  std::map<std::string, size_t> places_;
  NamedTensors out_;
};

}  // namespace

Result<NamedTensors> name_tensors(const TensorTable& stored, const Family& family, const ModelShape& shape,
                                  const ModelConfig& config, const std::string& folder,
                                  std::deque<std::string>& names) {
  return Naming(stored, family, shape, config, folder, names).all();
}

}  // namespace gimbal
