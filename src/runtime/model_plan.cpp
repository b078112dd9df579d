#include "runtime/model_plan.h"

#include <algorithm>

#include "base/format.h"
#include "ops/op_def.h"
#include "program/passes.h"
#include "runtime/batch.h"
#include "runtime/memory_check.h"
#include "runtime/sampler.h"
#include "runtime/stages.h"

namespace gimbal {
namespace {

constexpr int kDefaultContext = 4096;
constexpr int kMaxPages = 1 << 22;  // keeps every size that follows from it inside 63 bits

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
  constexpr int kMaxContext = 1 << 24;
  if (o.context == 0) o.context = default_context(c);
  if (o.context < 1 || o.context > kMaxContext) return out_of_range("context", o.context, 1, kMaxContext);
  if (o.batch < 1 || o.batch > 65536) return out_of_range("batch", o.batch, 1, 65536);
  if (o.sequences < 1 || o.sequences > 65536) return out_of_range("sequences", o.sequences, 1, 65536);
  if (o.cache_positions < 0)
    return Error{Code::Usage, format("a KV cache cannot have {} positions", o.cache_positions), "",
                 reason::kOutOfRange, "cache_positions"};
  const int64_t pages = int64_t(o.context + kPagePositions - 1) / kPagePositions * o.sequences;
  if (pages > kMaxPages)
    return Error{Code::Usage,
                 format("a 'context' of {} for each of {} sequences is more than this version can address "
                        "({} positions in all)",
                        o.context, o.sequences, int64_t(kMaxPages) * kPagePositions),
                 "use a smaller 'context' or fewer sequences", reason::kOutOfRange, "context"};
  o.batch = int(std::min<int64_t>(o.batch, int64_t(o.context) * o.sequences));
  if (o.drafts < 0 || o.drafts > kMaxDrafts) return out_of_range("drafts", o.drafts, 0, kMaxDrafts);
  o.drafts = std::min(o.drafts, o.batch - 1);
  o.logit_rows = std::clamp(std::max(o.logit_rows, 1 + o.drafts), 1, o.batch);
  return check_cache_type(o.cache_type, c.head_dim);
}

Status choose_rotation(ModelPlan& b, bool cached) {
  auto choice = gimbal::choose_rotation(b.options.cache_rotation, b.options.cache_type, cached);
  if (!choice) return choice.error();
  b.rotation = std::move(*choice);
  return Done{};
}

Error about(const ModelPlan& b, const Error& e) {
  Error named = e;
  named.message = format("{}: {}", b.source, e.message);
  return named;
}

// The program of the whole model, for its first device. Stores the state of sequences in `b`: the same for
// every bucket.
Result<Bucket> record(const ModelSource& file, ModelPlan& b, int rows, AdapterSet adapters) {
  const RunOptions& o = b.options;
  ProgramBuilder p(*b.stages[0].device, rows, std::min(o.logit_rows, rows));
  const int64_t whole =
      int64_t(o.context + kPagePositions - 1) / kPagePositions * kPagePositions * o.sequences;
  Recorder m(
      p, file, b.config,
      {rows, o.batch, o.sequences, o.context, o.cache_positions ? std::min(o.cache_positions, whole) : whole,
       o.cache_type, b.rotation.rotated, o.embeddings, o.hidden, o.logits, o.drafts > 0, o.states, adapters,
       o.state_layers});
  (o.arch ? o.arch : find_arch(b.config.arch))->record(m);
  if (auto e = m.error()) return *e;
  m.finish();
  auto program = std::move(p).finish();
  if (!program) return about(b, program.error());
  b.pools = m.pools();
  b.whole_texts = m.sees_later(), b.takes_states = m.state_width();
  b.takes_patches = m.takes_patches();
  b.embedding_parts = m.embedding_parts();
  const uint64_t step = program->slot_bytes[size_t(Slot::Step)];
  Bucket bucket{rows, adapters, std::move(*program), {}, m.inputs(), step};
  for (size_t i = 0; i < kOutputs; i++) bucket.outputs[i] = m.output(Output(i));
  return bucket;
}

// A step of so many rows takes so little time that it need not end earlier.
constexpr int kUndividedRows = 128;

// Adds a bucket to every stage. `rules`: of every tensor of the file.
Status add_bucket(const ModelSource& file, ModelPlan& b, int rows, AdapterSet adapters,
                  const std::vector<int>& rules) {
  auto whole = record(file, b, rows, adapters);
  if (!whole) return whole.error();
  const bool by_layer = b.options.interruptible && rows > kUndividedRows;
  const Kept keep = b.options.keep_inputs ? Kept::ProductInputs : Kept::Needed;
  std::vector<Bucket> buckets;
  if (b.stages.size() == 1) {
    if (keep != Kept::Needed)
      if (auto ok = plan_work(whole->program, kAlignment, keep); !ok) return about(b, ok.error());
    whole->parts = parts_of(whole->program, by_layer);
    whole->output_bytes = whole->program.slot_bytes[size_t(Slot::Output)];
    buckets.push_back(std::move(*whole));
  } else {
    auto moved = places_of_ops(whole->program, b, rules);
    if (!moved) return about(b, moved.error());
    if (b.stages[0].buckets.empty()) count_moved(whole->program, *moved, b);
    std::vector<const Device*> devices;
    for (const Stage& stage : b.stages) devices.push_back(stage.device);
    auto stages = partition(whole->program, moved->stage, devices, by_layer, keep);
    if (!stages) return about(b, stages.error());
    for (StageProgram& s : *stages) {
      Bucket bucket{rows,           adapters, std::move(s.program), {}, whole->inputs, s.step_bytes,
                    s.output_bytes, {},       std::move(s.parts)};
      for (StepInput& i : bucket.inputs) i.value = {s.values[i.value.id]};
      for (size_t i = 0; i < kOutputs && &s == &stages->back(); i++)
        if (whole->outputs[i]) bucket.outputs[i] = Value{s.values[whole->outputs[i]->id]};
      for (size_t from : s.from) bucket.rules.push_back(moved->rule[from]);
      buckets.push_back(std::move(bucket));
    }
  }
  for (size_t i = 0; i < buckets.size(); i++) {
    auto choices = assign_kernels(buckets[i].program, *b.stages[i].device, b.options.kernels);
    if (!choices) return about(b, choices.error());
    buckets[i].choices = std::move(*choices);
    // Of devices that compute from host memory: the CPU.
    if (b.options.experts_from_disk && b.stages[i].device->can_adopt())
      divide_at_experts(buckets[i], b.stages[i].experts.groups);
    b.stages[i].buckets.push_back(std::move(buckets[i]));
  }
  return Done{};
}

// For rows without adapters; with each of them; with all. Programs for every subset would be too many, and
// the results are the same in any program that has a row's adapters (ops/defs/add_scaled.cpp).
std::vector<AdapterSet> adapter_sets(size_t adapters) {
  std::vector<AdapterSet> all = {0};
  for (size_t i = 0; i < adapters; i++) all.push_back(AdapterSet(1) << i);
  if (adapters > 1) all.push_back((AdapterSet(1) << adapters) - 1);
  return all;
}

// All programs read the same weights. A program without adapters keeps the weights of theirs where their
// layer is; that fails for a weight that several stages use.
Status check_same_weights(const ModelPlan& b) {
  for (const Stage& stage : b.stages) {
    const Program& first = stage.buckets[0].program;
    for (const Bucket& bucket : stage.buckets) {
      const Program& p = bucket.program;
      bool same = p.weights.size() == first.weights.size();
      for (size_t w = 0; same && w < p.weights.size(); w++)
        same = p.values[p.weights[w]].offset == first.values[first.weights[w]].offset &&
               p.info[p.weights[w]].name == first.info[first.weights[w]].name;
      if (!same)
        return Error{Code::Unsupported,
                     format("{}: a LoRA adapter changes a weight that several devices would hold", b.source),
                     "use one device for this model and its adapters"};
    }
  }
  return Done{};
}

// Activations larger than one allocation are cut between values of the largest bucket (gpu/cuts.h), so those
// of the other buckets get the same places. The bucket of one row is planned alone: its values live longer
// (program/passes.h).
void share_places(Stage& stage, size_t largest) {
  const Program& from = stage.buckets[largest].program;
  for (size_t i = 0; i < largest; i++) {
    Program& p = stage.buckets[i].program;
    if (stage.buckets[i].rows == 1 || stage.buckets[i].adapters != stage.buckets[largest].adapters ||
        p.values.size() != from.values.size())
      continue;
    uint64_t& end = p.slot_bytes[size_t(Slot::Work)] = 0;
    for (size_t v = 0; v < p.values.size(); v++) {
      if (p.values[v].slot != uint32_t(Slot::Work)) continue;
      p.values[v].offset = from.values[v].offset;
      end = std::max(end, p.values[v].offset + p.values[v].bytes);
    }
  }
}

// The buckets run one at a time, so they share every buffer; weights and caches lie at the same places in
// each.
void plan_memory(Stage& stage, const RunOptions& o) {
  uint64_t most[kSlots] = {}, handed = 0;
  for (const Bucket& bucket : stage.buckets) {
    for (size_t s = 0; s < kSlots; s++) most[s] = std::max(most[s], bucket.program.slot_bytes[s]);
    handed = std::max(handed, bucket.program.slot_bytes[size_t(Slot::Step)] - bucket.step_bytes +
                                  bucket.program.slot_bytes[size_t(Slot::Output)] - bucket.output_bytes);
  }
  auto of = [&](Slot s) { return most[size_t(s)]; };
  MemoryPlan& m = stage.memory;
  m.weights = of(Slot::Weights), m.cache = of(Slot::Cache), m.step = of(Slot::Step);
  m.activations = of(Slot::Work), m.output = of(Slot::Output);
  m.transfer = handed;
  m.free = free_for(o, stage.device);
}

// The device's additional memory for programs: each has its own, as long as the model is loaded.
Status plan_scratch(Stage& stage) {
  auto add = [&](const gimbal_program& view) -> Status {
    auto bytes = stage.device->scratch_bytes(view);
    if (!bytes) return bytes.error();
    stage.memory.scratch += *bytes;
    return Done{};
  };
  for (const Bucket& bucket : stage.buckets)
    for (const StagePart& part : bucket.parts)
      if (auto ok = add(part_of(bucket.program, part.ops)); !ok) return ok;
  for (const TopLogitsProgram& l : stage.top)
    if (auto ok = add(l.program.view()); !ok) return ok;
  return Done{};
}

// The programs for the largest logits read the logits of any program, so all must store them at one place.
void plan_top(Stage& head, const RunOptions& o) {
  auto logits = [](const Bucket& bucket) -> const gimbal_value* {
    const auto v = bucket.outputs[size_t(Output::Logits)];
    return v ? &bucket.program.values[v->id] : nullptr;
  };
  const gimbal_value* one = logits(head.buckets[0]);
  for (const Bucket& bucket : head.buckets)
    if (!one || !logits(bucket) || logits(bucket)->offset != one->offset) return;
  head.top = plan_top_logits(*head.device, *one, o.logit_rows, o.kernels, &head.memory.output);
}

Result<Config> configure(const ModelSource& file, const RunOptions& options) {
  auto config = gimbal::configure(file, options.arch);
  if (config && options.first_layers > 0 && options.first_layers < config->layers) {
    config->left_out += config->layers - options.first_layers;
    config->layers = options.first_layers;
  }
  return config;
}

}  // namespace

