// Expressions, by Jinja's order of precedence: each function reads one level and calls the next tighter one.
#include <charconv>
#include <cstdlib>

#include "base/format.h"
#include "base/text.h"
#include "template/parser.h"

namespace gimbal::tmpl {

Expression* Parser::make(Expression::Kind kind, int line, std::vector<const Expression*> items) {
  Expression& e = tree_.expressions.emplace_back(Expression{kind, line});
  e.items = std::move(items);
  return &e;
}

// part, part SIGN part, part SIGN part SIGN part ...
const Expression* Parser::chain(Expression::Kind kind, std::string_view sign,
                                const Expression* (Parser::*part)()) {
  const int line = now().line;
  const Expression* first = (this->*part)();
  const auto more = [&] { return now().is(sign) || now().names(sign); };
  if (!more()) return first;
  Expression* all = make(kind, line, {first});
  while (more()) {
    take();
    all->items.push_back((this->*part)());
  }
  return all;
}

const Expression* Parser::expression(Conditionals conditionals) {
  Deeper deeper(*this);
  const Expression* e = either();
  while (conditionals == Conditionals::Yes && now().names("if")) {
    const int line = take().line;
    const Expression* test = either();
    e = make(Expression::Conditional, line, {e, test, take_word("else") ? expression() : nullptr});
  }
  return e;
}

const Expression* Parser::either() { return chain(Expression::Or, "or", &Parser::both); }
const Expression* Parser::both() { return chain(Expression::And, "and", &Parser::negation); }

const Expression* Parser::negation() {
  Deeper deeper(*this);
  if (!now().names("not") || error_) return comparison();
  const int line = take().line;
  Expression* e = make(Expression::Unary, line, {negation()});
  e->signs = {"not"};
  return e;
}

const Expression* Parser::comparison() {
  const Expression* first = sum();
  Expression* all = nullptr;
  for (;;) {
    std::string_view sign;
    for (std::string_view s : {"==", "!=", "<", "<=", ">", ">="})
      if (now().is(s)) sign = s;
    if (now().names("in")) sign = "in";
    if (now().names("not") && next().names("in")) sign = "not in";
    if (sign.empty()) return all ? all : first;
    if (!all) all = make(Expression::Compare, now().line, {first});
    take();
    if (sign == "not in") take();
    all->signs.push_back(sign);
    all->items.push_back(sum());
  }
}

namespace {

Expression* joined(Expression* all, std::string_view sign, const Expression* right) {
  all->signs.push_back(sign);
  all->items.push_back(right);
  return all;
}

}  // namespace

const Expression* Parser::sum() {
  const Expression* first = concatenation();
  Expression* all = nullptr;
  while (now().is("+") || now().is("-")) {
    const Lexeme sign = take();
    if (!all) all = make(Expression::Binary, sign.line, {first});
    joined(all, sign.text, concatenation());
  }
  return all ? all : first;
}

const Expression* Parser::concatenation() { return chain(Expression::Concat, "~", &Parser::product); }

const Expression* Parser::product() {
  const Expression* first = power();
  Expression* all = nullptr;
  while (now().is("*") || now().is("/") || now().is("//") || now().is("%")) {
    const Lexeme sign = take();
    if (!all) all = make(Expression::Binary, sign.line, {first});
    joined(all, sign.text, power());
  }
  return all ? all : first;
}

const Expression* Parser::power() {
  const Expression* first = unary();
  Expression* all = nullptr;
  while (now().is("**")) {
    const Lexeme sign = take();
    if (!all) all = make(Expression::Binary, sign.line, {first});
    joined(all, sign.text, unary());
  }
  return all ? all : first;
}

const Expression* Parser::unary(bool filters) {
  Deeper deeper(*this);
  const Expression* e;
  if (now().is("-") || now().is("+")) {
    const Lexeme sign = take();
    Expression* u = make(Expression::Unary, sign.line, {unary(false)});
    u->signs = {sign.text};
    e = u;
  } else {
    e = primary();
  }
  e = postfix(e);
  return filters ? filters_and_tests(e) : e;
}

const Expression* Parser::primary() {
  const Lexeme first = now();
  switch (first.kind) {
    case Lexeme::Name: {
      take();
      Expression* e = make(Expression::Constant, first.line);
      if (first.text == "true" || first.text == "True") e->value = Value::of(true);
      else if (first.text == "false" || first.text == "False") e->value = Value::of(false);
      else if (first.text == "none" || first.text == "None") e->value = Value(Kind::None);
      else {
        e->kind = Expression::Name;
        e->name = first.text;
        for (Statement* m : macros_) {
          m->catches_varargs |= e->name == "varargs";
          m->catches_kwargs |= e->name == "kwargs";
          m->knows_caller |= e->name == "caller";
        }
      }
      return e;
    }
    case Lexeme::Str: return string();
    case Lexeme::Integer:
    case Lexeme::Float: return number(take());
    default: break;
  }
  if (take("(")) {
    const Expression* e = tuple(Conditionals::Yes, true);
    expect(")");
    return e;
  }
  if (first.is("[")) return list();
  if (first.is("{")) return dict();
  fail("unexpected " + seen());
  return make(Expression::Constant, first.line);
}

const Expression* Parser::number(const Lexeme& token) {
  Expression* e = make(Expression::Constant, token.line);
  std::string digits;
  for (char c : token.text)
    if (c != '_') digits += c;
  if (token.kind == Lexeme::Float) {
    e->value = Value::of(std::strtod(digits.c_str(), nullptr));
    return e;
  }
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0' && digits[1] > '9') {
    base = (digits[1] | 32) == 'x' ? 16 : (digits[1] | 32) == 'o' ? 8 : 2;
    digits.erase(0, 2);
  }
  int64_t v = 0;
  const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), v, base);
  if (bad != std::errc() || end != digits.data() + digits.size())
    fail(format("{} is no whole number of 64 bits", quoted(token.text)));
  e->value = Value::of(v);
  return e;
}

