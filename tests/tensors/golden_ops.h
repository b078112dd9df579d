// The operations of golden/tensors by name, with the parameters that its cases have.
#pragma once
#include <gimbal/tensor.h>
#include <nlohmann/json.hpp>

#include "support/golden.h"

namespace gimbal::test {

using TensorCase = nlohmann::ordered_json;

inline Dims dims_of(const TensorCase& j) { return j.get<Dims>(); }

inline Tensor tensor_of(const TensorCase& in, const Queue& q) {
  const std::string bytes = base64_decode(in["b64"]);
  return Tensor::from_bytes(std::as_bytes(std::span(bytes)), dims_of(in["dims"]),
                            *dtype_named(in["dtype"].get<std::string>()), q);
}

inline Tensor with_steps(Tensor t, const TensorCase& steps) {
  for (const TensorCase& s : steps) {
    if (!s[0].is_string()) continue;  // a case of views.json has a list in its place, and expects x itself
    const std::string name = s[0];
    auto n = [&](size_t i) { return s[i].get<int64_t>(); };
    if (name == "reshape") t = t.reshape(dims_of(s[1]));
    else if (name == "permute") t = t.permute(s[1].get<Axes>());
    else if (name == "t") t = t.t();
    else if (name == "narrow") t = t.narrow(int(n(1)), n(2), n(3), n(4));
    else if (name == "select") t = t.select(int(n(1)), n(2));
    else if (name == "flip") t = t.flip(int(n(1)));
    else if (name == "broadcast_to") t = t.broadcast_to(dims_of(s[1]));
    else if (name == "unfold") t = t.unfold(int(n(1)), n(2), n(3));
    else ADD_FAILURE() << "an unknown view " << name;
  }
  return t;
}

inline Scalar scalar_of(const TensorCase& j) {
  if (j.is_string()) return Scalar(std::stod(j.get<std::string>()));  // "nan", "inf"
  return j.is_number_float() ? Scalar(j.get<double>())
         : j.is_boolean()    ? Scalar(j.get<bool>())
                             : Scalar(j.get<int64_t>());
}

// The outputs of a case. One that the API refuses with a Status gives a failed tensor of no place: `refused`.
struct TensorOutputs {
  std::vector<Tensor> out;
  std::optional<Error> refused;
};

inline ConvOptions conv_options(const TensorCase& p) {
  ConvOptions o;
  o.stride = dims_of(p["stride"]), o.padding = dims_of(p["padding"]), o.dilation = dims_of(p["dilation"]);
  o.groups = p["groups"];
  if (p.contains("output_padding")) o.output_padding = dims_of(p["output_padding"]);
  return o;
}

inline std::optional<Tensor> reduced(const std::string& op, const Tensor& x, const TensorCase& p) {
  using Member = Tensor (Tensor::*)(const Axes&, bool) const;
  static const std::map<std::string, Member> kAll = {{"sum", &Tensor::sum},       {"mean", &Tensor::mean},
                                                     {"var", &Tensor::var},       {"prod", &Tensor::prod},
                                                     {"min", &Tensor::min},       {"max", &Tensor::max},
                                                     {"argmin", &Tensor::argmin}, {"argmax", &Tensor::argmax},
                                                     {"any", &Tensor::any},       {"all", &Tensor::all}};
  const auto it = kAll.find(op);
  if (it == kAll.end()) return std::nullopt;
  const Axes axes = p["axes"].is_array()  ? p["axes"].get<Axes>()
                    : p["axes"].is_null() ? Axes()
                                          : Axes{p["axes"].get<int>()};
  return (x.*it->second)(axes, p.value("keep", false));
}

inline TensorOutputs run_case(const TensorCase& c, const Queue& q) {
  const std::string op = c["op"];
  const TensorCase p = c.value("params", TensorCase::object());
  std::vector<Tensor> in;
  for (const TensorCase& i : c["in"]) {
    in.push_back(tensor_of(i, q));
    if (i.contains("steps")) in.back() = with_steps(in.back(), i["steps"]);
  }
  auto dim = [&] { return p["dim"].get<int>(); };
  auto type = [&] { return *dtype_named(p["dtype"].get<std::string>()); };
  if (op == "views") return {{with_steps(in[0], p["steps"])}, {}};
  if (op == "cast") return {{in[0].to(type())}, {}};
  if (op == "where") return {{where(in[0], in[1], in[2])}, {}};
  if (op == "affine") return {{in[0].affine(p["mul"], p["add"])}, {}};
  if (op == "elu") return {{in[0].elu(p["alpha"])}, {}};
  if (op == "pow_scalar") return {{in[0].map("pow", scalar_of(p["exponent"]))}, {}};
  if (op == "add_scalar") return {{in[0] + scalar_of(p["scalar"])}, {}};
  if (op == "cat") return {{cat(in, dim())}, {}};
  if (op == "stack") return {{stack(in, dim())}, {}};
  if (op == "flip") return {{in[0].flip(dim())}, {}};
  if (op == "roll") return {{in[0].roll(p["shift"], dim())}, {}};
  if (op == "repeat") return {{in[0].repeat(dims_of(p["times"]))}, {}};
  if (op == "full") return {{Tensor::full(dims_of(p["dims"]), scalar_of(p["value"]), type(), q)}, {}};
  if (op == "eye") return {{Tensor::eye(p["n"], type(), q)}, {}};
  if (op == "arange")
    return {{Tensor::arange(scalar_of(p["begin"]), scalar_of(p["end"]), scalar_of(p["step"]), type(), q)},
            {}};
  if (op == "pad") {
    std::vector<std::pair<int64_t, int64_t>> pads;
    for (const TensorCase& e : p["pads"]) pads.emplace_back(e[0], e[1]);
    return {{in[0].pad(pads, scalar_of(p["value"]))}, {}};
  }
  if (op == "fill_" || op == "copy_") {
    const Tensor x = in[0].copy(), part = with_steps(x, p["steps"]);
    const Status ok = op == "fill_" ? part.fill_(scalar_of(p["value"])) : part.copy_(in[1]);
    if (!ok) return {{}, ok.error()};
    return {{x}, {}};
  }
  if (op == "softmax") return {{in[0].softmax(dim())}, {}};
  if (op == "log_softmax") return {{in[0].log_softmax(dim())}, {}};
  if (op == "layer_norm" || op == "rms_norm") {
    const bool weight = p["weight"], bias = p["bias"];
    return {
        {op == "rms_norm" ? rms_norm(in[0], weight ? &in[1] : nullptr, p["eps"])
                          : layer_norm(in[0], weight ? &in[1] : nullptr, bias ? &in[2] : nullptr, p["eps"])},
        {}};
  }
  if (op == "cumsum") return {{in[0].cumsum(dim())}, {}};
  if (op == "matmul") return {{in[0].matmul(in[1])}, {}};
  if (op == "linear") return {{linear(in[0], in[1])}, {}};
  if (op == "conv1d" || op == "conv2d") return {{conv(in[0], in[1], conv_options(p))}, {}};
  if (op == "conv_transpose1d" || op == "conv_transpose2d")
    return {{conv_transpose(in[0], in[1], conv_options(p))}, {}};
  if (op == "avg_pool2d") return {{in[0].avg_pool2d(dims_of(p["kernel"]), dims_of(p["stride"]))}, {}};
  if (op == "max_pool2d") return {{in[0].max_pool2d(dims_of(p["kernel"]), dims_of(p["stride"]))}, {}};
  if (op == "upsample_nearest1d") return {{in[0].upsample_nearest1d(p["size"][0])}, {}};
  if (op == "upsample_nearest2d") return {{in[0].upsample_nearest2d(p["size"][0], p["size"][1])}, {}};
  if (op == "upsample_bilinear2d")
    return {{in[0].upsample_bilinear2d(p["size"][0], p["size"][1], p["align_corners"])}, {}};
  if (op == "gather") return {{in[0].gather(in[1], dim())}, {}};
  if (op == "index_select") return {{in[0].index_select(in[1], dim())}, {}};
  if (op == "scatter") return {{in[0].scatter(in[1], in[2], dim())}, {}};
  if (op == "scatter_add") return {{in[0].scatter_add(in[1], in[2], dim())}, {}};
  if (op == "index_add") return {{in[0].index_add(in[1], in[2], dim())}, {}};
  if (op == "sort") return {{in[0].sort(dim(), p["falling"])}, {}};
  if (op == "argsort") return {{in[0].argsort(dim(), p["falling"])}, {}};
  if (op == "top_k") {
    auto [values, places] = in[0].top_k(p["k"], dim());
    return {{values, places}, {}};
  }
  if (op == "uniform" || op == "normal") {
    Generator g(std::stoull(p["seed"].get<std::string>()), q);
    for (const TensorCase& n : p["draws_before"]) g.uniform({n.get<int64_t>()});
    const Dims dims = dims_of(p["dims"]);
    return {{op == "uniform" ? g.uniform(dims, type()) : g.normal(dims, type())}, {}};
  }
  if (auto r = reduced(op, in[0], p)) return {{*r}, {}};
  return {{in.size() == 1 ? in[0].map(op) : in[0].map(op, in[1])}, {}};
}

}  // namespace gimbal::test
