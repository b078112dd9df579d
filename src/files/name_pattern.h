// Patterns of tensor names, as users write them: POSIX extended regular expressions, found anywhere in a
// name.
// "\d" and "(?:...)", which other programs' patterns have, are understood.
#pragma once
#include <memory>
#include <string>

#include "base/result.h"

namespace gimbal {

class NamePattern {
 public:
  // Errors: Usage for a text that is no such expression.
  static Result<NamePattern> compile(const std::string& text);
  // `name` has no NUL.
  bool found_in(const std::string& name) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace gimbal
