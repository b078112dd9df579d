// The module's functions, by position: python/gimbal gives them names, defaults and documentation.
#include <gimbal/linear_algebra.h>

#include <algorithm>

#include "python/arguments.h"

namespace gimbal::python {
namespace {

// A tensor of a computation, during which other threads run.
template <class F>
PyObject* computed(F f) {
  return new_tensor(unlocked(true, f));
}
PyObject* done(const Status& s) {
  if (!s) raise(s.error());
  Py_RETURN_NONE;
}

ConvOptions conv_options(const Arguments& a) {  // x, w, stride, padding, dilation, groups, output_padding
  ConvOptions o;
  o.stride = a.dims(2), o.padding = a.dims(3), o.dilation = a.dims(4), o.groups = a.integer(5);
  if (a.given(6)) o.output_padding = a.dims(6);
  const size_t n = size_t(std::max(0, a.tensor(0).rank() - 2));  // one number stands for all
  for (Dims* d : {&o.stride, &o.padding, &o.dilation, &o.output_padding})
    if (d->size() == 1 && n > 1) d->resize(n, d->front());
  return o;
}

using Reduce = Tensor (Tensor::*)(const Axes&, bool) const;
template <Reduce reduce>
PyObject* reduced(const Arguments& a) {  // x, axes, keep
  const Tensor& x = a.tensor(0);
  const Axes axes = a.axes(1);
  const bool keep = a.truth(2);
  return computed([&] { return (x.*reduce)(axes, keep); });
}
using AlongDim = Tensor (Tensor::*)(int) const;
template <AlongDim along>
PyObject* of_dim(const Arguments& a) {
  const Tensor& x = a.tensor(0);
  const int dim = int(a.integer(1));
  return computed([&] { return (x.*along)(dim); });
}
using Sorted = Tensor (Tensor::*)(int, bool) const;
template <Sorted sorted>
PyObject* sorted_along(const Arguments& a) {
  const Tensor& x = a.tensor(0);
  const int dim = int(a.integer(1));
  const bool falling = a.truth(2);
  return computed([&] { return (x.*sorted)(dim, falling); });
}
using Chosen = Tensor (Tensor::*)(const Tensor&, int) const;
template <Chosen chosen>
PyObject* by_ids(const Arguments& a) {
  const Tensor &x = a.tensor(0), &ids = a.tensor(1);
  const int dim = int(a.integer(2));
  return computed([&] { return (x.*chosen)(ids, dim); });
}
using Placed = Tensor (Tensor::*)(const Tensor&, const Tensor&, int) const;
template <Placed placed>
PyObject* to_ids(const Arguments& a) {
  const Tensor &x = a.tensor(0), &ids = a.tensor(1), &source = a.tensor(2);
  const int dim = int(a.integer(3));
  return computed([&] { return (x.*placed)(ids, source, dim); });
}
using Pool = Tensor (Tensor::*)(const Dims&, const Dims&) const;
template <Pool pool>
PyObject* pooled(const Arguments& a) {
  const Tensor& x = a.tensor(0);
  const Dims kernel = a.dims(1), stride = a.dims(2);
  return computed([&] { return (x.*pool)(kernel, stride); });
}

PyObject* open(const Arguments& a) {  // where, strict, software, threads, variant, limit, verify
  const std::string where = a.text(0);
  QueueOptions o;
  o.strict = a.truth(1), o.allow_software_devices = a.truth(2), o.threads = int(a.integer(3));
  o.cpu_variant = a.text(4), o.memory_limit = uint64_t(a.integer(5)), o.verify = a.truth(6);
  o.on_fallback = [](const Fallback& f) {
    const Locked locked;
    if (PyErr_WarnFormat(PyExc_RuntimeWarning, 2, "%s is computed by %s: %s", f.what.c_str(),
                         f.instead.c_str(), f.why.message.c_str()) < 0)
      PyErr_WriteUnraisable(nullptr);
  };
  auto q = unlocked(true, [&] { return open_queue(where, o); });
  if (!q) raise(q.error());
  return new_queue(*q);
}

// Copies a buffer; `dtype` says what its elements are. x, dims, dtype, queue
PyObject* from_buffer(const Arguments& a) {
  const Dims dims = a.dims(1);
  const DType type = a.dtype(2);
  const Queue& q = a.queue(3);
  Py_buffer view;
  if (PyObject_GetBuffer(a.object(0), &view, PyBUF_FULL_RO) < 0) throw Raised();
  struct Release {
    Py_buffer& view;
    ~Release() { PyBuffer_Release(&view); }
  } release{view};
  if (PyBuffer_IsContiguous(&view, 'C')) {
    const std::span bytes(static_cast<const std::byte*>(view.buf), size_t(view.len));
    return new_tensor(unlocked(view.len > 4096, [&] { return Tensor::from_bytes(bytes, dims, type, q); }));
  }
  std::vector<std::byte> bytes(static_cast<size_t>(view.len));
  if (PyBuffer_ToContiguous(bytes.data(), &view, view.len, 'C') < 0) throw Raised();
  return new_tensor(unlocked(false, [&] { return Tensor::from_bytes(bytes, dims, type, q); }));
}

PyObject* pad(const Arguments& a) {  // x, before, after, value
  const Dims before = a.dims(1), after = a.dims(2);
  std::vector<std::pair<int64_t, int64_t>> pads;
  for (size_t i = 0; i < std::min(before.size(), after.size()); i++) pads.emplace_back(before[i], after[i]);
  const Scalar v = a.scalar(3);
  return computed([&] { return a.tensor(0).pad(pads, v); });
}

PyObject* norm(const Arguments& a, bool less_mean) {  // x, weight, bias, epsilon
  const Tensor &x = a.tensor(0), *w = a.given(1) ? &a.tensor(1) : nullptr,
               *b = a.given(2) ? &a.tensor(2) : nullptr;
  const double epsilon = a.number(3);
  return computed([&] { return less_mean ? layer_norm(x, w, b, epsilon) : rms_norm(x, w, epsilon); });
}

PyObject* random(const Arguments& a) {  // seed, block, normal, dims, dtype, queue
  const uint64_t seed = PyLong_AsUnsignedLongLongMask(a.object(0)), block = uint64_t(a.integer(1));
  if (PyErr_Occurred()) throw Raised();
  const bool normal = a.truth(2);
  const Dims dims = a.dims(3);
  const DType type = a.dtype(4);
  Generator g(seed, a.queue(5), block);
  return computed([&] { return normal ? g.normal(dims, type) : g.uniform(dims, type); });
}

PyObject* draw(const Arguments& a) {  // queue, normal, dims, dtype; by the queue's seed
  const Queue q = a.queue(0);
  const bool normal = a.truth(1);
  const Dims dims = a.dims(2);
  const DType type = a.dtype(3);
  return computed([&] { return normal ? Tensor::normal(dims, type, q) : Tensor::uniform(dims, type, q); });
}

PyObject* set_seed(const Arguments& a) {  // queue, seed
  const uint64_t seed = PyLong_AsUnsignedLongLongMask(a.object(1));
  if (PyErr_Occurred()) throw Raised();
  a.queue(0).set_seed(seed);
  Py_RETURN_NONE;
}

PyObject* pair_of(const std::pair<Tensor, Tensor>& both) {
  Ref first(new_tensor(both.first)), second(new_tensor(both.second));
  return first && second ? PyTuple_Pack(2, first.get(), second.get()) : nullptr;
}
PyObject* top_k(const Arguments& a) {  // x, k, dim
  return pair_of(
      unlocked(true, [&, k = a.integer(1), dim = int(a.integer(2))] { return a.tensor(0).top_k(k, dim); }));
}
PyObject* quantized(const Arguments& a) {  // x, dtype, importance
  const Tensor &x = a.tensor(0), *importance = a.given(2) ? &a.tensor(2) : nullptr;
  const DType type = a.dtype(1);
  return computed([&] { return quantize(x, type, importance); });
}

PyObject* load_file(const Arguments& a) {  // path, queue, mapped -> [(name, tensor), ...]
  const std::string path = a.text(0);
  const LoadOptions options{a.truth(2)};
  auto all = unlocked(true, [&] { return load(path, a.queue(1), options); });
  if (!all) raise(all.error());
  Ref list(PyList_New(0));
  for (NamedTensor& n : *all) {
    Ref tensor(new_tensor(std::move(n.tensor)));
    Ref pair(tensor ? Py_BuildValue("(s#O)", n.name.data(), Py_ssize_t(n.name.size()), tensor.get())
                    : nullptr);
    if (!list || !pair || PyList_Append(list.get(), pair.get()) < 0) return nullptr;
  }
  return list.release();
}
PyObject* save_file(const Arguments& a) {  // path, names, tensors
  const std::string path = a.text(0);
  const std::vector<Tensor> tensors =
      a.size() > 2 && PyObject_Size(a.object(2)) == 0 ? std::vector<Tensor>() : a.tensors(2);
  Ref names(PySequence_List(a.object(1)));
  if (!names || PyList_Size(names.get()) != Py_ssize_t(tensors.size())) throw Raised();
  std::vector<NamedTensor> all;
  for (size_t i = 0; i < tensors.size(); i++) {
    PyObject* name = PyList_GetItem(names.get(), Py_ssize_t(i));
    all.push_back({Arguments(&name, 1).text(0), tensors[i]});
  }
  return done(unlocked(true, [&] { return save(path, all); }));
}

PyObject* receipt(const Arguments& a) {
  Ref all(PyDict_New());
  const Queue q = a.queue(0);
  const auto ran = unlocked(false, [&] { return q.receipt(); });
  for (const auto& [kernel, n] : ran) {
    Ref count(PyLong_FromUnsignedLongLong(n));
    if (!all || !count || PyDict_SetItemString(all.get(), kernel.c_str(), count.get()) < 0) return nullptr;
  }
  return all.release();
}

PyObject* fallbacks(const Arguments& a) {
  Ref all(PyList_New(0));
  for (const Fallback& f : a.queue(0).fallbacks()) {
    Ref one(Py_BuildValue("{sNsNsN}", "what", text_object(f.what), "instead", text_object(f.instead), "why",
                          text_object(f.why.message)));
    if (!all || !one || PyList_Append(all.get(), one.get()) < 0) return nullptr;
  }
  return all.release();
}

PyObject* verified(const Arguments& a) {
  Ref all(PyList_New(0));
  for (const VerifiedKernel& k : a.queue(0).verified()) {
    Ref one(Py_BuildValue("{sNsNsN}", "name", text_object(k.name), "right", PyBool_FromLong(k.right),
                          "before", PyBool_FromLong(k.before)));
    if (!all || !one || PyList_Append(all.get(), one.get()) < 0) return nullptr;
  }
  return all.release();
}

}  // namespace

PyMethodDef kFunctions[] = {
    FUNCTION_OF("open_queue", open),
    FUNCTION_OF("from_buffer", from_buffer),
    FUNCTION_OF("receipt", receipt),
    FUNCTION_OF("fallbacks", fallbacks),
    FUNCTION_OF("verified", verified),
    FUNCTION_OF("load", load_file),
    FUNCTION_OF("save", save_file),
    LAMBDA_OF("name_of", return PyUnicode_FromString(name_of(a.dtype(0)));),
    LAMBDA_OF("dtype_named", auto t = dtype_named(a.text(0)); if (!t) raise(t.error());
              return PyLong_FromLong(int(*t));),
    LAMBDA_OF("wait", return done(unlocked(true, [&] { return a.queue(0).wait(); }));),
    LAMBDA_OF("trim", const Queue q = a.queue(0); unlocked(true, [&] { return q.trim(), 0; });
              Py_RETURN_NONE;),
    LAMBDA_OF("memory", const auto m = a.queue(0).memory();
              return Py_BuildValue("KKK", (unsigned long long)m.live, (unsigned long long)m.cached,
                                   (unsigned long long)m.peak);),
    LAMBDA_OF("supports", return PyBool_FromLong(a.queue(0).supports(a.dtype(1)));),
    LAMBDA_OF("full", const Dims d = a.dims(0); const Scalar v = a.scalar(1); const DType t = a.dtype(2);
              const Queue& q = a.queue(3); return computed([&] { return Tensor::full(d, v, t, q); });),
    LAMBDA_OF("arange", const Scalar begin = a.scalar(0), end = a.scalar(1), step = a.scalar(2);
              const DType t = a.dtype(3); const Queue q = a.queue(4);
              return computed([&] { return Tensor::arange(begin, end, step, t, q); });),
    LAMBDA_OF("eye", const int64_t n = a.integer(0); const DType t = a.dtype(1); const Queue q = a.queue(2);
              return computed([&] { return Tensor::eye(n, t, q); });),
    LAMBDA_OF("map", const Tensor& x = a.tensor(0); const std::string f = a.text(1);
              if (!a.given(2)) return computed([&] { return x.map(f); });
              if (const Tensor* y = as_tensor(a.object(2))) return computed([&] { return x.map(f, *y); });
              const Scalar s = a.scalar(2); return computed([&] { return x.map(f, s); });),
    LAMBDA_OF("affine", const double m = a.number(1), s = a.number(2);
              return computed([&] { return a.tensor(0).affine(m, s); });),
    LAMBDA_OF("elu", const double alpha = a.number(1);
              return computed([&] { return a.tensor(0).elu(alpha); });),
    LAMBDA_OF("where", return computed([&, &c = a.tensor(0), &x = a.tensor(1), &y = a.tensor(2)] {
                return where(c, x, y);
              });),
    LAMBDA_OF("cast", const DType t = a.dtype(1); return computed([&] { return a.tensor(0).to(t); });),
    LAMBDA_OF("to_queue", const Queue& q = a.queue(1); return computed([&] { return a.tensor(0).to(q); });),
    LAMBDA_OF("contiguous", return computed([&] { return a.tensor(0).contiguous(); });),
    LAMBDA_OF("copy", return computed([&] { return a.tensor(0).copy(); });),
    LAMBDA_OF("is_contiguous", return PyBool_FromLong(a.tensor(0).is_contiguous());),
    LAMBDA_OF(
        "tobytes", auto b = unlocked(true, [&] { return a.tensor(0).bytes(); }); if (!b) raise(b.error());
        return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(b->data()), Py_ssize_t(b->size()));),
    LAMBDA_OF("reshape", const Dims d = a.dims(1); return computed([&] { return a.tensor(0).reshape(d); });),
    LAMBDA_OF("permute", return new_tensor(a.tensor(0).permute(a.axes(1)));),
    LAMBDA_OF("t", return new_tensor(a.tensor(0).t());),
    LAMBDA_OF("narrow", return new_tensor(a.tensor(0).narrow(int(a.integer(1)), a.integer(2), a.integer(3),
                                                             a.integer(4)));),
    LAMBDA_OF("select", return new_tensor(a.tensor(0).select(int(a.integer(1)), a.integer(2)));),
    LAMBDA_OF("broadcast_to", return new_tensor(a.tensor(0).broadcast_to(a.dims(1)));),
    LAMBDA_OF("flip", return new_tensor(a.tensor(0).flip(int(a.integer(1))));),
    LAMBDA_OF("unfold",
              return new_tensor(a.tensor(0).unfold(int(a.integer(1)), a.integer(2), a.integer(3)));),
    LAMBDA_OF("squeeze", return new_tensor(a.tensor(0).squeeze(int(a.integer(1))));),
    LAMBDA_OF("unsqueeze", return new_tensor(a.tensor(0).unsqueeze(int(a.integer(1))));),
    FUNCTION_OF("pad", pad),
    LAMBDA_OF("roll", const int64_t n = a.integer(1); const int d = int(a.integer(2));
              return computed([&] { return a.tensor(0).roll(n, d); });),
    LAMBDA_OF("repeat", const Dims n = a.dims(1); return computed([&] { return a.tensor(0).repeat(n); });),
    FUNCTION_OF("gather", by_ids<&Tensor::gather>),
    FUNCTION_OF("index_select", by_ids<&Tensor::index_select>),
    FUNCTION_OF("scatter", to_ids<&Tensor::scatter>),
    FUNCTION_OF("scatter_add", to_ids<&Tensor::scatter_add>),
    FUNCTION_OF("index_add", to_ids<&Tensor::index_add>),
    LAMBDA_OF("fill_", const Scalar v = a.scalar(1);
              return done(unlocked(true, [&] { return a.tensor(0).fill_(v); }));),
    LAMBDA_OF("copy_", const Tensor& y = a.tensor(1);
              return done(unlocked(true, [&] { return a.tensor(0).copy_(y); }));),
    FUNCTION_OF("sum", reduced<&Tensor::sum>),
    FUNCTION_OF("mean", reduced<&Tensor::mean>),
    FUNCTION_OF("var", reduced<&Tensor::var>),
    FUNCTION_OF("prod", reduced<&Tensor::prod>),
    FUNCTION_OF("min", reduced<&Tensor::min>),
    FUNCTION_OF("max", reduced<&Tensor::max>),
    FUNCTION_OF("argmin", reduced<&Tensor::argmin>),
    FUNCTION_OF("argmax", reduced<&Tensor::argmax>),
    FUNCTION_OF("any", reduced<&Tensor::any>),
    FUNCTION_OF("all", reduced<&Tensor::all>),
    FUNCTION_OF("softmax", of_dim<&Tensor::softmax>),
    FUNCTION_OF("log_softmax", of_dim<&Tensor::log_softmax>),
    FUNCTION_OF("cumsum", of_dim<&Tensor::cumsum>),
    FUNCTION_OF("sort", sorted_along<&Tensor::sort>),
    FUNCTION_OF("argsort", sorted_along<&Tensor::argsort>),
    FUNCTION_OF("top_k", top_k),
    LAMBDA_OF("linear", const Tensor& x = a.tensor(0), &w = a.tensor(1);
              return computed([&] { return linear(x, w); });),
    LAMBDA_OF("conv", const ConvOptions o = conv_options(a);
              return computed([&] { return conv(a.tensor(0), a.tensor(1), o); });),
    LAMBDA_OF("conv_transpose", const ConvOptions o = conv_options(a);
              return computed([&] { return conv_transpose(a.tensor(0), a.tensor(1), o); });),
    FUNCTION_OF("avg_pool2d", pooled<&Tensor::avg_pool2d>),
    FUNCTION_OF("max_pool2d", pooled<&Tensor::max_pool2d>),
    LAMBDA_OF("upsample_nearest1d", const int64_t w = a.integer(1);
              return computed([&] { return a.tensor(0).upsample_nearest1d(w); });),
    LAMBDA_OF("upsample_nearest2d", const int64_t h = a.integer(1), w = a.integer(2);
              return computed([&] { return a.tensor(0).upsample_nearest2d(h, w); });),
    LAMBDA_OF("upsample_bilinear2d", const int64_t h = a.integer(1), w = a.integer(2);
              const bool corners = a.truth(3);
              return computed([&] { return a.tensor(0).upsample_bilinear2d(h, w, corners); });),
    LAMBDA_OF("layer_norm", return norm(a, true);),
    LAMBDA_OF("rms_norm", return norm(a, false);),
    LAMBDA_OF("cat", const auto all = a.tensors(0); const int d = int(a.integer(1));
              return computed([&] { return cat(all, d); });),
    LAMBDA_OF("stack", const auto all = a.tensors(0); const int d = int(a.integer(1));
              return computed([&] { return stack(all, d); });),
    FUNCTION_OF("random", random),
    FUNCTION_OF("draw", draw),
    FUNCTION_OF("set_seed", set_seed),
    LAMBDA_OF("seed", return PyLong_FromUnsignedLongLong(a.queue(0).seed());),
    FUNCTION_OF("quantize", quantized),
    LAMBDA_OF("linear_indexed", const Tensor& x = a.tensor(0), &w = a.tensor(1), &ids = a.tensor(2);
              return computed([&] { return linear_indexed(x, w, ids); });),
    LAMBDA_OF("solve_triangular", const Tensor& m = a.tensor(0), &b = a.tensor(1);
              const Triangle how{a.truth(2), a.truth(3)};
              return computed([&] { return solve_triangular(m, b, how); });),
    LAMBDA_OF("cholesky", const bool upper = a.truth(1);
              return computed([&] { return cholesky(a.tensor(0), upper); });),
    LAMBDA_OF("qr", return pair_of(unlocked(true, [&] { return qr(a.tensor(0)); }));),
    {nullptr, nullptr, 0, nullptr}};

}  // namespace gimbal::python
