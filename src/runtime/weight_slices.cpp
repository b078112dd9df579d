#include "runtime/weight_slices.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "base/format.h"
#include "runtime/packed_weights.h"
#include "tensor/quant.h"

namespace gimbal {
namespace {

constexpr int64_t kSliceBytes = 1 << 20;

// All rows of a weight.
WeightSlice whole_weight(size_t stage, const Program& p, size_t w, const TensorTable& tensors) {
  const WeightSource& from = p.sources[w];
  const StoredTensor* t = &tensors[from.tensor];
  const Shape& s = p.info[p.weights[w]].shape;
  const bool matrix = s.rank > 1;
  const int64_t rows = matrix ? s.dim[1] : 1;
  const auto row = uint64_t(std::max<int64_t>(1, row_bytes(t->type, s.dim[0])));
  const uint64_t first = matrix ? uint64_t(from.expert * int64_t(t->dim[1]) + from.first_row) * row
                                : uint64_t(row_bytes(t->type, from.first_row));
  return {stage, p.weights[w], t, first, row, 0, rows};
}

}  // namespace

void add_slices(std::vector<WeightSlice>& all, size_t stage, const Program& p, size_t w,
                const TensorTable& tensors) {
  WeightSlice slice = whole_weight(stage, p, w, tensors);
  const int64_t rows = slice.end;
  const auto step =
      std::min(rows, int64_t(align_up(std::max<uint64_t>(1, uint64_t(kSliceBytes) / slice.row_bytes), 16)));
  for (int64_t r = 0; r < rows; r += step) {
    slice.begin = r, slice.end = std::min(r + step, rows);
    all.push_back(slice);
  }
}

void add_samples(std::vector<WeightSlice>& all, size_t stage, const Program& p, const TensorTable& tensors) {
  const size_t every = sample_distance(p);
  DTypeSet seen = 0;
  for (size_t w = 0; w < p.weights.size(); w++) {
    const DTypeSet format = set_of(DType(p.values[p.weights[w]].dtype));
    if (w % every && seen & format) continue;
    seen |= format;
    WeightSlice slice = whole_weight(stage, p, w, tensors);
    slice.end = std::min(kSampleRows, slice.end);
    all.push_back(slice);
  }
}

Status place_weight(const Device& device, Buffer& buffer, const gimbal_value& v, const Shape& shape,
                    const ModelSource& file, const WeightSlice& s, std::vector<std::byte>& room) {
  const uint64_t begin = s.row_bytes * uint64_t(s.begin), bytes = s.bytes(),
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

Status for_slices(std::span<const WeightSlice> slices, unsigned threads, const WeightProgress& progress,
                  const std::function<Status(const WeightSlice&, std::vector<std::byte>&)>& work) {
  uint64_t total = 0;
  for (const WeightSlice& s : slices) total += s.bytes();
  std::atomic<size_t> next{0};
  std::atomic<uint64_t> done{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::optional<Error> error;
  const auto fail = [&](Error why) {
    const std::lock_guard lock(mutex);
    if (!error) error = std::move(why);
    stop = true;
  };
  const auto run = [&](bool reports) {
    std::vector<std::byte> room;
    for (size_t i; !stop && (i = next.fetch_add(1)) < slices.size();) {
      if (auto ok = work(slices[i], room); !ok) fail(ok.error());
      const uint64_t now = done.fetch_add(slices[i].bytes()) + slices[i].bytes();
      if (reports && progress && !progress(now, total)) fail({Code::Failed, "loading was cancelled", ""});
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

}  // namespace gimbal