namespace {

// Decodes Python's string escapes. Returns an error text, or null.
const char* unescape(std::string_view s, std::string& out) {
  for (size_t i = 0; i < s.size(); i++) {
    if (s[i] != '\\' || i + 1 == s.size()) {
      out += s[i];
      continue;
    }
    const char c = s[++i];
    static constexpr std::string_view kFrom = "ntr\\'\"abfv", kTo = "\n\t\r\\'\"\a\b\f\v";
    if (const size_t known = kFrom.find(c); known != kFrom.npos) {
      out += kTo[known];
      continue;
    }
    if (c == '\n') continue;
    size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    int base = 16;
    if (c >= '0' && c <= '7') {
      for (digits = 1; digits < 3 && i + digits < s.size() && s[i + digits] >= '0' && s[i + digits] <= '7';)
        digits++;
      base = 8;
      i--;
    } else if (c == 'N') {
      return "\\N{...} in a string is not supported; use \\u";
    } else if (!digits) {
      (out += '\\') += c;
      continue;
    }
    uint32_t code = 0;
    const std::string_view text = s.substr(i + 1, digits);
    const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), code, base);
    if (text.size() != digits || bad != std::errc() || end != text.data() + digits || code > 0x10ffff)
      return "a string has a broken \\x, \\u or \\U";
    if (code >= 0xd800 && code < 0xe000) return "a string has half of a surrogate pair";
    append_code(out, code);
    i += digits;
  }
  return nullptr;
}

}  // namespace

const Expression* Parser::string() {
  Expression* e = make(Expression::Constant, now().line);
  std::string out;
  while (now().kind == Lexeme::Str) {  // neighbours are one string
    const Lexeme part = take();
    if (const char* wrong = unescape(part.text.substr(1, part.text.size() - 2), out)) fail(wrong);
  }
  e->value = tree_.constants.str(out);
  return e;
}

const Expression* Parser::list() {
  Expression* e = make(Expression::List, take().line);
  while (!now().is("]") && !error_) {
    if (!e->items.empty()) expect(",");
    if (now().is("]")) break;
    e->items.push_back(expression());
  }
  expect("]");
  return e;
}

const Expression* Parser::dict() {
  Expression* e = make(Expression::Dict, take().line);
  while (!now().is("}") && !error_) {
    if (!e->items.empty()) expect(",");
    if (now().is("}")) break;
    e->items.push_back(expression());
    expect(":");
    e->items.push_back(expression());
  }
  expect("}");
  return e;
}

bool Parser::at_tuple_end(std::string_view end) const {
  return now().kind == Lexeme::PrintEnd || now().kind == Lexeme::BlockEnd || now().kind == Lexeme::End ||
         now().is(")") || (!end.empty() && now().names(end));
}

