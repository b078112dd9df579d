#include "conformance/conformance.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "base/format.h"
#include "conformance/known_cases.h"
#include "device/fit.h"
#include "ops/op_def.h"
#include "program/builder.h"
#include "program/place.h"

namespace gimbal {
namespace {

constexpr size_t kGuard = 256;  // guard bytes after every buffer and before the output
constexpr unsigned char kUntouched = 0xab;

// One case as a program: its op, preceded by the writes that fill its caches.
struct Setup {
  Program program;
  std::vector<uint16_t> inputs;  // value of each case input; caches: of the rows to be written
  std::optional<uint16_t> written_position, written_sequence;  // of the rows of caches
  uint16_t out = 0;
  std::optional<uint16_t> state;
  gimbal_step step;
};

// Step inputs for the rows of all caches.
void fill_caches(ProgramBuilder& p, const Case& c, std::vector<Value>& in, Setup& s) {
  const OpDef& op = def(c.kind);
  const Written written(c);
  if (written.position.empty()) return;
  const Shape each(DType::I32, {int32_t(written.position.size())});
  const Value position = p.input("position", each), sequence = p.input("sequence", each);
  s.written_position = position.id, s.written_sequence = sequence.id;
  bool keys = true;  // the first one
  for (size_t i = 0; i < in.size(); i++) {
    if (op.inputs[i].role != Role::Cache) continue;
    const Shape& rows = c.inputs[i].shape;
    const Value cache =
        p.cache(op.inputs[i].name, c.cache_type, keys, rows.dim[0], rows.dim[1], written.pages);
    p.cache_write(cache, keys, in[i], position, sequence, in[size_t(op.first(Role::Pages))]);
    in[i] = cache, keys = false;
  }
}

// `extent`: the step number that counts the rows. The other one is set to the capacity, so that a kernel that
// reads the wrong one is detected.
Result<Setup> set_up(const Device& device, const Case& c, gimbal_extent extent) {
  Setup s;
  ProgramBuilder p(device, c.capacity, c.capacity);
  p.continue_at(Slot::Output, kGuard);
  std::vector<Value> in;
  for (const CaseInput& i : c.inputs) {
    const std::string name = format("input {}", in.size());
    const Role role = def(c.kind).inputs[in.size()].role;
    in.push_back(role == Role::State    ? p.state(name, i.shape, StateLayout::Dense, 0)
                 : role != Role::Weight ? p.input(name, i.shape)
                 : i.shape.rank == 2    ? p.matrix(name, i.shape)
                                        : p.vector(name, i.shape.dim[0]));
    s.inputs.push_back(in.back().id);
    if (role == Role::State) s.state = in.back().id;
  }
  fill_caches(p, c, in, s);
  const Value out = p.record(c.kind, in, c.params, "out");
  p.output(out);
  auto program = std::move(p).finish();
  if (!program) return program.error();
  s.program = std::move(*program);
  s.out = out.id;
  // The inputs have all rows of the capacity; the case sets the number of output rows to compute.
  s.program.values[s.out].extent = extent;
  s.step = extent == GIMBAL_STEP_ROWS ? gimbal_step{c.rows, c.capacity} : gimbal_step{c.capacity, c.rows};
  return s;
}

struct Computed {
  std::vector<unsigned char> output;  // the whole slot: guard, values, guard
  std::string damage;                 // writes outside the output; empty if none
  std::vector<unsigned char> state;   // of ops that have one
};

// The current contents of a slot. Inputs must not change; caches may, but not beyond their end.
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
  const Written written(c);
  for (auto [input, values] :
       {std::pair{s.written_position, &written.position}, {s.written_sequence, &written.sequence}}) {
    if (!input) continue;
    const gimbal_value& v = p.values[*input];
    if (auto ok = device.write(buffers[v.slot], v.offset, values->data(), values->size() * 4); !ok)
      return ok.error();
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
  if (auto ok = device.submit(*e, slots, kSlots, s.step); !ok) return ok.error();
  if (auto ok = device.wait(); !ok) return ok.error();
  Computed out{std::move(pattern), "", {}};
  if (s.state) {
    const gimbal_value& v = p.values[*s.state];
    out.state.resize(v.bytes);
    if (auto ok = device.read(buffers[v.slot], v.offset, out.state.data(), v.bytes); !ok) return ok.error();
  }
  if (auto ok = device.read(buffers[size_t(Slot::Output)], 0, out.output.data(), out.output.size()); !ok)
    return ok.error();
  for (size_t i = 0; i < std::size(kFixed); i++) {
    auto bytes = fixed_part(device, p, buffers, kFixed[i]);
    if (!bytes) return bytes.error();
    if (*bytes != before[i]) out.damage = format("the {} were written to", name_of(kFixed[i]));
  }
  return out;
}

// The largest fraction of the allowed error, and its location.
struct Worst {
  double share = 0;
  size_t at = 0;
};
Worst worst_of(const std::vector<double>& got, const std::vector<double>& want,
               const std::vector<double>& magnitude, double allowed) {
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < got.size(); i++) {
    const double g = got[i], w = want[i], error = std::fabs(g - w);
    // Where no rounding is allowed, zeros must have the right sign.
    const bool same =
        (std::isnan(g) && std::isnan(w)) || (g == w && (allowed > 0 || std::signbit(g) == std::signbit(w)));
    const double share = same                                  ? 0
                         : !std::isfinite(error) || error == 0 ? INFINITY
                                                               : error / (allowed * magnitude[i] + 1e-37);
    if (!(share <= worst)) worst = share, at = i;
  }
  return {worst, at};
}

// Words, because every output consists of them; a NaN may have any payload.
void add_bits(Hash& hash, const DType type, const unsigned char* bytes, size_t n) {
  for (size_t at = 0; at + 4 <= n; at += 4) {
    uint32_t word = 0;
    std::memcpy(&word, bytes + at, 4);
    const bool is_nan = type == DType::F32 && (word & 0x7fffffff) > 0x7f800000;
    hash.add(uint64_t(is_nan ? 0x7fc00000 : word));
  }
}

void judge(const Case& c, const Expected& want, const gimbal_kernel_info& row, const Computed& computed_bytes,
           KernelReport& report) {
  const std::vector<unsigned char>& bytes = computed_bytes.output;
  Shape computed = want.out.shape;
  computed.last() = c.rows;
  std::vector<Shape> shapes;
  for (const CaseInput& in : c.inputs) shapes.push_back(in.shape);
  const double allowed = tolerance(c.kind, shapes) + double(row.tolerance);
  report.cases++;
  std::string wrong;
  auto compare = [&](const char* what, const reference::Tensor& got, const reference::Tensor& wanted,
                     const std::vector<double>& magnitude) {
    const Worst worst = worst_of(got.values, wanted.values, magnitude, allowed);
    report.worst = std::max(report.worst, worst.share);
    if (!(worst.share <= 1) && wrong.empty())
      wrong = format("{} {} is {:.9g}, expected {:.9g}: {:.3g} times the error that the definition allows",
                     what, worst.at, got.values[worst.at], wanted.values[worst.at], worst.share);
  };
  compare("value", reference::decode(computed, bytes.data() + kGuard), want.out, want.magnitude);
  if (!computed_bytes.state.empty())
    compare("value of the state", reference::decode(want.state.shape, computed_bytes.state.data()),
            want.state, want.state_magnitude);
  add_bits(report.bits, computed.type, bytes.data() + kGuard, size_t(computed.bytes()));
  add_bits(report.bits, DType::F32, computed_bytes.state.data(), computed_bytes.state.size());
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

}  // namespace

std::vector<DType> formats_of(const gimbal_kernel_info& row) {
  const int named_by = check_of(OpKind(row.op)).named_by;
  const DTypeSet set = named_by == kNamedByOutput ? row.out[0].dtypes : row.in[named_by].dtypes;
  std::vector<DType> all;
  for (DType t : kAllDTypes)
    if (has(set, t)) all.push_back(t);
  return all;
}

std::vector<size_t> by_cases(const Device& device, std::vector<size_t> kernels) {
  const auto cases_of = [&](size_t k) {
    const std::vector<DType> formats = formats_of(device.kernel(k));
    return std::pair(device.kernel(k).op, formats.empty() ? kAllDTypes[0] : formats[0]);
  };
  std::stable_sort(kernels.begin(), kernels.end(),
                   [&](size_t a, size_t b) { return cases_of(a) < cases_of(b); });
  return kernels;
}

std::vector<size_t> by_cases(const Device& device) {
  std::vector<size_t> all(device.kernel_count());
  std::iota(all.begin(), all.end(), size_t(0));
  return by_cases(device, std::move(all));
}

KernelChecks::KernelChecks() = default;
KernelChecks::~KernelChecks() = default;

Result<KernelReport> check_kernel(const Device& device, size_t kernel) {
  return KernelChecks().check(device, kernel);
}

Result<KernelReport> KernelChecks::check(const Device& device, size_t kernel) {
  if (!known_) known_ = std::make_unique<KnownCases>();
  const gimbal_kernel_info& row = device.kernel(kernel);
  const gimbal_device_info about = device.describe();
  KernelReport report;
  std::string why_none = "no case has its formats";
  bool odd = false;
  for (DType t : formats_of(row))
    for (KnownCase& known : known_->of(OpKind(row.op), t)) {
      const Case& c = known.input;
      auto s = set_up(device, c, (odd = !odd) ? GIMBAL_STEP_ROWS : GIMBAL_OUT_ROWS);
      if (!s) return s.error();
      auto chosen = assign_kernels(s->program, device, {});
      if (!chosen) {  // a device may have only fast rows
        KernelPreference any;
        any.allow_fast = true;
        chosen = assign_kernels(s->program, device, any);
      }
      if (!chosen) {
        why_none = chosen.error().message;
        continue;
      }
      std::optional<std::string> why;
      for (gimbal_op& op : s->program.ops) {
        if (op.kind != row.op) continue;
        if (!why) why = why_not(row, op, s->program.values.data(), about, true);
        op.kernel = uint16_t(kernel);  // this row, even if another has a higher rank
      }
      if (why) {
        why_none = *why;
        continue;
      }
      auto out = compute(device, c, *s);
      if (!out) return out.error();
      judge(c, known.expected(s->program.info[s->out].shape), row, *out, report);
    }
  if (report.cases == 0) {
    report.not_run = why_none;
    report.unreachable = !(row.needs & ~about.features);
  }
  return report;
}

}  // namespace gimbal
