// Tensors on any device: dense and quantized numbers, views without copies, the same bits everywhere.
//
//   auto queue = gimbal::open_queue("cpu");
//   auto x = gimbal::Tensor::from<float>({1, 2, 3, 4}, {2, 2}, *queue);
//   auto y = (x.matmul(x) + 1.0).map("gelu").values<float>();   // one check, at the end
//
// Dims are in the order that people write, slowest first. A failed operation gives a tensor that carries its
// error on; reading the values returns it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "gimbal/device.h"
#include "gimbal/error.h"

namespace gimbal::v1 {

// Number formats. Quantized ones are stored in blocks along the last dim.
enum class DType : uint8_t {
  F32,
  F16,
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  Q8_0,
  Q8_1,
  Q2_K,
  Q3_K,
  Q4_K,
  Q5_K,
  Q6_K,
  Q8_K,
  IQ2_XXS,
  IQ2_XS,
  IQ3_XXS,
  IQ1_S,
  IQ4_NL,
  IQ3_S,
  IQ2_S,
  IQ4_XS,
  I8,
  I16,
  I32,
  I64,
  F64,
  IQ1_M,
  BF16,
  TQ1_0,
  TQ2_0,
  I2_S,
  MXFP4,
  NVFP4,
  Q1_0,
  Q2_0,
  Bool = 40,
  U8,
  U16,
  U32,
  U64,
  F8_E4M3,
  F8_E5M2
};
const char* name_of(DType);                   // "f32"
Result<DType> dtype_named(std::string_view);  // Errors: Usage (dtype), with the names that there are

// Reasons of errors, in Error::reason.
namespace reason {
inline constexpr const char* kShape = "shape";  // dims that do not fit
inline constexpr const char* kDType = "dtype";  // an operation that is not defined for these formats
inline constexpr const char* kIndex = "index";  // an index, dim or id out of range
}  // namespace reason

using Dims = std::vector<int64_t>;
using Axes = std::vector<int>;  // dims by number, negative ones from the end; none: all

// A number of either kind, as operand or fill value. It takes the format of the tensor that it meets.
struct Scalar {
  Scalar(double v) : floating(true), number(v), integer(0) {}
  Scalar(float v) : Scalar(double(v)) {}
  template <class T>
  requires std::is_integral_v<T> Scalar(T v)
      : floating(false), truth(std::is_same_v<T, bool>), number(double(v)), integer(int64_t(v)) {}
  bool floating, truth = false;  // truth: true or false, which leaves a tensor of bools as it is
  double number;
  int64_t integer;
};

struct QueueOptions {
  bool strict = false;                  // an error instead of another device than the one asked for
  bool allow_software_devices = false;  // those that emulate a GPU
  int threads = 0;                      // of the CPU; 0: one for each physical core
  std::string cpu_variant = {};         // an instruction set; empty: the best
  uint64_t memory_limit = 0;            // bytes of tensors; 0: all of the device
  // Kernels of a GPU are compared with the CPU at their first use on this machine. One with other bits is not
  // used again: the CPU computes in its place, or a strict queue gives an error. Before the first run of a
  // recorded function with new kernels, the function is called once more, op by op.
  bool verify = true;
  // Of the device that was asked for by name, lines of key=value: docs/internals/devices.md.
  std::string device_options = {};
  // Called when an operation is computed by the CPU for the first time because the device has no kernel for
  // it, by the thread that computes.
  std::function<void(const Fallback&)> on_fallback = {};
};

struct MemoryStats {
  uint64_t live = 0, cached = 0, peak = 0;  // bytes: in tensors; kept for later ones; the largest sum of both
};
struct TransferCounts {
  uint64_t uploads = 0, downloads = 0, operations = 0;
};

// A kernel of a GPU with the formats of its operands, which was compared with the CPU.
struct VerifiedKernel {
  std::string name;     // "vulkan.gpu.map.f32.12 f32 to f32"
  bool right;           // it gave the CPU's bits
  bool before = false;  // at an earlier start, with this driver and build
};

// An open device, its memory for tensors, and the order of its work. Copies are the same queue; it lives as
// long as a tensor of it. Threads may share it.
class Queue {
 public:
  std::string location() const;  // "cpu:0"
  std::string name() const;      // of the device
  std::string reason() const;    // why this device
  bool is_cpu() const;
  bool supports(DType) const;  // arithmetic on it
  bool same_as(const Queue&) const;
  // The seed of Tensor::uniform() and normal() on this queue. set_seed() begins their numbers anew; threads
  // that draw at the same time get numbers of their own, in no order.
  void set_seed(uint64_t) const;
  uint64_t seed() const;  // 299792458 at first
  // Waits until everything is computed. Errors: those of the device, and the first error of tensors that were
  // dropped unread.
  Status wait() const;
  MemoryStats memory() const;
  void trim() const;  // gives back memory that is kept for later tensors
  TransferCounts counts() const;
  // The kernels that ran, each with the number of its operations.
  std::vector<std::pair<std::string, uint64_t>> receipt() const;
  // Operations that the CPU computed in the device's place, each once, such as "map of f64 to f64". A
  // strict queue refuses them.
  std::vector<Fallback> fallbacks() const;
  // QueueOptions::verify. Empty on the CPU.
  std::vector<VerifiedKernel> verified() const;

