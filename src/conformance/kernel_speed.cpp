#include "conformance/kernel_speed.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>

#include "conformance/kernel_setup.h"
#include "device/fit.h"
#include "tensor/format.h"
#include "tensor/quant_encode.h"

namespace gimbal {
namespace {

constexpr int kFewRows = 64;   // below this, ops are memory-bound; from here on, compute-bound
constexpr int kPromptOps = 4;  // ops of one pass with many rows
constexpr int kTrialRows = 16;
constexpr int kMinPasses = 3;
constexpr int kRacePasses = 5, kRaceDoubtful = 25, kRaceTrials = 4, kRaceTrialRows = 4;
constexpr double kHopeless = 6;  // times the fastest

using Bits = std::mt19937_64;

std::vector<float> random_floats(size_t n, Bits& bits) {
  std::vector<float> x(n);
  for (float& v : x) v = float(int64_t(bits()) >> 40) / float(1 << 22);
  return x;
}

// A matrix as in a file: some random rows, repeated, because no kernel's speed depends on the values.
std::vector<unsigned char> random_matrix(const Shape& s, Bits& bits) {
  const auto row = size_t(row_bytes(s.type, s.dim[0]));
  const auto different = std::min<int64_t>(s.dim[1], 64);
  std::vector<unsigned char> data(size_t(s.bytes() + tensor_tail_bytes(s.type)));
  if (info(s.type).block == 1) {
    const auto x = random_floats(size_t(s.dim[0]) * size_t(different), bits);
    encode(s.type, x.data(), int64_t(x.size()), data.data());
  } else {
    random_blocks(s.type, int64_t(s.dim[0]) * different, data.data(), [&] { return bits(); });
  }
  for (int64_t r = different; r < s.dim[1]; r++)
    std::memcpy(&data[size_t(r) * row], &data[size_t(r % different) * row], row);
  if (tensor_tail_bytes(s.type)) {
    const float scale = 1;
    std::memcpy(&data[size_t(s.bytes())], &scale, sizeof scale);
  }
  return data;
}

}  // namespace

struct KernelTimer::Run {
  KernelSetup setup;
  gimbal_buffer* slots[kSlots] = {};
  int capacity = 0;
};

Status KernelTimer::ensure(Slot slot, uint64_t bytes) {
  Buffer& b = buffers_[size_t(slot)];
  if (b && b.size() >= bytes) return Done{};
  b = Buffer();  // release the old one before allocating the new one
  auto fresh = device_.allocate(std::max<uint64_t>(bytes, 64));
  if (!fresh) return fresh.error();
  b = std::move(*fresh);
  return Done{};
}

// Fills weights, inputs, and the precomputed inputs of the tested ops: quantized activations, a filled cache.
Status KernelTimer::fill(Run& run) {
  const Program& p = run.setup.program;
  Bits bits(p.values.size());
  for (size_t i = 0; i < kSlots; i++) {
    if (auto ok = ensure(Slot(i), p.slot_bytes[i]); !ok) return ok.error();
    run.slots[i] = buffers_[i].handle();
  }
  Buffer& weights = buffers_[size_t(Slot::Weights)];
  std::vector<unsigned char> laid_out;  // packed bytes of the first matrix serve for all of its shape
  for (size_t i = 0; i < p.weights.size(); i++) {
    const gimbal_value& v = p.values[p.weights[i]];
    const Shape& shape = p.info[p.weights[i]].shape;
    if (i > 0 && shape == p.info[p.weights[0]].shape) {
      if (auto ok = device_.write(weights, v.offset, laid_out.data(), laid_out.size()); !ok)
        return ok.error();
      continue;
    }
    const auto data = random_matrix(shape, bits);
    auto ok = v.layout == GIMBAL_PACKED
                  ? device_.pack(weights, v, data.data(), 0, v.dim[1])
                  : device_.write(weights, v.offset, data.data(), size_t(shape.bytes()));
    if (!ok) return ok.error();
    if (i > 0) continue;
    laid_out.resize(v.bytes);
    if (auto read = device_.read(weights, v.offset, laid_out.data(), laid_out.size()); !read)
      return read.error();
  }
  Buffer& step = buffers_[size_t(Slot::Step)];
  for (const SetupInput& in : run.setup.inputs) {
    const gimbal_value& v = p.values[in.value];
    const auto x = in.whole.empty() ? random_floats(size_t(v.bytes) / 4, bits) : std::vector<float>();
    const void* from = in.whole.empty() ? static_cast<const void*>(x.data()) : in.whole.data();
    if (auto ok = device_.write(step, v.offset, from, v.bytes); !ok) return ok.error();
  }

  return Done{};
}

Status KernelTimer::compute_before(Run& run) {
  Program& p = run.setup.program;
  if (run.setup.before.empty()) return Done{};
  p.ops = run.setup.before;
  auto e = device_.compile(p.view());
  if (!e) return e.error();
  const auto& position = run.setup.position;
  std::vector<int32_t> at(size_t(run.capacity));
  const int count = position ? run.setup.begin + run.capacity : 1;
  for (int done = 0; done < count; done += run.capacity) {
    // The last round may overlap the one before; it leaves the positions that the tested op needs.
    for (size_t i = 0; i < at.size(); i++) at[i] = std::min(done, count - run.capacity) + int32_t(i);
    if (position)
      if (auto ok = device_.write(buffers_[size_t(Slot::Step)], p.values[*position].offset, at.data(),
                                  at.size() * 4);
          !ok)
        return ok.error();
    if (auto ok = device_.submit(*e, run.slots, kSlots, {run.capacity, run.capacity}); !ok) return ok.error();
  }
  return device_.wait();
}

Result<double> KernelTimer::pass(Run& run, Executable& e, int rows) {
  const auto begin = std::chrono::steady_clock::now();
  if (auto ok = device_.submit(e, run.slots, kSlots, {rows, rows}); !ok) return ok.error();
  if (auto ok = device_.wait(); !ok) return ok.error();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Result<KernelSpeed> KernelTimer::time(Run& run, const SpeedRequest& request) {
  Program& p = run.setup.program;
  const auto& tested = run.setup.tested;
  KernelSpeed s;
  s.shape = run.setup.shape;
  s.rows = request.rows;
  s.ops = int(request.rows < kFewRows ? tested.size() : std::min<size_t>(tested.size(), kPromptOps));

  // A trial of one op with few rows, run twice, to estimate the total time.
  p.ops.assign(tested.begin(), tested.begin() + 1);
  auto trial = device_.compile(p.view());
  if (!trial) return trial.error();
  const int rows = std::min(request.rows, kTrialRows);
  if (auto first = pass(run, *trial, rows); !first) return first.error();
  auto taken = pass(run, *trial, rows);
  if (!taken) return taken.error();
  if (request.rows >= kFewRows) {
    const double patience = 4 * request.seconds, one_op = *taken * request.rows / rows;
    s.ops = int(std::clamp(patience / one_op, 1., double(s.ops)));
    if (one_op > 2 * patience) s.rows = std::clamp(int(patience / *taken), 1, request.rows / rows) * rows;
  }

  p.ops.assign(tested.begin(), tested.begin() + s.ops);
  auto e = device_.compile(p.view());
  if (!e) return e.error();
  s.seconds = INFINITY;
  for (double all = 0;
       s.passes == 0 || all < request.seconds || (s.passes < kMinPasses && all < 4 * request.seconds);
       s.passes++) {
    auto seconds = pass(run, *e, s.rows);
    if (!seconds) return seconds.error();
    all += *seconds;
    s.seconds = std::min(s.seconds, *seconds);
  }

  const gimbal_step step{s.rows, s.rows};
  const double context = run.setup.begin + (s.rows + 1) / 2.0;  // average per row
  for (const gimbal_op& op : p.ops) {
    const auto inputs = p.input_shapes(op, step);
    const Shape out = p.output_shape(op, step);
    const Cost none = cost(OpKind(op.kind), inputs, out, 0), each = cost(OpKind(op.kind), inputs, out, 1);
    s.cost += {none.bytes_read + (each.bytes_read - none.bytes_read) * context, none.bytes_written,
               none.operations + (each.operations - none.operations) * context};
    for (int i = 0; i < op.inputs; i++) {
      const gimbal_value& v = p.values[op.in[i]];
      if (v.slot == uint32_t(Slot::Weights) || v.slot == uint32_t(Slot::Cache)) s.memory += v.bytes;
      s.int8 = s.int8 || info(DType(v.dtype)).gguf == kNotInFiles;  // activations
    }
  }
  return s;
}

Result<std::optional<KernelSpeed>> KernelTimer::measure(size_t kernel, DType format,
                                                        const SpeedRequest& request) {
  const gimbal_kernel_info& row = device_.kernel(kernel);
  const gimbal_device_info about = device_.describe();
  auto setup = set_up_kernel(device_, OpKind(row.op), format, request.rows,
                             std::min(request.bytes, about.memory_free / 4));
  if (!setup) return setup.error();
  Run run{std::move(*setup), {}, request.rows};
  Program& p = run.setup.program;
  auto assign = [&](std::vector<gimbal_op>& ops) -> Result<size_t> {
    p.ops = ops;
    auto choices = assign_kernels(p, device_, request.kernels);
    if (!choices) return choices.error();
    ops = p.ops;
    return choices->empty() ? size_t(0) : choices->front().kernel;
  };
  auto chosen = assign(run.setup.tested);
  if (!chosen) return chosen.error();
  if (*chosen != kernel) {
    if (request.only_chosen || why_not(row, run.setup.tested[0], p.values.data(), about, true))
      return std::optional<KernelSpeed>();
    for (gimbal_op& op : run.setup.tested) op.kernel = uint16_t(kernel);
  }
  if (auto ok = assign(run.setup.before); !ok) return ok.error();
  if (auto ok = fill(run); !ok) return ok.error();
  if (auto ok = compute_before(run); !ok) return ok.error();
  auto speed = time(run, request);
  if (!speed) return speed.error();
  speed->format = format;
  return std::optional(std::move(*speed));
}

Result<std::vector<double>> KernelTimer::race(const std::vector<size_t>& kernels, OpKind kind,
                                              const Bench& shape, int rows, uint64_t bytes,
                                              const KernelPreference& wish) {
  auto setup = set_up_kernel(device_, kind, shape, rows, std::min(bytes, device_.describe().memory_free / 4));
  if (!setup) return setup.error();
  Run run{std::move(*setup), {}, rows};
  Program& p = run.setup.program;
  p.ops = run.setup.before;
  KernelPreference any = wish;
  any.strict = false;
  if (auto choices = assign_kernels(p, device_, any); !choices) return choices.error();
  run.setup.before = p.ops;
  if (auto ok = fill(run); !ok) return ok.error();
  if (auto ok = compute_before(run); !ok) return ok.error();

  auto compile = [&](size_t kernel, size_t ops) {
    p.ops.assign(run.setup.tested.begin(), run.setup.tested.begin() + ptrdiff_t(ops));
    for (gimbal_op& op : p.ops) op.kernel = uint16_t(kernel);
    return device_.compile(p.view());
  };
  // A trial of one op with few rows eliminates slow kernels.
  const int trial_rows = std::min(rows, kRaceTrialRows);
  std::vector<double> seconds;
  for (size_t kernel : kernels) {
    auto e = compile(kernel, 1);
    if (!e) return e.error();
    seconds.push_back(INFINITY);
    for (int n = 0; n < kRaceTrials; n++) {
      auto taken = pass(run, *e, trial_rows);
      if (!taken) return taken.error();
      seconds.back() = std::min(seconds.back(), *taken);
    }
  }
  const double hopeless = kHopeless * *std::min_element(seconds.begin(), seconds.end());
  std::vector<std::pair<size_t, Executable>> racing;
  for (size_t i = 0; i < kernels.size(); i++) {
    const bool takes_part = i == 0 || seconds[i] <= hopeless;
    seconds[i] = takes_part ? INFINITY : seconds[i] * double(run.setup.tested.size()) * rows / trial_rows;
    if (!takes_part) continue;
    auto e = compile(kernels[i], run.setup.tested.size());
    if (!e) return e.error();
    racing.emplace_back(i, std::move(*e));
  }
  // A result that would change the choice must be confirmed, because the machine may be busy.
  auto beaten = [&] {
    return *std::min_element(seconds.begin(), seconds.end()) * kMeasuredMargin < seconds[0];
  };
  for (int n = 0; n < kRacePasses || (n < kRaceDoubtful && beaten()); n++)
    for (auto& [i, e] : racing) {
      auto taken = pass(run, e, rows);
      if (!taken) return taken.error();
      seconds[i] = std::min(seconds[i], *taken);
    }
  return seconds;
}

}  // namespace gimbal
