#include "conformance/conformance.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "base/format.h"
#include "conformance/case_program.h"
#include "conformance/judge.h"
#include "conformance/known_cases.h"
#include "device/fit.h"
#include "ops/op_def.h"
#include "program/place.h"

namespace gimbal {
namespace {

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
Result<Computed> compute(const Device& device, const Case& c, const CaseProgram& s) {
  Buffer buffers[kSlots];
  gimbal_buffer* slots[kSlots];
  const Program& p = s.program;
  for (size_t i = 0; i < kSlots; i++) {
    auto b = device.allocate(p.slot_bytes[i] + kGuard);
    if (!b) return b.error();
    buffers[i] = std::move(*b);
    slots[i] = buffers[i].handle();
  }
  Computed out;
  out.before.assign(p.slot_bytes[size_t(Slot::Output)] + kGuard, kUntouched);
  if (s.written) {
    const std::vector<std::byte>& memory = c.inputs[*s.written].dense;
    std::memcpy(&out.before[s.memory[*s.written]], memory.data(), memory.size());
  }
  if (auto ok = device.write(buffers[size_t(Slot::Output)], 0, out.before.data(), out.before.size()); !ok)
    return ok.error();
  for (size_t i = 0; i < s.inputs.size(); i++) {
    const gimbal_value& v = p.values[s.inputs[i]];
    const std::vector<std::byte>& data = c.inputs[i].dense;
    if (s.written == i) continue;
    auto ok = v.layout == GIMBAL_PACKED
                  ? device.pack(buffers[v.slot], v, data.data(), 0, v.dim[1])
                  : device.write(buffers[v.slot], s.memory[i], data.data(), data.size());
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
  out.output.resize(out.before.size());
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
      judge(c, s->written ? &c.inputs[*s->written] : nullptr, known.expected(s->program.info[s->out].shape),
            row, *out, report);
    }
  if (report.cases == 0) {
    report.not_run = why_none;
    report.unreachable = !(row.needs & ~about.features);
  }
  return report;
}

}  // namespace gimbal
