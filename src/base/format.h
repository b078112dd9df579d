// Text formatting for errors and reports: fmt behind one name, so that its templates are instantiated once.
#pragma once
#include <fmt/format.h>

#include <string>

namespace gimbal {

struct FormatCall {
  template <class... T>
  std::string operator()(fmt::format_string<T...> text, T&&... values) const {
    return fmt::vformat(text, fmt::make_format_args(values...));
  }
};
// An object and not a function: for a function, an argument of type std::string would bring std::format in as
// well, where the standard library has it (g++ 13, libc++), and the call would be ambiguous.
inline constexpr FormatCall format{};

}  // namespace gimbal
