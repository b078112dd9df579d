// What tensors and queues are made of. In the public namespace, whose names hide the library's own: those are
// written gimbal::Error. The library's own headers come first, and all of them here, so that they never see
// the public names.
#pragma once
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/format.h"
#include "base/json.h"
#include "device/location.h"
#include "device/reason.h"
#include "device/values.h"
#include "discovery/registry.h"
#include "engine/backend_places.h"
#include "engine/machine_cache.h"
#include "files/npy.h"
#include "files/safetensors.h"
#include "ops/maps.h"
#include "ops/op_def.h"
#include "ops/reductions.h"
#include "program/join.h"
#include "program/place.h"
#include "program/receipt.h"
#include "tensor/quant_encode.h"
#include "tensors/layout.h"
#include "tensors/pool.h"

// The public names from here on.
#include "library/public_error.h"

#include <gimbal/tensor.h>

namespace gimbal::v1 {

static_assert(int(DType::Q2_0) == int(gimbal::DType::Q2_0) &&
              int(DType::F8_E5M2) == int(gimbal::DType::F8_E5M2));
inline gimbal::DType own(DType t) { return gimbal::DType(int(t)); }
inline DType to_public(gimbal::DType t) { return DType(int(t)); }

// One op, compiled for operands of these dims, strides and formats.
struct Signature {
  gimbal::Program program;
  gimbal::Executable executable;
  // The result; rank 0 and no bytes for an op that writes into its first operand.
  gimbal::DType type = gimbal::DType::F32;
  gimbal::Layout layout;
  uint64_t bytes = 0;
  uint64_t* runs = nullptr;  // of its kernel, in Queue::State::runs
  bool trusted = false;      // its kernel was right at its first use, or is not compared
};

// A look-up by a key on the stack.
struct SignatureHash {
  using is_transparent = void;
  size_t operator()(std::string_view key) const { return std::hash<std::string_view>()(key); }
};

struct HostKernel;  // custom_op.cpp

// Kernels that were compared with the CPU, by first_use_of().
struct FirstUses {
  std::mutex mutex;   // of all that follows
  bool read = false;  // what earlier starts kept
  std::set<std::string> before, right;
  std::map<std::string, gimbal::Error> wrong;
  std::optional<Queue> cpu;
};

struct Queue::State {
  std::shared_ptr<gimbal::MemoryPool> pool;
  std::string why;
  gimbal::KernelPreference kernels;

  std::mutex mutex;  // of what follows, and of the device
  std::unordered_map<std::string, std::list<std::pair<std::string, Signature>>::iterator, SignatureHash,
                     std::equal_to<>>
      known;
  std::list<std::pair<std::string, Signature>> signatures;  // last used first
  std::map<std::string, uint64_t> runs;                     // of kernels, by name
  TransferCounts counts;
  std::optional<Error> dropped;  // of a failed tensor that was dropped unread
  // Kernels of the program, by the state of their operation.
  std::map<const void*, std::shared_ptr<HostKernel>> custom;
  std::mutex random_mutex;  // of the seed, and of the block with which the next numbers begin
  uint64_t seed = 299792458, block = 0;
  bool strict = false;  // no operation on another device
  std::function<void(const Fallback&)> on_fallback;
  std::mutex cpu_mutex;  // of the next two
  std::optional<Queue> cpu;
  std::vector<Fallback> fallbacks;
  std::mutex files_mutex;                                       // of the next two
  std::vector<std::weak_ptr<const gimbal::ModelSource>> files;  // whose pages tensors share
  std::optional<gimbal::Error> lost_file;                       // of one that lost pages
  std::unique_ptr<FirstUses> first_uses;                        // null: kernels are not compared
  std::mutex host_mutex;  // of host_error, which threads of a custom operation set during submit()
  std::optional<gimbal::Error> host_error;

