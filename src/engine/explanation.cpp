#include "engine/explanation.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "base/json.h"
#include "engine/findings.h"
#include "ops/op_def.h"
#include "program/place.h"
#include "runtime/cache_size.h"
#include "runtime/memory_check.h"

namespace gimbal {
namespace {

class Choices {
 public:
  // The index of what computes this op.
  size_t of(const Stage& stage, const Bucket& bucket, size_t i, const KernelPreference& wish) {
    const Device& d = *stage.device;
    const Program& program = bucket.program;
    const gimbal_op& op = program.ops[i];
    const char* kernel = d.kernel(bucket.choices[i].kernel).name;
    const char* format_name = info(DType(program.values[op.in[0]].dtype)).name;
    const std::string why = why_chosen(bucket.choices[i], wish);
    std::vector<std::pair<std::string, std::vector<const char*>>> by_reason;
    std::string key = d.id() + ' ' + kernel + ' ' + format_name + ' ' + why;
    for (Rejected& r : rejections(program, op, d, wish)) {
      key.append("\n").append(std::to_string(r.kernel)).append(r.why);
      auto same = std::find_if(by_reason.begin(), by_reason.end(), [&](auto& e) { return e.first == r.why; });
      if (same == by_reason.end()) same = by_reason.insert(by_reason.end(), {std::move(r.why), {}});
      same->second.push_back(d.kernel(r.kernel).name);
    }
    const auto [at, is_new] = known_.emplace(std::move(key), list.size());
    if (!is_new) return at->second;
    Json rejected = Json::array();
    for (const auto& [reason, kernels] : by_reason)
      rejected.push_back({{"why", reason}, {"kernels", kernels}});
    list.push_back({{"op", info(OpKind(op.kind)).name},
                    {"format", format_name},
                    {"device", d.id()},
                    {"kernel", kernel},
                    {"why", why},
                    {"rejected", std::move(rejected)}});
    return at->second;
  }

  Json list = Json::array();

 private:
  std::map<std::string, size_t> known_;
};

// What `gimbal bench` measured here; null: it did not run yet.
Json memory_speed(const Device& d) {
  const Json entry = Findings("limits").find(key_of(d));
  const auto at = entry.is_object() ? entry.find("read_bytes_per_second") : entry.end();
  return at != entry.end() && at->is_number() ? *at : Json();
}

}  // namespace

Json memory_json(const MemoryPlan& m) {
  return {{"weights", m.weights}, {"kv_cache", m.cache},     {"activations", m.activations},
          {"step", m.step},       {"output", m.output},      {"scratch", m.scratch},
          {"total", m.total()},   {"hand_over", m.transfer}, {"free", m.free}};
}

void add_memory(Json& to, const ModelPlan& b) {
  to["devices"] = Json::array();
  for (const MemoryUse& u : memory_uses(b)) {
    if (!u.device) {
      to["host"] = {{"sessions", u.sum.sessions}, {"total", u.sum.total()}, {"free", u.sum.free}};
      continue;
    }
    Json memory = memory_json(u.sum);
    memory["device"] = u.device->id();
    memory["memory_total"] = u.device->describe().memory_total;
    to["devices"].push_back(std::move(memory));
  }
}

double weight_bytes_per_token(const Program& p) {
  double bytes = 0;
  const gimbal_step one{1, 1};
  for (const gimbal_op& op : p.ops) {
    double weights = 0;
    for (int i = 0; i < op.inputs; i++)
      if (p.values[op.in[i]].slot == uint32_t(Slot::Weights))
        weights += double(p.info[op.in[i]].shape.bytes());
    // An op that looks a row up reads less than its weights.
    bytes +=
        std::min(weights, cost(OpKind(op.kind), p.input_shapes(op, one), p.output_shape(op, one)).bytes_read);
  }
  return bytes;
}

Json explanation(const ModelPlan& b) {
  Json j{{"architecture", b.config.arch},
         {"layers", b.config.layers},
         {"context", b.options.context},
         {"sequences", b.options.sequences},
         {"cache_tokens", cache_positions(b)},
         {"batch", b.options.batch},
         {"kv_type", info(b.options.cache_type).name}};
  add_memory(j, b);
  size_t at = 0;
  for (const MemoryUse& u : memory_uses(b)) {
    if (!u.device) continue;
    const char* name = u.device->describe().name;
    j["devices"][at]["name"] = name ? name : "";
    j["devices"][at++]["read_bytes_per_second"] = memory_speed(*u.device);
  }
  j["placement"] = Json::array();
  double weights = 0;
  for (const Stage& s : b.stages) {
    weights += weight_bytes_per_token(s.buckets.front().program);
    j["placement"].push_back({{"device", s.device->id()}, {"contents", contents(s)}, {"reason", s.why}});
  }
  j["weight_bytes_per_token"] = weights;
  Choices choices;
  j["programs"] = Json::array();
  for (size_t which : b.distinct_buckets()) {
    Json ops = Json::array();
    for (const Stage& s : b.stages) {
      const Bucket& bucket = s.buckets[which];
      for (size_t i = 0; i < bucket.program.ops.size(); i++) {
        const Program& p = bucket.program;
        ops.push_back(Json::array({p.output(p.ops[i]).name, to_string(p.output(p.ops[i]).shape),
                                   choices.of(s, bucket, i, b.options.kernels)}));
      }
    }
    j["programs"].push_back({{"purpose", which == 0 ? "generation" : "prompt"},
                             {"rows", b.stages[0].buckets[which].rows},
                             {"ops", std::move(ops)}});
  }
  j["choices"] = std::move(choices.list);
  return j;
}

}  // namespace gimbal
