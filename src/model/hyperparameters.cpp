#include "model/hyperparameters.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"

namespace gimbal {

void Hyperparameters::fail(Code code, const std::string& message) {
  if (!error_) error_ = Error{code, format("{}: {}", metadata_.source(), message), ""};
}

// The value in the file, for errors.
static std::string found(const Metadata& metadata, const std::string& key) {
  if (auto v = metadata.unsigned_integer(key)) return std::to_string(*v);
  if (auto v = metadata.number(key)) return format("{}", *v);
  if (const MetadataArray* list = metadata.array(key)) return format("a list of {}", list->count);
  return metadata.find(key) ? "a value of another kind" : "nothing";
}

int Hyperparameters::expected(const std::string& key, int least) {
  fail(Code::Malformed, format("metadata key '{}': expected a whole number from {} to {}, found {}",
                               full(key), least, kMaxCount, found(metadata_, full(key))));
  return std::max(1, least);
}

int Hyperparameters::count(const std::string& key, std::optional<int> otherwise, int least) {
  const auto v = metadata_.unsigned_integer(full(key));
  if (!v && otherwise && !has(key)) return *otherwise;
  if (v && *v >= uint64_t(least) && *v <= uint64_t(kMaxCount)) return int(*v);
  return expected(key, least);
}

double Hyperparameters::number(const std::string& key, std::optional<double> otherwise, double least) {
  if (otherwise && !has(key)) return *otherwise;
  const auto v = metadata_.number(full(key));
  if (v && *v >= least && std::isfinite(float(*v))) return *v;
  fail(Code::Malformed, format("metadata key '{}': expected a finite number{}, found {}", full(key),
                               std::isfinite(least) ? format(" of at least {}", least) : std::string(),
                               found(metadata_, full(key))));
  return otherwise.value_or(1);
}

double Hyperparameters::positive(const std::string& key, std::optional<double> otherwise) {
  const double v = number(key, otherwise);
  if (v > 0 && std::isfinite(1 / float(v))) return v;
  fail(Code::Malformed, format("metadata key '{}': expected a positive number, found {}", full(key), v));
  return otherwise.value_or(1);
}

bool Hyperparameters::flag(const std::string& key, std::optional<bool> otherwise) {
  if (otherwise && !has(key)) return *otherwise;
  if (auto v = metadata_.boolean(full(key))) return *v;
  fail(Code::Malformed,
       format("metadata key '{}': expected true or false, found {}", full(key), found(metadata_, full(key))));
  return otherwise.value_or(false);
}

std::string Hyperparameters::text(const std::string& key, const std::string& otherwise) {
  if (!has(key)) return otherwise;
  if (auto v = metadata_.string(full(key))) return std::string(*v);
  fail(Code::Malformed,
       format("metadata key '{}': expected a string, found {}", full(key), found(metadata_, full(key))));
  return otherwise;
}

// The layer's value, if the key holds a list; else nullopt.
std::optional<int64_t> Hyperparameters::listed(const std::string& key, int layer) {
  const MetadataArray* list = metadata_.array(full(key));
  if (!list) return std::nullopt;
  const auto values = list->integers();
  if (values.size() == size_t(layers_)) return values[size_t(layer)];
  fail(Code::Malformed, format("metadata key '{}': expected a whole number for each of {} layers, found {}",
                               full(key), layers_, found(metadata_, full(key))));
  return 1;
}

int Hyperparameters::count_of(const std::string& key, int layer, std::optional<int> otherwise, int least) {
  const auto v = listed(key, layer);
  if (!v) return count(key, otherwise, least);
  if (*v >= least && *v <= kMaxCount) return int(*v);
  fail(Code::Malformed, format("metadata key '{}', layer {}: expected a whole number from {} to {}, found {}",
                               full(key), layer, least, kMaxCount, *v));
  return std::max(1, least);
}

bool Hyperparameters::flag_of(const std::string& key, int layer, std::optional<bool> otherwise) {
  const auto v = listed(key, layer);
  if (!v) return flag(key, otherwise);
  if (*v != 0 && *v != 1)
    fail(Code::Malformed,
         format("metadata key '{}', layer {}: expected true or false, found {}", full(key), layer, *v));
  return *v != 0;
}

double Hyperparameters::number_of(const std::string& key, int layer, std::optional<double> otherwise,
                                  double least) {
  const MetadataArray* list = metadata_.array(full(key));
  if (!list) return number(key, otherwise, least);
  const auto values = list->floats();
  if (values.size() != size_t(layers_))
    fail(Code::Malformed, format("metadata key '{}': expected a number for each of {} layers, found {}",
                                 full(key), layers_, found(metadata_, full(key))));
  else if (const double v = values[size_t(layer)]; v >= least && std::isfinite(v)) return v;
  else
    fail(Code::Malformed,
         format("metadata key '{}', layer {}: expected a finite number{}, found {}", full(key), layer,
                std::isfinite(least) ? format(" of at least {}", least) : std::string(), v));
  return otherwise.value_or(1);
}

int Hyperparameters::most_of(const std::string& key, std::optional<int> otherwise) {
  if (!is_list(key)) return count(key, otherwise);
  int most = 0;
  for (int i = 0; i < layers_ && !error_; i++) most = std::max(most, count_of(key, i));
  return most ? most : (error_ ? 1 : expected(key, 1));
}

}  // namespace gimbal