int default_context(const Config& c) { return std::min(c.context, kDefaultContext); }

size_t ModelPlan::bucket_for(int rows, AdapterSet wanted) const {
  const std::vector<Bucket>& all = stages[0].buckets;  // by rising sets, and by rising rows in each
  size_t i = 0;
  while (all[i].rows < rows || wanted & ~all[i].adapters) i++;
  return i;
}

std::vector<size_t> ModelPlan::distinct_buckets() const {
  auto same = [&](size_t a, size_t b) {
    for (const Stage& stage : stages) {
      const auto &x = stage.buckets[a].choices, &y = stage.buckets[b].choices;
      if (!std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [](const Choice& p, const Choice& q) { return p.kernel == q.kernel; }))
        return false;
    }
    return true;
  };
  std::vector<size_t> all = {bucket_for(1)};
  for (size_t i = all[0] + 1; i <= bucket_for(options.batch); i++) {
    if (all.size() > 1 && same(all.back(), i)) all.back() = i;
    else all.push_back(i);
  }
  return all;
}

int ModelPlan::width(Output o) const {
  const Bucket& any = last().buckets[0];
  const auto v = any.outputs[size_t(o)];
  return v ? int(any.program.values[v->id].dim[0]) : 0;
}

Status ModelPlan::check_text(size_t tokens) const {
  if (tokens > size_t(options.context))
    return Error{Code::Usage,
                 format("the text has {} tokens, but the context has {} positions", tokens, options.context),
                 format("use a 'context' of {} or more (the model was trained on {} positions), or a shorter "
                        "text",
                        tokens, config.context),
                 reason::kContextFull, "context"};
  if (whole_texts && tokens > size_t(options.batch))
    return Error{Code::Usage,
                 format("the text has {} tokens, but a batch has {}: this model needs the whole text in one "
                        "batch, because each token sees later ones",
                        tokens, options.batch),
                 format("use a 'batch' of {} or more", tokens), reason::kOutOfRange, "batch"};
  return Done{};
}