const Expression* Parser::tuple(Conditionals conditionals, bool in_parentheses, std::string_view end) {
  std::vector<const Expression*> items;
  const int line = now().line;
  bool comma = false;
  while (!at_tuple_end(end)) {
    items.push_back(expression(conditionals));
    if (!take(",")) break;
    comma = true;
  }
  if (!comma && items.size() == 1) return items[0];
  if (items.empty() && !in_parentheses) fail("expected an expression, found " + seen());
  return make(Expression::Tuple, line, std::move(items));
}

const Expression* Parser::postfix(const Expression* e) {
  for (int n = 0;; n++) {
    if (n > kMaxNesting) fail("this is nested too deeply");
    if (now().is(".") || now().is("[")) e = subscript(e);
    else if (now().is("(")) {
      Expression* call = make(Expression::Call, now().line, {e});
      call->arguments = arguments();
      e = call;
    } else {
      return e;
    }
  }
}

const Expression* Parser::subscript(const Expression* of) {
  const int line = now().line;
  if (take(".")) {
    if (now().kind == Lexeme::Integer) return make(Expression::Item, line, {of, number(take())});
    Expression* e = make(Expression::Attribute, line, {of});
    e->name = expect_name();
    return e;
  }
  expect("[");
  std::vector<const Expression*> parts;
  const auto at_end = [&] { return now().is("]") || now().is(",") || error_; };
  const Expression* index = nullptr;
  do {
    const Expression *begin = nullptr, *stop = nullptr, *step = nullptr;
    if (!now().is(":")) begin = expression();
    if (now().is(":")) {
      take();
      if (!now().is(":") && !at_end()) stop = expression();
      if (take(":") && !at_end()) step = expression();
      if (!parts.empty() || now().is(",")) fail("a slice among several indices is not supported");
      expect("]");
      return make(Expression::Slice, line, {of, begin, stop, step});
    }
    parts.push_back(index = begin);
  } while (take(",") && !now().is("]"));
  expect("]");
  if (parts.size() > 1) index = make(Expression::Tuple, line, std::move(parts));
  return make(Expression::Item, line, {of, index});
}

const Expression* Parser::filters_and_tests(const Expression* e) {
  for (int n = 0;; n++) {
    if (n > kMaxNesting) fail("this is nested too deeply");
    if (take("|")) e = filter(e);
    else if (take_word("is")) e = test(e);
    else if (now().is("(")) {
      Expression* call = make(Expression::Call, now().line, {e});
      call->arguments = arguments();
      e = call;
    } else {
      return e;
    }
  }
}

const Expression* Parser::filter(const Expression* of) {
  Expression* e = make(Expression::Filter, now().line, {of});
  e->name = expect_name();
  if (now().is("(")) e->arguments = arguments();
  return e;
}

const Expression* Parser::test(const Expression* of) {
  const int line = now().line;
  const bool negated = take_word("not");
  Expression* e = make(Expression::Test, line, {of});
  e->name = expect_name();
  const Lexeme& n = now();
  if (n.is("(")) e->arguments = arguments();
  else if (n.is("[") || n.is("{") || n.kind == Lexeme::Str || n.kind == Lexeme::Integer ||
           n.kind == Lexeme::Float ||
           (n.kind == Lexeme::Name && n.text != "else" && n.text != "or" && n.text != "and")) {
    if (n.names("is")) fail("two tests with 'is' in a row");
    e->arguments.push_back({Argument::Positional, {}, postfix(primary())});
  }
  if (!negated) return e;
  Expression* no = make(Expression::Unary, line, {e});
  no->signs = {"not"};
  return no;
}

std::vector<Argument> Parser::arguments() {
  std::vector<Argument> out;
  expect("(");
  Argument::Kind last = Argument::Positional;
  while (!now().is(")") && !error_) {
    if (!out.empty()) expect(",");
    if (now().is(")")) break;
    Argument a{Argument::Positional, {}, nullptr};
    if (take("*")) a.kind = Argument::Items;
    else if (take("**")) a.kind = Argument::Entries;
    else if (now().kind == Lexeme::Name && next().is("=")) {
      a.kind = Argument::Named;
      a.name = take().text;
      take();
    }
    if (a.kind < last && !(a.kind == Argument::Named && last == Argument::Items))
      fail("arguments must come in this order: positional, by name, *, **");
    last = a.kind;
    a.value = expression();
    out.push_back(a);
  }
  expect(")");
  return out;
}

}  // namespace gimbal::tmpl
