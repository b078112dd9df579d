// The types Tensor and Queue: operators, the buffer protocol, and attributes. Methods are functions
// (functions.cpp), attached by python/gimbal/_tensor.py.
#include <cstring>
#include <new>

#include "python/arguments.h"

namespace gimbal::python {
namespace {

struct TensorObject {
  PyObject_HEAD Tensor value;
};
struct QueueObject {
  PyObject_HEAD Queue value;
};
PyTypeObject *tensor_type, *queue_type;

template <class Object, class Value>
PyObject* made(PyTypeObject* type, Value value) {
  static const auto alloc = allocfunc(PyType_GetSlot(type, Py_tp_alloc));
  PyObject* self = alloc(type, 0);
  if (self) new (&reinterpret_cast<Object*>(self)->value) Value(std::move(value));
  return self;
}
template <class Object, class Value>
void freed(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  static const auto free = freefunc(PyType_GetSlot(type, Py_tp_free));
  reinterpret_cast<Object*>(self)->value.~Value();
  free(self);
  Py_DECREF(type);
}
const Tensor& of(PyObject* self) { return reinterpret_cast<TensorObject*>(self)->value; }
bool large(const Tensor& t) { return t.count() > 4096; }

// ---- operators: a number may be on either side; a tensor of another kind leaves the matter to the other
// operand
PyObject* binary(const char* function, PyObject* a, PyObject* b) {
  const Tensor *x = as_tensor(a), *y = as_tensor(b);
  if (!(x || is_scalar(a)) || !(y || is_scalar(b))) return Py_NewRef(Py_NotImplemented);
  return guarded([&] {
    if (x && y) return new_tensor(unlocked(large(*x) || large(*y), [&] { return x->map(function, *y); }));
    if (x) {
      const Scalar s = scalar_of(b);
      return new_tensor(unlocked(large(*x), [&] { return x->map(function, s); }));
    }
    const Scalar s = scalar_of(a);
    return new_tensor(unlocked(large(*y), [&] { return map(function, s, *y); }));
  });
}
PyObject* unary(const char* function, PyObject* a) {
  return guarded([&] { return new_tensor(unlocked(large(of(a)), [&] { return of(a).map(function); })); });
}
#define BINARY(name, function) \
  PyObject* name(PyObject* a, PyObject* b) { return binary(function, a, b); }
BINARY(add, "add")
BINARY(subtract, "sub")
BINARY(multiply, "mul")
BINARY(divide, "div")
BINARY(floor_divide, "floor_div")
BINARY(remainder, "remainder")
BINARY(bit_and, "and")
BINARY(bit_or, "or")
BINARY(bit_xor, "xor")
BINARY(shift_left, "shl")
BINARY(shift_right, "shr")
PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  return modulus == Py_None ? binary("pow", a, b) : Py_NewRef(Py_NotImplemented);
}
PyObject* negative(PyObject* a) { return unary("neg", a); }
PyObject* positive(PyObject* a) { return Py_NewRef(a); }
PyObject* absolute(PyObject* a) { return unary("abs", a); }
PyObject* invert(PyObject* a) { return unary("not", a); }
PyObject* matrix_product(PyObject* a, PyObject* b) {
  const Tensor *x = as_tensor(a), *y = as_tensor(b);
  if (!x || !y) return Py_NewRef(Py_NotImplemented);
  return guarded([&] { return new_tensor(unlocked(true, [&] { return x->matmul(*y); })); });
}
PyObject* compare(PyObject* a, PyObject* b, int op) {
  static constexpr const char* kNames[] = {"lt", "le", "eq", "ne", "gt", "ge"};
  return binary(kNames[op], a, b);
}

// ---- buffers: NumPy and others read the elements where they lie
struct BufferView {
  Tensor tensor;  // keeps the memory
  std::vector<Py_ssize_t> dims, strides;
};
const char* format_of(DType t) {
  switch (t) {
    case DType::F32: return "f";
    case DType::F64: return "d";
    case DType::F16: return "e";
    case DType::I8: return "b";
    case DType::U8: return "B";
    case DType::I16: return "h";
    case DType::U16: return "H";
    case DType::I32: return "i";
    case DType::U32: return "I";
    case DType::I64: return "q";
    case DType::U64: return "Q";
    case DType::Bool: return "?";
    default: return nullptr;
  }
}
Py_ssize_t size_of(char format) {
  switch (format) {
    case 'd':
    case 'q':
    case 'Q': return 8;
    case 'f':
    case 'i':
    case 'I': return 4;
    case 'e':
    case 'h':
    case 'H': return 2;
    default: return 1;
  }
}
int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  const Tensor& t = of(self);
  const char* format = format_of(t.dtype());
  if (!format) {
    PyErr_Format(PyExc_BufferError, "%s has no form as a buffer; convert it first, with .to(gimbal.f32)",
                 name_of(t.dtype()));
    return -1;
  }
  if (flags & PyBUF_WRITABLE)
    return PyErr_SetString(PyExc_BufferError, "a tensor is read-only; copy it with numpy.array(x)"), -1;
  const bool wants_strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
  if (!wants_strides && !t.is_contiguous())
    return PyErr_SetString(PyExc_BufferError, "the tensor is not contiguous"), -1;
  if (auto done = unlocked(true, [&] { return t.queue().wait(); }); !done) {
    PyErr_SetString(PyExc_BufferError, done.error().message.c_str());
    return -1;
  }
  const void* p = t.host();
  if (!p && t.count()) {
    const auto bytes = unlocked(true, [&] { return t.bytes(); });  // of a recorded one, an error that says so
    PyErr_SetString(PyExc_BufferError,
                    bytes ? "the tensor is not in the host's memory; copy it with .to(\"cpu\")"
                          : bytes.error().message.c_str());
    return -1;
  }
  auto* e = new (std::nothrow) BufferView{t, {}, {}};
  if (!e) return PyErr_NoMemory(), -1;
  view->itemsize = size_of(*format);
  for (int64_t d : t.dims()) e->dims.push_back(d);
  for (int64_t s : t.strides()) e->strides.push_back(s * view->itemsize);
  static char none[8];
  view->obj = Py_NewRef(self), view->buf = p ? const_cast<void*>(p) : none;
  view->len = t.count() * view->itemsize, view->readonly = 1;
  view->format = flags & PyBUF_FORMAT ? const_cast<char*>(format) : nullptr;
  view->ndim = t.rank(), view->shape = e->dims.data(),
  view->strides = wants_strides ? e->strides.data() : nullptr;
  view->suboffsets = nullptr, view->internal = e;
  return 0;
}
void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<BufferView*>(view->internal); }

