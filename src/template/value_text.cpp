// Values as text: Python's str() and repr(), and JSON as its json module writes it.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "template/value.h"

namespace gimbal::tmpl {

// The shortest digits that read back as the same number, laid out as Python does: with an exponent below
// 1e-4 and from 1e16 on.
std::string float_text(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  const std::string shortest = format("{}", d);
  std::string digits;
  int exponent = 0, point = -1;
  for (size_t i = 0; i < shortest.size(); i++) {
    const char c = shortest[i];
    if (c == '.') point = int(digits.size());
    else if (c >= '0' && c <= '9') digits += c;
    else if (c == 'e') {
      exponent = std::atoi(shortest.c_str() + i + 1);
      break;
    }
  }
  if (point < 0) point = int(digits.size());
  point += exponent;  // the digits are 0.DIGITS times ten to this
  const size_t leading = std::min(digits.find_first_not_of('0'), digits.size());
  digits.erase(0, leading);
  point -= int(leading);
  while (!digits.empty() && digits.back() == '0') digits.pop_back();
  std::string out = std::signbit(d) ? "-" : "";
  if (digits.empty()) return out + "0.0";
  const int e = point - 1;
  if (e < -4 || e >= 16) {
    out += digits[0];
    if (digits.size() > 1) (out += '.') += digits.substr(1);
    return out + format("e{}{:02}", e < 0 ? '-' : '+', std::abs(e));
  }
  if (point <= 0) return out + "0." + std::string(size_t(-point), '0') + digits;
  if (point >= int(digits.size()))
    return out + digits + std::string(size_t(point) - digits.size(), '0') + ".0";
  return out + digits.substr(0, size_t(point)) + "." + digits.substr(size_t(point));
}

namespace {

std::string quoted_str(std::string_view s) {
  const char quote = s.find('\'') != s.npos && s.find('"') == s.npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t at = 0; at < s.size(); at = next_code(s, at)) {
    const uint32_t c = code_at(s, at);
    if (c == uint32_t(quote) || c == '\\') (out += '\\') += char(c);
    else if (c == '\n') out += "\\n";
    else if (c == '\r') out += "\\r";
    else if (c == '\t') out += "\\t";
    else if (is_printable(c)) append_code(out, c);
    else if (c < 0x100) out += format("\\x{:02x}", c);
    else if (c < 0x10000) out += format("\\u{:04x}", c);
    else out += format("\\U{:08x}", c);
  }
  return out += quote;
}

std::string list_repr(const List& l) {
  if (l.kind == ListKind::Generator) return "<generator object>";
  if (l.kind == ListKind::Range) {
    return l.range[2] == 1 ? format("range({}, {})", l.range[0], l.range[1])
                           : format("range({}, {}, {})", l.range[0], l.range[1], l.range[2]);
  }
  std::string out;
  for (const Value& v : l.items) (out += out.empty() ? "" : ", ") += repr(v);
  switch (l.kind) {
    case ListKind::Tuple:
    case ListKind::Group: return "(" + out + (l.items.size() == 1 ? ",)" : ")");
    case ListKind::Keys: return "dict_keys([" + out + "])";
    case ListKind::Values: return "dict_values([" + out + "])";
    case ListKind::Items: return "dict_items([" + out + "])";
    default: return "[" + out + "]";
  }
}

std::string dict_repr(const Dict& d) {
  std::string out = "{";
  for (const auto& [k, v] : d.items) {
    if (out.size() > 1) out += ", ";
    (out += repr(k)) += ": ";
    out += repr(v);
  }
  return out += '}';
}

}  // namespace

std::string repr(const Value& v) {
  switch (v.kind) {
    case Kind::Absent: return "";
    case Kind::Undefined: return "Undefined";
    case Kind::None: return "None";
    case Kind::Bool: return v.flag ? "True" : "False";
    case Kind::Int: return format("{}", v.integer);
    case Kind::Float: return float_text(v.number);
    case Kind::Str: return v.text->markup ? "Markup(" + quoted_str(v.str()) + ")" : quoted_str(v.str());
    case Kind::List: return list_repr(*v.list);
    case Kind::Dict: return dict_repr(*v.dict);
    case Kind::Object: break;
  }
  const Object& o = *v.object;
  if (o.type == Object::Namespace) {  // may hold itself
    Dict shown = o.fields;
    for (auto& field : shown.items)
      if (field.second.kind >= Kind::List) field.second = Value(Kind::Undefined);
    return "<Namespace " + dict_repr(shown) + ">";
  }
  if (o.type == Object::Macro) return format("<Macro {}>", quoted_str(o.name));
  if (o.type == Object::Loop) return format("<LoopContext {}/{}>", o.index + 1, o.self.list->items.size());
  return format("<{} {}>", type_name(v), o.name);
}

