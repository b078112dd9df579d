// Operations of a program's own: a C++ function becomes a row of the device's kernel table. It is chosen,
// explained, recorded, counted and verified like any other.
//
//   gimbal::CustomOp twice{.name = "twice"};
//   twice.cpu = [](std::span<const gimbal::HostView> in, const gimbal::HostTarget& out, gimbal::Part) {
//     for (int64_t i = 0; i < in[0].count(); i++) out.at<float>(i) = 2 * in[0].at<float>(i);
//     return gimbal::Status(gimbal::Done{});
//   };
//   auto op = gimbal::custom_op(twice);
//   auto y = (*op)({x});
#pragma once
#include <functional>

#include "gimbal/recorded.h"

namespace gimbal::v1 {

// The elements of an operand, where they lie. Valid during the call that got it.
struct HostForm {
  DType dtype;
  Dims dims, strides;  // slowest first; in elements, of any sign

  int64_t count() const {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    return n;
  }
  // The offset of an element by its number in row-major order.
  int64_t offset(int64_t number) const {
    int64_t at = 0;
    for (size_t i = dims.size(); i-- > 0; number /= dims[i]) at += number % dims[i] * strides[i];
    return at;
  }
};
struct HostView : HostForm {
  const void* data;  // element [0, ..., 0]
  template <class T>
  const T& at(int64_t number) const {
    return static_cast<const T*>(data)[offset(number)];
  }
};
struct HostTarget : HostForm {
  void* data;
  template <class T>
  T& at(int64_t number) const {
    return static_cast<T*>(data)[offset(number)];
  }
};

// Threads compute the parts of an operation side by side: part `index` of `count` equal ones.
struct Part {
  int64_t index = 0, count = 1;
};

// Values of a reference: row-major, as exact doubles.
struct ReferenceValues {
  Dims dims;
  std::vector<double> values;
};

struct CustomOp {
  std::string name;       // lower-case letters, digits and _; the kernel is "cpu.custom.NAME"
  int inputs = 1;         // 1 to 7
  bool in_place = false;  // writes into its first input, which is also the result
  // The form of the result; empty: as the first input.
  std::function<Result<Spec>(std::span<const Spec>)> output;
  // For the CPU. Computes a part of the result, on any thread. Of an operation in place the first input is
  // `out`, and `in` has the others. It must not use tensors of the queue that calls it. An error fails the
  // operation.
  std::function<Status(std::span<const HostView> in, const HostTarget& out, Part)> cpu;
  int64_t elements_per_part = 0;  // of the result; 0: one part, for functions that ignore `Part`
  // For GPUs, in place of `cpu`: a text in the kernel dialect (docs/kernel-dialect.md) that computes element
  // `at` of the result. LOAD(x, i) is element i of the first operand (x or x0; then x1, x2), counted in
  // row-major order, STORE(y, at, value) writes the result; x_size, x_rank and x_dim(n) describe an operand.
  // At most three operands, of f32, f16 or bf16, which are computed in f32. The device compiles it at the
  // first use; the kernel is "BACKEND.custom.NAME".
  std::string kernel;
  // The same result in double precision, for verify().
  std::function<Result<ReferenceValues>(std::span<const ReferenceValues>)> reference;
  double tolerance = 1e-6;  // of |result - reference|, relative to the larger of 1 and |reference|
  // "cpu": on devices without an implementation, operands are copied to the CPU and the result back
  // (Queue::fallbacks()); on a strict queue that stays an error.
  std::string fallback;
};

struct CustomVerdict {
  int cases = 0;
  double largest_error = 0;  // in units of the tolerance
};

// Copies are the same operation. Threads may share it.
class Custom {
 public:
  // Errors: Usage (shape, dtype) for operands that do not fit; Unsupported on devices without an
  // implementation; those of the function.
  Tensor operator()(std::span<const Tensor>) const;
  Tensor operator()(std::initializer_list<Tensor> in) const {
    return (*this)(std::span(in.begin(), in.size()));
  }
  // Compares with the reference on random f32 operands of several sizes, dense and as views, or on operands
  // of these forms. Errors: Usage without a reference; Failed with the first wrong value.
  Result<CustomVerdict> verify(const Queue&, const std::vector<std::vector<Spec>>& cases = {}) const;
  const std::string& name() const;

  struct State;

 private:
  friend struct CustomAccess;
  explicit Custom(std::shared_ptr<State> s) : state_(std::move(s)) {}
  std::shared_ptr<State> state_;
};

// Errors: Usage for a name or a number of inputs that is none, or without a function.
Result<Custom> custom_op(CustomOp);

}  // namespace gimbal::v1

namespace gimbal {
using namespace v1;
}
