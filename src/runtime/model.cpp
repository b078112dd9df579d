#include "runtime/model.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/format.h"
#include "device/reason.h"
#include "runtime/memory_check.h"
#include "runtime/packed_weights.h"
#include "tensor/quant.h"

namespace gimbal {
namespace {

// Weights are read and packed in slices of about this many bytes, so that threads share large matrices,
// progress is smooth, and the bytes are still in the thread's cache when they are packed.
constexpr int64_t kSliceBytes = 1 << 20;

// Experts are read from packed weights only.
Status check_packed(const ModelPlan& plan) {
  for (const Stage& stage : plan.stages)
    if (stage.reads_experts() && !stage.packed)
      return Error{Code::Usage,
                   format("{}: experts are read from packed weights, and the plan has none", plan.source),
                   "pack the model", reason::kPackedUnusable, "experts_from_disk"};
  return Done{};
}

// Every weight of the plan is a tensor of the file, under the same name and index.
Status check_made_of(const ModelPlan& plan, const ModelSource& file) {
  for (const Stage& stage : plan.stages) {
    const Program& p = stage.buckets[0].program;
    for (size_t w = 0; w < p.weights.size(); w++) {
      const std::string& name = p.info[p.weights[w]].name;
      const uint32_t index = p.sources[w].tensor;
      if (index < file.tensors().size() && name.starts_with(file.tensors()[index].name)) continue;
      return Error{Code::Failed,
                   format("{}: the plan was made from {}: '{}' is not tensor {} here", file.path(),
                          plan.source, name, index),
                   "load the file that the plan was made from"};
    }
  }
  return Done{};
}

// Rows of a weight; of a vector, its only one.
struct Slice {
  size_t stage;  // of the plan
  uint16_t value;
  const StoredTensor* tensor;
  uint64_t source;     // byte of the tensor where the weight's first row is
  uint64_t row_bytes;  // in the file
  int64_t begin, end;  // rows
};

// `samples`: of some weights the first rows (packed_weights.h).
void add_slices(std::vector<Slice>& all, size_t stage, const Program& p, const TensorTable& tensors,
                bool samples) {
  const size_t every = samples ? sample_distance(p) : 1;
  DTypeSet seen = 0;
  for (size_t w = 0; w < p.weights.size(); w++) {
    const DTypeSet format = set_of(DType(p.values[p.weights[w]].dtype));
    if (w % every && seen & format) continue;
    seen |= format;
    const WeightSource& from = p.sources[w];
    const StoredTensor* t = &tensors[from.tensor];
    const Shape& s = p.info[p.weights[w]].shape;
    const bool matrix = s.rank > 1;
    const int64_t rows = matrix ? s.dim[1] : 1;
    const auto row = uint64_t(std::max<int64_t>(1, row_bytes(t->type, s.dim[0])));
    const uint64_t first = matrix ? uint64_t(from.expert * int64_t(t->dim[1]) + from.first_row) * row
                                  : uint64_t(row_bytes(t->type, from.first_row));
    const auto step =
        std::min(rows, int64_t(align_up(std::max<uint64_t>(1, uint64_t(kSliceBytes) / row), 16)));
    if (samples) {
      all.push_back({stage, p.weights[w], t, first, row, 0, std::min(kSampleRows, rows)});
      continue;
    }
    for (int64_t r = 0; r < rows; r += step)
      all.push_back({stage, p.weights[w], t, first, row, r, std::min(r + step, rows)});
  }
}

// `room`: memory of the thread, for the rows as they are in the file.
Status place_weight(const Device& device, Buffer& buffer, const gimbal_value& v, const Shape& shape,
                    const ModelSource& file, const Slice& s, std::vector<std::byte>& room) {
  const uint64_t begin = s.row_bytes * uint64_t(s.begin), bytes = s.row_bytes * uint64_t(s.end - s.begin),
                 tail = uint64_t(tensor_tail_bytes(s.tensor->type));
  if (room.size() < bytes + tail) room.resize(bytes + tail);
  if (auto ok = file.read(*s.tensor, s.source + begin, room.data(), bytes); !ok) return ok;
  if (auto ok = file.read(*s.tensor, s.tensor->bytes - tail, room.data() + bytes, tail); !ok) return ok;
  if (v.layout == GIMBAL_PACKED) return device.pack(buffer, v, room.data(), s.begin, s.end);
  if (shape.type == s.tensor->type) return device.write(buffer, v.offset + begin, room.data(), bytes);
  // A vector in another format than the ops take it: norms and biases are f32.
  if (!can_decode(s.tensor->type))
    return Error{Code::Unsupported,
                 format("tensor '{}' is {}, which cannot be converted to f32", s.tensor->name,
                        info(s.tensor->type).name),
                 ""};
  std::vector<float> values(static_cast<size_t>(shape.count()));
  decode_tensor(s.tensor->type, room.data(), shape.count(), values.data());
  return device.write(buffer, v.offset, values.data(), values.size() * sizeof(float));
}

// Packs the same rows again and compares them with those of the packed file.
Status compare_weight(const Stage& stage, const gimbal_value& v, const Shape& shape, const ModelSource& file,
                      const Slice& s, std::vector<std::byte>& room) {
  gimbal_value sample = v;
  sample.offset = 0;
  if (shape.rank > 1) sample.dim[1] = s.end;
  sample.bytes = sample_bytes(v, s.end);
  auto anew = stage.device->allocate(size_t(sample.bytes));
  if (!anew) return anew.error();
  if (auto ok = place_weight(*stage.device, *anew, sample, shape, file, s, room); !ok) return ok;
  std::vector<std::byte> bytes(size_t(sample.bytes));
  if (auto ok = stage.device->read(*anew, 0, bytes.data(), bytes.size()); !ok) return ok;
  const Bytes kept = stage.packed->bytes().subspan(size_t(v.offset), bytes.size());
  if (std::equal(bytes.begin(), bytes.end(), kept.begin())) return Done{};
  if (auto ok = stage.packed->unchanged(); !ok) return ok;
  return Error{
      Code::Failed,
      format("tensor '{}' has another layout in it than {} uses now", s.tensor->name, stage.device->id()),
      "pack the model again, or remove the file",
      reason::kPackedUnusable,
      "",
      stage.packed->path()};
}

}  // namespace

Status Model::take_memory() {
  memory_.resize(plan_.stages.size());
  for (size_t i = 0; i < memory_.size(); i++) {
    const Stage& stage = plan_.stages[i];
    const MemoryPlan& plan = stage.memory;
    const uint64_t sizes[kSlots] = {plan.weights, plan.cache, plan.step, plan.activations, plan.output};
    if (stage.reads_experts()) {
      auto experts = ExpertCache::open(stage);
      if (!experts) return experts.error();
      memory_[i].experts = std::move(*experts);
    }
    for (size_t s = 0; s < kSlots; s++) {
      const bool adopts = stage.packed && s == size_t(Slot::Weights);
      auto buffer = !adopts              ? stage.device->allocate(sizes[s])
                    : memory_[i].experts ? stage.device->adopt(memory_[i].experts->bytes())
                                         : stage.device->adopt(stage.packed->bytes());
      if (!buffer) return buffer.error();
      memory_[i].buffers[s] = std::move(*buffer);
    }
    // The largest first: the first program on a buffer determines where a device may cut it.
    memory_[i].executables.resize(stage.buckets.size());
    const size_t largest = plan_.bucket_for(plan_.options.batch);
    for (size_t b = 0; b < stage.buckets.size(); b++) {
      const size_t which = b == 0 ? largest : b == largest ? 0 : b;
      for (const StagePart& part : stage.buckets[which].parts) {
        auto e = stage.device->compile(part_of(stage.buckets[which].program, part.ops));
        if (!e) return e.error();
        memory_[i].executables[which].push_back(std::move(*e));
      }
    }
    for (const TopLogitsProgram& l : stage.top) {
      auto e = stage.device->compile(l.program.view());
      if (!e) return e.error();
      memory_[i].top.push_back(std::move(*e));
    }
  }
  return Done{};
}

Status Model::read_weights(const ModelSource& file, const Progress& progress) {
  std::vector<Slice> work;
  uint64_t total = 0;
  unsigned threads = 1;
  for (size_t i = 0; i < plan_.stages.size(); i++) {
    const Stage& stage = plan_.stages[i];
    const Program& p = stage.buckets[0].program;
    add_slices(work, i, p, file.tensors(), stage.packed != nullptr);
    threads = std::max(threads, stage.device->describe().threads);
  }
  for (const Slice& s : work) total += s.row_bytes * uint64_t(s.end - s.begin);
  std::atomic<size_t> next{0};
  std::atomic<uint64_t> done{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::optional<Error> error;
  auto run = [&](bool reports) {
    std::vector<std::byte> room;
    for (size_t i; !stop && (i = next.fetch_add(1)) < work.size();) {
      const Slice& s = work[i];
      const Stage& stage = plan_.stages[s.stage];
      const uint64_t bytes = s.row_bytes * uint64_t(s.end - s.begin);
      const Program& p = stage.buckets[0].program;
      const gimbal_value& v = p.values[s.value];
      const Shape& shape = p.info[s.value].shape;
      Buffer& weights = memory_[s.stage].buffers[size_t(Slot::Weights)];
      auto ok = stage.packed ? compare_weight(stage, v, shape, file, s, room)
                             : place_weight(*stage.device, weights, v, shape, file, s, room);
      if (!ok) {
        std::lock_guard lock(mutex);
        if (!error) error = ok.error();
        stop = true;
      }
      const uint64_t now = done.fetch_add(bytes) + bytes;
      if (reports && progress && !progress(now, total)) {
        std::lock_guard lock(mutex);
        if (!error) error = Error{Code::Failed, "loading was cancelled", ""};
        stop = true;
      }
    }
  };
  std::vector<std::thread> helpers;
  if (total < uint64_t(kSliceBytes)) threads = 1;
  try {
    for (unsigned i = 1; i < threads; i++) helpers.emplace_back(run, false);
  } catch (const std::system_error&) {
    // The system cannot create more threads: the existing ones do the work.
  }
  run(true);
  for (std::thread& t : helpers) t.join();
  if (error) return *error;
  if (progress && !progress(total, total)) return Error{Code::Failed, "loading was cancelled", ""};
  return Done{};
}

Result<std::unique_ptr<Model>> Model::load(ModelPlan plan, const ModelSource& file,
                                           const Progress& progress) {
  if (auto ok = check_made_of(plan, file); !ok) return ok.error();
  if (auto ok = check_packed(plan); !ok) return ok.error();
  if (auto ok = check_memory(file, plan); !ok) return ok.error();
  std::unique_ptr<Model> m(new Model(std::move(plan)));
  const std::unique_ptr<Prefault> ahead = prefault(m->plan_);  // an error below cancels it
  if (auto ok = m->take_memory(); !ok) return ok.error();
  if (auto ok = m->read_weights(file, progress); !ok) return ok.error();
  if (ahead) m->prefaulted_ = ahead->finish();
  if (ahead)
    if (auto ok = check_readable(m->plan_, *m->prefaulted_); !ok) return ok.error();
  m->steps_ = std::make_unique<Steps>(m->plan_, m->memory_);
  return m;
}

Status Model::read_weight(size_t stage, uint64_t offset, std::span<std::byte> to) const {
  return plan_.stages[stage].device->read(memory_[stage].buffers[size_t(Slot::Weights)], size_t(offset),
                                          to.data(), to.size());
}

std::vector<ReceiptLine> Model::receipt() const {
  std::vector<ReceiptLine> all;
  for (size_t i = 0; i < memory_.size(); i++) {
    const Stage& stage = plan_.stages[i];
    for (size_t b = 0; b < stage.buckets.size(); b++) {
      const Bucket& bucket = stage.buckets[b];
      for (size_t p = 0; p < bucket.parts.size(); p++)
        add_to_receipt(all, *stage.device, memory_[i].executables[b][p], bucket.program, bucket.choices,
                       plan_.options.kernels, bucket.parts[p].ops);
    }
    for (size_t l = 0; l < stage.top.size(); l++) {
      const TopLogitsProgram& leading = stage.top[l];
      add_to_receipt(all, *stage.device, memory_[i].top[l], leading.program, leading.choices,
                     plan_.options.kernels);
    }
  }
  return all;
}

Status Model::restore(Sequence& s, const InputView& inputs, std::span<const uint32_t> first,
                      const Page& page) {
  if (auto ok = steps_->sequences().adopt(s, inputs, first); !ok) return ok;
  auto ok = steps_->pass_pages(s, false, page);
  if (!ok) s.truncate(0);
  return ok;
}

}  // namespace gimbal
