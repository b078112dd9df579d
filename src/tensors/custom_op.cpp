// Operations of a program's own, as rows of a device's kernel table.
#include <algorithm>
#include <cmath>
#include <exception>

#include "tensors/recording.h"

#include <gimbal/custom_op.h>

namespace gimbal::v1 {

struct Custom::State {
  std::shared_ptr<const CustomOp> op;
};

// The row of one queue's device. Lives as long as the queue.
struct HostKernel {
  std::shared_ptr<const CustomOp> op;
  Queue::State* queue;
  std::string name;
  gimbal_limit own;  // the op that names this kernel
  gimbal_host_kernel kernel;
};

struct CustomAccess {
  static Custom custom(std::shared_ptr<Custom::State> s) { return Custom(std::move(s)); }
};

namespace {

thread_local const Queue::State* computing_now = nullptr;

template <class View>
View host_view(const gimbal_value& v) {
  View to{};
  to.dtype = to_public(gimbal::DType(v.dtype));
  for (int i = v.rank; i-- > 0;) to.dims.push_back(v.dim[i]), to.strides.push_back(v.stride[i]);
  return to;
}

int64_t parts(void* user, const gimbal_op*, const gimbal_value* out) {
  const int64_t each = static_cast<const HostKernel*>(user)->op->elements_per_part;
  const int64_t n = host_view<HostForm>(*out).count();
  return each > 0 ? (n + each - 1) / each : 1;
}

Status called(const CustomOp& op, std::span<const HostView> in, const HostTarget& out, Part part) {
  try {
    return op.cpu(in, out, part);
  } catch (const std::exception& e) {
    return Error{Code::Failed, e.what(), "", "", "", "", "", {}};
  } catch (...) { return Error{Code::Failed, "an exception of an unknown kind", "", "", "", "", "", {}}; }
}

void compute_parts(void* user, const gimbal_op* op, const gimbal_value* out, unsigned char* to,
                   const gimbal_value* const* in, const unsigned char* const* from, int64_t begin,
                   int64_t end) {
  auto& k = *static_cast<HostKernel*>(user);
  const CustomOp& custom = *k.op;
  auto target = host_view<HostTarget>(*out);
  target.data = to;
  std::vector<HostView> views;
  for (int i = custom.in_place ? 1 : 0; i < op->inputs; i++) {
    views.push_back(host_view<HostView>(*in[i]));
    views.back().data = from[i];
  }
  const auto* before = std::exchange(computing_now, k.queue);
  const int64_t count = parts(user, op, out);
  for (int64_t part = begin; part < end; part++) {
    const Status done = called(custom, views, target, {part, count});
    if (done) continue;
    const std::lock_guard lock(k.queue->host_mutex);
    if (!k.queue->host_error)
      k.queue->host_error = gimbal::Error{gimbal::Code(int(done.error().code)),
                                          format("custom op '{}': {}", custom.name, done.error().message),
                                          done.error().remedy, ""};
    break;
  }
  computing_now = before;
}

gimbal_kernel_info claims(const HostKernel& k) {
  gimbal_kernel_info info{};
  info.struct_size = sizeof info, info.name = k.name.c_str();
  const bool in_place = k.op->in_place;
  info.op = uint16_t(in_place ? gimbal::OpKind::CustomInPlace : gimbal::OpKind::Custom);
  info.numerics = GIMBAL_EXACT;
  for (int i = 0; i < k.op->inputs; i++) info.in[i] = {gimbal::kNumbers, GIMBAL_DENSE, 1};
  info.out[0] = {gimbal::kNumbers, GIMBAL_DENSE, uint8_t(in_place)};
  for (unsigned i = 0; i < 3 + GIMBAL_MAX_RANK; i++) info.params |= GIMBAL_PARAM_I(i);
  info.limits = &k.own, info.n_limits = 1;
  return info;
}

// `why`: the reason; in the next line a remedy, if there is one.
Error unsupported(const CustomOp& op, const std::string& device, const std::string& why) {
  const size_t line = std::min(why.find('\n'), why.size());
  const std::string remedy = why.substr(std::min(line + 1, why.size()));
  return {Code::Unsupported,
          format("no implementation of '{}' for {}: {}", op.name, device, why.substr(0, line)),
          !remedy.empty() ? remedy
          : op.cpu        ? "copy the tensors to the CPU with to(), or set its fallback to \"cpu\""
                          : "give it a function for the CPU (CustomOp::cpu)",
          "no-kernel",
          "",
          "",
          "",
          {}};
}

// The kernel of an operation on a queue, which is added at its first use.
Result<const HostKernel*> kernel_on(const std::shared_ptr<Queue::State>& queue,
                                    const std::shared_ptr<const CustomOp>& op) {
  const std::lock_guard lock(queue->mutex);
  auto& known = queue->custom[op.get()];
  if (known) return known.get();
  auto k = std::make_shared<HostKernel>();
  const std::string device = queue->device().id(), backend = device.substr(0, device.find(':'));
  if (backend == "cpu" && !op->cpu)
    return unsupported(*op, device, "it has a kernel text for GPUs, and no function");
  k->op = op, k->queue = queue.get(), k->name = backend + ".custom." + op->name;
  k->kernel = {sizeof(gimbal_host_kernel),
               {},
               k.get(),
               parts,
               compute_parts,
               op->kernel.empty() ? nullptr : op->kernel.c_str()};
  const auto address = int64_t(reinterpret_cast<uintptr_t>(&k->kernel));
  k->own = {"another custom op", GIMBAL_PARAM, 0, 0, 0, address, address};
  k->kernel.info = claims(*k);
  if (auto ok = queue->device().add_kernel(k->kernel); !ok) {
    const Error e = to_public(ok.error());
    return e.code == Code::Unsupported ? unsupported(*op, device, e.message) : e;
  }
  known = std::move(k);
  return known.get();
}

Spec spec_of(const Tensor& t) { return {t.dtype(), t.dims()}; }

Error wrong(const CustomOp& op, const std::string& what) {
  return shape_error(format("custom op '{}': {}", op.name, what));
}

}  // namespace

bool computes_custom(const Queue::State& q) { return computing_now == &q; }
Error inside_custom() {
  return {Code::Usage,
          "the function of a custom op uses tensors of the queue that it runs on",
          "compute with the memory that it gets",
          "custom",
          "",
          "",
          "",
          {}};
}

gimbal::Status Queue::State::submit(gimbal::Executable& e, gimbal_buffer* const* slots, size_t n) {
  if (auto ok = device().submit(e, slots, n, {1, 1}); !ok) return ok;
  const std::lock_guard lock(host_mutex);
  if (!host_error) return gimbal::Done{};
  const gimbal::Error failure = std::move(*host_error);
  host_error.reset();
  return failure;
}

Tensor Custom::operator()(std::span<const Tensor> in) const {
  const CustomOp& op = *state_->op;
  if (in.empty()) return failed(nullptr, wrong(op, "it got no operand"));
  std::vector<const Tensor*> all;
  for (const Tensor& t : in) all.push_back(&t);
  if (auto bad = unusable(all)) return *bad;
  const auto& queue = state_of(in[0]).queue;
  if (int(in.size()) != op.inputs)
    return refuse(in[0], wrong(op, format("expected {} operands, found {}", op.inputs, in.size())));
  if (computes_custom(*queue)) return refuse(in[0], inside_custom());
  std::vector<Spec> specs;
  for (const Tensor& t : in) {
    if (!gimbal::has(gimbal::kNumbers, state_of(t).type))
      return refuse(t, dtype_error(format("custom op '{}': {} is stored in blocks", op.name, describe(t)),
                                   "convert it first, with to(f32)"));
    if (t.count() == 0) return refuse(t, wrong(op, describe(t) + " has no elements"));
    specs.push_back(spec_of(t));
  }
  auto kernel = kernel_on(queue, state_->op);
  const bool falls_back = op.fallback == "cpu" && !op.in_place && !queue->strict;
  if (!kernel && kernel.error().code == Code::Unsupported && falls_back)
    return computed_by_the_cpu(format("custom op '{}'", op.name), kernel.error(), in,
                               [&](std::span<const Tensor> there) { return (*this)(there); });
  if (!kernel) return refuse(in[0], kernel.error());
  gimbal::OpParams p;
  p.i[0] = int64_t(reinterpret_cast<uintptr_t>(&(*kernel)->kernel));
  if (op.in_place) {
    if (auto e = cannot_be_written(in[0])) return refuse(in[0], *e);
    std::vector<Tensor> apart(in.begin(), in.end());
    for (size_t i = 1; i < apart.size(); i++)
      if (apart[i].shares_memory_with(in[0])) apart[i] = apart[i].copy();
    return apply(gimbal::OpKind::CustomInPlace, p, apart);
  }
  Result<Spec> out = op.output ? op.output(specs) : Result<Spec>(specs[0]);
  if (!out) return refuse(in[0], out.error());
  if (auto why = gimbal::check_dims(out->dims))
    return refuse(in[0], wrong(op, format("its result {}: {}", gimbal::to_string(out->dims), *why)));
  if (!gimbal::has(gimbal::kNumbers, own(out->dtype)))
    return refuse(
        in[0], dtype_error(format("custom op '{}': its result cannot be {}", op.name, name_of(out->dtype))));
  if (std::find(out->dims.begin(), out->dims.end(), 0) != out->dims.end())
    return uninitialized(queue, own(out->dtype), out->dims);
  const Dims dims = out->dims.empty() ? Dims{1} : out->dims;
  p.i[1] = int64_t(own(out->dtype)), p.i[2] = int64_t(dims.size());
  for (size_t i = 0; i < dims.size(); i++) p.i[3 + i] = dims[dims.size() - 1 - i];
  const Tensor y = apply(gimbal::OpKind::Custom, p, in);
  return y.ok() && y.dims() != out->dims ? y.reshape(out->dims) : y;
}

Result<CustomVerdict> Custom::verify(const Queue& q, const std::vector<std::vector<Spec>>& given) const {
  const CustomOp& op = *state_->op;
  if (!op.reference)
    return Error{Code::Usage,
                 format("custom op '{}' has no reference to verify it with", op.name),
                 "set CustomOp::reference",
                 "",
                 "",
                 "",
                 "",
                 {}};
  std::vector<std::vector<Spec>> cases = given;
  if (cases.empty())
    for (const Dims& d : {Dims{1}, Dims{7}, Dims{3, 5}, Dims{64, 33}, Dims{2, 3, 1025}})
      cases.push_back(std::vector<Spec>(size_t(op.inputs), Spec{DType::F32, d}));
  CustomVerdict verdict;
  for (const std::vector<Spec>& specs : cases)
    for (bool views : {false, true}) {
      std::vector<Tensor> in;
      std::vector<ReferenceValues> exact;
      Generator g(uint64_t(verdict.cases) + 1, q);
      for (const Spec& s : specs) {
        Tensor x = (g.normal(s.dims) * 3).to(s.dtype);
        for (int d = 0; views && d < x.rank(); d++) x = x.flip(d);
        auto values = x.to(DType::F64).values<double>();
        if (!values) return values.error();
        exact.push_back({s.dims, std::move(*values)});
        in.push_back(std::move(x));
      }
      auto want = op.reference(exact);
      if (!want) return want.error();
      const Tensor y = (*this)(in);
      auto got = y.to(DType::F64).values<double>();
      if (!got) return got.error();
      const std::string where =
          format("custom op '{}' on {}, case {} of {}{}", op.name, q.location(), verdict.cases,
                 gimbal::to_string(specs[0].dims), views ? ", flipped" : "");
      if (want->dims != y.dims() || want->values.size() != got->size())
        return Error{Code::Failed,
                     format("{}: the reference has {}, found {}", where, gimbal::to_string(want->dims),
                            gimbal::to_string(y.dims())),
                     "",
                     "wrong-result",
                     "",
                     "",
                     "",
                     {}};
      for (size_t i = 0; i < got->size(); i++) {
        const double w = want->values[i], v = (*got)[i];
        const double bound = op.tolerance * std::max(1.0, std::fabs(w));
        const bool same = w == v || (std::isnan(w) && std::isnan(v));
        if (!same) verdict.largest_error = std::max(verdict.largest_error, std::fabs(v - w) / bound);
        if (!same && !(std::fabs(v - w) <= bound))
          return Error{Code::Failed, format("{}: element {}: expected {}, found {}", where, i, w, v),
                       "",           "wrong-result",
                       "",           "",
                       "",           {}};
      }
      verdict.cases++;
    }
  return verdict;
}

const std::string& Custom::name() const { return state_->op->name; }

Result<Custom> custom_op(CustomOp op) {
  const auto of_name = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  const auto usage = [](std::string message) {
    return Error{Code::Usage, std::move(message), "", "", "", "", "", {}};
  };
  if (op.name.empty() || op.name.size() > 64 || !std::all_of(op.name.begin(), op.name.end(), of_name))
    return usage(format("custom_op: '{}' is no name: expected lower-case letters, digits and _", op.name));
  if (op.inputs < 1 || op.inputs > 7)
    return usage(format("custom op '{}': expected 1 to 7 inputs, found {}", op.name, op.inputs));
  if (!op.cpu && op.kernel.empty())
    return usage(format("custom op '{}' has neither a function (cpu) nor a kernel text (kernel)", op.name));
  if (!op.kernel.empty() && (op.inputs > 3 || op.in_place))
    return usage(
        format("custom op '{}': kernel texts have at most three operands, and write a new result", op.name));
  if (!op.cpu && !op.fallback.empty())
    return usage(format("custom op '{}': the fallback to the CPU needs a function (cpu)", op.name));
  if (!op.fallback.empty() && op.fallback != "cpu")
    return usage(format("custom op '{}': the fallback is \"cpu\" or empty, not '{}'", op.name, op.fallback));
  auto s = std::make_shared<Custom::State>();
  s->op = std::make_shared<const CustomOp>(std::move(op));
  return CustomAccess::custom(std::move(s));
}

}  // namespace gimbal::v1
