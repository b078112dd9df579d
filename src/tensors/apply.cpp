// One operation: a program of one op. Its signature, kernel and executable are kept for the next one like it.
#include <algorithm>
#include <cstring>

#include "tensors/recording.h"

namespace gimbal::v1 {
namespace {

constexpr size_t kMostSignatures = 1024;

}  // namespace

// Slowest first to fastest first. A tensor of rank 0 is one of one dim.
gimbal_value value_of(gimbal::DType type, const gimbal::Layout& l, uint32_t slot) {
  gimbal_value v{};
  v.slot = slot, v.dtype = uint8_t(type), v.rank = uint8_t(std::max(1, l.rank));
  for (int i = 0; i < GIMBAL_MAX_RANK; i++) v.dim[i] = 1, v.stride[i] = 0;
  for (int i = 0; i < l.rank; i++) v.dim[i] = l.dim[l.rank - 1 - i], v.stride[i] = l.stride[l.rank - 1 - i];
  if (l.rank == 0) v.stride[0] = 1;
  const auto& format = gimbal::info(type);
  v.layout = l.dense() ? GIMBAL_DENSE : GIMBAL_STRIDED;
  v.offset = uint64_t(l.offset / format.block * format.bytes);
  if (v.layout == GIMBAL_DENSE) {
    gimbal::set_shape(v, gimbal::shape_of(v));
    v.bytes = uint64_t(gimbal::shape_of(v).bytes());
  } else {
    v.bytes = uint64_t((gimbal::reach(l).end - l.offset) * format.bytes);
  }
  return v;
}

gimbal::Program program_of(gimbal::OpKind kind, const gimbal::OpParams& params,
                           std::span<const gimbal_value> values) {
  gimbal::Program p;
  gimbal_op op{};
  op.kind = uint16_t(kind), op.outputs = 1;
  gimbal::set_params(op, params);
  for (const gimbal_value& v : values) {
    p.values.push_back(v);
    p.info.push_back({gimbal::info(kind).name, gimbal::shape_of(v), uint16_t(p.values.size() - 1)});
  }
  const bool writes = gimbal::def(kind).has(gimbal::Role::Written);
  op.inputs = uint16_t(values.size() - !writes);
  for (uint16_t i = 0; i < op.inputs; i++) op.in[i] = i;
  op.out[0] = writes ? 0 : op.inputs;
  p.ops.push_back(op), p.layer.push_back(0);
  return p;
}

Result<ResultForm> result_form(gimbal::OpKind kind, const gimbal::OpParams& params,
                               std::span<const Tensor> in) {
  std::vector<gimbal::Shape> shapes;
  for (const Tensor& t : in)
    shapes.push_back(gimbal::shape_of(value_of(state_of(t).type, state_of(t).layout, 0)));
  auto shape = gimbal::output_shape(kind, params, shapes);
  if (!shape) return shape_error(shape.error().message);
  ResultForm form{shape->type, Dims(shape->dim, shape->dim + shape->rank),
                  gimbal::def(kind).has(gimbal::Role::Written)};
  std::reverse(form.dims.begin(), form.dims.end());
  if (state_of(in[0]).layout.rank == 0 && form.dims == Dims{1}) form.dims.clear();
  if (auto why = gimbal::check_dims(form.dims); why && !form.writes)
    return shape_error(format("a tensor of {}: {}", gimbal::to_string(form.dims), *why));
  return form;
}

std::optional<std::vector<Tensor>> dense_inputs(std::span<const Tensor> in, bool writes) {
  std::vector<Tensor> dense;
  bool strided = false;
  for (size_t i = 0; i < in.size(); i++) {
    const bool copies = (i > 0 || !writes) && !in[i].is_contiguous();
    strided = strided || copies;
    dense.push_back(copies ? in[i].copy() : in[i]);
  }
  return strided ? std::optional(std::move(dense)) : std::nullopt;
}

std::optional<Tensor> refused_by(const Tensor& found, Judge judge) {
  if (!found.ok()) return found;
  if (state_of(found).recording) return state_of(found).recording->check(found, std::move(judge));
  auto v = found.values<int64_t>();
  if (!v) return refuse(found, v.error());
  if (auto e = judge(*v)) return refuse(found, std::move(*e));
  return std::nullopt;
}

namespace {

// Everything that decides the executable and its result, as bytes. On the stack: an operation that is known
// already costs less than an allocation or two.
class SignatureKey {
 public:
  SignatureKey(gimbal::OpKind kind, const gimbal::OpParams& params, std::span<const Tensor> in) {
    add(kind), add(params.f);
    int n = int(std::size(params.i));
    while (n > 0 && params.i[n - 1] == 0) n--;  // most ops have few
    add(n), add_all(params.i, n);
    for (const Tensor& t : in) {
      const Tensor::State& s = state_of(t);
      add(s.type), add(s.layout.rank), add(s.layout.offset);
      add_all(s.layout.dim, s.layout.rank), add_all(s.layout.stride, s.layout.rank);
    }
  }
  std::string_view view() const { return {bytes_, size_}; }