  struct State;

 private:
  friend struct TensorAccess;
  explicit Queue(std::shared_ptr<State> s) : state_(std::move(s)) {}
  std::shared_ptr<State> state_;
};

// `where`: "cpu", "cuda:1", or "auto". Errors: NoBackend with every reason; Usage for a name that does not
// exist.
Result<Queue> open_queue(const std::string& where = "auto", const QueueOptions& = {});

class Tensor {
 public:
  // ---- making
  static Tensor zeros(const Dims&, DType, const Queue&);
  static Tensor full(const Dims&, Scalar, DType, const Queue&);
  static Tensor arange(Scalar begin, Scalar end, Scalar step, DType,
                       const Queue&);  // empty where the step leads away
  static Tensor eye(int64_t n, DType, const Queue&);
  // Random numbers of the queue's seed, the same on every device: from 0 to below 1; of mean 0 and
  // variance 1.
  static Tensor uniform(const Dims&, DType, const Queue&);
  static Tensor normal(const Dims&, DType, const Queue&);
  // Copies row-major numbers of that format; of formats in blocks, their blocks. Errors: Usage (shape) for
  // another number of bytes.
  static Tensor from_bytes(std::span<const std::byte>, const Dims&, DType, const Queue&);
  // Reads the caller's memory in place, without a copy. `data` is element [0, ..., 0]; strides are in
  // elements, of any sign. Nothing writes there: fill_() and copy_() refuse; the caller must not either.
  // `owner` is let go after the last tensor of this memory. Errors: Unsupported for formats in blocks and on
  // devices that cannot; Usage (shape) for dims that are none, and for data that is not aligned to its
  // elements.
  static Tensor wrap(const void* data, const Dims& dims, const Dims& strides, DType, const Queue&,
                     std::shared_ptr<const void> owner);
  template <class T>
  static Tensor from(std::span<const T> values, const Dims& dims, const Queue& q) {
    return from_bytes(std::as_bytes(values), dims, dtype_of<T>(), q);
  }
  template <class T>
  static Tensor from(std::initializer_list<T> values, const Dims& dims, const Queue& q) {
    return from<T>(std::span<const T>(values.begin(), values.size()), dims, q);
  }

  // ---- facts
  bool ok() const;
  const Error& error() const;  // of a failed one
  DType dtype() const;
  int rank() const;
  int64_t dim(int) const;  // negative: from the end
  Dims dims() const;
  Dims strides() const;    // in elements
  int64_t offset() const;  // of the first element in its memory, in elements
  int64_t count() const;   // of elements
  bool is_contiguous() const;
  bool is_read_only() const;  // its memory is a caller's: wrap()
  bool shares_memory_with(const Tensor&) const;
  Queue queue() const;

  // ---- views; reshape() copies where strides cannot say it
  Tensor reshape(const Dims&) const;  // one dim may be -1
  Tensor permute(const Axes&) const;
  Tensor t() const;  // the last two dims exchanged
  Tensor narrow(int dim, int64_t begin, int64_t size, int64_t step = 1) const;
  Tensor select(int dim, int64_t at) const;
  Tensor broadcast_to(const Dims&) const;
  Tensor flip(int dim) const;
  Tensor unfold(int dim, int64_t size,
                int64_t step) const;  // the windows of dim; a new last dim lies within them
  Tensor squeeze(int dim) const;
  Tensor unsqueeze(int dim) const;

