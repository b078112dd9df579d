#include "runtime/blueprint.h"

#include <algorithm>

#include "base/format.h"
#include "ops/shapes.h"
#include "runtime/memory_check.h"
#include "runtime/sampler.h"

namespace gimbal {
namespace {

constexpr int kDefaultContext = 4096;
constexpr int kMostPages = 1 << 22;  // keeps every size that follows from it inside 63 bits

Error out_of_range(const char* field, int64_t found, int64_t least, int64_t most) {
  return {Code::Usage,
          format("'{}' must be from {} to {}, not {}", field, least, most, found),
          "",
          reason::kOutOfRange,
          field,
          format("{}", found),
          format("from {} to {}", least, most)};
}

Status check_cache_type(DType type, int head_dim) {
  const std::string help = "choose one of: " + names_of(cache_types(head_dim));
  const DTypeInfo& t = info(type);
  if (!has(kCacheTypes, type))
    return Error{Code::Usage,  format("'cache_type' {} is not a format for a KV cache", t.name),
                 help,         reason::kOutOfRange,
                 "cache_type", t.name};
  if (head_dim % t.block)
    return Error{
        Code::Usage,
        format("'cache_type' {} stores blocks of {} values, and the attention heads of this model have "
               "{} values: no whole number of blocks",
               t.name, t.block, head_dim),
        help,
        reason::kOutOfRange,
        "cache_type",
        t.name};
  return Done{};
}

Status check(RunOptions& o, const Config& c) {
  constexpr int kMostContext = 1 << 24;
  if (o.context == 0) o.context = std::min(c.context, kDefaultContext);
  if (o.context < 1 || o.context > kMostContext) return out_of_range("context", o.context, 1, kMostContext);
  if (o.batch < 1 || o.batch > 65536) return out_of_range("batch", o.batch, 1, 65536);
  if (o.sequences < 1 || o.sequences > 65536) return out_of_range("sequences", o.sequences, 1, 65536);
  const int64_t pages = int64_t(o.context + kPagePositions - 1) / kPagePositions * o.sequences;
  if (pages > kMostPages)
    return Error{Code::Usage,
                 format("a 'context' of {} for each of {} sequences is more than this version can address "
                        "({} positions in "
                        "all)",
                        o.context, o.sequences, int64_t(kMostPages) * kPagePositions),
                 "use a smaller 'context' or fewer sequences", reason::kOutOfRange, "context"};
  o.batch = std::min(o.batch, o.context);
  o.logit_rows = std::clamp(o.logit_rows, 1, o.batch);
  return check_cache_type(o.cache_type, c.head_dim);
}

Error about(const Blueprint& b, const Error& e) {
  Error named = e;
  named.message = format("{}: {}", b.file->path(), e.message);
  return named;
}

// The whole model, laid out for its first device.
Result<Bucket> record(const Blueprint& b, int rows) {
  const RunOptions& o = b.options;
  ProgramBuilder p(*b.parts[0].device, rows, std::min(o.logit_rows, rows));
  StepInputs s;
  s.tokens = p.rows_input("tokens", DType::I32);
  s.positions = p.rows_input("positions", DType::I32);
  s.sequences = p.rows_input("sequences", DType::I32);
  s.pages = p.input("pages", Shape(DType::I32, {b.pages_per_sequence, o.sequences}));
  s.rope = p.rows_input("rope", DType::F32, b.config.rope.rotated());
  s.out_rows = p.out_rows_input("out_rows");
  Recorder m(p, *b.file, b.config, o.cache_type, b.pages_per_sequence * o.sequences, s);
  find_arch(b.config.arch)->record(m);
  if (auto e = m.error()) return *e;
  auto program = std::move(p).finish();
  if (!program) return about(b, program.error());
  const uint64_t step = program->slot_bytes[size_t(Slot::Step)];
  return Bucket{rows, std::move(*program), {}, s, step, {}, {}};
}

// The part of every op. Layers are in order, and so are the parts.
std::vector<size_t> part_of_ops(const Program& p, const std::vector<Part>& parts) {
  std::vector<size_t> all;
  for (int layer : p.layer) {
    size_t part = 0;
    if (layer == kAfterLayers) part = parts.size() - 1;
    else if (layer != kBeforeLayers)
      while (part + 1 < parts.size() && layer >= parts[part].first_layer + parts[part].layers) part++;
    all.push_back(part);
  }
  return all;
}

// Adds a bucket to every part.
Status add_bucket(Blueprint& b, int rows) {
  auto whole = record(b, rows);
  if (!whole) return whole.error();
  std::vector<Bucket> buckets;
  if (b.parts.size() == 1) {
    buckets.push_back(std::move(*whole));
  } else {
    std::vector<const Device*> devices;
    for (const Part& part : b.parts) devices.push_back(part.device);
    auto parts = cut(whole->program, part_of_ops(whole->program, b.parts), devices);
    if (!parts) return about(b, parts.error());
    for (CutPart& part : *parts)
      buckets.push_back(
          {rows, std::move(part.program), {}, whole->step, part.step_bytes, std::move(part.in), {}});
  }
  for (size_t i = 0; i < buckets.size(); i++) {
    Bucket& bucket = buckets[i];
    if (b.parts[i].head) bucket.logits = {bucket.program.ops.back().out[0]};
    auto choices = assign_kernels(bucket.program, *b.parts[i].device, b.options.kernels);
    if (!choices) return about(b, choices.error());
    bucket.choices = std::move(*choices);
    b.parts[i].buckets.push_back(std::move(bucket));
  }
  return Done{};
}

// The buckets run one at a time, so they share every buffer; weights and caches lie at the same places in
// each.
void plan_memory(Part& part) {
  uint64_t most[kSlots] = {}, handed = 0;
  for (const Bucket& bucket : part.buckets) {
    for (size_t s = 0; s < kSlots; s++) most[s] = std::max(most[s], bucket.program.slot_bytes[s]);
    uint64_t here = bucket.program.slot_bytes[size_t(Slot::Step)] - bucket.step_bytes;
    for (const gimbal_value& v : bucket.program.values)
      if (v.slot == uint32_t(Slot::Output) && !part.head) here += align_up(v.bytes, kAlignment);
    handed = std::max(handed, here);
  }
  auto of = [&](Slot s) { return most[size_t(s)]; };
  MemoryPlan& m = part.memory;
  m.weights = of(Slot::Weights), m.cache = of(Slot::Cache), m.step = of(Slot::Step);
  m.activations = of(Slot::Work), m.output = of(Slot::Output);
  m.hand_over = handed;
  m.free = part.device->describe().memory_free;
}

// What the device takes for the programs themselves: each has its own, for as long as the model is loaded.
Status plan_scratch(Part& part) {
  auto add = [&](const Program& program) -> Status {
    const gimbal_program view = program.view();
    auto bytes = part.device->scratch_bytes(view);
    if (!bytes) return bytes.error();
    part.memory.scratch += *bytes;
    return Done{};
  };
  for (const Bucket& bucket : part.buckets)
    if (auto ok = add(bucket.program); !ok) return ok;
  for (const LeadingProgram& l : part.leading)
    if (auto ok = add(l.program); !ok) return ok;
  return Done{};
}

Result<std::vector<Part>> parts_of(std::span<const Placement> where, int layers) {
  std::vector<Part> parts;
  int64_t next = 0;
  for (size_t i = 0; i < where.size(); i++) {
    const bool first = i == 0, last = i + 1 == where.size();
    if (where[i].layers < 0)
      return Error{Code::Usage, format("a device cannot hold {} layers", where[i].layers), ""};
    if (where[i].layers || first || last)
      parts.push_back({where[i].device, int(next), where[i].layers, first, last, where[i].why, {}, {}});
    next += where[i].layers;
  }
  if (next != layers || parts.empty())
    return Error{Code::Usage,
                 format("{} layers are given places on devices, and the model has {}", next, layers),
                 "the numbers of layers must add up to the model's"};
  return parts;
}

Result<Config> configure(const Gguf& file, const RunOptions& options) {
  auto config = gimbal::configure(file);
  if (config && options.first_layers > 0 && options.first_layers < config->layers) {
    config->left_out = config->layers - options.first_layers;
    config->layers = options.first_layers;
  }
  return config;
}

}  // namespace

std::string contents(const Part& p) {
  std::string layers = p.layers == 1 ? format("layer {}", p.first_layer)
                       : p.layers    ? format("layers {} to {}", p.first_layer, p.first_layer + p.layers - 1)
                                     : "";
  std::string all = p.embedding ? "the embedding" : "";
  if (!layers.empty()) all += (all.empty() ? "" : p.head ? ", " : " and ") + layers;
  if (p.head) all += (all.empty() ? "" : " and ") + std::string("the output head");
  return all;
}

uint64_t Blueprint::session_bytes() const {
  const auto vocabulary = uint64_t(config.vocabulary), rows = uint64_t(options.logit_rows);
  const uint64_t leading = last().leading.empty() ? 0 : 2 * uint64_t(last().leading.back().k);
  uint64_t n = std::max(rows * vocabulary, leading) * sizeof(float) +
               (uint64_t(options.context) + uint64_t(pages_per_sequence) + rows) * sizeof(int32_t) +
               Sampler::most_bytes(vocabulary);
  for (const Part& p : parts) n += p.memory.step;
  return n;
}

Result<Blueprint> make_blueprint(const Gguf& file, std::span<const Placement> where,
                                 const RunOptions& options) {
  auto config = configure(file, options);
  if (!config) return config.error();
  auto parts = parts_of(where, config->layers);
  if (!parts) return parts.error();
  Blueprint b{&file, std::move(*config), options, 0, std::move(*parts)};
  if (auto ok = check(b.options, b.config); !ok) return ok.error();
  b.pages_per_sequence = (b.options.context + kPagePositions - 1) / kPagePositions;
  for (int rows : {1, b.options.batch}) {
    const std::vector<Bucket>& there = b.parts[0].buckets;
    if (!there.empty() && there.back().rows == rows) continue;
    if (auto ok = add_bucket(b, rows); !ok) return ok.error();
  }
  for (Part& part : b.parts) plan_memory(part);
  // Found in what either program leaves behind, so both must leave it at the same place.
  Part& head = b.parts.back();
  auto offset = [](const Bucket& bucket) { return bucket.program.values[bucket.logits.id].offset; };
  const Bucket& one = head.buckets[0];
  if (std::all_of(head.buckets.begin(), head.buckets.end(),
                  [&](const Bucket& bucket) { return offset(bucket) == offset(one); }))
    head.leading =
        plan_leading(*head.device, one.program.values[one.logits.id], b.options.kernels, &head.memory.output);
  for (Part& part : b.parts)
    if (auto ok = plan_scratch(part); !ok) return about(b, ok.error());
  return b;
}

Result<Blueprint> make_blueprint(const Gguf& file, const Device& device, const RunOptions& options) {
  auto config = configure(file, options);
  if (!config) return config.error();
  const Placement all{&device, config->layers, ""};
  return make_blueprint(file, std::span(&all, 1), options);
}

}  // namespace gimbal
