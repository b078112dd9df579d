#include "server/api/call.h"

#include "base/text.h"
#include "server/http/form.h"

namespace gimbal::api {
namespace {

ApiError broken(const std::string& why) { return {400, "the form cannot be read: " + why}; }

Refused add_text(const http::FormPart& part, Json& to) {
  const std::string shown = quoted_briefly(part.name);
  if (part.file) return broken(format("{} is a file, and this field is a text", shown));
  if (part.body.size() > kMostFormText)
    return broken(format("{} has more than {} bytes", shown, kMostFormText));
  if (!is_utf8(part.body) || part.body.find('\0') != part.body.npos)
    return broken(format("{} is no text in UTF-8 without a zero byte", shown));
  if (part.name.ends_with("[]")) {
    to[part.name].push_back(std::string(part.body));
    return {};
  }
  if (to.contains(part.name)) return broken(format("it has {} twice", shown));
  to[part.name] = std::string(part.body);
  return {};
}

}  // namespace

Refused read_form(Call& call, std::string body, const char* file) {
  if (auto no = takes_requests(call)) return no;
  const std::string* type = call.request.header("content-type");
  const std::string boundary = type ? http::form_boundary(*type) : "";
  if (boundary.empty())
    return ApiError{
        415, "the body must be a form, with the header Content-Type: multipart/form-data; boundary=...", "",
        "unsupported_media_type"};
  call.body_bytes = body.size();
  call.body = Json::object();
  std::vector<http::FormPart> parts;
  if (const std::string why = http::parse_form(body, boundary, parts); !why.empty()) return broken(why);
  bool has_file = false;
  for (const http::FormPart& part : parts) {
    if (!is_utf8(part.name) || part.name.find('\0') != part.name.npos)
      return broken("the name of a field is no text in UTF-8");
    if (part.name != file) {
      if (auto no = add_text(part, call.body)) return no;
      continue;
    }
    if (std::exchange(has_file, true)) return broken(format("it has '{}' twice", file));
    if (!part.file) return wrong_field(file, format("'{}' must be a file", file));
    call.body[file] = "file";
    call.file = part.body;
  }
  return {};
}

void read_as_json(Json& body, std::initializer_list<const char*> fields) {
  for (const char* name : fields) {
    const auto at = body.find(name);
    if (at == body.end() || !at->is_string()) continue;
    Json value = parse_json(at->get_ref<const std::string&>());
    if (value.is_number() || value.is_boolean()) *at = std::move(value);
  }
}

}  // namespace gimbal::api