  gimbal::Device& device() const { return pool->device(); }
  // Adds to `counts`, but for the transfers of comparisons (first_use.cpp). The queue is locked.
  void count(uint64_t TransferCounts::*what, uint64_t n = 1);
  // Computes. The queue is locked. Errors: those of the device, and of the functions of custom operations.
  gimbal::Status submit(gimbal::Executable&, gimbal_buffer* const* slots, size_t n);
  // Checks the files whose pages tensors share. Errors: Malformed once one lost pages, from then on.
  gimbal::Status files_whole();
};
// Whether this thread computes a custom operation of the queue, which is locked then.
bool computes_custom(const Queue::State&);
Error inside_custom();

class Recording;

struct Tensor::State {
  std::shared_ptr<Queue::State> queue;
  gimbal::DType type = gimbal::DType::F32;
  gimbal::Layout layout;
  std::shared_ptr<gimbal::Block> block;  // null: failed, without elements, or recorded
  // Of a function that is being recorded (recording.h): its values are known when the function runs.
  std::shared_ptr<Recording> recording;
  uint32_t memory = 0;  // the number of its memory there
  std::optional<Error> error;
  mutable bool seen = false;  // the error was read, or another tensor carries it on

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();
};

struct TensorAccess {
  static Tensor tensor(std::shared_ptr<const Tensor::State> s) { return Tensor(std::move(s)); }
  static const Tensor::State& state(const Tensor& t) { return *t.state_; }
  static Queue queue(std::shared_ptr<Queue::State> s) { return Queue(std::move(s)); }
  static const std::shared_ptr<Queue::State>& state(const Queue& q) { return q.state_; }
};
inline const Tensor::State& state_of(const Tensor& t) { return TensorAccess::state(t); }

// ---- errors. `what` is the operation, in the user's terms: "matmul: f32[3, 5] with f32[4, 7]: the inner
// dimensions differ".
Error shape_error(std::string message, std::string remedy = "");
Error dtype_error(std::string message, std::string remedy = "");
Error index_error(std::string message, std::string remedy = "");
std::string describe(const Tensor&);  // "f32[3, 5]"

Tensor failed(const std::shared_ptr<Queue::State>&, Error);
inline Tensor refuse(const Tensor& t, Error e) { return failed(state_of(t).queue, std::move(e)); }
inline bool floats(const Tensor& t) { return gimbal::has(gimbal::kFloats, state_of(t).type); }
// The same elements and memory in another layout.
Tensor view(const Tensor&, const gimbal::Layout&);
// The failed one of several, if there is one, or an error for tensors of different queues.
std::optional<Tensor> unusable(std::span<const Tensor* const>);

// A tensor with memory whose contents are whatever was there; of a function that is being recorded, if one
// is.
Tensor uninitialized(const std::shared_ptr<Queue::State>&, gimbal::DType, std::span<const int64_t> dims);
// The same, never recorded.
Tensor allocated(const std::shared_ptr<Queue::State>&, gimbal::DType, std::span<const int64_t> dims);

// ---- one op, for eager calls (apply.cpp) and recorded ones (recording.cpp) alike
gimbal_value value_of(gimbal::DType, const gimbal::Layout&, uint32_t slot);
// The result of an op as its definition has it. `writes`: into its first input.
struct ResultForm {
  gimbal::DType type;
  Dims dims;
  bool writes;
};
Result<ResultForm> result_form(gimbal::OpKind, const gimbal::OpParams&, std::span<const Tensor> in);
// A program of this op alone. The last value is the result, unless the op writes into its first input.
gimbal::Program program_of(gimbal::OpKind, const gimbal::OpParams&, std::span<const gimbal_value> values);
// Row-major copies of the inputs that are not; nullopt: all are.
std::optional<std::vector<Tensor>> dense_inputs(std::span<const Tensor> in, bool writes);

// Judges the numbers that an op found in its inputs, which decide whether the call fails: of its i64 result,
// an error, or nullopt. Eager calls judge at once, recorded ones after each run. nullopt: no error is known.
using Judge = std::function<std::optional<Error>(std::span<const int64_t>)>;
std::optional<Tensor> refused_by(const Tensor& found, Judge);

// Why a tensor must not be written into; nullopt: it may be.
std::optional<Error> cannot_be_written(const Tensor&);

// Computes one op. Its dims are those of the op's definition, slowest first; inputs of other strides than its
// kernels take are copied first. Ops that write into their first input return it.
Tensor apply(gimbal::OpKind, const gimbal::OpParams&, std::span<const Tensor> in);

// A queue on the CPU, opened at the first call and kept in `cpu`.
Result<Queue> opened_cpu(std::mutex&, std::optional<Queue>& cpu);
// The name of a fallback: "map of f64 to f64".
std::string words_of(gimbal::OpKind, gimbal::DType from, gimbal::DType to);
// `compute` on the CPU: with copies of the operands, whose result is copied back. Adds to fallbacks().
Tensor computed_by_the_cpu(const std::string& what, const Error& why, std::span<const Tensor> in,
                           const std::function<Tensor(std::span<const Tensor>)>& compute);

// ---- kernels of GPUs at their first use (first_use.cpp)
std::string first_use_of(const gimbal::Device&, const gimbal::Program&, const gimbal_op&);
bool compares_first_uses(const Queue::State&, gimbal::OpKind);
bool is_new_use(Queue::State&, const std::string& use);
std::optional<gimbal::Error> wrong_use(Queue::State&, const std::string& use);
// The result of `run`, which computes the op on the device. With other bits than the CPU's, the kernel is
// not used again, and the result is the CPU's; on a strict queue, and of ops that write, an error.
gimbal::Result<Tensor> compared(const std::string& use, gimbal::OpKind, const gimbal::OpParams&,
                                std::span<const Tensor> in, bool writes,
                                const std::function<gimbal::Result<Tensor>()>& run);

// A dim by number, negative ones from the end; nullopt: there is none.
std::optional<int> dim_of(int rank, int dim);
Error no_such_dim(std::string_view what, const Tensor&, int dim);
// Dim `dim` exchanged with the last one: the op along it runs over the last one, and its result is turned
// back.
Tensor turned(const Tensor&, int dim);

Tensor cast(const Tensor&, gimbal::DType);
// The error of ids that are not in 0 ... below - 1; nullopt: all are, or a recorded function checks them
// later.
std::optional<Tensor> bad_ids(const char* name, const Tensor& ids, int64_t below, int dim);
Tensor scalar_tensor(const std::shared_ptr<Queue::State>&, Scalar, gimbal::DType);  // of rank 0

}  // namespace gimbal::v1
