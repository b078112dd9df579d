#include "calibration/product_inputs.h"

#include "device/values.h"

namespace gimbal {
namespace {

std::optional<ProductInput> input_of(const Program& p, const gimbal_op& op, const WeightSource& weight,
                                     const std::vector<const gimbal_op*>& made_by) {
  const bool experts = OpKind(op.kind) == OpKind::ExpertMatMul;
  if ((!experts && OpKind(op.kind) != OpKind::MatMul) || weight.tensor == WeightSource::kNone ||
      weight.first_row != 0)
    return std::nullopt;
  uint16_t values = op.in[1];
  const int64_t columns = p.values[values].dim[0];
  // A quantized value has the places of the value that it was made of.
  if (const gimbal_op* made = made_by[p.info[values].root]; made && OpKind(made->kind) == OpKind::Quantize)
    values = made->in[0];
  ProductInput in{
      weight.tensor, weight.expert, values, columns, row_values(p.values[values]) / columns, 1, {}};
  if (!experts) return in;
  in.matrices = p.values[op.in[0]].dim[1] / op.param.i[0];
  if (op.inputs > 2) in.routes = op.in[2];
  return in;
}

}  // namespace

std::vector<ProductInput> product_inputs(const Program& p) {
  std::vector<const gimbal_op*> made_by(p.values.size());  // by root
  std::vector<const WeightSource*> source(p.values.size());
  for (size_t w = 0; w < p.weights.size(); w++) source[p.weights[w]] = &p.sources[w];
  std::vector<ProductInput> all;
  for (const gimbal_op& op : p.ops) {
    if (op.inputs > 1 && source[op.in[0]])
      if (auto in = input_of(p, op, *source[op.in[0]], made_by)) all.push_back(*in);
    made_by[p.info[op.out[0]].root] = &op;
  }
  return all;
}

}  // namespace gimbal
