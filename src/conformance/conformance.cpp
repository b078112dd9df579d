#include "conformance/conformance.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/format.h"
#include "device/fit.h"
#include "ops/cases.h"
#include "ops/reference.h"
#include "program/builder.h"
#include "program/place.h"

namespace gimbal {
namespace {

constexpr size_t kGuard = 256;  // bytes behind every buffer, and before the output, that nobody may touch
constexpr unsigned char kUntouched = 0xab;

// One case as a program: its op, and before attention the writes that fill the caches.
struct Setup {
  Program program;
  std::vector<uint16_t> inputs;  // value of each case input; caches: of the rows to be written
  uint16_t out = 0;
  size_t pinned = 0;  // the op under test
};

// Which positions of which sequences a case writes to its caches: see CaseInput.
struct Written {
  std::vector<int32_t> position, sequence;
  int32_t pages;  // of the cache

  explicit Written(const Case& c) {
    const Shape& table = c.inputs[5].shape;
    const auto sequences = int32_t(table.dim[1] - 1);
    for (int32_t i = 0; i < c.inputs[1].shape.dim[2]; i++)
      position.push_back(i / sequences), sequence.push_back(1 + i % sequences);
    pages = int32_t(table.dim[0]) * sequences;
  }
};

Result<Setup> set_up(const Device& device, const Case& c, DType cache_type) {
  Setup s;
  const bool cached = c.kind == OpKind::Attention || c.kind == OpKind::CacheWrite;
  ProgramBuilder p(device, c.capacity, c.capacity);
  p.continue_at(Slot::Output, kGuard);
  std::vector<Value> in;
  for (const CaseInput& i : c.inputs) {
    const std::string name = format("input {}", in.size());
    in.push_back(i.weight ? p.matrix(name, i.shape) : p.input(name, i.shape));
    s.inputs.push_back(in.back().id);
  }
  for (size_t kv = 1; cached && kv <= 2; kv++) {
    const Shape& rows = c.inputs[kv].shape;
    const Shape each(DType::I32, {rows.dim[2]});
    const bool keys = kv == 1;
    const Value cache =
        p.cache(keys ? "keys" : "values", cache_type, keys, rows.dim[0], rows.dim[1], Written(c).pages);
    const Value position = p.input("position", each), sequence = p.input("sequence", each);
    p.cache_write(cache, keys, in[kv], position, sequence, in[5]);
    in[kv] = cache;
  }
  s.pinned = c.kind == OpKind::Attention ? 2 : 0;
  const Value out = p.record(cached ? OpKind::Attention : c.kind, in, c.params, "out");
  p.output(out);
  auto program = std::move(p).finish();
  if (!program) return program.error();
  s.program = std::move(*program);
  s.out = out.id;
  // The inputs have all the rows that there is room for; the case says how many of the output are wanted.
  s.program.values[s.out].extent = c.kind == OpKind::SelectRows ? GIMBAL_OUT_ROWS : GIMBAL_STEP_ROWS;
  return s;
}

// What the reference says, and the magnitude of its terms.
reference::Tensor expected(const Case& c, const Setup& s, std::vector<double>& magnitude) {
  std::vector<reference::Tensor> in;
  for (const CaseInput& i : c.inputs) in.push_back(reference::decode(i.shape, i.dense.data()));
  const Program& p = s.program;
  if (p.ops.size() == 3) {
    const Written written(c);
    for (int kv = 0; kv < 2; kv++) {
      reference::Tensor cache{p.info[p.ops[size_t(kv)].out[0]].shape, {}};
      cache.values.assign(size_t(cache.shape.count()), 0);
      const auto n = int(c.inputs[size_t(1 + kv)].shape.dim[2]);
      const reference::Tensor position = reference::decode(Shape(DType::I32, {n}), written.position.data()),
                              sequence = reference::decode(Shape(DType::I32, {n}), written.sequence.data());
      const reference::Tensor* write[] = {&cache, &in[size_t(1 + kv)], &position, &sequence, &in[5]};
      reference::run(OpKind::CacheWrite, {}, write, cache, n, 0);
      in[size_t(1 + kv)] = std::move(cache);
    }
  }
  reference::Tensor out{p.info[s.out].shape, {}};
  out.values.assign(size_t(out.shape.count()), 0);
  std::vector<const reference::Tensor*> pointers;
  for (const reference::Tensor& t : in) pointers.push_back(&t);
  reference::run(c.kind == OpKind::CacheWrite ? OpKind::Attention : c.kind, c.params, pointers, out, c.rows,
                 c.rows, &magnitude);
  return out;
}

struct Computed {
  std::vector<unsigned char> output;  // the whole slot: guard, values, guard
  std::string damage;                 // what was written to outside the output; empty when nothing was
};

// A slot as it is now. Inputs must stay what they are; caches may change, but not behind their end.
Result<std::vector<unsigned char>> fixed_part(const Device& device, const Program& p, const Buffer* buffers,
                                              Slot slot) {
  const size_t end = p.slot_bytes[size_t(slot)] + kGuard;
  const size_t begin = slot == Slot::Cache ? p.slot_bytes[size_t(slot)] : 0;
  std::vector<unsigned char> bytes(end - begin);
  auto ok = device.read(buffers[size_t(slot)], begin, bytes.data(), bytes.size());
  if (!ok) return ok.error();
  return bytes;
}

// Fills the buffers, runs the program, and reads the output slot with its guards.
Result<Computed> compute(const Device& device, const Case& c, const Setup& s) {
  Buffer buffers[kSlots];
  gimbal_buffer* slots[kSlots];
  const Program& p = s.program;
  for (size_t i = 0; i < kSlots; i++) {
    auto b = device.allocate(p.slot_bytes[i] + kGuard);
    if (!b) return b.error();
    buffers[i] = std::move(*b);
    slots[i] = buffers[i].handle();
  }
  std::vector<unsigned char> pattern(p.slot_bytes[size_t(Slot::Output)] + kGuard, kUntouched);
  if (auto ok = device.write(buffers[size_t(Slot::Output)], 0, pattern.data(), pattern.size()); !ok)
    return ok.error();
  for (size_t i = 0; i < s.inputs.size(); i++) {
    const gimbal_value& v = p.values[s.inputs[i]];
    auto ok =
        v.layout == GIMBAL_PACKED
            ? device.pack(buffers[v.slot], v, c.inputs[i].dense.data(), 0, v.dim[1])
            : device.write(buffers[v.slot], v.offset, c.inputs[i].dense.data(), c.inputs[i].dense.size());
    if (!ok) return ok.error();
  }
  for (size_t i = 0; i + 1 < p.ops.size(); i++) {  // cache writes
    const Written written(c);
    for (auto [input, values] : {std::pair{2, &written.position}, {3, &written.sequence}}) {
      const gimbal_value& v = p.values[p.ops[i].in[input]];
      if (auto ok = device.write(buffers[v.slot], v.offset, values->data(), values->size() * 4); !ok)
        return ok.error();
    }
  }
  constexpr Slot kFixed[] = {Slot::Weights, Slot::Step, Slot::Cache, Slot::Work};
  std::vector<std::vector<unsigned char>> before;
  for (Slot slot : kFixed) {
    auto bytes = fixed_part(device, p, buffers, slot);
    if (!bytes) return bytes.error();
    before.push_back(std::move(*bytes));
  }
  auto e = device.compile(p.view());
  if (!e) return e.error();
  if (auto ok = device.submit(*e, slots, kSlots, {c.rows, c.rows}); !ok) return ok.error();
  if (auto ok = device.wait(); !ok) return ok.error();
  Computed out{std::move(pattern), ""};
  if (auto ok = device.read(buffers[size_t(Slot::Output)], 0, out.output.data(), out.output.size()); !ok)
    return ok.error();
  for (size_t i = 0; i < std::size(kFixed); i++) {
    auto bytes = fixed_part(device, p, buffers, kFixed[i]);
    if (!bytes) return bytes.error();
    if (*bytes != before[i]) out.damage = format("the {} were written to", name_of(kFixed[i]));
  }
  return out;
}

void judge(const Case& c, const Setup& s, const Computed& computed_bytes, KernelReport& report) {
  const std::vector<unsigned char>& bytes = computed_bytes.output;
  std::vector<double> magnitude;
  const reference::Tensor want = expected(c, s, magnitude);
  const Shape& shape = want.shape;
  Shape computed = shape;
  computed.last() = c.rows;
  const reference::Tensor got = reference::decode(computed, bytes.data() + kGuard);
  std::vector<Shape> shapes;
  for (const CaseInput& in : c.inputs) shapes.push_back(in.shape);
  if (c.kind == OpKind::Attention || c.kind == OpKind::CacheWrite)
    shapes[1] = s.program.info[s.program.ops[0].out[0]].shape;
  const double allowed = tolerance(c.kind == OpKind::CacheWrite ? OpKind::Attention : c.kind, shapes);
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < got.values.size(); i++) {
    const double error = std::fabs(got.values[i] - want.values[i]);
    const double g = got.values[i], w = want.values[i];
    // Where nothing may be rounded, a zero has its sign.
    const bool same =
        (std::isnan(g) && std::isnan(w)) || (g == w && (allowed > 0 || std::signbit(g) == std::signbit(w)));
    const double share = same                                  ? 0
                         : !std::isfinite(error) || error == 0 ? INFINITY
                                                               : error / (allowed * magnitude[i] + 1e-37);
    if (!(share <= worst)) worst = share, at = i;
  }
  report.cases++;
  report.worst = std::max(report.worst, worst);
  std::string wrong;
  if (!(worst <= 1))
    wrong = format("value {} is {:.9g}, expected {:.9g}: {:.3g} times the error that the definition allows",
                   at, got.values[at], want.values[at], worst);
  if (wrong.empty()) wrong = computed_bytes.damage;
  for (size_t i = 0; i < kGuard && wrong.empty(); i++)
    if (bytes[i] != kUntouched) wrong = format("byte {} before the output was overwritten", kGuard - i);
  const auto used = kGuard + size_t(computed.bytes());
  for (size_t i = used; i < bytes.size() && wrong.empty(); i++)
    if (bytes[i] != kUntouched)
      wrong = format("byte {} behind the {} rows to compute was overwritten", i - used, c.rows);
  if (wrong.empty()) return;
  report.failed++;
  report.failures.push_back(c.name + ": " + wrong);
}

// The format that a row's cases are made for: of its first input, or of its cache.
std::vector<DType> formats(const gimbal_kernel_info& row) {
  const DTypeSet set = row.in[OpKind(row.op) == OpKind::Attention ? 1 : 0].dtypes;
  std::vector<DType> all;
  for (DType t : kAllDTypes)
    if (has(set, t)) all.push_back(t);
  return all;
}

}  // namespace