  // ---- moving
  Tensor to(DType) const;  // each number rounded once; to quantized formats: quantize()
  Tensor to(const Queue&) const;
  Tensor contiguous() const;
  Tensor copy() const;
  Tensor pad(const std::vector<std::pair<int64_t, int64_t>>& before_after, Scalar value) const;
  Tensor roll(int64_t shift, int dim) const;
  Tensor repeat(const Dims& times) const;
  // Ids out of range are an error on every device. ids of gather: x's dims but `dim`; of index_select: one
  // dim.
  Tensor gather(const Tensor& ids, int dim) const;
  Tensor index_select(const Tensor& ids, int dim) const;
  Tensor scatter(const Tensor& ids, const Tensor& source, int dim) const;  // of one place, the last wins
  Tensor scatter_add(const Tensor& ids, const Tensor& source, int dim) const;
  Tensor index_add(const Tensor& ids, const Tensor& source, int dim) const;
  // Write through a view, so into the tensor that it is a view of. Errors: Usage for a view whose elements
  // overlap.
  Status fill_(Scalar) const;
  Status copy_(const Tensor&) const;

  // ---- arithmetic: functions by name (docs/operations.md), "exp", "gelu", "floor_div"; operators are below
  Tensor map(std::string_view function) const;
  Tensor map(std::string_view function, const Tensor& second) const;
  Tensor map(std::string_view function, Scalar second) const;
  Tensor affine(double factor, double summand) const;
  Tensor elu(double alpha = 1) const;

  // ---- along dims
  Tensor sum(const Axes& = {}, bool keep = false) const;
  Tensor mean(const Axes& = {}, bool keep = false) const;
  Tensor var(const Axes& = {}, bool keep = false) const;  // divided by n
  Tensor prod(const Axes& = {}, bool keep = false) const;
  Tensor min(const Axes& = {}, bool keep = false) const;
  Tensor max(const Axes& = {}, bool keep = false) const;
  Tensor argmin(const Axes& = {}, bool keep = false) const;  // i32: row-major in the dims
  Tensor argmax(const Axes& = {}, bool keep = false) const;
  Tensor any(const Axes& = {}, bool keep = false) const;
  Tensor all(const Axes& = {}, bool keep = false) const;
  Tensor softmax(int dim) const;
  Tensor log_softmax(int dim) const;
  Tensor cumsum(int dim) const;
  Tensor sort(int dim, bool falling = false) const;
  Tensor argsort(int dim, bool falling = false) const;        // i32
  std::pair<Tensor, Tensor> top_k(int64_t k, int dim) const;  // values, and their places as i32

  // ---- products and pictures
  Tensor matmul(const Tensor&) const;
  Tensor avg_pool2d(const Dims& kernel, const Dims& stride) const;
  Tensor max_pool2d(const Dims& kernel, const Dims& stride) const;
  Tensor upsample_nearest1d(int64_t width) const;
  Tensor upsample_nearest2d(int64_t height, int64_t width) const;
  Tensor upsample_bilinear2d(int64_t height, int64_t width, bool align_corners = false) const;

  // ---- reading: waits, and returns the first error of everything before
  Result<std::vector<std::byte>> bytes() const;  // row-major
  template <class T>
  Result<std::vector<T>> values() const {
    auto b = bytes_of(dtype_of<T>());
    if (!b) return b.error();
    std::vector<T> v(b->size() / sizeof(T));
    for (size_t i = 0; i < v.size(); i++) v[i] = *reinterpret_cast<const T*>(b->data() + i * sizeof(T));
    return v;
  }
  // Where the elements lie, for devices that share the host's memory; null for others. Valid as long as a
  // tensor of this memory.
  const void* host() const;
  std::string text() const;  // for people: values, dims and dtype, shortened

  template <class T>
  static constexpr DType dtype_of() {
    if constexpr (std::is_same_v<T, float>) return DType::F32;
    else if constexpr (std::is_same_v<T, double>) return DType::F64;
    else if constexpr (std::is_same_v<T, uint8_t>) return DType::U8;
    else if constexpr (std::is_same_v<T, int8_t>) return DType::I8;
    else if constexpr (std::is_same_v<T, int16_t>) return DType::I16;
    else if constexpr (std::is_same_v<T, int32_t>) return DType::I32;
    else if constexpr (std::is_same_v<T, uint32_t>) return DType::U32;
    else if constexpr (std::is_same_v<T, int64_t>) return DType::I64;
    else static_assert(!sizeof(T), "no dtype belongs to this type");
  }

