#include "engine/measured.h"

#include <algorithm>

#include "base/json.h"
#include "conformance/kernel_speed.h"
#include "engine/machine_cache.h"
#include "ops/shapes.h"

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

}  // namespace gimbal
