// The part of Recorder that declares the inputs of a step, the state of sequences, and the outputs.
#include <algorithm>
#include <cstring>

#include "model/arch.h"

namespace gimbal {
namespace {

void put(std::byte* to, int32_t x) { std::memcpy(to, &x, sizeof x); }

std::string named(const std::string& name, StepRows of) {
  return of == StepRows::Wanted ? name + " of wanted rows" : name;
}

}  // namespace

std::optional<Value> Recorder::declared(const std::string& name) const {
  for (const StepInput& i : inputs_)
    if (i.name == name) return i.value;
  return std::nullopt;
}

Value Recorder::declare(StepInput input) {
  inputs_.push_back(std::move(input));
  return inputs_.back().value;
}

Value Recorder::row_input(const std::string& name, DType type, int width,
                          std::function<void(const StepRow&, std::byte* to)> fill, StepRows of) {
  const std::string full = named(name, of);
  if (auto there = declared(full)) return *there;
  const auto bytes = size_t(row_bytes(type, std::max(1, width)));
  const Value value =
      of == StepRows::Wanted ? p.out_rows_input(full, type, width) : p.rows_input(full, type, width);
  return declare({full, value, StepInput::Kind::Rows, 0, 0, bytes, std::move(fill), of});
}

Value Recorder::constant(const std::string& name, std::vector<float> values) {
  if (auto there = declared(name)) return *there;
  const Shape shape(DType::F32, {int64_t(values.size())});
  return declare({name, p.input(name, shape), StepInput::Kind::Constant, 0, 0, 0,
                  [values = std::move(values)](const StepRow&, std::byte* to) {
                    std::memcpy(to, values.data(), values.size() * sizeof(float));
                  }});
}

Value Recorder::tokens(StepRows of) {
  return row_input(
      "tokens", DType::I32, 0, [](const StepRow& r, std::byte* to) { put(to, std::max(0, r.token)); }, of);
}
Value Recorder::positions(StepRows of) {
  return row_input(
      "positions", DType::I32, 0, [](const StepRow& r, std::byte* to) { put(to, r.position); }, of);
}
Value Recorder::sequences(StepRows of) {
  return row_input(
      "sequences", DType::I32, 0, [](const StepRow& r, std::byte* to) { put(to, r.sequence); }, of);
}
static void put_seen(std::byte* to, int32_t first, int32_t last) { put(to, first), put(to + 4, last); }

Value Recorder::seen(int before) {
  return row_input("seen " + std::to_string(before), DType::I32, 2,
                   [before](const StepRow& r, std::byte* to) {
                     put_seen(to, before < 0 ? 0 : std::max(0, r.position - before), r.position);
                   });
}
Value Recorder::seen_both(int before, int after) {
  const std::string name = "seen " + std::to_string(before) + " " + std::to_string(after);
  sees_later_ = sees_later_ || after != 0;
  return row_input(name, DType::I32, 2, [before, after](const StepRow& r, std::byte* to) {
    put_seen(to, before < 0 ? 0 : std::max(0, r.position - before),
             after < 0 ? r.last : std::min(r.last, r.position + after));
  });
}
Value Recorder::seen_in_pictures(int before) {
  return row_input(
      "seen in pictures " + std::to_string(before), DType::I32, 2, [before](const StepRow& r, std::byte* to) {
        put_seen(to, before < 0 ? 0 : std::max(0, r.position - before), std::max(r.position, r.sees_to));
      });
}
Value Recorder::rope(const RopeAngles& angles, const std::string& name, StepRows of) {
  if (auto there = declared(named(name, of))) return *there;  // before the angles are copied
  return row_input(
      name, DType::F32, angles.rotated(),
      [angles](const StepRow& r, std::byte* to) {
        const auto table = reinterpret_cast<float*>(to);
        if (angles.in_sections()) angles.fill(r.place, table);
        else angles.fill(r.position, table);
      },
      of);
}

Value Recorder::rope(const RopeSettings& settings, const std::string& name, StepRows of) {
  if (auto there = declared(named(name, of))) return *there;
  RopeSettings own = settings;
  own.context = options.context;
  auto angles = RopeAngles::create(file_, config.arch, own);
  if (angles) return rope(*angles, name, of);
  if (!error_) error_ = angles.error();
  return row_input(
      name, DType::F32, std::max(2, settings.rotated), [](const StepRow&, std::byte*) {}, of);
}

// Adding -0 changes no bit of a number, so a token's row is that of the table.
Value Recorder::embedded(Value table, float scale) {
  Value looked_up = p.embed(table, tokens());
  if (scale != 1) looked_up = p.scale(looked_up, scale);
  if (!options.embeddings) return looked_up;
  const Value is_token = row_input("is token", DType::F32, 1, [](const StepRow& r, std::byte* to) {
    const float factor = r.embedding ? 0.0f : 1.0f;
    std::memcpy(to, &factor, sizeof factor);
  });
  return p.add(p.mul(looked_up, is_token), given("embeddings", 0));
}

Value Recorder::given(const std::string& name, int part) {
  const auto width = size_t(config.width);
  return row_input(name, DType::F32, config.width, [width, part](const StepRow& r, std::byte* to) {
    if (r.embedding) std::memcpy(to, r.embedding + width * size_t(part), width * sizeof(float));
    else std::fill_n(reinterpret_cast<float*>(to), width, -0.0f);
  });
}

Value Recorder::add_embedded(Value x) {
  const int part = embedding_parts_++;
  if (!options.embeddings) return x;
  return p.add(x, given("embeddings " + std::to_string(part), part));
}

Value Recorder::states() {
  state_width_ = config.width;
  const size_t bytes = size_t(config.width) * sizeof(float);
  return row_input("states", DType::F32, config.width,
                   [bytes](const StepRow& r, std::byte* to) { std::memcpy(to, r.embedding, bytes); });
}

Value Recorder::target_states(int width) {
  state_width_ = width;
  const size_t bytes = size_t(width) * sizeof(float);
  return row_input("target states", DType::F32, width, [bytes](const StepRow& r, std::byte* to) {
    if (r.own_state) std::memset(to, 0, bytes);
    else std::memcpy(to, r.embedding, bytes);
  });
}

Value Recorder::own_states() {
  const auto width = size_t(config.width);
  return row_input("own states", DType::F32, config.width, [width](const StepRow& r, std::byte* to) {
    if (r.own_state) std::memcpy(to, r.embedding, width * sizeof(float));
    else std::fill_n(reinterpret_cast<float*>(to), width, -0.0f);
  });
}

Value Recorder::patch_input(const std::string& name, DType type, int width,
                            std::function<void(const PatchRow&, std::byte* to)> fill) {
  takes_patches_ = true;
  return row_input(name, type, width,
                   [fill = std::move(fill)](const StepRow& r, std::byte* to) { fill(*r.patch, to); });
}

Value Recorder::wanted_rows(int offset) {
  const std::string name = offset ? "wanted_rows " + std::to_string(offset) : "wanted_rows";
  if (auto there = declared(name)) return *there;
  return declare({name, p.out_rows_input(name), StepInput::Kind::Wanted, 0, offset});
}

Value Recorder::pages(size_t pool) {
  const std::string name = "pages" + (pool ? std::to_string(pool) : std::string());
  if (auto there = declared(name)) return *there;
  const Shape table(DType::I32, {pools_[pool].table, std::min(options.rows, options.sequences)});
  return declare({name, p.input(name, table), StepInput::Kind::Pages, pool});
}

size_t Recorder::pool(StateKind kind, int window) {
  for (size_t i = 0; i < pools_.size(); i++)
    if (pools_[i].kind == kind && pools_[i].window == window) return i;
  pools_.push_back(sized({kind, window}, options.sequences, options.context, options.cache_positions,
                         options.batch, options.marks));
  return pools_.size() - 1;
}
size_t Recorder::paged(int window) { return pool(StateKind::Paged, window); }
size_t Recorder::recurrent() { return pool(StateKind::Recurrent, 0); }

Value Recorder::keys(const std::string& name, size_t pool, int head_dim, int heads) {
  return p.cache(prefix_ + name, options.cache_type, true, head_dim, heads, pools_[pool].pages, int(pool));
}
Value Recorder::values(const std::string& name, size_t pool, int head_dim, int heads) {
  return p.cache(prefix_ + name, options.cache_type, false, head_dim, heads, pools_[pool].pages, int(pool));
}
Value Recorder::plain_keys(const std::string& name, size_t pool, int head_dim) {
  const DType type = info(options.cache_type).block == 1 ? options.cache_type : DType::F16;
  return p.cache(prefix_ + name, type, true, head_dim, 1, pools_[pool].pages, int(pool));
}
Value Recorder::state(const std::string& name, size_t pool, Shape page) {
  page.dim[page.rank++] = pools_[pool].pages;
  return p.state(prefix_ + name, page, StateLayout::Dense, int(pool));
}

void Recorder::output(Output o, Value v) { outputs_[size_t(o)] = v; }

void Recorder::finish() {
  if (!layer_states_.empty()) {
    no_layer();
    auto heads = [&](Value x) { return p.split_heads(x, config.width); };
    Value all = heads(*layer_states_[0]);
    for (size_t i = 1; i < layer_states_.size(); i++) all = p.concat(all, heads(*layer_states_[i]));
    output(Output::States, p.join_heads(all));
  }
  for (const auto& v : outputs_)
    if (v) p.output(*v);
}

}  // namespace gimbal
