// Tensors from files and to files. Everything in a file is hostile until its reader has checked it.
#include <algorithm>

#include "tensors/state.h"

namespace gimbal::v1 {
namespace {

// A file whose pages tensors share. The destructor runs after the last of these tensors. It keeps a read
// error in the queue, since results may have been computed from zero pages.
struct SharedFile {
  gimbal::ModelSource file;
  std::weak_ptr<Queue::State> queue;
  SharedFile(gimbal::ModelSource f, std::weak_ptr<Queue::State> q)
      : file(std::move(f)), queue(std::move(q)) {}
  ~SharedFile() {
    const auto whole = file.reader().mappings_whole();
    if (const auto q = queue.lock(); q && !whole) {
      const std::lock_guard lock(q->files_mutex);
      q->lost_file = whole.error();
    }
  }
};

bool aligned(const std::byte* data, gimbal::DType type) {
  constexpr uintptr_t kBlockAlignment = 32;  // that of a GGUF file's tensors
  const auto& f = gimbal::info(type);
  return uintptr_t(data) % (f.block > 1 ? kBlockAlignment : uintptr_t(f.bytes)) == 0;
}

// Over the bytes themselves, which `owner` keeps.
Tensor shared(const std::shared_ptr<Queue::State>& queue, std::span<const std::byte> bytes, const Dims& dims,
              gimbal::DType type, std::shared_ptr<const SharedFile> owner) {
  auto block = queue->pool->adopt(bytes, std::move(owner));
  if (!block) return failed(queue, to_public(block.error()));
  auto s = std::make_shared<Tensor::State>();
  s->queue = queue, s->type = type, s->layout = gimbal::dense_layout(dims), s->block = std::move(*block);
  return TensorAccess::tensor(std::move(s));
}

// As the file has it: its bytes are mapped where they lie in it, and copied once, to the device. With an
// `owner` they are shared instead, if they can be.
Tensor read_tensor(const gimbal::ModelSource& file, const gimbal::StoredTensor& stored, const Queue& q,
                   const std::shared_ptr<const SharedFile>& owner) {
  const auto& queue = TensorAccess::state(q);
  Dims dims(stored.dim, stored.dim + stored.rank);
  std::reverse(dims.begin(), dims.end());
  const auto& f = gimbal::info(stored.type);
  const auto bytes =
      size_t(stored.values() / f.block) * f.bytes;  // without what follows the values of some formats
  std::vector<std::byte> room;
  auto mapped = file.reader().map(stored.index);
  if (!mapped) {
    room.resize(bytes);
    if (auto ok = file.read(stored, 0, room.data(), bytes); !ok) return failed(queue, to_public(ok.error()));
  }
  const auto data = mapped ? std::as_bytes(std::span(mapped->data(), bytes)) : std::span(room);
  const bool shares =
      owner && mapped && bytes && !gimbal::check_dims(dims) && aligned(data.data(), stored.type);
  const Tensor t = shares ? shared(queue, data, dims, stored.type, owner)
                          : Tensor::from_bytes(data, dims, to_public(stored.type), q);
  if (!stored.transposed) return t;
  Axes order;
  for (int i = t.rank(); i-- > 0;) order.push_back(i);
  return t.permute(order);
}

bool ends_with(const std::string& path, std::string_view end) {
  return path.size() >= end.size() && path.compare(path.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

Result<std::vector<NamedTensor>> load(const std::string& path, const Queue& q) { return load(path, q, {}); }

Result<std::vector<NamedTensor>> load(const std::string& path, const Queue& q, const LoadOptions& options) {
  auto file = gimbal::open_arrays(path);
  if (!file) return to_public(file.error());
  if (auto ok = file->tensors().readable(); !ok) return to_public(ok.error());
  const auto& queue = TensorAccess::state(q);
  std::shared_ptr<const SharedFile> owner;
  if (options.mapped && gimbal::is_host(queue->device())) {
    owner = std::make_shared<const SharedFile>(*file, queue);
    const std::lock_guard lock(queue->files_mutex);
    queue->files.push_back(std::shared_ptr<const gimbal::ModelSource>(owner, &owner->file));
  }
  std::vector<NamedTensor> all;
  for (const gimbal::StoredTensor& stored : file->tensors()) {
    Tensor t = read_tensor(*file, stored, q, owner);
    if (!t.ok()) return t.error();
    all.push_back({std::string(stored.name), std::move(t)});
  }
  if (auto whole = file->reader().mappings_whole(); !whole) return to_public(whole.error());
  return all;
}

gimbal::Status Queue::State::files_whole() {
  std::vector<std::shared_ptr<const gimbal::ModelSource>> in_use;  // may end here, which takes the lock
  const std::lock_guard lock(files_mutex);
  std::erase_if(files, [](const auto& f) { return f.expired(); });
  for (const auto& f : files)
    if (auto file = f.lock()) in_use.push_back(std::move(file));
  for (const auto& file : in_use)
    if (auto whole = file->reader().mappings_whole(); !whole && !lost_file) lost_file = whole.error();
  if (lost_file) return *lost_file;
  return gimbal::Done{};
}

static Status save_array(const std::string& path, const Tensor& t) {
  auto bytes = t.bytes();
  if (!bytes) return bytes.error();
  const auto read = [&](size_t, uint64_t offset, void* to, size_t n) -> gimbal::Status {
    std::copy_n(bytes->data() + offset, n, static_cast<std::byte*>(to));
    return gimbal::Done{};
  };
  if (auto ok = gimbal::write_npy(path, own(t.dtype()), t.dims(), read); !ok) return to_public(ok.error());
  return Done{};
}

Status save(const std::string& path, std::span<const NamedTensor> all) {
  if (ends_with(path, ".npy") && all.size() == 1) return save_array(path, all[0].tensor);
  if (!ends_with(path, ".safetensors"))
    return Error{Code::Usage, format("{}: tensors are written as .safetensors, a single one as .npy", path),
                 "",          "",
                 "",          "",
                 "",          {}};
  gimbal::TensorTable table;
  std::vector<std::vector<std::byte>> bytes;
  for (const NamedTensor& n : all) {
    auto values = n.tensor.bytes();
    if (!values) return values.error();
    gimbal::StoredTensor s{};
    s.name = n.name, s.type = own(n.tensor.dtype()), s.rank = uint32_t(n.tensor.rank());
    std::fill(std::begin(s.dim), std::end(s.dim), 1);
    for (uint32_t i = 0; i < s.rank; i++) s.dim[i] = n.tensor.dim(int(s.rank - 1 - i));
    s.bytes = s.stored = values->size();
    bytes.push_back(std::move(*values));
    if (!table.add(s))
      return Error{Code::Usage, format("{}: the name '{}' twice", path, n.name), "", "", "", "", "", {}};
  }
  const auto read = [&](size_t tensor, uint64_t offset, void* to, size_t n) -> gimbal::Status {
    std::copy_n(bytes[tensor].data() + offset, n, static_cast<std::byte*>(to));
    return gimbal::Done{};
  };
  if (auto ok = gimbal::write_safetensors(path, table, {}, read); !ok) return to_public(ok.error());
  return Done{};
}

}  // namespace gimbal::v1