bool has_foreign(const Value& v) {
  if (v.is(Kind::Str)) return !v.text->foreign.empty();
  if (v.is(Kind::List)) return std::any_of(v.list->items.begin(), v.list->items.end(), has_foreign);
  if (v.is(Kind::Object)) {
    for (const auto& field : v.object->fields.items)
      if (field.second.is(Kind::Str) && has_foreign(field.second)) return true;
    return false;
  }
  if (!v.is(Kind::Dict)) return false;
  for (const auto& [key, value] : v.dict->items)
    if (has_foreign(key) || has_foreign(value)) return true;
  return false;
}

Text to_text(const Value& v) {
  if (v.is(Kind::Str)) return *v.text;
  Text out;
  if (!v.is(Kind::Undefined) && !v.absent()) out.append(repr(v), has_foreign(v));
  return out;
}

namespace {

void json_str(std::string_view s, bool ascii, std::string& out) {
  out += '"';
  for (size_t at = 0; at < s.size(); at = next_code(s, at)) {
    const uint32_t c = code_at(s, at);
    if (c == '"' || c == '\\') (out += '\\') += char(c);
    else if (c == '\n') out += "\\n";
    else if (c == '\r') out += "\\r";
    else if (c == '\t') out += "\\t";
    else if (c == '\b') out += "\\b";
    else if (c == '\f') out += "\\f";
    else if (c < 0x20 || (ascii && c >= 0x7f && c < 0x10000)) out += format("\\u{:04x}", c);
    else if (ascii && c >= 0x10000)
      out += format("\\u{:04x}\\u{:04x}", 0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
    else append_code(out, c);
  }
  out += '"';
}

class JsonWriter {
 public:
  JsonWriter(const JsonStyle& style, std::string& out, std::string& bad)
      : style_(style), out_(out), bad_(bad) {}

  bool write(const Value& v) {
    switch (v.kind) {
      case Kind::None: return out_ += "null", true;
      case Kind::Bool: return out_ += v.flag ? "true" : "false", true;
      case Kind::Int: return out_ += repr(v), true;
      case Kind::Float: return number(v.number), true;
      case Kind::Str: return json_str(v.str(), style_.ascii, out_), true;
      case Kind::Dict: return object(*v.dict);
      case Kind::List:
        if (v.list->kind <= ListKind::Tuple || v.list->kind == ListKind::Group) return array(v.list->items);
        [[fallthrough]];
      default: return bad_ = type_name(v), false;
    }
  }

 private:
  void number(double d) {
    const std::string text = float_text(d);
    out_ += text == "nan" ? "NaN" : text == "inf" ? "Infinity" : text == "-inf" ? "-Infinity" : text;
  }
  void line() {
    if (style_.indent >= 0) (out_ += '\n').append(size_t(style_.indent) * depth_, ' ');
  }
  bool array(const std::vector<Value>& items) {
    if (items.empty()) return out_ += "[]", true;
    out_ += '[';
    depth_++;
    for (size_t i = 0; i < items.size(); i++) {
      if (i) out_ += style_.item;
      line();
      if (!write(items[i])) return false;
    }
    depth_--;
    line();
    out_ += ']';
    return true;
  }
  bool object(const Dict& d) {
    if (d.items.empty()) return out_ += "{}", true;
    auto items = d.items;
    if (style_.sort_keys)
      std::stable_sort(items.begin(), items.end(), [](const auto& a, const auto& b) {
        int order = 0;
        return compare(a.first, b.first, order) && order < 0;
      });
    out_ += '{';
    depth_++;
    for (size_t i = 0; i < items.size(); i++) {
      if (i) out_ += style_.item;
      line();
      const Value& key = items[i].first;
      if (key.is(Kind::Str)) json_str(key.str(), style_.ascii, out_);
      else if (key.is(Kind::List) || key.is(Kind::Object)) return bad_ = type_name(key), false;
      else {
        out_ += '"';
        if (!write(key)) return false;
        out_ += '"';
      }
      out_ += style_.key;
      if (!write(items[i].second)) return false;
    }
    depth_--;
    line();
    out_ += '}';
    return true;
  }

  const JsonStyle& style_;
  std::string& out_;
  std::string& bad_;
  size_t depth_ = 0;
};

}  // namespace

bool to_json(const Value& v, const JsonStyle& style, std::string& out, std::string& bad) {
  return JsonWriter(style, out, bad).write(v);
}

}  // namespace gimbal::tmpl
