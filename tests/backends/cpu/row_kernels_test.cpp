// CpuKernel::by_row is a promise that the schedule builds on: work item r reads row r alone of the inputs
// that the op reads row by row, and writes row r alone. Checked by giving each item nothing but garbage in
// the other rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/bytes.h"
#include "device/values.h"
#include "discovery/registry.h"
#include "ops/op_def.h"
#include "support/cpu_rows.h"

namespace gimbal::cpu {
namespace {

struct Bound {  // an op over memory of its own
  gimbal_op op{};
  std::vector<gimbal_value> values;  // the inputs', then the output's
  std::vector<std::vector<unsigned char>> memory;
  int rows = 1;

  void add(const Shape& s, gimbal_layout layout, const void* bytes, size_t size) {
    gimbal_value v{};
    set_shape(v, s);
    v.layout = uint8_t(layout), v.bytes = size;
    values.push_back(v);
    auto* p = static_cast<const unsigned char*>(bytes);
    memory.push_back(p ? std::vector<unsigned char>(p, p + size) : std::vector<unsigned char>(size, 0xab));
  }
  CpuTask task() {
    CpuTask t{};
    t.op = &op, t.out = &values.back(), t.y = memory.back().data(), t.rows = rows;
    for (size_t i = 0; i + 1 < values.size(); i++) t.in[i] = &values[i], t.x[i] = memory[i].data();
    return t;
  }
};

void check(const CpuKernel& k, const Bound& b, const std::string& name) {
  Bound whole = b, piecewise = b;
  CpuTask task = whole.task();
  ASSERT_EQ(k.work(task).items, b.rows) << name << ": a work item is a row";
  k.launch(task, 0, b.rows);
  for (int r = b.rows; r-- > 0;) {
    Bound one = b;
    one.memory.back() = piecewise.memory.back();
    for (size_t i = 0; i + 1 < b.values.size(); i++) {
      if (!(def(OpKind(k.info.op)).row_inputs() >> i & 1)) continue;
      const gimbal_value& v = b.values[i];
      const size_t row = v.bytes / size_t(v.dim[v.rank - 1]);
      for (size_t at = 0; at < v.bytes; at++)
        if (at / row != size_t(r))
          one.memory[i][at] = 0x7f;  // floats: of another size; integers: far outside
    }
    k.launch(one.task(), r, r + 1);
    const gimbal_value& out = b.values.back();
    if (out.layout == GIMBAL_DENSE) {
      const size_t row = out.bytes / size_t(out.dim[out.rank - 1]);
      for (size_t at = 0; at < out.bytes; at++) {
        if (at / row == size_t(r)) continue;
        ASSERT_EQ(one.memory.back()[at], piecewise.memory.back()[at])
            << name << ": row " << r << " wrote to row " << at / row;
      }
    }
    piecewise.memory.back() = one.memory.back();
  }
  EXPECT_EQ(piecewise.memory.back(), whole.memory.back()) << name << ": a row depends on other rows";
}

template <class T>
std::vector<T> numbers(std::initializer_list<T> n) {
  return n;
}

// The cases of ops/ write caches through programs; here the op is needed by itself.
Bound cache_write(const Device& d, DType type, bool is_key) {
  constexpr int kHeadDim = 32, kHeads = 2, kRows = 5, kPages = 3;
  Bound b;
  b.rows = kRows;
  b.op.inputs = 5, b.op.param.i[0] = is_key;
  const Shape cache(type, {kHeadDim, kHeads, kPagePositions, kPages});
  const uint64_t bytes = d.cache_bytes(type, is_key, kHeadDim, kHeads, kPagePositions, kPages);
  const std::vector<unsigned char> empty(bytes, 0);
  b.add(cache, GIMBAL_CACHE, empty.data(), bytes);
  std::vector<float> x;
  for (int i = 0; i < kHeadDim * kHeads * kRows; i++) x.push_back(float(i % 37) - 11.f);
  b.add(Shape(DType::F32, {kHeadDim, kHeads, kRows}), GIMBAL_DENSE, x.data(), x.size() * 4);
  const auto position = numbers<int32_t>({62, 63, 64, 0, 1}), sequence = numbers<int32_t>({0, 0, 0, 1, 1}),
             pages = numbers<int32_t>({2, 0, 1, 1});
  b.add(Shape(DType::I32, {kRows}), GIMBAL_DENSE, position.data(), position.size() * 4);
  b.add(Shape(DType::I32, {kRows}), GIMBAL_DENSE, sequence.data(), sequence.size() * 4);
  b.add(Shape(DType::I32, {2, 2}), GIMBAL_DENSE, pages.data(), pages.size() * 4);
  b.add(cache, GIMBAL_CACHE, empty.data(), bytes);
  return b;
}

// A cache of keys with as many pages as the case's table has. Any numbers will do, as for a table.
Shape add_cache(Bound& b, const Device& d, const Case& c, const Shape& rows) {
  const int64_t pages = c.inputs[size_t(def(c.kind).first(Role::Pages))].shape.count();
  const Shape cache(c.cache_type, {rows.dim[0], rows.dim[1], kPagePositions, pages});
  std::vector<unsigned char> bytes(
      size_t(d.cache_bytes(c.cache_type, true, rows.dim[0], rows.dim[1], kPagePositions, pages)));
  for (size_t at = 0; at < bytes.size(); at++) bytes[at] = (unsigned char)(at * 7 % 61);  // finite
  b.add(cache, GIMBAL_CACHE, bytes.data(), bytes.size());
  return cache;
}

TEST(RowKernels, AUnitSeesAndWritesItsRowAlone) {
  auto opened = open_device({"cpu", 0, true, "threads=1"});
  ASSERT_TRUE(opened) << opened.error().message;
  const Device& d = *opened->device;
  const test::CpuRows rows(d);
  ASSERT_EQ(rows.size(), d.kernel_count());
  std::set<uint16_t> ops, checked;
  for (size_t i = 0; i < d.kernel_count(); i++) {
    const CpuKernel& k = rows[i];
    if (!k.by_row) continue;
    ops.insert(k.info.op);
    if (k.info.needs & ~d.describe().features) continue;
    const auto kind = OpKind(k.info.op);
    for (DType type : kAllDTypes) {
      const int named_by = check_of(kind).named_by;
      if (!has(named_by == kNamedByOutput ? k.info.out[0].dtypes : k.info.in[named_by].dtypes, type))
        continue;
      if (kind == OpKind::CacheWrite) {
        for (bool is_key : {true, false}) check(k, cache_write(d, type, is_key), k.info.name);
        checked.insert(k.info.op);
        continue;
      }
      for (const Case& c : cases(kind, type)) {
        Bound b;
        std::vector<Shape> shapes;
        for (const CaseInput& in : c.inputs) {
          const Role role = def(kind).inputs[shapes.size()].role;
          if (role == Role::Cache) {
            shapes.push_back(add_cache(b, d, c, in.shape));
            continue;
          }
          const bool matrix = role == Role::Weight && in.shape.rank == 2;
          const auto packed = matrix ? d.packed_bytes(in.shape) : std::nullopt;
          shapes.push_back(in.shape);
          if (!packed) {
            b.add(in.shape, GIMBAL_DENSE, in.dense.data(), in.dense.size());
            continue;
          }
          // Any bytes will do for a table: what comes of them is only compared with itself.
          std::vector<unsigned char> table(size_t(*packed), 0);
          for (size_t at = 0; at < table.size(); at++) table[at] = (unsigned char)(at * 7 % 251);
          b.add(in.shape, GIMBAL_PACKED, table.data(), table.size());
        }
        const auto out = output_shape(kind, c.params, shapes);
        ASSERT_TRUE(out) << c.name;
        if (!has(k.info.out[0].dtypes, out->type)) continue;
        b.add(*out, GIMBAL_DENSE, nullptr, size_t(out->bytes()));
        b.rows = c.rows;
        b.op.inputs = uint16_t(c.inputs.size());
        set_params(b.op, c.params);
        check(k, b, k.info.name + std::string(", ") + c.name);
        checked.insert(k.info.op);
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_EQ(checked, ops);
  EXPECT_GE(ops.size(), 8u);
}

}  // namespace
}  // namespace gimbal::cpu
