// The normalisation of a published tokenizer (tokenizer.json): what happens to a text before it is cut into
// words.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"

namespace gimbal {

class Normalizer {
 public:
  class Step {
   public:
    virtual ~Step() = default;
    virtual std::string apply(std::string text) const = 0;
  };

  // The value of "normalizer": an object, or null for none. Errors: Unsupported, with the type; Malformed.
  static Result<Normalizer> create(const Json&);
  std::string apply(std::string text) const;
  bool empty() const { return steps_.empty(); }
  // Whether it writes every byte as a letter (byte_alphabet.h).
  bool writes_letters() const { return letters_; }

 private:
  Status add(const Json&, int depth);
  std::vector<std::shared_ptr<const Step>> steps_;
  bool letters_ = false;
};

}  // namespace gimbal
