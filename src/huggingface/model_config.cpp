#include "huggingface/model_config.h"

#include <cmath>
#include <limits>

#include "base/format.h"
#include "base/text.h"

namespace gimbal {

ModelConfig::ModelConfig(Json json, std::string path) : json_(std::move(json)), path_(std::move(path)) {
  if (!json_.is_object()) json_ = Json::object();
  const auto inner = json_.find("text_config");
  if (inner == json_.end() || !inner->is_object()) return;
  nested_ = true;
  const Json text = *inner;
  for (const auto& [key, value] : text.items())
    if (!value.is_null()) json_[key] = value;
}

const Json* ModelConfig::find(JsonNames names) const {
  for (const char* name : names)
    if (const auto at = json_.find(name); at != json_.end() && !at->is_null()) return &*at;
  return nullptr;
}

void ModelConfig::fail(Code code, const std::string& message, const std::string& remedy) {
  if (!error_) error_ = Error{code, format("{}: {}", path_, message), remedy};
}

void ModelConfig::take_error(const ModelConfig& other) {
  if (!error_) error_ = other.error_;
}

void ModelConfig::expected(JsonNames names, const char* what) {
  const Json* value = find(names);
  fail(Code::Malformed, format("'{}': expected {}, found {}", *names.begin(), what,
                               value ? gimbal::quoted(dump(*value)) : std::string("nothing")));
}

int64_t ModelConfig::count(JsonNames names, std::optional<int64_t> otherwise) {
  const Json* value = find(names);
  if (!value && otherwise) return *otherwise;
  constexpr uint64_t kMost = std::numeric_limits<int32_t>::max();
  if (value && value->is_number_unsigned() && value->get<uint64_t>() <= kMost)
    return int64_t(value->get<uint64_t>());
  // Some files write whole numbers as 4096.0.
  if (value && value->is_number_float())
    if (const double d = value->get<double>(); d >= 0 && d <= double(kMost) && d == std::floor(d))
      return int64_t(d);
  expected(names, "a whole number");
  return otherwise.value_or(1);
}

int64_t ModelConfig::count_for_all(JsonNames names, std::optional<int64_t> otherwise) {
  const Json* value = find(names);
  if (!value || !value->is_array() || value->empty()) return count(names, otherwise);
  for (const Json& one : *value)
    if (one != value->front())
      fail(Code::Unsupported, format("'{}': layers with different numbers are not computed", *names.begin()));
  ModelConfig first(Json{{*names.begin(), value->front()}}, path_);
  const int64_t n = first.count({*names.begin()});
  take_error(first);
  return n;
}

double ModelConfig::number(JsonNames names, std::optional<double> otherwise) {
  const Json* value = find(names);
  if (!value && otherwise) return *otherwise;
  if (value && value->is_number() && std::isfinite(float(value->get<double>()))) return value->get<double>();
  expected(names, "a number");
  return otherwise.value_or(1);
}

bool ModelConfig::flag(JsonNames names, bool otherwise) {
  const Json* value = find(names);
  if (!value) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  expected(names, "true or false");
  return otherwise;
}

std::string ModelConfig::text(JsonNames names, const std::string& otherwise) {
  const Json* value = find(names);
  if (!value) return otherwise;
  if (value->is_string()) return value->get<std::string>();
  expected(names, "a text");
  return otherwise;
}

std::vector<double> ModelConfig::numbers(JsonNames names) {
  std::vector<double> all;
  const Json* value = find(names);
  if (!value) return all;
  if (!value->is_array()) return expected(names, "a list of numbers"), all;
  for (const Json& one : *value) {
    if (!one.is_number() && !one.is_boolean()) return expected(names, "a list of numbers"), all;
    all.push_back(one.is_boolean() ? double(one.get<bool>()) : one.get<double>());
  }
  return all;
}

std::vector<std::string> ModelConfig::texts(JsonNames names) {
  std::vector<std::string> all;
  const Json* value = find(names);
  if (!value) return all;
  if (!value->is_array()) return expected(names, "a list of texts"), all;
  for (const Json& one : *value) {
    if (!one.is_string()) return expected(names, "a list of texts"), all;
    all.push_back(one.get<std::string>());
  }
  return all;
}

ModelConfig ModelConfig::rope() const {
  const Json* value = find({"rope_parameters", "rope_scaling"});
  ModelConfig out(value && value->is_object() ? *value : Json::object(), path_);
  if (value && !value->is_object()) out.fail(Code::Malformed, "'rope_scaling': expected an object");
  return out;
}

int64_t ModelConfig::block_size() const {
  const Json* value = find({"quantization_config"});
  const auto size = value && value->is_object() ? value->find("weight_block_size") : Json::const_iterator();
  if (!value || !value->is_object() || size == value->end() || !size->is_array() || size->size() != 2)
    return 128;
  const Json &rows = (*size)[0], &columns = (*size)[1];
  if (!rows.is_number_unsigned() || rows != columns || rows.get<uint64_t>() > 1 << 20) return 0;
  return rows.get<int64_t>();
}

std::string ModelConfig::quantization() const {
  const Json* value = find({"quantization_config"});
  if (!value || !value->is_object()) return {};
  const auto method = value->find("quant_method");
  return method != value->end() && method->is_string() ? method->get<std::string>() : "an unnamed method";
}

}  // namespace gimbal
