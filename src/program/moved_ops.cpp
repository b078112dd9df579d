#include "program/moved_ops.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "device/values.h"
#include "ops/op_def.h"

namespace gimbal {
namespace {

bool keeps_state(const gimbal_op& op) {
  const OpDef& d = def(OpKind(op.kind));
  return d.has(Role::Cache) || d.has(Role::Written) || d.has(Role::State);
}

// Bytes of one row: the same decision for every number of rows.
uint64_t row_bytes(const gimbal_value& v) { return v.bytes / uint64_t(std::max<int64_t>(1, rows_of(v))); }

class Mover {
 public:
  Mover(const Program& p, const std::vector<size_t>& layer_stages,
        std::span<const std::optional<WeightPlace>> weights)
      : p_(p),
        layers_(layer_stages),
        weight_of_(p.values.size(), -1),
        moved_(p.values.size()),
        places_(weights) {
    for (size_t w = 0; w < p.weights.size(); w++) weight_of_[p.weights[w]] = int(w);
  }

  Result<MovedOps> run() {
    MovedOps all;
    for (size_t i = 0; i < p_.ops.size(); i++) {
      const Place place = place_of(i);
      all.stage.ops.push_back(place.stage), all.rule.push_back(place.rule);
      for (uint16_t out : outputs_of(p_.ops[i])) moved_[p_.info[out].root] = place;
    }
    follow_readers(all);
    for (size_t w = 0; w < p_.weights.size(); w++) {
      const auto op =
          std::lower_bound(p_.layer.begin(), p_.layer.end(), p_.weight_layer[w]) - p_.layer.begin();
      all.stage.unread_weights.push_back(places_[w] ? places_[w]->stage
                                                    : layers_[std::min(size_t(op), p_.ops.size() - 1)]);
    }
    if (auto ok = check(all); !ok) return ok.error();
    return all;
  }

 private:
  struct Place {
    size_t stage = 0;
    int rule = -1;
  };

  // The largest weight of an op, as an index in Program::weights; -1: it has none.
  int largest_weight(const gimbal_op& op) const {
    int largest = -1;
    for (uint16_t in : inputs_of(op))
      if (const int w = weight_of_[p_.info[in].root];
          w >= 0 && (largest < 0 ||
                     p_.values[p_.weights[size_t(w)]].bytes > p_.values[p_.weights[size_t(largest)]].bytes))
        largest = w;
    return largest;
  }

  Place place_of(size_t i) const {
    const gimbal_op& op = p_.ops[i];
    const Place with_layer{layers_[i], -1};
    if (keeps_state(op)) return with_layer;
    if (const int w = largest_weight(op); w >= 0) {
      const auto& wanted = places_[size_t(w)];
      return wanted && wanted->stage != layers_[i] ? Place{wanted->stage, wanted->rule} : with_layer;
    }
    // Bytes of the inputs that moved ops compute, by place; all others are with the layer.
    std::map<size_t, uint64_t> from;
    uint64_t rest = 0;
    Place best = with_layer;
    for (uint16_t in : inputs_of(op)) {
      const Place& maker = moved_[p_.info[in].root];
      const bool activation =
          p_.values[in].slot == uint32_t(Slot::Work) || p_.values[in].slot == uint32_t(Slot::Output);
      if (maker.rule < 0 || maker.stage == layers_[i]) rest += activation ? row_bytes(p_.values[in]) : 0;
      else from[maker.stage] += row_bytes(p_.values[in]);
    }
    for (uint16_t in : inputs_of(op))
      if (const Place& maker = moved_[p_.info[in].root]; maker.rule >= 0 && maker.stage != layers_[i])
        if (const uint64_t bytes = from[maker.stage]; bytes > rest) rest = bytes, best = maker;
    return best;
  }

  void follow_readers(MovedOps& all) const {
    std::vector<bool> known(p_.values.size());
    std::vector<size_t> maker(p_.values.size());
    for (size_t i = 0; i < p_.ops.size(); i++) {
      for (uint16_t in : inputs_of(p_.ops[i])) {
        const uint16_t root = p_.info[in].root;
        if (known[root] || p_.values[root].slot != uint32_t(Slot::Work)) continue;
        known[root] = true;
        const size_t m = maker[root];
        if (OpKind(p_.ops[m].kind) != OpKind::Quantize || p_.info[p_.ops[m].out[0]].root != root) continue;
        all.stage.ops[m] = all.stage.ops[i], all.rule[m] = all.rule[i];
      }
      for (uint16_t out : outputs_of(p_.ops[i])) maker[p_.info[out].root] = i;
    }
  }

  Status check(const MovedOps& all) const {
    for (size_t i = 0; i < p_.ops.size(); i++)
      for (uint16_t in : inputs_of(p_.ops[i])) {
        const int w = weight_of_[p_.info[in].root];
        if (w < 0 || !places_[size_t(w)] || places_[size_t(w)]->stage == all.stage.ops[i]) continue;
        const bool state = keeps_state(p_.ops[i]);
        // A pattern of whole layers finds such weights, too.
        if (state && std::count(all.rule.begin(), all.rule.end(), places_[size_t(w)]->rule)) continue;
        const std::string& with =
            state ? p_.output(p_.ops[i]).name : p_.info[p_.weights[size_t(largest_weight(p_.ops[i]))]].name;
        return Error{
            Code::Usage,
            format("'{}' cannot be on another device than '{}': {}", p_.info[p_.weights[size_t(w)]].name,
                   with,
                   state ? "the op that reads it keeps state, which is with the layer" : "one op reads both"),
            "write a pattern that matches both, or none of them", "", "override_tensor"};
      }
    return Done{};
  }

  const Program& p_;
  const std::vector<size_t>& layers_;
  std::vector<int> weight_of_;  // by value: its index in Program::weights; -1: it is none
  std::vector<Place> moved_;    // by root of activations
  std::span<const std::optional<WeightPlace>> places_;
};

}  // namespace

Result<MovedOps> move_ops(const Program& p, const std::vector<size_t>& layer_stages,
                          std::span<const std::optional<WeightPlace>> weights) {
  return Mover(p, layer_stages, weights).run();
}

}  // namespace gimbal
