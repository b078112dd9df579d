// config.json: the numbers of a model, each checked where it is read. The first one that is missing or of
// another type becomes the error. Values of null count as absent, as for transformers.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace gimbal {

using JsonNames = std::initializer_list<const char*>;  // of one value, in different families

class ModelConfig {
 public:
  // `path`: of the file, for errors. The numbers of "text_config", if there is one, go before those beside
  // it.
  ModelConfig(Json json, std::string path);

  const std::string& path() const { return path_; }
  bool has_text_config() const { return nested_; }
  bool has(JsonNames names) const { return find(names) != nullptr; }
  // A whole number from 0 to 2^31 - 1. Without a default a missing one is an error.
  int64_t count(JsonNames names, std::optional<int64_t> otherwise = {});
  // Likewise; or a list with a number for each layer, all of which must be the same.
  int64_t count_for_all(JsonNames names, std::optional<int64_t> otherwise = {});
  double number(JsonNames names, std::optional<double> otherwise = {});
  bool flag(JsonNames names, bool otherwise);
  std::string text(JsonNames names, const std::string& otherwise = {});
  // Of numbers or texts; empty if absent.
  std::vector<double> numbers(JsonNames names);
  std::vector<std::string> texts(JsonNames names);
  // The settings of rotation: "rope_scaling", or "rope_parameters" of newer files. Reads values as a config.
  ModelConfig rope() const;
  // "quant_method" of "quantization_config"; empty if there is none.
  std::string quantization() const;
  // Of fp8: rows and columns that share a scale; 128 unless "weight_block_size" names another square.
  int64_t block_size() const;

  void fail(Code, const std::string& message, const std::string& remedy = {});
  // The error of an object that rope() gave, too.
  void take_error(const ModelConfig& other);
  const std::optional<Error>& error() const { return error_; }

 private:
  const Json* find(JsonNames names) const;
  void expected(JsonNames names, const char* what);

  Json json_;
  std::string path_;
  bool nested_ = false;
  std::optional<Error> error_;
};

}  // namespace gimbal