// ---- attributes
PyObject* shape(PyObject* self, void*) {
  const Dims dims = of(self).dims();
  Ref tuple(PyTuple_New(Py_ssize_t(dims.size())));
  for (size_t i = 0; tuple && i < dims.size(); i++)
    PyTuple_SetItem(tuple.get(), Py_ssize_t(i), PyLong_FromLongLong(dims[i]));
  return tuple.release();
}
PyObject* strides(PyObject* self, void*) {
  const Dims all = of(self).strides();
  Ref tuple(PyTuple_New(Py_ssize_t(all.size())));
  for (size_t i = 0; tuple && i < all.size(); i++)
    PyTuple_SetItem(tuple.get(), Py_ssize_t(i), PyLong_FromLongLong(all[i]));
  return tuple.release();
}
PyObject* offset(PyObject* self, void*) { return PyLong_FromLongLong(of(self).offset()); }
PyObject* rank(PyObject* self, void*) { return PyLong_FromLong(of(self).rank()); }
PyObject* count(PyObject* self, void*) { return PyLong_FromLongLong(of(self).count()); }
PyObject* dtype_number(PyObject* self, void*) { return PyLong_FromLong(int(of(self).dtype())); }
PyObject* queue(PyObject* self, void*) { return new_queue(of(self).queue()); }
PyObject* repr(PyObject* self) {
  const Tensor t = of(self);
  const std::string text = unlocked(false, [&] { return t.text(); });
  return PyUnicode_FromString(text.c_str());
}
Py_hash_t no_hash(PyObject*) {
  PyErr_SetString(PyExc_TypeError, "tensors have no hash: == compares their elements");
  return -1;
}
PyObject* where_is(PyObject* self, void*) {
  return PyUnicode_FromString(reinterpret_cast<QueueObject*>(self)->value.location().c_str());
}
PyObject* queue_repr(PyObject* self) {
  const Queue& q = reinterpret_cast<QueueObject*>(self)->value;
  return PyUnicode_FromString(("<gimbal.Queue on " + q.location() + ": " + q.name() + ">").c_str());
}