uint64_t ModelPlan::page_bytes() const {
  const bool checkpoints = std::any_of(pools.begin(), pools.end(),
                                       [](const StatePool& p) { return p.kind == StateKind::Recurrent; });
  if (options.sequences == 1 && !checkpoints) return 0;
  uint64_t most = 0;
  for (const Stage& stage : stages) {
    const Program& p = stage.buckets[0].program;
    for (const StateValue& s : p.states)
      most = std::max(most, p.values[s.value].bytes / uint64_t(pools[s.pool].pages));
  }
  return most;
}

// A device's data about a program in host memory: a copy of its values for each part, and facts about each
// op.
static uint64_t kept_bytes(const Program& p, size_t parts = 1) {
  constexpr uint64_t kFindings = 256;
  return parts * p.values.size() * sizeof(gimbal_value) + p.ops.size() * (sizeof(gimbal_op) + kFindings);
}

uint64_t ModelPlan::steps_bytes() const {
  uint64_t n = uint64_t(options.logit_rows) *
               (uint64_t(width(Output::Logits)) + uint64_t(width(Output::Hidden)) + 2 * uint64_t(max_top())) *
               sizeof(float);
  n += uint64_t(options.batch) * (sizeof(StepRow) + 2 * sizeof(int32_t)) + page_bytes();
  // States are read back; those that a model takes are kept for it (runtime/nextn_drafter.h).
  n += uint64_t(options.batch) * uint64_t(width(Output::States) + takes_states) * sizeof(float);
  for (const StatePool& pool : pools) n += uint64_t(pool.pages) * 2 * sizeof(int32_t);
  for (const Stage& stage : stages) {
    n += stage.memory.step + stage.experts.tables;
    for (const Bucket& bucket : stage.buckets) n += kept_bytes(bucket.program, bucket.parts.size());
    for (const TopLogitsProgram& t : stage.top) n += kept_bytes(t.program);
  }
  return n;
}

