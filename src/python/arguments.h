// The positional arguments of a function: each is converted where it is used, or raises.
#pragma once
#include "python/object.h"

namespace gimbal::python {

class Arguments {
 public:
  Arguments(PyObject* const* all, Py_ssize_t n) : all_(all), n_(n) {}
  size_t size() const { return size_t(n_); }
  bool given(size_t i) const { return i < size() && all_[i] != Py_None; }
  PyObject* object(size_t i) const;
  const Tensor& tensor(size_t i) const;
  std::vector<Tensor> tensors(size_t i) const;  // of a list or tuple
  int64_t integer(size_t i) const;
  double number(size_t i) const;
  bool truth(size_t i) const;
  std::string text(size_t i) const;
  Scalar scalar(size_t i) const;
  Dims dims(size_t i) const;                       // a list or tuple of integers, or one
  Axes axes(size_t i) const;                       // likewise; None: all
  DType dtype(size_t i) const;                     // its number
  std::vector<std::string> texts(size_t i) const;  // of a list or tuple
  const Queue& queue(size_t i) const;

 private:
  PyObject* const* all_;
  Py_ssize_t n_;
};

Scalar scalar_of(PyObject*);
bool is_scalar(PyObject*);

// An entry of a module's table, from a function of Arguments.
using Make = PyObject* (*)(const Arguments&);
template <Make make>
PyObject* entry(PyObject*, PyObject* const* all, Py_ssize_t n) {
  return guarded([&] { return make(Arguments(all, n)); });
}
#define FUNCTION_OF(name, ...) \
  { name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(entry<__VA_ARGS__>)), METH_FASTCALL, nullptr }
#define LAMBDA_OF(name, ...) \
  FUNCTION_OF(               \
      name, +[](const Arguments& a) -> PyObject* { __VA_ARGS__ })

}  // namespace gimbal::python