PyGetSetDef kTensorFields[] = {
    {"shape", shape, nullptr, "The dims, slowest first.", nullptr},
    {"strides", strides, nullptr, "Elements from one index of a dim to the next.", nullptr},
    {"offset", offset, nullptr, "Of the first element in its memory, in elements.", nullptr},
    {"ndim", rank, nullptr, "The number of dims.", nullptr},
    {"size", count, nullptr, "The number of elements.", nullptr},
    {"_dtype", dtype_number, nullptr, nullptr, nullptr},
    {"queue", queue, nullptr, "The open device that it lies on.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyGetSetDef kQueueFields[] = {{"location", where_is, nullptr, "\"cpu:0\"", nullptr},
                              {nullptr, nullptr, nullptr, nullptr, nullptr}};

template <class F>
void* slot(F f) {
  return reinterpret_cast<void*>(f);
}

bool add_type(PyObject* module, const char* name, PyType_Spec& spec, PyTypeObject*& type) {
  type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return type && PyModule_AddObjectRef(module, name, reinterpret_cast<PyObject*>(type)) == 0;
}

}  // namespace

bool add_types(PyObject* module) {
  PyType_Slot tensor_slots[] = {{Py_tp_dealloc, slot(freed<TensorObject, Tensor>)},
                                {Py_tp_repr, slot(repr)},
                                {Py_tp_hash, slot(no_hash)},
                                {Py_tp_richcompare, slot(compare)},
                                {Py_tp_getset, kTensorFields},
                                {Py_nb_add, slot(add)},
                                {Py_nb_subtract, slot(subtract)},
                                {Py_nb_multiply, slot(multiply)},
                                {Py_nb_true_divide, slot(divide)},
                                {Py_nb_floor_divide, slot(floor_divide)},
                                {Py_nb_remainder, slot(remainder)},
                                {Py_nb_power, slot(power)},
                                {Py_nb_negative, slot(negative)},
                                {Py_nb_positive, slot(positive)},
                                {Py_nb_absolute, slot(absolute)},
                                {Py_nb_invert, slot(invert)},
                                {Py_nb_and, slot(bit_and)},
                                {Py_nb_or, slot(bit_or)},
                                {Py_nb_xor, slot(bit_xor)},
                                {Py_nb_lshift, slot(shift_left)},
                                {Py_nb_rshift, slot(shift_right)},
                                {Py_nb_matrix_multiply, slot(matrix_product)},
                                {Py_bf_getbuffer, slot(get_buffer)},
                                {Py_bf_releasebuffer, slot(release_buffer)},
                                {0, nullptr}};
  PyType_Spec tensor_spec = {"gimbal.Tensor", sizeof(TensorObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, tensor_slots};
  PyType_Slot queue_slots[] = {{Py_tp_dealloc, slot(freed<QueueObject, Queue>)},
                               {Py_tp_repr, slot(queue_repr)},
                               {Py_tp_getset, kQueueFields},
                               {0, nullptr}};
  PyType_Spec queue_spec = {"gimbal.Queue", sizeof(QueueObject), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, queue_slots};
  return add_type(module, "Tensor", tensor_spec, tensor_type) &&
         add_type(module, "Queue", queue_spec, queue_type);
}

PyObject* new_tensor(Tensor t) {
  if (!t.ok()) raise(t.error());
  return made<TensorObject>(tensor_type, std::move(t));
}
const Tensor* as_tensor(PyObject* o) {
  return Py_TYPE(o) == tensor_type ? &reinterpret_cast<TensorObject*>(o)->value : nullptr;
}
PyObject* new_queue(Queue q) { return made<QueueObject>(queue_type, std::move(q)); }
const Queue* as_queue(PyObject* o) {
  return Py_TYPE(o) == queue_type ? &reinterpret_cast<QueueObject*>(o)->value : nullptr;
}

}  // namespace gimbal::python
