#include "engine/tensor_places.h"

#include <algorithm>

#include "base/json.h"
#include "engine/reports.h"
#include "files/packed_file.h"
#include "ops/op.h"
#include "ops/op_def.h"

namespace gimbal {
namespace {

// The op that reads the value or a view of it; ops.size(): none.
size_t reader_of(const Program& p, uint16_t value) {
  for (size_t i = 0; i < p.ops.size(); i++)
    for (size_t k = 0; k < p.ops[i].inputs; k++)
      if (p.info[p.ops[i].in[k]].root == value) return i;
  return p.ops.size();
}

// `bucket`: of the stage; weights lie at the same places in each.
void add_stage(const ModelPlan& plan, const Stage& stage, const Bucket& bucket,
               std::vector<TensorPlace>& all) {
  const Program& p = bucket.program;
  for (size_t w = 0; w < p.weights.size(); w++) {
    const uint16_t id = p.weights[w];
    const gimbal_value& v = p.values[id];
    TensorPlace t;
    t.name = p.info[id].name, t.format = info(DType(v.dtype)).name, t.shape = to_string(p.info[id].shape);
    t.layout = v.layout == GIMBAL_PACKED ? "packed" : "file";
    t.buffer = stage.packed ? stage.packed->path() : "weights";
    t.device = stage.device->id(), t.why = stage.why;
    t.offset = v.offset, t.bytes = v.bytes;
    if (!stage.packed) {
      const uint64_t next =
          w + 1 < p.weights.size() ? p.values[p.weights[w + 1]].offset : stage.memory.weights;
      t.gap = next - v.offset - v.bytes;
    }
    if (const size_t op = reader_of(p, id); op < p.ops.size()) {
      t.op = info(OpKind(p.ops[op].kind)).name;
      t.kernel = stage.device->kernel(bucket.choices[op].kernel).name;
      if (std::string moved = moved_by(plan, bucket, op); !moved.empty()) t.why = std::move(moved);
    }
    all.push_back(std::move(t));
  }
}

}  // namespace

std::vector<TensorPlace> tensor_places(const ModelPlan& plan) {
  std::vector<TensorPlace> all;
  const size_t bucket = plan.bucket_for(1, plan.all_adapters());
  for (const Stage& stage : plan.stages) add_stage(plan, stage, stage.buckets[bucket], all);
  return all;
}

Json report_json(const std::vector<TensorPlace>& tensors) {
  Json all = Json::array();
  for (const TensorPlace& t : tensors)
    all.push_back({{"name", t.name},
                   {"format", t.format},
                   {"shape", t.shape},
                   {"layout", t.layout},
                   {"buffer", t.buffer},
                   {"device", t.device},
                   {"offset", t.offset},
                   {"bytes", t.bytes},
                   {"gap", t.gap},
                   {"op", t.op},
                   {"kernel", t.kernel},
                   {"reason", t.why}});
  return all;
}

}  // namespace gimbal
