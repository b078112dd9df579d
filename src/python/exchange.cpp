// Tensors from and to other libraries without copies: buffers in, DLPack in and out.
#include <memory>

#include "python/arguments.h"
#include "python/dlpack.h"

namespace gimbal::python {
namespace {

using dlpack::First;
using dlpack::Versioned;

struct Kind {
  DType type;
  dlpack::TypeCode code;
  uint8_t bits;
};
constexpr Kind kKinds[] = {
    {DType::F32, dlpack::kFloat, 32},
    {DType::F64, dlpack::kFloat, 64},
    {DType::F16, dlpack::kFloat, 16},
    {DType::BF16, dlpack::kBFloat, 16},
    {DType::I8, dlpack::kInt, 8},
    {DType::I16, dlpack::kInt, 16},
    {DType::I32, dlpack::kInt, 32},
    {DType::I64, dlpack::kInt, 64},
    {DType::U8, dlpack::kUInt, 8},
    {DType::U16, dlpack::kUInt, 16},
    {DType::U32, dlpack::kUInt, 32},
    {DType::U64, dlpack::kUInt, 64},
    {DType::Bool, dlpack::kBool, 8},
    {DType::F8_E4M3, dlpack::kFloat8E4M3, 8},
    {DType::F8_E5M2, dlpack::kFloat8E5M2, 8},
};

[[noreturn]] void raise_buffer(const std::string& message) {
  PyErr_SetString(PyExc_BufferError, message.c_str());
  throw Raised();
}

// What an exported view needs, until its consumer is done.
template <class Form>
struct Exported {
  Form form{};
  Tensor tensor;
  Dims dims, strides;

  explicit Exported(const Tensor& t) : tensor(t), dims(t.dims()), strides(t.strides()) {}
};

// A consumer that never took it.
template <class Form>
void end_export(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, dlpack::kName<Form>)) return;
  auto* form = static_cast<Form*>(PyCapsule_GetPointer(capsule, dlpack::kName<Form>));
  if (form && form->end) form->end(form);
}

template <class Form>
PyObject* exported(const Tensor& t) {
  const Kind* kind = nullptr;
  for (const Kind& k : kKinds)
    if (k.type == t.dtype()) kind = &k;
  if (!kind)
    raise_buffer(std::string(name_of(t.dtype())) +
                 " has no form in DLPack; convert it first, with .to(gimbal.f32)");
  if (auto done = unlocked(true, [&] { return t.queue().wait(); }); !done) raise(done.error());
  if (!t.host() && t.count())
    raise_buffer("the tensor is not in the host's memory; copy it with .to(\"cpu\")");
  auto e = std::make_unique<Exported<Form>>(t);
  dlpack::View& v = e->form.view;
  v.data = const_cast<void*>(t.host()), v.device = {dlpack::kCpu, 0}, v.rank = t.rank();
  v.type = {kind->code, kind->bits, 1}, v.dims = e->dims.data(), v.strides = e->strides.data();
  e->form.owner = e.get();
  e->form.end = [](Form* f) { delete static_cast<Exported<Form>*>(f->owner); };
  if constexpr (std::is_same_v<Form, Versioned>)
    e->form.major = dlpack::kMajor, e->form.minor = dlpack::kMinor, e->form.flags = dlpack::kReadOnly;
  PyObject* capsule = PyCapsule_New(&e->form, dlpack::kName<Form>, end_export<Form>);
  if (capsule) e.release();
  return capsule;
}

PyObject* to_dlpack(const Arguments& a) {  // x, versioned?
  const Tensor& t = a.tensor(0);
  if (a.truth(1)) return exported<Versioned>(t);
  if (t.is_read_only())
    raise_buffer(
        "the tensor reads the memory of another array, which the consumer could write; copy() it, or ask for "
        "version 1 of DLPack");
  return exported<First>(t);
}

template <class Form>
PyObject* imported(PyObject* capsule, const Queue& q) {
  auto* form = static_cast<Form*>(PyCapsule_GetPointer(capsule, dlpack::kName<Form>));
  if (!form) throw Raised();
  if constexpr (std::is_same_v<Form, Versioned>)
    if (form->major != dlpack::kMajor)
      raise_buffer("version " + std::to_string(form->major) + " of DLPack; expected 1");
  const dlpack::View& v = form->view;
  if (v.device.type != dlpack::kCpu && v.device.type != dlpack::kCudaHost)
    raise_buffer("the array is on a device of type " + std::to_string(v.device.type) +
                 " of DLPack; copy it to the host first");
  const Kind* kind = nullptr;
  for (const Kind& k : kKinds)
    if (k.code == v.type.code && k.bits == v.type.bits && v.type.lanes == 1) kind = &k;
  if (!kind)
    raise(Error{Code::Usage,
                "numbers of type " + std::to_string(v.type.code) + " of DLPack with " +
                    std::to_string(v.type.bits) + " bits",
                "",
                reason::kDType,
                "",
                "",
                "",
                {}});
  if (v.rank < 0 || v.rank > 64 || (v.rank && !v.dims)) raise_buffer("an invalid view of DLPack");
  const Dims dims(v.dims, v.dims + v.rank);
  Dims strides(v.strides ? v.strides : v.dims, (v.strides ? v.strides : v.dims) + v.rank);
  int64_t step = 1;
  for (size_t i = dims.size(); !v.strides && i-- > 0; step *= dims[i]) strides[i] = step;
  if (PyCapsule_SetName(capsule, dlpack::kUsedName<Form>) < 0) throw Raised();
  const std::shared_ptr<const void> owner(form, [](Form* f) {
    if (!f->end || !Py_IsInitialized()) return;
    const Locked locked;  // the released owner may be an object of Python
    f->end(f);
  });
  return new_tensor(Tensor::wrap(static_cast<const std::byte*>(v.data) + v.byte_offset, dims, strides,
                                 kind->type, q, owner));
}
PyObject* from_dlpack(const Arguments& a) {  // capsule, queue
  if (PyCapsule_IsValid(a.object(0), dlpack::kName<Versioned>))
    return imported<Versioned>(a.object(0), a.queue(1));
  return imported<First>(a.object(0), a.queue(1));
}

// Reads the memory of a buffer in place. x, dtype, queue
PyObject* wrap_buffer(const Arguments& a) {
  const DType type = a.dtype(1);
  auto* view = new Py_buffer{};
  if (PyObject_GetBuffer(a.object(0), view, PyBUF_STRIDED_RO) < 0) {
    delete view;
    throw Raised();
  }
  const std::shared_ptr<const void> owner(view, [](Py_buffer* v) {
    if (Py_IsInitialized()) {
      const Locked locked;
      PyBuffer_Release(v);
    }
    delete v;
  });
  Dims dims(view->shape, view->shape + view->ndim), strides(view->strides, view->strides + view->ndim);
  for (int64_t& s : strides) {
    if (s % view->itemsize) raise_buffer("strides that are no multiple of an element");
    s /= view->itemsize;
  }
  return new_tensor(Tensor::wrap(view->buf, dims, strides, type, a.queue(2), owner));
}

}  // namespace

PyMethodDef kExchangeFunctions[] = {
    FUNCTION_OF("to_dlpack", to_dlpack),
    FUNCTION_OF("from_dlpack", from_dlpack),
    FUNCTION_OF("wrap_buffer", wrap_buffer),
    LAMBDA_OF("is_read_only", return PyBool_FromLong(a.tensor(0).is_read_only());),
    {nullptr, nullptr, 0, nullptr}};

}  // namespace gimbal::python