 private:
  static constexpr size_t kMostInputs = 7;  // of custom ops
  static constexpr size_t kMost =
      16 + sizeof(gimbal::OpParams) + kMostInputs * (16 + sizeof(int64_t) * 2 * GIMBAL_MAX_RANK + 8);

  template <class T>
  void add(const T& value) {
    add_all(&value, 1);
  }
  template <class T>
  void add_all(const T* values, int n) {
    const size_t bytes = sizeof(T) * size_t(n);
    std::memcpy(bytes_ + size_, values, bytes);
    size_ += bytes;
  }

  char bytes_[kMost];
  size_t size_ = 0;
};

gimbal::Result<Signature> compiled(const Queue::State& q, gimbal::OpKind kind, const gimbal::OpParams& params,
                                   std::span<const gimbal_value> values) {
  Signature s;
  s.program = program_of(kind, params, values);
  auto choices = gimbal::assign_kernels(s.program, q.device(), q.kernels);
  if (!choices) return choices.error();
  auto e = q.device().compile(s.program.view());
  if (!e) return e.error();
  s.executable = std::move(*e);
  return s;
}

// A tensor like the signature's result, with memory.
gimbal::Result<Tensor> output_of(const std::shared_ptr<Queue::State>& queue, const Signature& s) {
  auto to = std::make_shared<Tensor::State>();
  to->queue = queue, to->type = s.type, to->layout = s.layout;
  auto block = queue->pool->allocate(s.bytes);
  if (!block) return block.error();
  to->block = std::move(*block);
  return TensorAccess::tensor(std::move(to));
}

// Runs a known op. The queue is locked.
gimbal::Status submit_known(Queue::State& q, Signature& s, std::span<const Tensor> in, const Tensor* out) {
  gimbal_buffer* slots[8];
  size_t n = 0;
  for (const Tensor& t : in) slots[n++] = state_of(t).block->buffer().handle();
  if (out) slots[n++] = state_of(*out).block->buffer().handle();
  if (auto ok = q.submit(s.executable, slots, n); !ok) return ok;
  q.count(&TransferCounts::operations);
  ++*s.runs;
  return gimbal::Done{};
}

// Compiles the op and keeps it. `dims`: of the result; null: it writes into its first operand. The queue is
// locked. Errors: kNoKernel if no kernel takes these formats and strides; kVerificationFailed if the kernel
// was wrong at its first use.
gimbal::Result<Signature*> add_signature(Queue::State& q, std::string_view key, gimbal::OpKind kind,
                                         const gimbal::OpParams& params, std::span<const Tensor> in,
                                         gimbal::DType type, const Dims* dims) {
  if (const auto it = q.known.find(key); it != q.known.end()) return &it->second->second;  // another thread's
  std::vector<gimbal_value> values;
  for (const Tensor& t : in)
    values.push_back(value_of(state_of(t).type, state_of(t).layout, uint32_t(values.size())));
  gimbal::Layout layout;
  if (dims) {
    layout = gimbal::dense_layout(*dims);
    values.push_back(value_of(type, layout, uint32_t(values.size())));
  }
  auto made = compiled(q, kind, params, values);
  if (!made) return made.error();
  if (q.first_uses)
    if (auto wrong = wrong_use(q, first_use_of(q.device(), made->program, made->program.ops[0])))
      return *wrong;
  const auto& f = gimbal::info(type);
  made->type = type, made->layout = layout;
  made->bytes = dims ? uint64_t(layout.count() / f.block) * f.bytes : 0;
  made->runs = &q.runs[q.device().kernel(made->program.ops[0].kernel).name];
  if (q.signatures.size() >= kMostSignatures) {
    q.known.erase(q.known.find(q.signatures.back().first));
    q.signatures.pop_back();
  }
  q.signatures.emplace_front(key, std::move(*made));
  q.known.emplace(key, q.signatures.begin());
  return &q.signatures.front().second;
}

// The result of an op that ran before with operands like these; nullopt: it has not, or only `trusted` ones
// count and a thread still compares its kernel.
std::optional<Tensor> repeated(const std::shared_ptr<Queue::State>& queue, std::string_view key,
                               std::span<const Tensor> in, bool trusted) {
  Queue::State& q = *queue;
  const std::lock_guard lock(q.mutex);
  if (q.signatures.empty() || q.signatures.front().first != key) {  // else it is the last one again
    const auto it = q.known.find(key);
    if (it == q.known.end()) return std::nullopt;
    q.signatures.splice(q.signatures.begin(), q.signatures, it->second);
  }
  Signature& s = q.signatures.front().second;
  if (trusted && !s.trusted) return std::nullopt;
  std::optional<Tensor> out;
  if (s.bytes) {
    auto made = output_of(queue, s);
    if (!made) return failed(queue, to_public(made.error()));
    out = std::move(*made);
  }
  if (auto ok = submit_known(q, s, in, out ? &*out : nullptr); !ok)
    return failed(queue, to_public(ok.error()));
  return out ? *out : in[0];
}

// The same for one that has not.
gimbal::Result<Tensor> compute(const std::shared_ptr<Queue::State>& queue, std::string_view key,
                               gimbal::OpKind kind, const gimbal::OpParams& params,
                               std::span<const Tensor> in, gimbal::DType type, const Dims* dims) {
  const std::lock_guard lock(queue->mutex);
  auto s = add_signature(*queue, key, kind, params, in, type, dims);
  if (!s) return s.error();
  std::optional<Tensor> out;
  if (dims) {
    auto made = output_of(queue, **s);
    if (!made) return made.error();
    out = std::move(*made);
  }
  if (auto ok = submit_known(*queue, **s, in, out ? &*out : nullptr); !ok) return ok.error();
  return out ? *out : in[0];
}

// The name of the kernel that would compute this; its signature is known then.
gimbal::Result<std::string> prepared(Queue::State& q, std::string_view key, gimbal::OpKind kind,
                                     const gimbal::OpParams& params, std::span<const Tensor> in,
                                     gimbal::DType type, const Dims* dims) {
  const std::lock_guard lock(q.mutex);
  auto s = add_signature(q, key, kind, params, in, type, dims);
  if (!s) return s.error();
  std::string use = first_use_of(q.device(), (*s)->program, (*s)->program.ops[0]);
  (*s)->trusted = !is_new_use(q, use);
  return use;
}

}  // namespace

Tensor apply(gimbal::OpKind kind, const gimbal::OpParams& params, std::span<const Tensor> in) {
  for (const Tensor& t : in)
    if (!t.ok() || state_of(t).queue != state_of(in[0]).queue) {
      std::vector<const Tensor*> all;
      for (const Tensor& each : in) all.push_back(&each);
      return *unusable(all);
    }
  const auto& queue = state_of(in[0]).queue;
  if (computes_custom(*queue)) return refuse(in[0], inside_custom());
  if (Recording* r = Recording::active(queue)) return r->apply(kind, params, in);
  for (const Tensor& t : in)
    if (state_of(t).recording) return refuse(t, Recording::without_values(t));
  const SignatureKey key(kind, params, in);
  const bool compares = compares_first_uses(*queue, kind);
  if (auto known = repeated(queue, key.view(), in, compares)) return *known;

  auto form = result_form(kind, params, in);
  if (!form) return failed(queue, form.error());
  const Dims* const dims = form->writes ? nullptr : &form->dims;
  const auto out = [&]() -> gimbal::Result<Tensor> {
    if (!compares) return compute(queue, key.view(), kind, params, in, form->type, dims);
    auto use = prepared(*queue, key.view(), kind, params, in, form->type, dims);
    if (!use) return use.error();
    const auto run = [&]() -> gimbal::Result<Tensor> {
      if (auto known = repeated(queue, key.view(), in, false)) return *known;
      return compute(queue, key.view(), kind, params, in, form->type, dims);  // a thread dropped it
    };
    return is_new_use(*queue, *use) ? compared(*use, kind, params, in, form->writes, run) : run();
  }();
  if (out) return *out;
  const std::string_view reason = out.error().reason;
  if (reason == gimbal::kNoKernel || reason == gimbal::reason::kVerificationFailed) {
    if (reason == gimbal::kNoKernel)
      if (auto dense = dense_inputs(in, form->writes)) return apply(kind, params, *dense);
    // Custom operations have rows of their own on each queue, and a fallback of their own.
    const bool movable = kind != gimbal::OpKind::Custom && !form->writes;
    if (movable && !queue->strict && !gimbal::is_host(queue->device()))
      return computed_by_the_cpu(words_of(kind, state_of(in[0]).type, form->type), to_public(out.error()), in,
                                 [&](std::span<const Tensor> there) { return apply(kind, params, there); });
  }
  return failed(queue, to_public(out.error()));
}

}  // namespace gimbal::v1
