// Bodies of the type multipart/form-data (RFC 7578, RFC 2046). Strict, like the framing of requests
// (http/head.h): a form that two readers could read differently is refused. Pure functions over text.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gimbal::http {

inline constexpr size_t kMostFormParts = 64;
inline constexpr size_t kMostPartHead = 4096;  // bytes of the headers of a part

struct FormPart {
  std::string name;
  std::optional<std::string> file;  // its name, of a file; may be empty
  std::string_view body;            // in the form's text
};

// The boundary in the value of a Content-Type; empty: the type is no form, or its boundary is invalid.
std::string form_boundary(std::string_view content_type);

// The parts of a form, in order. Returns why it is refused, or an empty text. `to` is valid as long as
// `body`.
std::string parse_form(std::string_view body, const std::string& boundary, std::vector<FormPart>& to);

}  // namespace gimbal::http
