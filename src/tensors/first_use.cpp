// Kernels of GPUs are compared with the CPU at their first use: operands are copied there, and the result
// must have the same bits. The names of right kernels are kept in the user's cache folder.
#include <algorithm>
#include <cstring>

#include "tensors/recording.h"

namespace gimbal::v1 {
namespace {

using gimbal::OpKind;

constexpr const char* kSubject = "verified-tensors";  // of the file in the cache folder

// Operations inside a comparison are not compared themselves, and their transfers are not the program's.
thread_local bool compares = false;

struct Comparing {
  Comparing() { compares = true; }
  ~Comparing() { compares = false; }
};

gimbal::DType type_of(const gimbal::Program& p, uint16_t value) {
  return gimbal::DType(p.values[value].dtype);
}

// Numbers that differ. Two NaN are the same: their payloads may differ.
size_t different(const std::vector<std::byte>& a, const std::vector<std::byte>& b, gimbal::DType type) {
  const size_t width = gimbal::info(type).bytes;
  const auto is_nan = [&](const std::byte* at) {
    uint64_t bits = 0;
    std::memcpy(&bits, at, width);
    switch (type) {
      case gimbal::DType::F32: return (bits & 0x7fffffff) > 0x7f800000;
      case gimbal::DType::F16: return (bits & 0x7fff) > 0x7c00;
      case gimbal::DType::BF16: return (bits & 0x7fff) > 0x7f80;
      case gimbal::DType::F64: return (bits & 0x7fffffffffffffff) > 0x7ff0000000000000;
      default: return false;
    }
  };
  if (a.size() != b.size()) return SIZE_MAX;
  if (a == b) return 0;
  size_t n = 0;
  for (size_t at = 0; at < a.size(); at += width)
    n += std::memcmp(&a[at], &b[at], width) != 0 && !(width <= 8 && is_nan(&a[at]) && is_nan(&b[at]));
  return n;
}

void keep_right(Queue::State& q, const std::string& use) {
  FirstUses& all = *q.first_uses;
  const std::lock_guard lock(all.mutex);
  all.right.insert(use);
  gimbal::Json kernels = gimbal::Json::object();
  for (const auto* names : {&all.before, &all.right})
    for (const std::string& name : *names) kernels[name] = true;
  // Without a cache folder, the next start compares again.
  (void)gimbal::MachineCache(kSubject).put(gimbal::key_of(q.device()), {{"kernels", std::move(kernels)}});
}

void keep_wrong(Queue::State& q, const std::string& use, const gimbal::Error& why) {
  {
    const std::lock_guard lock(q.first_uses->mutex);
    q.first_uses->wrong.emplace(use, why);
  }
  const std::lock_guard lock(q.mutex);
  q.known.clear(), q.signatures.clear();  // some may use the kernel
}

}  // namespace

void Queue::State::count(uint64_t TransferCounts::*what, uint64_t n) {
  if (!compares) counts.*what += n;
}

// A row of the device for one choice of formats; of maps and reductions, also their function.
std::string first_use_of(const gimbal::Device& d, const gimbal::Program& p, const gimbal_op& op) {
  std::string name = d.kernel(op.kernel).name;
  const auto kind = OpKind(op.kind);
  if (kind == OpKind::Map || kind == OpKind::Reduce) name += format(".{}", gimbal::params_of(op).i[0]);
  for (const uint16_t value : gimbal::inputs_of(op))
    name += format(" {}", gimbal::info(type_of(p, value)).name);
  return name + format(" to {}", gimbal::info(type_of(p, op.out[0])).name);
}

bool compares_first_uses(const Queue::State& q, OpKind kind) {
  return q.first_uses && !compares && kind != OpKind::Custom && kind != OpKind::CustomInPlace;
}

bool is_new_use(Queue::State& q, const std::string& use) {
  FirstUses& all = *q.first_uses;
  const std::lock_guard lock(all.mutex);
  if (!std::exchange(all.read, true)) {
    const gimbal::Json entry = gimbal::MachineCache(kSubject).find(gimbal::key_of(q.device()));
    if (entry.is_object() && entry.contains("kernels") && entry["kernels"].is_object())
      for (const auto& [name, right] : entry["kernels"].items())
        if (right == true) all.before.insert(name);
  }
  return !all.before.contains(use) && !all.right.contains(use) && !all.wrong.contains(use);
}

std::optional<gimbal::Error> wrong_use(Queue::State& q, const std::string& use) {
  if (!q.first_uses) return std::nullopt;
  const std::lock_guard lock(q.first_uses->mutex);
  const auto it = q.first_uses->wrong.find(use);
  return it == q.first_uses->wrong.end() ? std::nullopt : std::optional(it->second);
}

std::vector<VerifiedKernel> Queue::verified() const {
  std::vector<VerifiedKernel> list;
  if (!state_->first_uses) return list;
  FirstUses& all = *state_->first_uses;
  const std::lock_guard lock(all.mutex);
  for (const std::string& name : all.before) list.push_back({name, true, true});
  for (const std::string& name : all.right) list.push_back({name, true});
  for (const auto& [name, why] : all.wrong) list.push_back({name, false});
  return list;
}

gimbal::Result<Tensor> compared(const std::string& use, OpKind kind, const gimbal::OpParams& params,
                                std::span<const Tensor> in, bool writes,
                                const std::function<gimbal::Result<Tensor>()>& run) {
  const auto& queue = state_of(in[0]).queue;
  auto cpu = opened_cpu(queue->first_uses->mutex, queue->first_uses->cpu);
  if (!cpu) return refuse(in[0], cpu.error());
  std::vector<Tensor> there;
  std::optional<Tensor> want;
  {
    const Comparing now;
    for (const Tensor& t : in) there.push_back(t.to(*cpu));
    want = apply(kind, params, there);
  }
  gimbal::Result<Tensor> ran = run();
  if (!ran || !ran->ok() || !want->ok()) return ran;  // an error on either side: nothing to compare
  const Tensor& got = *ran;
  size_t wrong = 0;
  {
    const Comparing now;
    auto ours = got.bytes(), right = want->bytes();
    if (!ours) return refuse(in[0], ours.error());
    if (!right) return refuse(in[0], right.error());
    wrong = different(*ours, *right, state_of(got).type);
  }
  if (!wrong) return keep_right(*queue, use), ran;
  const gimbal::Error why{gimbal::Code::Failed,
                          format("kernel {} of {}: at its first use, {} of {} numbers differ from the CPU's",
                                 use, queue->device().id(), wrong, got.count()),
                          "use another device, or update its driver", gimbal::reason::kVerificationFailed};
  keep_wrong(*queue, use, why);
  if (writes || queue->strict) return refuse(in[0], to_public(why));
  return computed_by_the_cpu(words_of(kind, state_of(in[0]).type, state_of(got).type), to_public(why), in,
                             [&](std::span<const Tensor> again) { return apply(kind, params, again); });
}

std::optional<Error> first_uses_of(const RecordedProgram& p, const std::function<Status()>& run) {
  Queue::State& q = *p.queue;
  if (!q.first_uses) return std::nullopt;
  std::vector<std::string> uses;
  for (const gimbal_op& op : p.program.ops)
    if (compares_first_uses(q, OpKind(op.kind))) uses.push_back(first_use_of(q.device(), p.program, op));
  if (std::any_of(uses.begin(), uses.end(), [&](const auto& use) { return is_new_use(q, use); }))
    if (Status ok = run(); !ok) return ok.error();
  for (const std::string& use : uses)
    if (auto wrong = wrong_use(q, use)) return to_public(*wrong);
  return std::nullopt;
}

}  // namespace gimbal::v1