Result<KernelReport> check_kernel(const Device& device, size_t kernel) {
  const gimbal_kernel_info& row = device.kernel(kernel);
  const gimbal_device_info about = device.describe();
  KernelReport report;
  std::string why_none = "no case has its formats";
  for (DType t : formats(row))
    for (const Case& c : cases(OpKind(row.op), t)) {
      auto s = set_up(device, c, t);
      if (!s) return s.error();
      auto chosen = assign_kernels(s->program, device, {});
      if (!chosen) {  // a device may have nothing but fast rows
        KernelPreference any;
        any.allow_fast = true;
        chosen = assign_kernels(s->program, device, any);
      }
      if (!chosen) {
        why_none = chosen.error().message;
        continue;
      }
      gimbal_op& op = s->program.ops[s->pinned];
      if (auto why = why_not(row, op, s->program.values.data(), about, true)) {
        why_none = *why;
        continue;
      }
      op.kernel = uint16_t(kernel);  // this very row, also when another outranks it
      if (OpKind(row.op) == OpKind::CacheWrite) s->program.ops[1].kernel = uint16_t(kernel);
      auto out = compute(device, c, *s);
      if (!out) return out.error();
      judge(c, *s, *out, report);
    }
  if (report.cases == 0) {
    report.not_run = why_none;
    report.unreachable = !(row.needs & ~about.features);
  }
  return report;
}

}  // namespace gimbal
