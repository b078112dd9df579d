#include "runtime/blueprint.h"

#include <algorithm>

#include "base/format.h"
#include "ops/shapes.h"

namespace gimbal {
namespace {

constexpr int kDefaultContext = 4096;
constexpr int kMostPages = 1 << 22;  // keeps every size that follows from it inside 63 bits

Error out_of_range(const char* option, int64_t found, int64_t least, int64_t most) {
  return {Code::Usage, format("{} must be from {} to {}, not {}", option, least, most, found), ""};
}

// Formats that a model with heads of this size can keep its cache in.
DTypeSet cache_types(int head_dim) {
  DTypeSet all = 0;
  for (int t = 0; t < int(DType::Count); t++)
    if (has(kCacheTypes, DType(t)) && head_dim % info(DType(t)).block == 0) all |= set_of(DType(t));
  return all;
}

Status check_cache_type(DType type, int head_dim) {
  const std::string help = "choose one of: " + names_of(cache_types(head_dim));
  const DTypeInfo& t = info(type);
  if (!has(kCacheTypes, type))
    return Error{Code::Usage, format("--kv-type {} is not a format for a KV cache", t.name), help};
  if (head_dim % t.block)
    return Error{Code::Usage,
                 format("--kv-type {} stores blocks of {} values, and the attention heads of this model have "
                        "{} values: no whole number of blocks",
                        t.name, t.block, head_dim),
                 help};
  return Done{};
}

Status check(RunOptions& o, const Config& c) {
  constexpr int kMostContext = 1 << 24;
  if (o.context == 0) o.context = std::min(c.context, kDefaultContext);
  if (o.context < 1 || o.context > kMostContext) return out_of_range("--ctx", o.context, 1, kMostContext);
  if (o.batch < 1 || o.batch > 65536) return out_of_range("--batch", o.batch, 1, 65536);
  if (o.sequences < 1 || o.sequences > 65536)
    return out_of_range("the number of sequences", o.sequences, 1, 65536);
  const int64_t pages = int64_t(o.context + kPagePositions - 1) / kPagePositions * o.sequences;
  if (pages > kMostPages)
    return Error{
        Code::Usage,
        format("--ctx {} for each of {} sequences is more than this version can address ({} positions in "
               "all)",
               o.context, o.sequences, int64_t(kMostPages) * kPagePositions),
        "use a smaller --ctx or fewer sequences"};
  o.batch = std::min(o.batch, o.context);
  o.logit_rows = std::clamp(o.logit_rows, 1, o.batch);
  return check_cache_type(o.cache_type, c.head_dim);
}

Result<Bucket> record(const Blueprint& b, int rows) {
  const RunOptions& o = b.options;
  ProgramBuilder p(*b.device, rows, std::min(o.logit_rows, rows));
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
  if (!program)
    return Error{program.error().code, format("{}: {}", b.file->path(), program.error().message),
                 program.error().remedy};
  Bucket bucket{rows, std::move(*program), {}, s, {}};
  bucket.logits = {bucket.program.ops.back().out};
  auto choices = assign_kernels(bucket.program, *b.device, o.kernels);
  if (!choices)
    return Error{choices.error().code, format("{}: {}", b.file->path(), choices.error().message),
                 choices.error().remedy};
  bucket.choices = std::move(*choices);
  return bucket;
}

// About half the bytes per value, where there is such a format; never one that costs much of the accuracy.
DType smaller_cache_type(const Blueprint& b) {
  if (b.options.cache_type == DType::F32) return DType::F16;
  const bool halves = info(b.options.cache_type).block == 1;
  return halves && has(cache_types(b.config.head_dim), DType::Q8_0) ? DType::Q8_0 : b.options.cache_type;
}

}  // namespace

Result<Blueprint> make_blueprint(const Gguf& file, const Device& device, const RunOptions& options) {
  auto config = configure(file);
  if (!config) return config.error();
  Blueprint b{&file, &device, std::move(*config), options, 0, {}, {}};
  if (auto ok = check(b.options, b.config); !ok) return ok.error();
  b.pages_per_sequence = (b.options.context + kPagePositions - 1) / kPagePositions;
  for (int rows : {1, b.options.batch}) {
    if (!b.buckets.empty() && b.buckets.back().rows == rows) continue;
    auto bucket = record(b, rows);
    if (!bucket) return bucket.error();
    b.buckets.push_back(std::move(*bucket));
  }
  // The buckets run one at a time, so they share every buffer; weights and caches lie at the same places in
  // each.
  uint64_t most[kSlots] = {};
  for (const Bucket& bucket : b.buckets)
    for (size_t s = 0; s < kSlots; s++) most[s] = std::max(most[s], bucket.program.slot_bytes[s]);
  auto of = [&](Slot s) { return most[size_t(s)]; };
  b.memory = {of(Slot::Weights), of(Slot::Cache),  of(Slot::Step),
              of(Slot::Work),    of(Slot::Output), device.describe().memory_free};
  return b;
}

Status check_memory(const Blueprint& b) {
  const MemoryPlan& m = b.memory;
  if (m.total() <= m.free) return Done{};
  std::string help = "use a smaller or more strongly quantized model, or a machine with more memory";
  if (m.total() - m.cache <= m.free) {
    const uint64_t room = m.free - (m.total() - m.cache);
    const uint64_t per_page =
        std::max<uint64_t>(1, m.cache / uint64_t(b.pages_per_sequence) / uint64_t(b.options.sequences));
    const uint64_t positions = room / per_page / uint64_t(b.options.sequences) * kPagePositions;
    help = positions ? format("--ctx {} would fit", positions) : help;
    if (const DType smaller = smaller_cache_type(b); positions && smaller != b.options.cache_type)
      help += format("; --kv-type {} nearly halves the KV cache", info(smaller).name);
  }
  return Error{Code::OutOfMemory,
               format("not enough memory on {}: {} needed (weights {}, KV cache {} for {} positions, "
                      "activations {}, other {}), {} free",
                      b.device->id(), human_bytes(m.total()), human_bytes(m.weights), human_bytes(m.cache),
                      b.options.context, human_bytes(m.activations), human_bytes(m.step + m.output),
                      human_bytes(m.free)),
               help};
}

}  // namespace gimbal
