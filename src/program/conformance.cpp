#include "program/conformance.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/format.h"
#include "device/fit.h"
#include "ops/cases.h"
#include "ops/reference.h"
#include "ops/shapes.h"
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

uint16_t place(Program& p, const std::string& name, const Shape& s, Slot slot, uint64_t bytes,
               gimbal_layout layout, gimbal_extent extent) {
  gimbal_value v{};
  v.slot = uint32_t(slot), v.dtype = uint8_t(s.type), v.rank = uint8_t(s.rank), v.layout = uint8_t(layout),
  v.extent = uint8_t(extent), v.bytes = bytes;
  for (int i = 0; i < 4; i++) v.dim[i] = s.dim[i];
  uint64_t& end = p.slot_bytes[size_t(slot)];
  v.offset = end;
  end = align_up(end + bytes, 64);
  p.values.push_back(v);
  p.info.push_back({name, s, uint16_t(p.info.size())});
  return uint16_t(p.values.size() - 1);
}

void record(Program& p, OpKind kind, const OpParams& params, std::initializer_list<uint16_t> in,
            uint16_t out) {
  gimbal_op op{};
  op.kind = uint16_t(kind), op.out = out;
  for (uint16_t v : in) op.in[op.inputs++] = v;
  op.param.f[0] = params.f[0], op.param.i[0] = params.i[0], op.param.i[1] = params.i[1];
  p.ops.push_back(op);
}

// Which positions of which sequences a case writes to its caches: see CaseInput.
struct Written {
  std::vector<int32_t> position, sequence;
  int32_t pages;  // of the cache

  explicit Written(const Case& c) {
    const Shape& table = c.inputs[5].shape;
    const int32_t sequences = table.dim[1] - 1;
    for (int32_t i = 0; i < c.inputs[1].shape.dim[2]; i++)
      position.push_back(i / sequences), sequence.push_back(1 + i % sequences);
    pages = table.dim[0] * sequences;
  }
};

Result<Setup> set_up(const Device& device, const Case& c, DType cache_type) {
  Setup s;
  const bool cached = c.kind == OpKind::Attention || c.kind == OpKind::CacheWrite;
  s.program.slot_bytes[size_t(Slot::Output)] = kGuard;
  for (const CaseInput& in : c.inputs) {
    auto packed = in.weight ? device.packed_bytes(in.shape) : std::nullopt;
    s.inputs.push_back(place(s.program, "input", in.shape, in.weight ? Slot::Weights : Slot::Step,
                             packed.value_or(uint64_t(in.shape.bytes())),
                             packed ? GIMBAL_PACKED : GIMBAL_DENSE, GIMBAL_ALL_ROWS));
  }
  std::vector<Shape> shapes;
  for (const CaseInput& in : c.inputs) shapes.push_back(in.shape);
  OpKind kind = c.kind;
  if (cached) {
    kind = OpKind::Attention;
    uint16_t cache[2];
    for (int kv = 0; kv < 2; kv++) {
      const Shape& rows = c.inputs[size_t(1 + kv)].shape;
      const Shape cs(cache_type, {rows.dim[0], rows.dim[1], kPagePositions, Written(c).pages});
      cache[kv] =
          place(s.program, "cache", cs, Slot::Cache,
                device.cache_bytes(cache_type, kv == 0, cs.dim[0], cs.dim[1], kPagePositions, cs.dim[3]),
                GIMBAL_CACHE, GIMBAL_ALL_ROWS);
      shapes[size_t(1 + kv)] = cs;
      const int n = rows.dim[2];
      uint16_t position = place(s.program, "position", Shape(DType::I32, {n}), Slot::Step, uint64_t(n) * 4,
                                GIMBAL_DENSE, GIMBAL_ALL_ROWS);
      uint16_t sequence = place(s.program, "sequence", Shape(DType::I32, {n}), Slot::Step, uint64_t(n) * 4,
                                GIMBAL_DENSE, GIMBAL_ALL_ROWS);
      OpParams params;
      params.i[0] = kv == 0;
      record(s.program, OpKind::CacheWrite, params,
             {cache[kv], s.inputs[size_t(1 + kv)], position, sequence, s.inputs[5]}, cache[kv]);
    }
    s.pinned = c.kind == OpKind::Attention ? 2 : 0;
    auto shape = output_shape(kind, c.params, shapes);
    if (!shape) return shape.error();
    s.out = place(s.program, "out", *shape, Slot::Output, uint64_t(shape->bytes()), GIMBAL_DENSE,
                  GIMBAL_STEP_ROWS);
    record(s.program, kind, c.params,
           {s.inputs[0], cache[0], cache[1], s.inputs[3], s.inputs[4], s.inputs[5]}, s.out);
    return s;
  }
  auto shape = output_shape(kind, c.params, shapes);
  if (!shape) return shape.error();
  s.out = place(s.program, "out", *shape, Slot::Output, uint64_t(shape->bytes()), GIMBAL_DENSE,
                c.kind == OpKind::SelectRows ? GIMBAL_OUT_ROWS : GIMBAL_STEP_ROWS);
  record(s.program, kind, c.params, {}, s.out);
  for (uint16_t v : s.inputs) s.program.ops[0].in[s.program.ops[0].inputs++] = v;
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
      reference::Tensor cache{p.info[p.ops[size_t(kv)].out].shape, {}};
      cache.values.assign(size_t(cache.shape.count()), 0);
      const int n = c.inputs[size_t(1 + kv)].shape.dim[2];
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
  computed.dim[computed.rank - 1] = c.rows;
  const reference::Tensor got = reference::decode(computed, bytes.data() + kGuard);
  std::vector<Shape> shapes;
  for (const CaseInput& in : c.inputs) shapes.push_back(in.shape);
  if (c.kind == OpKind::Attention || c.kind == OpKind::CacheWrite)
    shapes[1] = s.program.info[s.program.ops[0].out].shape;
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
  const DTypeSet set = OpKind(row.op) == OpKind::Attention ? row.in1 : row.in0;
  std::vector<DType> all;
  for (int t = 0; t < int(DType::Count); t++)
    if (has(set, DType(t))) all.push_back(DType(t));
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
