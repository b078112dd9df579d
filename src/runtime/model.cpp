#include "runtime/model.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/format.h"
#include "runtime/memory_check.h"
#include "tensor/quant.h"

namespace gimbal {
namespace {

// Weights are read and laid out in slices of about this many bytes, so that threads share large matrices,
// progress is smooth, and what was read is still in the thread's cache when it is laid out.
constexpr int64_t kSliceBytes = 1 << 20;

struct Slice {
  size_t part;  // of the blueprint
  uint16_t value;
  const GgufTensor* tensor;
  int64_t begin, end;  // rows
};

void add_slices(std::vector<Slice>& all, size_t part, const Program& p, const Gguf& file) {
  for (uint16_t id : p.weights) {
    const GgufTensor* t = file.tensor(p.info[id].name);
    const Shape& s = p.info[id].shape;
    const int64_t rows = s.rank > 1 ? s.dim[1] : 1;
    const int64_t per_row = std::max<int64_t>(1, row_bytes(t->type, t->dim[0]));
    const auto step =
        std::min(rows, int64_t(align_up(uint64_t(std::max<int64_t>(1, kSliceBytes / per_row)), 16)));
    for (int64_t r = 0; r < rows; r += step) all.push_back({part, id, t, r, std::min(r + step, rows)});
  }
}

// `room`: memory of the thread, for the rows as they are in the file.
Status place_weight(const Device& device, Buffer& buffer, const Program& p, const Gguf& file, const Slice& s,
                    std::vector<std::byte>& room) {
  const gimbal_value& v = p.values[s.value];
  const Shape& shape = p.info[s.value].shape;
  const auto row = uint64_t(row_bytes(s.tensor->type, s.tensor->dim[0])), begin = row * uint64_t(s.begin),
             bytes = row * uint64_t(s.end - s.begin);
  if (v.layout == GIMBAL_PACKED || shape.type == s.tensor->type) {
    const auto tail = uint64_t(tensor_tail_bytes(s.tensor->type));
    if (room.size() < bytes + tail) room.resize(bytes + tail);
    if (auto ok = file.read(*s.tensor, begin, room.data(), bytes); !ok) return ok;
    if (auto ok = file.read(*s.tensor, s.tensor->bytes - tail, room.data() + bytes, tail); !ok) return ok;
    if (v.layout == GIMBAL_PACKED) return device.pack(buffer, v, room.data(), s.begin, s.end);
    return device.write(buffer, v.offset + begin, room.data(), bytes);
  }
  // A vector in another format than the ops take it: norms and biases are f32.
  if (!can_decode(s.tensor->type))
    return Error{Code::Unsupported,
                 format("tensor '{}' is {}, which cannot be converted to f32", s.tensor->name,
                        info(s.tensor->type).name),
                 ""};
  auto all = file.read(*s.tensor);
  if (!all) return all.error();
  std::vector<float> values(static_cast<size_t>(shape.count()));
  decode_tensor(s.tensor->type, all->data(), shape.count(), values.data());
  return device.write(buffer, v.offset, values.data(), values.size() * sizeof(float));
}

}  // namespace

Status Model::take_memory() {
  held_.resize(blueprint_.parts.size());
  for (size_t i = 0; i < held_.size(); i++) {
    const Part& part = blueprint_.parts[i];
    const MemoryPlan& plan = part.memory;
    const uint64_t sizes[kSlots] = {plan.weights, plan.cache, plan.step, plan.activations, plan.output};
    for (size_t s = 0; s < kSlots; s++) {
      auto buffer = part.device->allocate(sizes[s]);
      if (!buffer) return buffer.error();
      held_[i].buffers[s] = std::move(*buffer);
    }
    for (const Bucket& bucket : part.buckets) {
      auto e = part.device->compile(bucket.program.view());
      if (!e) return e.error();
      held_[i].executables.push_back(std::move(*e));
    }
    for (const LeadingProgram& l : part.leading) {
      auto e = part.device->compile(l.program.view());
      if (!e) return e.error();
      held_[i].leading.push_back(std::move(*e));
    }
  }
  return Done{};
}

Status Model::read_weights(const Progress& progress) {
  const Gguf& file = *blueprint_.file;
  std::vector<Slice> work;
  uint64_t total = 0;
  unsigned threads = 1;
  for (size_t i = 0; i < blueprint_.parts.size(); i++) {
    const Part& part = blueprint_.parts[i];
    const Program& p = part.buckets[0].program;
    add_slices(work, i, p, file);
    for (uint16_t id : p.weights) total += file.tensor(p.info[id].name)->bytes;
    threads = std::max(threads, part.device->describe().threads);
  }
  std::atomic<size_t> next{0};
  std::atomic<uint64_t> done{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::optional<Error> error;
  auto run = [&](bool reports) {
    std::vector<std::byte> room;
    for (size_t i; !stop && (i = next.fetch_add(1)) < work.size();) {
      const Slice& s = work[i];
      const Part& part = blueprint_.parts[s.part];
      const auto bytes = uint64_t(row_bytes(s.tensor->type, s.tensor->dim[0])) * uint64_t(s.end - s.begin);
      if (auto ok = place_weight(*part.device, held_[s.part].buffers[size_t(Slot::Weights)],
                                 part.buckets[0].program, file, s, room);
          !ok) {
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
    // The system gives no more threads: those that there are do the work.
  }
  run(true);
  for (std::thread& t : helpers) t.join();
  if (error) return *error;
  if (progress && !progress(total, total)) return Error{Code::Failed, "loading was cancelled", ""};
  return Done{};
}

Result<std::unique_ptr<Model>> Model::load(Blueprint blueprint, const Progress& progress) {
  if (auto ok = check_memory(blueprint); !ok) return ok.error();
  std::unique_ptr<Model> m(new Model(std::move(blueprint)));
  if (auto ok = m->take_memory(); !ok) return ok.error();
  if (auto ok = m->read_weights(progress); !ok) return ok.error();
  const Blueprint& b = m->blueprint_;
  for (int i = b.pages_per_sequence * b.options.sequences; i-- > 0;) m->free_pages_.push_back(i);
  m->sequence_taken_.assign(size_t(b.options.sequences), false);
  m->blueprint_.file = nullptr;  // no longer needed, and may go away
  return m;
}

std::vector<ReceiptLine> Model::receipt() const {
  std::vector<ReceiptLine> all;
  for (size_t i = 0; i < held_.size(); i++) {
    const Part& part = blueprint_.parts[i];
    for (size_t b = 0; b < part.buckets.size(); b++) {
      const Bucket& bucket = part.buckets[b];
      add_to_receipt(all, *part.device, held_[i].executables[b], bucket.program, bucket.choices,
                     blueprint_.options.kernels);
    }
    for (size_t l = 0; l < part.leading.size(); l++) {
      const LeadingProgram& leading = part.leading[l];
      add_to_receipt(all, *part.device, held_[i].leading[l], leading.program, leading.choices,
                     blueprint_.options.kernels);
    }
  }
  return all;
}

}  // namespace gimbal
