// Functions of tensors as one program, and operations of Python's own: capsules that the package wraps.
#include <gimbal/custom_op.h>

#include <algorithm>
#include <memory>

#include "python/handles.h"

namespace gimbal::python {
namespace {

// A Python object that threads without its lock may let go.
using Held = std::shared_ptr<PyObject>;
Held hold(PyObject* o) {
  return Held(Py_NewRef(o), [](PyObject* held) {
    const Locked lock;
    Py_DECREF(held);
  });
}

// An exception of Python, which stays set: the entry that called raises it.
Error raised() { return {Code::Failed, "an exception of Python", "", "", "", "", "", {}}; }

// ---- recorded functions
struct Functions {
  Held function;
  std::vector<Queue> queues;
  std::vector<Recorded> of_queues;

  // By the queue of the arguments.
  Recorded on(const Queue& q) {
    for (size_t i = 0; i < queues.size(); i++)
      if (queues[i].same_as(q)) return of_queues[i];
    queues.push_back(q);
    of_queues.push_back(record(q, [f = function](std::span<const Tensor> in) { return call(f.get(), in); }));
    return of_queues.back();
  }

  // f(tensors) returns a list of tensors.
  static Result<std::vector<Tensor>> call(PyObject* f, std::span<const Tensor> in) {
    const Locked lock;
    try {
      Ref all(PyTuple_New(Py_ssize_t(in.size())));
      if (!all) throw Raised();
      for (size_t i = 0; i < in.size(); i++) {
        PyObject* t = new_tensor(in[i]);
        if (!t || PyTuple_SetItem(all.get(), Py_ssize_t(i), t) < 0) throw Raised();
      }
      Ref results(PyObject_CallObject(f, all.get()));
      if (!results) throw Raised();
      std::vector<Tensor> tensors;
      PyObject* const list = results.get();
      return PyList_Size(list) == 0 ? tensors : Arguments(&list, 1).tensors(0);
    } catch (const Raised&) { return raised(); }
  }
};

}  // namespace

template <>
inline constexpr const char* kCapsule<std::shared_ptr<Functions>> = "gimbal.Recorded";
template <>
inline constexpr const char* kCapsule<Custom> = "gimbal.CustomOp";

namespace {

// The value of a result; an exception of a function that it called goes first.
template <class T>
T& expect_called(Result<T>& result) {
  if (!result && PyErr_Occurred()) throw Raised();
  return expect(result);
}

std::vector<Tensor> tensors_of(const Arguments& a, size_t i) {
  return PyObject_Size(a.object(i)) == 0 ? std::vector<Tensor>() : a.tensors(i);
}
Recorded recorded_on(const Arguments& a, const std::vector<Tensor>& in) {  // capsule, tensors, queue
  Functions& f = *held<std::shared_ptr<Functions>>(a, 0);
  return f.on(in.empty() ? a.queue(2) : in[0].queue());
}

PyObject* new_recorded(const Arguments& a) {  // function
  auto f = std::make_shared<Functions>();
  f->function = hold(a.object(0));
  return capsule_of(std::move(f));
}
PyObject* run(const Arguments& a) {  // capsule, tensors, queue -> list
  const std::vector<Tensor> in = tensors_of(a, 1);
  const Recorded f = recorded_on(a, in);
  auto y = unlocked(true, [&] { return f.run(in); });
  Ref list(PyList_New(0));
  for (const Tensor& t : expect_called(y)) {
    Ref tensor(new_tensor(t));
    if (!list || !tensor || PyList_Append(list.get(), tensor.get()) < 0) return nullptr;
  }
  return list.release();
}
PyObject* plan_of(const Arguments& a) {
  const std::vector<Tensor> in = tensors_of(a, 1);
  const Recorded f = recorded_on(a, in);
  auto p = unlocked(true, [&] { return f.plan(in); });
  const RecordedPlan& plan = expect_called(p);
  return Py_BuildValue("{sK sK sK sK sK sn}", "arguments", (unsigned long long)plan.arguments, "results",
                       (unsigned long long)plan.results, "outside", (unsigned long long)plan.outside, "work",
                       (unsigned long long)plan.work, "apart", (unsigned long long)plan.apart, "operations",
                       Py_ssize_t(plan.operations));
}

Ref texts_object(const std::vector<std::string>& all) {
  Ref list(PyList_New(0));
  for (const std::string& s : all) {
    Ref text(text_object(s));
    if (!list || !text || PyList_Append(list.get(), text.get()) < 0) throw Raised();
  }
  return list;
}
PyObject* explain_of(const Arguments& a) {
  const std::vector<Tensor> in = tensors_of(a, 1);
  const Recorded f = recorded_on(a, in);
  auto found = unlocked(true, [&] { return f.explain(in); });
  Ref list(PyList_New(0));
  for (const RecordedOperation& o : expect_called(found)) {
    Ref inputs = texts_object(o.inputs), rejected(PyList_New(0));
    for (const RejectedKernels& r : o.rejected) {
      Ref kernels = texts_object(r.kernels);
      Ref each(Py_BuildValue("{ss sO}", "why", r.why.c_str(), "kernels", kernels.get()));
      if (!rejected || !each || PyList_Append(rejected.get(), each.get()) < 0) return nullptr;
    }
    Ref op(Py_BuildValue("{ss ss ss sO ss sO}", "op", o.op.c_str(), "kernel", o.kernel.c_str(), "why",
                         o.why.c_str(), "inputs", inputs.get(), "output", o.output.c_str(), "rejected",
                         rejected.get()));
    if (!list || !op || PyList_Append(list.get(), op.get()) < 0) return nullptr;
  }
  return list.release();
}
PyObject* receipt_of(const Arguments& a) {
  const std::vector<Recorded> all = held<std::shared_ptr<Functions>>(a, 0)->of_queues;
  Ref list(PyList_New(0));
  for (const Recorded& f : all)
    for (const ReceiptLine& l : unlocked(true, [&] { return f.receipt(); })) {
      Ref line(Py_BuildValue("{ss ss ss ss ss si sK ss}", "op", l.op.c_str(), "format", l.format.c_str(),
                             "device", l.device.c_str(), "kernel", l.kernel.c_str(), "why", l.why.c_str(),
                             "ops", l.ops, "runs", (unsigned long long)l.runs, "not_counted",
                             l.not_counted.c_str()));
      if (!list || !line || PyList_Append(list.get(), line.get()) < 0) return nullptr;
    }
  return list.release();
}

// ---- custom operations. The package's function makes arrays of the memory.
PyObject* integers(const std::vector<int64_t>& all) {
  PyObject* tuple = PyTuple_New(Py_ssize_t(all.size()));
  for (size_t i = 0; tuple && i < all.size(); i++)
    PyTuple_SetItem(tuple, Py_ssize_t(i), PyLong_FromLongLong(all[i]));
  return tuple;
}
int64_t element_bytes(DType t) {
  switch (t) {
    case DType::F64:
    case DType::I64:
    case DType::U64: return 8;
    case DType::F32:
    case DType::I32:
    case DType::U32: return 4;
    case DType::F16:
    case DType::BF16:
    case DType::I16:
    case DType::U16: return 2;
    default: return 1;
  }
}
// (memory from the lowest element on, dtype, dims, strides, place of the first element), in elements
PyObject* operand_object(const HostForm& form, const void* data, bool written) {
  int64_t low = 0, high = 0;
  for (size_t i = 0; i < form.dims.size(); i++) {
    const int64_t reach = (form.dims[i] - 1) * form.strides[i];
    (reach < 0 ? low : high) += reach;
  }
  const int64_t width = element_bytes(form.dtype);
  auto* begin = static_cast<char*>(const_cast<void*>(data)) + low * width;
  Ref memory(PyMemoryView_FromMemory(begin, Py_ssize_t((high - low + 1) * width),
                                     written ? PyBUF_WRITE : PyBUF_READ));
  Ref dims(integers(form.dims)), strides(integers(form.strides));
  if (!memory || !dims || !strides) throw Raised();
  return Py_BuildValue("(OiOOL)", memory.get(), int(form.dtype), dims.get(), strides.get(), (long long)-low);
}

// The exception as an error; none is set then.
Error python_error() {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  Ref owned_type(type), owned(value), owned_trace(trace), text(value ? PyObject_Str(value) : nullptr);
  Ref name(type ? PyObject_GetAttrString(type, "__name__") : nullptr);
  Py_ssize_t n = 0;
  auto utf8 = [&](const Ref& r) {
    const char* s = r ? PyUnicode_AsUTF8AndSize(r.get(), &n) : nullptr;
    return s ? std::string(s, size_t(n)) : std::string();
  };
  Error e{Code::Failed, utf8(name) + ": " + utf8(text), "", "", "", "", "", {}};
  PyErr_Clear();
  return e;
}

Status call_custom(PyObject* f, std::span<const HostView> in, const HostTarget& out) {
  const Locked lock;
  try {
    Ref all(PyList_New(0));
    for (const HostView& v : in) {
      Ref each(operand_object(v, v.data, false));
      if (!all || !each || PyList_Append(all.get(), each.get()) < 0) throw Raised();
    }
    Ref to(operand_object(out, out.data, true));
    if (!to) throw Raised();
    Ref done(PyObject_CallFunctionObjArgs(f, all.get(), to.get(), nullptr));
    if (!done) throw Raised();
    return Done{};
  } catch (const Raised&) { return python_error(); }
}

// f([(dtype, dims), ...]) returns (dtype, dims).
Result<Spec> call_output(PyObject* f, std::span<const Spec> in) {
  const Locked lock;
  try {
    Ref all(PyList_New(0));
    for (const Spec& s : in) {
      Ref dims(integers(s.dims));
      Ref each(dims ? Py_BuildValue("(iO)", int(s.dtype), dims.get()) : nullptr);
      if (!all || !each || PyList_Append(all.get(), each.get()) < 0) throw Raised();
    }
    Ref made(PyObject_CallFunctionObjArgs(f, all.get(), nullptr));
    if (!made) throw Raised();
    PyObject* parts[] = {PyTuple_GetItem(made.get(), 0), PyTuple_GetItem(made.get(), 1)};
    if (!parts[0] || !parts[1]) throw Raised();
    const Arguments of(parts, 2);
    return Spec{of.dtype(0), of.dims(1)};
  } catch (const Raised&) { return python_error(); }
}

// f([(dims, values as a list), ...]) returns (dims, values).
Result<ReferenceValues> call_reference(PyObject* f, std::span<const ReferenceValues> in) {
  const Locked lock;
  try {
    Ref all(PyList_New(0));
    for (const ReferenceValues& v : in) {
      Ref dims(integers(v.dims)),
          bytes(PyBytes_FromStringAndSize(reinterpret_cast<const char*>(v.values.data()),
                                          Py_ssize_t(v.values.size() * sizeof(double))));
      if (!all || !dims || !bytes) throw Raised();
      Ref each(PyTuple_Pack(2, dims.get(), bytes.get()));
      if (!each || PyList_Append(all.get(), each.get()) < 0) throw Raised();
    }
    Ref made(PyObject_CallFunctionObjArgs(f, all.get(), nullptr));
    if (!made) throw Raised();
    PyObject* parts[] = {PyTuple_GetItem(made.get(), 0), PyTuple_GetItem(made.get(), 1)};
    char* data = nullptr;
    Py_ssize_t n = 0;
    if (!parts[0] || !parts[1] || PyBytes_AsStringAndSize(parts[1], &data, &n) < 0) throw Raised();
    ReferenceValues y{Arguments(parts, 1).dims(0), std::vector<double>(size_t(n) / sizeof(double))};
    std::copy_n(data, y.values.size() * sizeof(double), reinterpret_cast<char*>(y.values.data()));
    return y;
  } catch (const Raised&) { return python_error(); }
}

PyObject* new_custom(
    const Arguments& a) {  // name, inputs, in_place, cpu, output, reference, tolerance, fallback, kernel
  CustomOp op;
  op.name = a.text(0), op.inputs = int(a.integer(1)), op.in_place = a.truth(2);
  if (a.given(3))
    op.cpu = [f = hold(a.object(3))](std::span<const HostView> in, const HostTarget& out, Part) {
      return call_custom(f.get(), in, out);
    };
  if (a.given(4))
    op.output = [f = hold(a.object(4))](std::span<const Spec> in) { return call_output(f.get(), in); };
  if (a.given(5))
    op.reference = [f = hold(a.object(5))](std::span<const ReferenceValues> in) {
      return call_reference(f.get(), in);
    };
  op.tolerance = a.number(6), op.fallback = a.text(7), op.kernel = a.text(8);
  auto made = custom_op(std::move(op));
  Custom custom = expect(made);
  device_calls_python = true;
  return capsule_of(std::move(custom));
}
PyObject* call_op(const Arguments& a) {  // capsule, tensors
  const Custom op = held<Custom>(a, 0);
  const std::vector<Tensor> in = a.tensors(1);
  return new_tensor(unlocked(true, [&] { return op(in); }));
}
PyObject* verify_op(const Arguments& a) {  // capsule, queue, [[(dtype, dims), ...], ...]
  const Custom op = held<Custom>(a, 0);
  const Queue q = a.queue(1);
  std::vector<std::vector<Spec>> cases;
  for (Py_ssize_t i = 0; i < PyList_Size(a.object(2)); i++) {
    PyObject* one = PyList_GetItem(a.object(2), i);
    auto& specs = cases.emplace_back();
    for (Py_ssize_t k = 0; k < PyList_Size(one); k++) {
      PyObject* spec = PyList_GetItem(one, k);
      PyObject* parts[] = {PyTuple_GetItem(spec, 0), PyTuple_GetItem(spec, 1)};
      if (!parts[0] || !parts[1]) throw Raised();
      specs.push_back({Arguments(parts, 2).dtype(0), Arguments(parts, 2).dims(1)});
    }
  }
  auto v = unlocked(true, [&] { return op.verify(q, cases); });
  return Py_BuildValue("(id)", expect(v).cases, v->largest_error);
}

}  // namespace

PyMethodDef kRecordedFunctions[] = {FUNCTION_OF("new_recorded", new_recorded),
                                    FUNCTION_OF("run_recorded", run),
                                    FUNCTION_OF("plan_recorded", plan_of),
                                    FUNCTION_OF("explain_recorded", explain_of),
                                    FUNCTION_OF("receipt_recorded", receipt_of),
                                    FUNCTION_OF("new_custom", new_custom),
                                    FUNCTION_OF("call_custom", call_op),
                                    FUNCTION_OF("verify_custom", verify_op),
                                    {nullptr, nullptr, 0, nullptr}};

}  // namespace gimbal::python
