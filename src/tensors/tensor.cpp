// Tensors as values: making, describing, reading.
#include <cstring>

#include "tensors/recording.h"

namespace gimbal::v1 {

Tensor::State::~State() {
  if (!error || seen || !queue || computes_custom(*queue)) return;
  const std::lock_guard lock(queue->mutex);
  if (!queue->dropped) queue->dropped = std::move(error);
}

Error shape_error(std::string message, std::string remedy) {
  return {Code::Usage, std::move(message), std::move(remedy), reason::kShape, "", "", "", {}};
}
Error dtype_error(std::string message, std::string remedy) {
  return {Code::Usage, std::move(message), std::move(remedy), reason::kDType, "", "", "", {}};
}
Error index_error(std::string message, std::string remedy) {
  return {Code::Usage, std::move(message), std::move(remedy), reason::kIndex, "", "", "", {}};
}

std::string describe(const Tensor& t) {
  const Tensor::State& s = state_of(t);
  return std::string(gimbal::info(s.type).name) + gimbal::to_string(s.layout.dims());
}

const char* name_of(DType t) { return gimbal::info(own(t)).name; }
Result<DType> dtype_named(std::string_view name) {
  if (auto t = gimbal::dtype_named(name)) return to_public(*t);
  return dtype_error(format("there is no number format '{}'", name),
                     "f32, f16, bf16, f64, i32, i64, u8, bool, q4_k and others");
}

Tensor failed(const std::shared_ptr<Queue::State>& queue, Error e) {
  auto s = std::make_shared<Tensor::State>();
  s->queue = queue, s->error = std::move(e);
  return TensorAccess::tensor(std::move(s));
}

Tensor view(const Tensor& t, const gimbal::Layout& layout) {
  const Tensor::State& s = state_of(t);
  auto to = std::make_shared<Tensor::State>();
  to->queue = s.queue, to->type = s.type, to->layout = layout, to->block = s.block;
  to->recording = s.recording, to->memory = s.memory;
  return TensorAccess::tensor(std::move(to));
}

std::optional<Tensor> unusable(std::span<const Tensor* const> all) {
  for (const Tensor* t : all)
    if (!t->ok()) return *t;
  for (const Tensor* t : all)
    if (state_of(*t).queue != state_of(*all[0]).queue)
      return failed(state_of(*all[0]).queue,
                    Error{Code::Usage,
                          format("tensors of two queues meet: {} on {} and {} on {}", describe(*all[0]),
                                 all[0]->queue().location(), describe(*t), t->queue().location()),
                          "copy one to the other's queue with to()",
                          "",
                          "",
                          "",
                          "",
                          {}});
  return std::nullopt;
}

Tensor uninitialized(const std::shared_ptr<Queue::State>& queue, gimbal::DType type,
                     std::span<const int64_t> dims) {
  Recording* const recording = Recording::active(queue);
  return recording ? recording->place(type, dims) : allocated(queue, type, dims);
}

Tensor allocated(const std::shared_ptr<Queue::State>& queue, gimbal::DType type,
                 std::span<const int64_t> dims) {
  if (auto why = gimbal::check_dims(dims))
    return failed(queue, shape_error(format("a tensor of {}: {}", gimbal::to_string(dims), *why)));
  auto s = std::make_shared<Tensor::State>();
  s->queue = queue, s->type = type, s->layout = gimbal::dense_layout(dims);
  const auto& format_info = gimbal::info(type);
  if (format_info.block > 1 && (dims.empty() || dims.back() % format_info.block))
    return failed(queue, shape_error(format("{} of {}: the last dimension must be a multiple of {}",
                                            format_info.name, gimbal::to_string(dims), format_info.block)));
  const int64_t n = s->layout.count();
  if (n > 0) {
    auto block = queue->pool->allocate(uint64_t(n / format_info.block) * format_info.bytes);
    if (!block) return failed(queue, to_public(block.error()));
    s->block = std::move(*block);
  }
  return TensorAccess::tensor(std::move(s));
}

Tensor Tensor::from_bytes(std::span<const std::byte> bytes, const Dims& dims, DType type, const Queue& q) {
  const auto& queue = TensorAccess::state(q);
  if (computes_custom(*queue)) return failed(queue, inside_custom());
  Tensor t = allocated(queue, own(type), dims);
  if (!t.ok()) return t;
  const State& s = state_of(t);
  const auto& f = gimbal::info(s.type);
  const uint64_t want = uint64_t(s.layout.count() / f.block) * f.bytes;
  if (bytes.size() != want)
    return failed(queue, shape_error(format("{} takes {} bytes, found {}", describe(t), want, bytes.size())));
  if (!s.block) return t;
  const std::lock_guard lock(queue->mutex);
  if (auto ok = queue->device().write(s.block->buffer(), 0, bytes.data(), bytes.size()); !ok)
    return failed(queue, to_public(ok.error()));
  queue->count(&TransferCounts::uploads);
  return t;
}

Tensor Tensor::wrap(const void* data, const Dims& dims, const Dims& strides, DType type, const Queue& q,
                    std::shared_ptr<const void> owner) {
  const auto& queue = TensorAccess::state(q);
  const auto& f = gimbal::info(own(type));
  if (f.block > 1)
    return failed(queue, dtype_error(format("wrap: {} is stored in blocks", f.name), "use from_bytes()"));
  if (auto why = gimbal::check_dims(dims))
    return failed(queue, shape_error(format("wrap: {}: {}", gimbal::to_string(dims), *why)));
  if (strides.size() != dims.size())
    return failed(queue,
                  shape_error(format("wrap: {} strides for {} dimensions", strides.size(), dims.size())));
  auto s = std::make_shared<State>();
  s->queue = queue, s->type = own(type), s->layout = gimbal::dense_layout(dims);
  if (s->layout.count() == 0) return TensorAccess::tensor(std::move(s));
  for (int i = 0; i < s->layout.rank; i++) s->layout.stride[i] = strides[size_t(i)];
  // Devices adopt whole pages: the memory begins with the page of the lowest element.
  constexpr uintptr_t kPage = 4096;
  const auto width = int64_t(f.bytes);
  const gimbal::MemoryRange range = gimbal::reach(s->layout);
  const auto lowest = uintptr_t(data) + uintptr_t(range.begin * width), first = lowest / kPage * kPage;
  if (uintptr_t(data) % uintptr_t(width))
    return failed(queue,
                  shape_error(format("wrap: the memory is not aligned to the {} bytes of {}", width, f.name),
                              "copy it"));
  s->layout.offset = int64_t(uintptr_t(data) - first) / width;
  const size_t bytes = size_t(lowest - first) + size_t((range.end - range.begin) * width);
  auto block = queue->pool->adopt({reinterpret_cast<const std::byte*>(first), bytes}, std::move(owner));
  if (!block) return failed(queue, to_public(block.error()));
  s->block = std::move(*block);
  return TensorAccess::tensor(std::move(s));
}

bool Tensor::is_read_only() const { return state_->block && state_->block->read_only(); }
bool Tensor::ok() const { return !state_->error; }
const Error& Tensor::error() const {
  static const Error kNone;
  state_->seen = true;
  return state_->error ? *state_->error : kNone;
}
DType Tensor::dtype() const { return to_public(state_->type); }
int Tensor::rank() const { return state_->layout.rank; }
int64_t Tensor::dim(int i) const {
  const auto at = dim_of(rank(), i);
  return at ? state_->layout.dim[*at] : 0;
}
Dims Tensor::dims() const { return Dims(state_->layout.dim, state_->layout.dim + rank()); }
Dims Tensor::strides() const { return Dims(state_->layout.stride, state_->layout.stride + rank()); }
int64_t Tensor::offset() const { return state_->layout.offset; }
int64_t Tensor::count() const { return state_->layout.count(); }
bool Tensor::is_contiguous() const { return state_->layout.dense(); }
bool Tensor::shares_memory_with(const Tensor& o) const {
  return (state_->block && state_->block == o.state_->block) ||
         (state_->recording && state_->recording == o.state_->recording &&
          state_->memory == o.state_->memory);
}
Queue Tensor::queue() const { return TensorAccess::queue(state_->queue); }

Result<std::vector<std::byte>> Tensor::bytes() const {
  if (!ok()) return error();
  if (computes_custom(*state_->queue)) return inside_custom();
  if (state_->recording) return Recording::without_values(*this);
  const Unrecorded now;
  const Tensor dense = contiguous();
  if (!dense.ok()) return dense.error();
  const State& s = state_of(dense);
  const auto& f = gimbal::info(s.type);
  std::vector<std::byte> out(size_t(s.layout.count() / f.block) * f.bytes);
  if (out.empty()) return out;
  const std::lock_guard lock(s.queue->mutex);
  if (auto ok = s.queue->device().wait(); !ok) return to_public(ok.error());
  const auto offset = size_t(s.layout.offset / f.block) * f.bytes;
  if (auto ok = s.queue->device().read(s.block->buffer(), offset, out.data(), out.size()); !ok)
    return to_public(ok.error());
  if (auto ok = s.queue->files_whole(); !ok) return to_public(ok.error());
  s.queue->count(&TransferCounts::downloads);
  return out;
}

Result<std::vector<std::byte>> Tensor::bytes_of(DType want) const {
  if (ok() && want != dtype() && !(want == DType::U8 && dtype() == DType::Bool))
    return dtype_error(format("the values of {} were read as {}", describe(*this), name_of(want)),
                       "convert them first, with to()");
  return bytes();
}

const void* Tensor::host() const {
  if (!ok() || !state_->block || !state_->block->host()) return nullptr;
  const auto& f = gimbal::info(state_->type);
  return static_cast<const std::byte*>(state_->block->host()) + state_->layout.offset / f.block * f.bytes;
}

std::optional<int> dim_of(int rank, int dim) {
  const int at = dim < 0 ? dim + rank : dim;
  return at >= 0 && at < rank ? std::optional(at) : std::nullopt;
}
Error no_such_dim(std::string_view what, const Tensor& t, int dim) {
  return index_error(format("{}: {} has no dimension {}", what, describe(t), dim),
                     format("from {} to {}", -t.rank(), t.rank() - 1));
}

}  // namespace gimbal::v1
