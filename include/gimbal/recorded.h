// Functions of tensors as one program: recorded once, then run as often as wanted. The values of all
// operations between arguments and results share memory that is planned beforehand; kernels are chosen
// beforehand, too. The bits are those of the same function called directly.
//
//   auto f = gimbal::record(*queue, {{gimbal::DType::F32, {64, 32}}, {gimbal::DType::F32, {32, 8}}}, [](auto
//   in) {
//     return std::vector{(in[0].matmul(in[1]) + 1.0).map("gelu")};
//   });
//   auto y = f->run(std::vector{x, w});
#pragma once
#include <functional>

#include "gimbal/device.h"
#include "gimbal/plan.h"
#include "gimbal/tensor.h"

namespace gimbal::v1 {

// The form of an argument.
struct Spec {
  DType dtype = DType::F32;
  Dims dims;
};

// Called once for each signature, with arguments that have no values yet: reading one is an error, and
// control flow is that of this call. Tensors from outside are bound as they are and only read: a run sees the
// values that they have then. Random numbers are the same in each run.
using TensorFunction = std::function<Result<std::vector<Tensor>>(std::span<const Tensor>)>;

// Bytes that a recorded function takes on its device.
struct RecordedPlan {
  uint64_t arguments = 0, results = 0;
  uint64_t outside = 0;  // tensors from outside, with their views' memory
  uint64_t work = 0;     // intermediate values, which share memory
  uint64_t apart = 0;    // the same without sharing
  size_t operations = 0;
};

// One operation of a recorded function.
struct RecordedOperation {
  std::string op, kernel, why;      // "map", "cpu.avx2.map.f32", "the highest rank that fits"
  std::vector<std::string> inputs;  // "f32[64, 32]"
  std::string output;
  std::vector<RejectedKernels> rejected;
};

// A recorded function. Copies are the same one; threads may share it. It keeps the last 64 signatures:
// formats, dims and strides of the arguments. An argument of another signature records the function anew.
class Recorded {
 public:
  // Errors: those of the function's operations, with Code::Usage where it reads a value or writes into a
  // tensor from outside; ids out of range; OutOfMemory.
  Result<std::vector<Tensor>> run(std::span<const Tensor>) const;
  // Before anything runs, for arguments of this form, or for those of record().
  Result<RecordedPlan> plan(std::span<const Tensor> like = {}) const;
  Result<std::vector<RecordedOperation>> explain(std::span<const Tensor> like = {}) const;
  // The kernels that ran, of all signatures, counted by the device.
  std::vector<ReceiptLine> receipt() const;
  size_t signatures() const;

  struct State;

 private:
  friend struct RecordedAccess;
  explicit Recorded(std::shared_ptr<State> s) : state_(std::move(s)) {}
  std::shared_ptr<State> state_;
};

// Records a function for arguments of this form; nothing runs. Errors: those of Recorded::run().
Result<Recorded> record(const Queue&, const std::vector<Spec>& arguments, TensorFunction);
// Records at the first run.
Recorded record(const Queue&, TensorFunction);

}  // namespace gimbal::v1

namespace gimbal {
using namespace v1;
}
