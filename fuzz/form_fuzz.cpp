// libFuzzer over forms: the first line is a Content-Type, the remainder a body. Parts lie in the body, in
// order, without the boundary; and a form written of them is read as the same parts.
#include <string>

#include "require.h"
#include "server/http/form.h"

using namespace gimbal::http;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t line = std::min(text.find('\n'), text.size());
  const std::string_view body = text.substr(std::min(line + 1, text.size()));
  const std::string boundary = form_boundary(text.substr(0, line));
  if (boundary.empty()) return 0;
  require(boundary.size() <= 70 && boundary.find_first_of("\r\n\"") == boundary.npos);
  std::vector<FormPart> parts;
  if (!parse_form(body, boundary, parts).empty()) return 0;
  require(parts.size() <= kMostFormParts);
  const char* last = body.data();
  std::string again;
  for (const FormPart& p : parts) {
    require(!p.name.empty());
    require(p.body.data() >= last && p.body.data() + p.body.size() <= body.data() + body.size());
    last = p.body.data() + p.body.size();
    require(p.body.find("\r\n--" + boundary) == p.body.npos);
    const auto quoted = [](const std::string& s) {
      std::string out = "\"";
      for (char c : s) out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
      return out + "\"";
    };
    again += "--" + boundary + "\r\ncontent-disposition: form-data; name=" + quoted(p.name);
    if (p.file) again += "; filename=" + quoted(*p.file);
    again += "\r\n\r\n";
    again += p.body;
    again += "\r\n";
  }
  again += "--" + boundary + "--\r\n";
  std::vector<FormPart> same;
  const std::string why = parse_form(again, boundary, same);
  // The repeated names may be longer than the limit of a part's headers.
  if (!why.empty()) return 0;
  require(same.size() == parts.size());
  for (size_t i = 0; i < parts.size(); i++)
    require(same[i].name == parts[i].name && same[i].file == parts[i].file && same[i].body == parts[i].body);
  return 0;
}