  struct State;

 private:
  friend struct TensorAccess;
  explicit Tensor(std::shared_ptr<const State> s) : state_(std::move(s)) {}
  Result<std::vector<std::byte>> bytes_of(DType) const;  // Errors: Usage (dtype) if it is another one
  std::shared_ptr<const State> state_;
};

Tensor operator+(const Tensor&, const Tensor&);
Tensor operator-(const Tensor&, const Tensor&);
Tensor operator*(const Tensor&, const Tensor&);
Tensor operator/(const Tensor&, const Tensor&);
Tensor operator+(const Tensor&, Scalar);
Tensor operator-(const Tensor&, Scalar);
Tensor operator*(const Tensor&, Scalar);
Tensor operator/(const Tensor&, Scalar);
// A function of two operands, by name: "add", "pow", "lt", ... Either may be a number.
Tensor map(std::string_view function, Scalar first, const Tensor& second);

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
Tensor cat(std::span<const Tensor>, int dim);
Tensor stack(std::span<const Tensor>, int dim);
// x [..., in], w [out, in] of floats or a quantized format.
Tensor linear(const Tensor& x, const Tensor& w);
// Mixtures of experts: x [rows, in], or [rows, slots, in] with a row for each slot; w [experts, out, in] as
// for linear(); ids [rows, slots], the expert of each slot. Returns [rows, slots, out].
Tensor linear_indexed(const Tensor& x, const Tensor& w, const Tensor& ids);
// Blocks of a quantized format, as to() makes them. importance, f32: one weight for each of a row, not
// negative; null: all errors count alike.
Tensor quantize(const Tensor& x, DType, const Tensor* importance = nullptr);
// Over the last dim; weight and bias may be null.
Tensor layer_norm(const Tensor& x, const Tensor* weight, const Tensor* bias, double epsilon = 1e-5);
Tensor rms_norm(const Tensor& x, const Tensor* weight, double epsilon = 1e-5);

struct ConvOptions {
  Dims stride, padding, dilation;  // one for each dim of the window; empty: 1, 0, 1
  int64_t groups = 1;
  Dims output_padding;  // of transposed ones
};
// x [batch, channels, (h,) w], w [out, channels / groups, (h,) w]; transposed: w [channels, out / groups,
// (h,) w].
Tensor conv(const Tensor& x, const Tensor& w, const ConvOptions& = {});
Tensor conv_transpose(const Tensor& x, const Tensor& w, const ConvOptions& = {});

// ---- files
struct NamedTensor {
  std::string name;  // empty: the array of an npy file
  Tensor tensor;
};
// Every tensor of a GGUF, safetensors, npy or npz file, in the order of the file. Errors: NotFound; Malformed
// for a file that breaks its format; Unsupported for a number format that is not known here.
Result<std::vector<NamedTensor>> load(const std::string& path, const Queue&);
struct LoadOptions {
  // On the CPU, tensors share the pages of their file: nothing is copied, they take none of the queue's
  // memory, and they are read-only. Tensors that do not lie in the file as they are used, or at an address
  // that is not aligned for them, are copied. If the file loses pages that are in use, later reads of this
  // queue are errors.
  bool mapped = false;
};
Result<std::vector<NamedTensor>> load(const std::string& path, const Queue&, const LoadOptions&);
// Writes a safetensors file, or one tensor as an npy file, whole or not at all. Errors: Usage for another
// ending, or a name that comes twice; Unsupported for formats in blocks; the system's.
Status save(const std::string& path, std::span<const NamedTensor>);

// Random numbers that are the same on every device: Threefry-4x32 by a seed.
class Generator {
 public:
  // `block`: where it begins, four values each.
  explicit Generator(uint64_t seed, const Queue& queue, uint64_t block = 0)
      : seed_(seed), block_(block), queue_(queue) {}
  Tensor uniform(const Dims&, DType = DType::F32);  // 0 to below 1
  Tensor normal(const Dims&, DType = DType::F32);
  uint64_t seed() const { return seed_; }

 private:
  Tensor draw(int distribution, const Dims&, DType);
  uint64_t seed_, block_;
  Queue queue_;
};

}  // namespace gimbal::v1

namespace gimbal {
using namespace v1;
}
