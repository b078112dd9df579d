#include "server/http/form.h"

#include <algorithm>
#include <cctype>

#include "base/format.h"
#include "server/http/message.h"

namespace gimbal::http {
namespace {

constexpr size_t kMostBoundary = 70, kMostName = 200;

std::string_view without_blanks(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

bool is_form_word(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) {
    return std::isalnum(uint8_t(c)) || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

struct Parameter {
  std::string name, value;  // name: in lower case
};

// "word; name=value; name="value"". False: it is something else, or a name stands there twice.
bool parse_parameters(std::string_view text, std::string& word, std::vector<Parameter>& to) {
  const size_t first = std::min(text.find(';'), text.size());
  word = lower(without_blanks(text.substr(0, first)));
  text.remove_prefix(first);
  while (!text.empty()) {
    text = without_blanks(text.substr(1));  // behind the semicolon
    if (text.empty()) return true;
    const size_t equals = text.find('=');
    if (equals == text.npos || !is_form_word(text.substr(0, equals))) return false;
    Parameter p{lower(text.substr(0, equals)), {}};
    text.remove_prefix(equals + 1);
    if (text.starts_with('"')) {
      size_t at = 1;
      for (; at < text.size() && text[at] != '"'; at++) {
        // Browsers escape nothing by it, and a name of a file may end with it.
        if (text[at] == '\\' && at + 1 < text.size() && (text[at + 1] == '"' || text[at + 1] == '\\')) at++;
        p.value += text[at];
      }
      if (at >= text.size()) return false;
      text = without_blanks(text.substr(at + 1));
    } else {
      const size_t end = std::min(text.find(';'), text.size());
      p.value = without_blanks(text.substr(0, end));
      if (!is_form_word(p.value)) return false;
      text.remove_prefix(end);
    }
    if (!text.empty() && text[0] != ';') return false;
    if (std::any_of(to.begin(), to.end(), [&](const Parameter& q) { return q.name == p.name; })) return false;
    to.push_back(std::move(p));
  }
  return true;
}

const std::string* parameter_named(const std::vector<Parameter>& all, std::string_view name) {
  for (const Parameter& p : all)
    if (p.name == name) return &p.value;
  return nullptr;
}

bool has_control_character(std::string_view s) {
  return std::any_of(s.begin(), s.end(), [](char c) { return uint8_t(c) < 0x20 || c == 0x7f; });
}

// The headers of a part, each with its line's end. Returns why they are refused.
std::string parse_part_head(std::string_view head, FormPart& to) {
  bool named = false;
  while (!head.empty()) {
    const size_t end = head.find("\r\n");
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end + 2);
    const size_t colon = line.find(':');
    if (has_control_character(line) || colon == line.npos || !is_form_word(line.substr(0, colon)))
      return "a part has a malformed header";
    const std::string name = lower(line.substr(0, colon));
    std::string word;
    std::vector<Parameter> parameters;
    if (name == "content-transfer-encoding") {
      word = lower(without_blanks(line.substr(colon + 1)));
      if (word != "binary" && word != "8bit" && word != "7bit") return "a part is encoded; send plain bytes";
    }
    if (name != "content-disposition") continue;  // the type of a file is decided by its bytes
    if (named || !parse_parameters(line.substr(colon + 1), word, parameters) || word != "form-data")
      return "a part has no single header Content-Disposition: form-data; name=\"...\"";
    const std::string* of = parameter_named(parameters, "name");
    if (!of || of->empty() || of->size() > kMostName)
      return format("a part has no name of at most {} bytes", kMostName);
    to.name = *of, named = true;
    if (const std::string* file = parameter_named(parameters, "filename")) to.file = *file;
    else if (parameter_named(parameters, "filename*")) to.file = "";
  }
  return named ? "" : "a part has no header Content-Disposition: form-data; name=\"...\"";
}

}  // namespace

std::string form_boundary(std::string_view content_type) {
  std::string word;
  std::vector<Parameter> parameters;
  if (has_control_character(content_type) || !parse_parameters(content_type, word, parameters) ||
      word != "multipart/form-data")
    return "";
  const std::string* boundary = parameter_named(parameters, "boundary");
  const auto allowed = [](char c) {
    return std::isalnum(uint8_t(c)) || std::string_view("'()+_,-./:=? ").find(c) != std::string_view::npos;
  };
  if (!boundary || boundary->empty() || boundary->size() > kMostBoundary || boundary->back() == ' ' ||
      !std::all_of(boundary->begin(), boundary->end(), allowed))
    return "";
  return *boundary;
}

std::string parse_form(std::string_view body, const std::string& boundary, std::vector<FormPart>& to) {
  const std::string delimiter = "\r\n--" + boundary;
  if (!body.starts_with(std::string_view(delimiter).substr(2)))
    return "the body does not begin with the boundary of its Content-Type";
  body.remove_prefix(delimiter.size() - 2);
  while (!body.starts_with("--")) {
    if (!body.starts_with("\r\n")) return "a boundary does not end its line";
    if (to.size() == kMostFormParts) return format("the form has more than {} parts", kMostFormParts);
    body.remove_prefix(2);
    const std::string_view start = body.substr(0, kMostPartHead);
    const size_t head = start.starts_with("\r\n") ? 0 : start.find("\r\n\r\n");
    if (head == body.npos) return format("the headers of a part have no end within {} bytes", kMostPartHead);
    FormPart part;
    if (std::string why = parse_part_head(body.substr(0, head ? head + 2 : 0), part); !why.empty())
      return why;
    body.remove_prefix(head ? head + 4 : 2);
    const size_t end = body.find(delimiter);
    if (end == body.npos) return "the last part has no end: the boundary behind it is missing";
    part.body = body.substr(0, end);
    body.remove_prefix(end + delimiter.size());
    to.push_back(std::move(part));
  }
  body.remove_prefix(2);
  if (!body.empty() && body != "\r\n") return "there are bytes behind the form";
  return "";
}

}  // namespace gimbal::http
