#include "device/fit.h"

#include "base/format.h"
#include "device/values.h"

namespace gimbal {
namespace {

constexpr unsigned kParamsI = std::extent_v<decltype(OpParams::i)>,
                   kParamsF = std::extent_v<decltype(OpParams::f)>;

bool takes_layout(const gimbal_operand& o, const gimbal_value& v) {
  return v.layout == o.layout || (v.layout == GIMBAL_STRIDED && o.layout == GIMBAL_DENSE && o.strided);
}

// The quantity that a limit constrains, in a value or in the op; nullopt if this version does not know it.
std::optional<int64_t> measured(const gimbal_limit& l, const gimbal_op& op, const gimbal_value& v) {
  switch (l.what) {
    case GIMBAL_DIM: return l.index < GIMBAL_MAX_RANK ? std::optional(v.dim[l.index]) : std::nullopt;
    case GIMBAL_ROWS: return rows_of(v);
    case GIMBAL_RANK: return v.rank;
    case GIMBAL_LARGEST_DIM: return *std::max_element(std::begin(v.dim), std::end(v.dim));
    case GIMBAL_ROW_VALUES: return row_values(v);
    case GIMBAL_BYTES: return int64_t(std::min<uint64_t>(v.bytes, INT64_MAX));
    case GIMBAL_PARAM: return l.index < kParamsI ? std::optional(op.param.i[l.index]) : std::nullopt;
  }
  return std::nullopt;
}
bool within(const gimbal_limit& l, int64_t n) {
  return n >= l.min && n <= l.max && (l.multiple == 0 || n % l.multiple == 0);
}

// Calls `see` for each value that a limit constrains; false if this version does not know the selector.
template <class See>
bool each_value(const gimbal_limit& l, const gimbal_op& op, const gimbal_value* v, See see) {
  if (l.value == GIMBAL_EVERY_VALUE) {
    for (uint16_t in : inputs_of(op)) see(v[in]);
    for (uint16_t out : outputs_of(op)) see(v[out]);
  } else if (l.value == GIMBAL_OUTPUT) {
    see(v[op.out[0]]);
  } else if (l.value < GIMBAL_MAX_INPUTS) {
    if (l.value < op.inputs) see(v[op.in[l.value]]);
  } else {
    return false;
  }
  return true;
}

Misfit::What against(const gimbal_limit& l, const gimbal_op& op, const gimbal_value* v) {
  bool known = true, kept = true;
  known &= each_value(l, op, v, [&](const gimbal_value& value) {
    const auto n = measured(l, op, value);
    known &= n.has_value();
    kept &= n && within(l, *n);
  });
  return !known ? Misfit::UnknownLimit : kept ? Misfit::None : Misfit::Limit;
}

std::string limit_words(const gimbal_limit& l, const gimbal_op& op, const gimbal_value* v) {
  int64_t found = 0;
  each_value(l, op, v, [&](const gimbal_value& value) {
    if (const auto n = measured(l, op, value); n && !within(l, *n)) found = *n;
  });
  const std::string rule = found < l.min   ? format("{} or more", l.min)
                           : found > l.max ? format("{} or less", l.max)
                                           : format("a multiple of {}", l.multiple);
  return format("needs {} to be {}, but this op has {}", l.name ? l.name : "sizes", rule, found);
}

const char* layout_name(uint8_t layout) {
  static constexpr const char* kNames[] = {"dense", "packed", "cache", "strided"};
  return layout < std::size(kNames) ? kNames[layout] : "unknown";
}

std::string missing_features(uint32_t missing, const gimbal_device_info& d) {
  std::string out;
  for (int bit = 0; d.feature_names && d.feature_names[bit]; bit++)
    if (missing >> bit & 1) out += (out.empty() ? "" : ", ") + std::string(d.feature_names[bit]);
  return out;
}

}  // namespace

Misfit misfit(const gimbal_kernel_info& row, const gimbal_op& op, const gimbal_value* v,
              const gimbal_device_info& device, bool allow_fast) {
  if (row.op != op.kind) return {Misfit::AnotherOp};
  if (row.needs & ~device.features) return {Misfit::Features};
  if (op.inputs > GIMBAL_MAX_INPUTS || op.outputs > GIMBAL_MAX_OUTPUTS || op.outputs == 0)
    return {Misfit::TooManyValues};
  for (uint8_t i = 0; i < op.inputs; i++) {
    const gimbal_value& in = v[op.in[i]];
    if (!row.in[i].dtypes) return {Misfit::NoInput, i};
    if (!has(row.in[i].dtypes, DType(in.dtype))) return {Misfit::Input, i};
    if (!takes_layout(row.in[i], in)) return {Misfit::InputLayout, i};
  }
  for (uint8_t i = 0; i < op.outputs; i++) {
    const gimbal_value& out = v[op.out[i]];
    if (!row.out[i].dtypes) return {Misfit::NoOutput, i};
    if (!has(row.out[i].dtypes, DType(out.dtype))) return {Misfit::Output, i};
    if (!takes_layout(row.out[i], out)) return {Misfit::OutputLayout, i};
  }
  for (uint8_t i = 0; i < kParamsI; i++)
    if (op.param.i[i] != 0 && !(row.params & GIMBAL_PARAM_I(i))) return {Misfit::Param, i};
  for (uint8_t i = 0; i < kParamsF; i++)
    if (op.param.f[i] != 0 && !(row.params & GIMBAL_PARAM_F(i)))
      return {Misfit::Param, uint8_t(kParamsI + i)};
  for (uint32_t i = 0; i < row.n_limits; i++)
    if (const Misfit::What what = against(row.limits[i], op, v)) return {what, uint8_t(i)};
  if (row.numerics == GIMBAL_FAST && !allow_fast) return {Misfit::Fast};
  return {};
}

std::string words(const Misfit& m, const gimbal_kernel_info& row, const gimbal_op& op, const gimbal_value* v,
                  const gimbal_device_info& device) {
  auto name = [&](uint16_t value) { return info(DType(v[value].dtype)).name; };
  switch (m.what) {
    case Misfit::None: return "fits";
    case Misfit::AnotherOp:
      return is_known(OpKind(row.op)) ? format("computes {}", info(OpKind(row.op)).name)
                                      : "computes an op that this version does not know";
    case Misfit::Features:
      return format("needs {}, which the device lacks or the options disable",
                    missing_features(row.needs & ~device.features, device));
    case Misfit::TooManyValues:
      return format("no kernel has {} inputs and {} outputs", op.inputs, op.outputs);
    case Misfit::NoInput: return format("does not know an input {}", m.which + 1);
    case Misfit::Input:
      return m.which == 0 ? format("does not take {}", name(op.in[0]))
                          : format("does not take {} as input {}", name(op.in[m.which]), m.which + 1);
    case Misfit::InputLayout:
      return format("takes input {} {} only, but this is {}", m.which + 1,
                    layout_name(row.in[m.which].layout), layout_name(v[op.in[m.which]].layout));
    case Misfit::NoOutput: return format("does not know an output {}", m.which + 1);
    case Misfit::Output: return format("does not give {}", name(op.out[m.which]));
    case Misfit::OutputLayout:
      return format("gives its output {} only, but this is {}", layout_name(row.out[m.which].layout),
                    layout_name(v[op.out[m.which]].layout));
    case Misfit::Param:
      return format("does not know the parameter {}[{}] of {}", m.which < kParamsI ? "i" : "f",
                    m.which % kParamsI, info(OpKind(op.kind)).name);
    case Misfit::Limit: return limit_words(row.limits[m.which], op, v);
    case Misfit::UnknownLimit: return "has a limit that this version does not know";
    case Misfit::Fast: return "sums in another order (fast), but exact results were requested";
  }
  return "does not fit";
}

std::optional<std::string> why_not(const gimbal_kernel_info& row, const gimbal_op& op, const gimbal_value* v,
                                   const gimbal_device_info& device, bool allow_fast) {
  const Misfit m = misfit(row, op, v, device, allow_fast);
  return m ? std::optional(words(m, row, op, v, device)) : std::nullopt;
}

}  // namespace gimbal
