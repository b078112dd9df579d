// The numbers under "<architecture>." in a file's metadata, each checked where it is read. The first one
// that is missing, has the wrong type or is out of bounds becomes the error. Reading continues with a
// harmless value, so that the caller checks once.
#pragma once
#include <limits>
#include <optional>
#include <string>

#include "base/result.h"
#include "files/metadata.h"

namespace gimbal {

// Larger than any real count; keeps products inside 64 bits.
constexpr int kMaxCount = 1 << 24;

class Hyperparameters {
 public:
  Hyperparameters(const Metadata& metadata, std::string arch) : metadata_(metadata), arch_(std::move(arch)) {}
  // How many values a list must have that gives one for each layer. To be called before such a list is read.
  void layers(int n) { layers_ = n; }

  bool has(const std::string& key) const { return metadata_.find(full(key)) != nullptr; }
  // A whole number from `least` to kMaxCount. Without a default a missing key is an error.
  int count(const std::string& key, std::optional<int> otherwise = {}, int least = 1);
  // A finite number, not below `least`.
  double number(const std::string& key, std::optional<double> otherwise = {},
                double least = -std::numeric_limits<double>::infinity());
  // A finite number above 0, so that it may be a divisor.
  double positive(const std::string& key, std::optional<double> otherwise = {});
  bool flag(const std::string& key, std::optional<bool> otherwise = {});
  std::string text(const std::string& key, const std::string& otherwise);
  // The value of one layer: the key has one value for all layers, or a list.
  int count_of(const std::string& key, int layer, std::optional<int> otherwise = {}, int least = 0);
  bool flag_of(const std::string& key, int layer, std::optional<bool> otherwise = {});
  double number_of(const std::string& key, int layer, std::optional<double> otherwise = {},
                   double least = -std::numeric_limits<double>::infinity());
  // The largest value of all layers.
  int most_of(const std::string& key, std::optional<int> otherwise = {});
  bool is_list(const std::string& key) const { return metadata_.array(full(key)) != nullptr; }

  // Reports an error that involves several numbers. Keeps the first error only.
  void fail(Code, const std::string& message);
  const std::optional<Error>& error() const { return error_; }

 private:
  std::string full(const std::string& key) const { return arch_ + "." + key; }
  int expected(const std::string& key, int least);
  std::optional<int64_t> listed(const std::string& key, int layer);

  const Metadata& metadata_;
  std::string arch_;
  int layers_ = 0;
  std::optional<Error> error_;
};

}  // namespace gimbal