uint64_t ModelPlan::session_bytes() const {
  uint64_t n = uint64_t(options.context) * sizeof(int32_t) + uint64_t(options.batch) * sizeof(Row) +
               Sampler::max_bytes(uint64_t(config.vocabulary));
  for (const StatePool& pool : pools) n += uint64_t(pool.table) * sizeof(int32_t);
  return n;
}

Result<ModelPlan> make_model_plan(const ModelSource& file, std::span<const Placement> where,
                                  const RunOptions& options) {
  auto config = configure(file, options);
  if (!config) return config.error();
  auto rules = rules_of_tensors(file.tensors(), options.tensor_rules);
  if (!rules) return rules.error();
  auto stages = stages_of(where, config->layers, options.tensor_rules);
  if (!stages) return stages.error();
  ModelPlan b{file.path(), std::move(*config), options, {}, {}, std::move(*stages)};
  b.file_bytes = file.file_bytes(), b.adapters = scales_at_start(file.tensors());
  if (auto ok = check(b.options, b.config); !ok) return ok.error();
  if (auto ok = choose_rotation(b, true); !ok) return ok.error();
  const RunOptions& o = b.options;
  const std::vector<AdapterSet> sets = adapter_sets(b.adapters.size());
  for (AdapterSet set : sets) {
    for (int rows = 1; rows < o.batch; rows *= 2)
      if (auto ok = add_bucket(file, b, rows, set, *rules); !ok) return ok.error();
    if (auto ok = add_bucket(file, b, o.batch, set, *rules); !ok) return ok.error();
  }
  // The first layers alone may keep none though the model does.
  const bool cached = o.first_layers || std::any_of(b.pools.begin(), b.pools.end(), [](const StatePool& p) {
                        return p.kind == StateKind::Paged;
                      });
  if (auto ok = choose_rotation(b, cached); !ok) return ok.error();
  if (auto ok = check_same_weights(b); !ok) return ok.error();
  for (Stage& stage : b.stages) {
    for (AdapterSet set : sets) share_places(stage, b.bucket_for(o.batch, set));
    plan_memory(stage, o);
    if (auto ok = plan_disk_experts(stage, o.experts_from_disk); !ok) return about(b, ok.error());
  }
  plan_top(b.stages.back(), o);
  for (Stage& stage : b.stages)
    if (auto ok = plan_scratch(stage); !ok) return about(b, ok.error());
  return b;
}

Result<ModelPlan> make_model_plan(const ModelSource& file, const Device& device, const RunOptions& options) {
  auto config = configure(file, options);
  if (!config) return config.error();
  const Placement all{&device, config->layers, ""};
  return make_model_plan(file, std::span(&all, 1), options);
}

}  // namespace gimbal
