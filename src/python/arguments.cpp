#include "python/arguments.h"

#include <algorithm>

namespace gimbal::python {
namespace {

int64_t integer_of(PyObject* o) {
  Ref index(PyNumber_Index(o));
  if (!index) throw Raised();
  const long long v = PyLong_AsLongLong(index.get());
  if (v == -1 && PyErr_Occurred()) throw Raised();
  return v;
}
std::vector<int64_t> integers_of(PyObject* o) {
  if (PyIndex_Check(o)) return {integer_of(o)};
  Ref list(PySequence_List(o));
  if (!list) throw Raised();
  std::vector<int64_t> all;
  for (Py_ssize_t i = 0; i < PyList_Size(list.get()); i++)
    all.push_back(integer_of(PyList_GetItem(list.get(), i)));
  return all;
}

}  // namespace

bool is_scalar(PyObject* o) { return PyFloat_Check(o) || PyBool_Check(o) || PyIndex_Check(o); }

Scalar scalar_of(PyObject* o) {
  if (PyFloat_Check(o)) return PyFloat_AsDouble(o);
  if (PyBool_Check(o)) return o == Py_True;
  if (PyIndex_Check(o)) return integer_of(o);
  const double v = PyFloat_AsDouble(o);
  if (v == -1 && PyErr_Occurred()) throw Raised();
  return v;
}

PyObject* Arguments::object(size_t i) const {
  if (i >= size()) raise_type("too few arguments");
  return all_[i];
}
const Tensor& Arguments::tensor(size_t i) const {
  const Tensor* t = as_tensor(object(i));
  if (!t) raise_type("expected a gimbal.Tensor");
  return *t;
}
std::vector<Tensor> Arguments::tensors(size_t i) const {
  Ref list(PySequence_List(object(i)));
  if (!list) throw Raised();
  std::vector<Tensor> all;
  for (Py_ssize_t k = 0; k < PyList_Size(list.get()); k++) {
    const Tensor* t = as_tensor(PyList_GetItem(list.get(), k));
    if (!t) raise_type("expected a list of gimbal.Tensor");
    all.push_back(*t);
  }
  if (all.empty()) raise({Code::Usage, "an empty list of tensors", "", reason::kShape, "", "", "", {}});
  return all;
}
int64_t Arguments::integer(size_t i) const { return integer_of(object(i)); }
double Arguments::number(size_t i) const { return scalar_of(object(i)).number; }
bool Arguments::truth(size_t i) const {
  const int v = PyObject_IsTrue(object(i));
  if (v < 0) throw Raised();
  return v;
}
std::string Arguments::text(size_t i) const {
  Py_ssize_t n = 0;
  const char* p = PyUnicode_AsUTF8AndSize(object(i), &n);
  if (!p) throw Raised();
  return std::string(p, size_t(n));
}
std::vector<std::string> Arguments::texts(size_t i) const {
  Ref list(PySequence_List(object(i)));
  if (!list) throw Raised();
  std::vector<std::string> all;
  for (Py_ssize_t k = 0; k < PyList_Size(list.get()); k++) {
    PyObject* one = PyList_GetItem(list.get(), k);
    all.push_back(Arguments(&one, 1).text(0));
  }
  return all;
}
Scalar Arguments::scalar(size_t i) const { return scalar_of(object(i)); }
Dims Arguments::dims(size_t i) const { return integers_of(object(i)); }
Axes Arguments::axes(size_t i) const {
  if (!given(i)) return {};
  Axes all;
  for (int64_t v : integers_of(object(i))) all.push_back(int(std::clamp<int64_t>(v, -1000, 1000)));
  return all;
}
DType Arguments::dtype(size_t i) const { return DType(integer(i)); }
const Queue& Arguments::queue(size_t i) const {
  const Queue* q = as_queue(object(i));
  if (!q) raise_type("expected a gimbal.Queue");
  return *q;
}

}  // namespace gimbal::python
