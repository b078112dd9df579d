#include "conformance/kernel_setup.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/format.h"
#include "ops/op_def.h"
#include "program/builder.h"

namespace gimbal {
namespace {

constexpr int kSmallOps = 8;  // in one program, so that starting it does not count
constexpr uint64_t kMaxCopies = 4096;

class Recorder {
 public:
  // `bench`: the shape of each copy.
  Recorder(const Device& d, OpKind kind, std::function<Bench(int copy)> bench, int rows, uint64_t bytes)
      : device_(d), p_(d, rows, rows), kind_(kind), bench_(std::move(bench)), rows_(rows), bytes_(bytes) {}

  Result<KernelSetup> record() && {
    const Bench first = bench_(0);
    s_.shape = first.text;
    const int n = first.streams ? copies(first) : kSmallOps;
    for (int i = 0; i < n; i++) record_one(bench_(i), i);
    auto program = std::move(p_).finish();
    if (!program) return program.error();
    s_.program = std::move(*program);
    for (const gimbal_op& op : std::exchange(s_.program.ops, {}))
      (OpKind(op.kind) == kind_ ? s_.tested : s_.before).push_back(op);
    return std::move(s_);
  }

 private:
  void record_one(const Bench& b, int copy) {
    // If weights or caches dominate, the copies share all other inputs.
    const std::string own = format("{}", copy), rest = b.streams ? "" : own;
    const OpDef& op = def(kind_);
    std::vector<Value> in;
    bool keys = op.integer(b.params, "is_key", true);  // of ops that read caches, the first one
    std::vector<size_t> caches;
    for (size_t i = 0; i < b.inputs.size(); i++) {
      const BenchInput& input = b.inputs[i];
      const Shape& s = input.shape;
      const std::string name = op.inputs[i].name;
      switch (op.inputs[i].role) {
        case Role::Weight:
          in.push_back(s.rank == 2 ? p_.matrix(name + (b.streams ? own : ""), s) : p_.vector(name, s.dim[0]));
          break;
        case Role::Cache: caches.push_back(i); [[fallthrough]];
        case Role::Written:
          in.push_back(p_.cache(name, s.type, keys, s.dim[0], s.dim[1], s.dim[3]));
          keys = false;
          break;
        case Role::State: in.push_back(p_.state(name + rest, s, StateLayout::Dense, 0)); break;
        default: in.push_back(filled(name + rest, input, op.inputs[i].role));
      }
    }
    for (size_t i : caches) {
      const Shape& s = b.inputs[i].shape;
      const BenchInput rows{Shape(DType::F32, {s.dim[0], s.dim[1], rows_}), {}};
      p_.cache_write(in[i], i == caches[0], filled(format("rows of {}", op.inputs[i].name), rows, Role::Rows),
                     in[size_t(op.first(Role::Position))], in[size_t(op.first(Role::Sequence))],
                     in[size_t(op.first(Role::Pages))]);
    }
    p_.record(kind_, in, b.params);
  }

  // An input filled by the host; quantized rows are computed from one. Equal names give one value.
  Value filled(const std::string& name, const BenchInput& input, Role role) {
    auto [it, fresh] = filled_.try_emplace(name);
    if (!fresh) return it->second;
    const Shape& s = input.shape;
    if (info(s.type).gguf == kNotInFiles) {  // activations
      const BenchInput floats{Shape(DType::F32, {s.count() / s.last(), s.last()}), {}};
      OpParams p;
      p.i[0] = int32_t(s.type);
      const Value x = filled(name + " as floats", floats, role);
      Value codes = p_.record(OpKind::Quantize, {x}, p);
      if (s.rank == 3) codes = p_.split_heads(codes, int(s.dim[0]));
      return filled_[name] = codes;
    }
    int width = 1;  // of a row of floats; 0 for one whole number
    for (int i = 0; i + 1 < s.rank; i++) width *= int(s.dim[i]);
    Value v = by_row(role) ? p_.rows_input(name, s.type, s.rank > 1 ? width : 0) : p_.input(name, s);
    s_.inputs.push_back({v.id, input.whole});
    if (role == Role::Position) s_.position = v.id, s_.begin = input.whole.front();
    if (by_row(role) && s.rank == 3) v = p_.split_heads(v, int(s.dim[0]));
    return filled_[name] = v;
  }

  // The number of copies of the op that cover the requested memory.
  int copies(const Bench& b) const {
    uint64_t size = 0;
    for (size_t i = 0; i < b.inputs.size(); i++) {
      const Shape& s = b.inputs[i].shape;
      const Role role = def(kind_).inputs[i].role;
      // Counts memory on the device: a packed matrix can be larger than in the file.
      if (role == Role::Weight && s.rank == 2)
        size += std::min(uint64_t(s.bytes()), device_.packed_bytes(s).value_or(UINT64_MAX));
      if (role == Role::Cache || role == Role::Written)
        size += device_.cache_bytes(s.type, true, s.dim[0], s.dim[1], s.dim[2], s.dim[3]);
    }
    size = std::max<uint64_t>(size, 1);
    return int(std::clamp<uint64_t>((bytes_ + size - 1) / size, 1, kMaxCopies));
  }

  const Device& device_;
  ProgramBuilder p_;
  const OpKind kind_;
  const std::function<Bench(int)> bench_;
  const int rows_;
  const uint64_t bytes_;
  std::map<std::string, Value> filled_;
  KernelSetup s_;
};

}  // namespace

Result<KernelSetup> set_up_kernel(const Device& device, OpKind kind, DType format, int rows, uint64_t bytes) {
  return Recorder(
             device, kind, [&](int i) { return check_of(kind).bench(format, rows, i); }, rows, bytes)
      .record();
}
Result<KernelSetup> set_up_kernel(const Device& device, OpKind kind, const Bench& shape, int rows,
                                  uint64_t bytes) {
  return Recorder(
             device, kind, [&](int) { return shape; }, rows, bytes)
      .record();
}

}  // namespace gimbal
