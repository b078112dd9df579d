#include "engine/measured.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/clock.h"
#include "base/format.h"
#include "base/json.h"
#include "conformance/kernel_speed.h"
#include "engine/machine_cache.h"
#include "files/packed_file.h"
#include "ops/op_def.h"
#include "runtime/random.h"

namespace gimbal {
namespace {

// Few rows wait for memory, so they are measured over more than most caches hold, in rows of the table's
// shape; many rows compute, for each thread as many outputs as kernels take at once.
constexpr uint64_t kMeasuredBytes = 32 << 20;
constexpr int64_t kFewRowsOutputs = 1024, kOutputsOfThread = 128, kDeviceOutputs = 4096;
constexpr int kComputingRows = 64;

struct ToMeasure {
  MeasuredProduct product;
  const Device* device;
  std::vector<size_t> kernels;
};

bool covers(const MeasuredProduct& known, const ToMeasure& wanted) {
  return std::all_of(wanted.kernels.begin(), wanted.kernels.end(),
                     [&](size_t k) { return known.of(wanted.device->kernel(k).name); });
}

std::vector<ToMeasure> missing(const ModelPlan& plan, const std::vector<MeasuredProduct>& known) {
  std::vector<ToMeasure> all;
  std::vector<MeasuredProduct> seen;
  auto in = [](const std::vector<MeasuredProduct>& list, const MeasuredProduct& p) {
    return std::find_if(list.begin(), list.end(), [&](auto& m) { return m.same_product(p); });
  };
  for (const Stage& stage : plan.stages)
    for (const Bucket& bucket : stage.buckets)
      for (const gimbal_op& op : bucket.program.ops) {
        const auto product = measured_as(bucket.program, op, *stage.device);
        if (!product || in(seen, *product) != seen.end()) continue;
        seen.push_back(*product);
        ToMeasure one{*product, stage.device,
                      rivals(bucket.program, op, *stage.device, plan.options.kernels)};
        const auto at = in(known, *product);
        if (one.kernels.size() > 1 && (at == known.end() || !covers(*at, one))) all.push_back(std::move(one));
      }
  return all;
}

Bench shape_of(const ToMeasure& m) {
  const int64_t threads = m.device->describe().threads;
  const int64_t outputs = threads == 0                      ? kDeviceOutputs
                          : m.product.rows < kComputingRows ? kFewRowsOutputs
                                                            : kOutputsOfThread * threads;
  const Shape w(m.product.format, {m.product.columns, outputs}),
      x(activation_type(m.product.format), {m.product.columns, m.product.rows});
  return {"", {{w, {}}, {x, {}}}, {}, true};
}

void keep(const Device& d, const std::vector<MeasuredProduct>& all) {
  Json list = Json::array();
  for (const MeasuredProduct& m : all) {
    if (m.device != d.id()) continue;
    Json times = Json::object();
    for (const auto& t : m.times) times[t.kernel] = t.seconds;
    list.push_back({{"format", info(m.format).name},
                    {"columns", m.columns},
                    {"rows", m.rows},
                    {"seconds", std::move(times)}});
  }
  MachineCache kept("limits");
  const Json key = key_of(d), &before = kept.find(key);
  Json entry = before.is_object() ? before : Json::object();
  entry["products"] = std::move(list);
  (void)kept.put(key, std::move(entry));  // verification reports a failed save, in the same folder
}

}  // namespace

std::vector<MeasuredProduct> kept_measurements(const Device& d) {
  std::vector<MeasuredProduct> all;
  MachineCache kept("limits");
  const Json& entry = kept.find(key_of(d));
  if (!entry.is_object() || !entry.contains("products") || !entry["products"].is_array()) return all;
  for (const Json& e : entry["products"]) {
    auto whole = [&](const char* name) {
      return e.contains(name) && e[name].is_number_integer() ? e[name].get<int64_t>() : 0;
    };
    if (!e.is_object() || !e.contains("seconds") || !e["seconds"].is_object()) continue;
    const auto format = dtype_named(text_in(e, "format"));
    if (!format) continue;
    MeasuredProduct m{d.id(), *format, whole("columns"), int(whole("rows")), {}};
    for (const auto& [kernel, seconds] : e["seconds"].items())
      if (seconds.is_number() && seconds.get<double>() > 0 && m.times.size() < 100)
        m.times.push_back({kernel, seconds.get<double>()});
    all.push_back(std::move(m));
  }
  return all;
}

Result<bool> measure_products(const ModelPlan& plan, std::vector<MeasuredProduct>& known,
                              const MeasuringProgress& progress) {
  const std::vector<ToMeasure> all = missing(plan, known);
  bool added = false;
  for (const Stage& stage : plan.stages) {
    KernelTimer timer(*stage.device);
    bool here = false;
    for (size_t i = 0; i < all.size(); i++) {
      const ToMeasure& m = all[i];
      if (m.device != stage.device) continue;
      if (!progress(*m.device, i, all.size())) return Error{Code::Failed, "measuring was cancelled", ""};
      const uint64_t bytes = m.product.rows < kComputingRows ? kMeasuredBytes : 1;
      auto seconds =
          timer.race(m.kernels, OpKind::MatMul, shape_of(m), m.product.rows, bytes, plan.options.kernels);
      if (!seconds) continue;
      std::erase_if(known, [&](auto& old) { return old.same_product(m.product); });
      MeasuredProduct result = m.product;
      for (size_t k = 0; k < m.kernels.size(); k++)
        result.times.push_back({m.device->kernel(m.kernels[k]).name, (*seconds)[k]});
      known.push_back(std::move(result));
      here = true;
    }
    if (here) keep(*stage.device, known);
    added |= here;
  }
  if (!all.empty() && !progress(*all.back().device, all.size(), all.size()))
    return Error{Code::Failed, "measuring was cancelled", ""};
  return added;
}

namespace {

constexpr uint64_t kSample = 96 << 20;  // bytes
constexpr double kSeconds = 0.5;

// Of the weights that a step of one row reads whole, without the experts.
uint64_t computed_bytes(const Stage& stage) {
  const Program& p = stage.buckets[0].program;
  std::vector<bool> read(p.values.size());
  for (const gimbal_op& op : p.ops)
    if (OpKind(op.kind) != OpKind::Embed && OpKind(op.kind) != OpKind::ExpertMatMul)
      for (int i = 0; i < op.inputs; i++) read[p.info[op.in[i]].root] = true;
  uint64_t n = 0;
  for (uint16_t w : p.weights) n += read[w] ? p.values[w].bytes : 0;
  return n;
}

// The speed at which `threads` threads add up memory that no cache holds.
double memory_speed(unsigned threads) {
  std::vector<uint64_t> room(size_t(kSample) / sizeof(uint64_t), 1);
  std::vector<uint64_t> sums(threads);
  const double begin = now();
  auto add = [&](unsigned t) {
    const size_t first = room.size() * t / threads, past = room.size() * (t + 1) / threads;
    uint64_t sum = 0;
    for (size_t i = first; i < past; i++) sum += room[i];
    sums[t] = sum;
  };
  std::vector<std::thread> helpers;
  for (unsigned t = 1; t < threads; t++) helpers.emplace_back(add, t);
  add(0);
  for (std::thread& t : helpers) t.join();
  uint64_t sum = 0;
  for (uint64_t s : sums) sum += s;
  return double(sum * sizeof(uint64_t)) / std::max(1e-9, now() - begin);
}

Result<double> disk_speed(const Stage& stage, bool& direct) {
  auto pages = FilePages::open(stage.packed->file(), stage.packed->path());
  if (!pages) return pages.error();
  direct = (*pages)->direct();
  const std::vector<ExpertGroup>& groups = stage.experts.groups;
  Random random(1);
  std::vector<FilePages::Range> ranges;
  const double begin = now();
  do {
    const ExpertGroup& g = groups[random.next() % groups.size()];
    const int expert = int(random.next() % uint64_t(g.experts));
    ranges.clear();
    for (const ExpertGroup::Matrix& m : g.matrices) ranges.push_back(range_of(stage, m, expert));
    if (auto ok = (*pages)->hold(ranges); !ok) return ok.error();
    (*pages)->drop(ranges);
  } while ((*pages)->read_bytes() < kSample && now() - begin < kSeconds);
  return double((*pages)->read_bytes()) / std::max(1e-9, now() - begin);
}

}  // namespace

Result<ExpertSpeed> measure_experts(const ModelPlan& plan) {
  ExpertSpeed s;
  uint64_t all = 0, budget = 0;
  for (const Stage& stage : plan.stages) {
    s.computed += computed_bytes(stage);
    if (!stage.reads_experts() || !stage.packed) continue;
    auto disk = disk_speed(stage, s.direct);
    if (!disk) return disk.error();
    s.disk = *disk, s.memory = memory_speed(std::max(1u, stage.device->describe().threads));
    s.of_token += stage.experts.of_token, all += stage.experts.all, budget += stage.experts.budget;
  }
  if (s.disk == 0) return Error{Code::Usage, "no experts of this plan are read from disk", ""};
  s.computed += s.of_token;
  const double computing = double(s.computed) / s.memory, reading = double(s.of_token) / s.disk;
  s.at_least = 1 / (computing + reading);
  s.evenly = 1 / (computing + reading * (1 - double(budget) / double(all)));
  return s;
}

}  // namespace gimbal
