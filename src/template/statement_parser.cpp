// Parses statements: the contents of {% %}, and the bodies between.
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "template/parser.h"

namespace gimbal::tmpl {

const char* construct(Statement::Kind k) {
  static constexpr const char* kNames[] = {"text",          "{{ }}",        "{% if %}",    "{% for %}",
                                           "{% set %}",     "{% set %}",    "{% macro %}", "{% call %}",
                                           "{% with %}",    "{% filter %}", "{% block %}", "{% break %}",
                                           "{% continue %}"};
  return kNames[int(k)];
}

Lexeme Parser::take() {
  const Lexeme l = now();
  if (at_ + 1 < lexemes_.size()) at_++;
  return l;
}

bool Parser::take(std::string_view sign) { return now().is(sign) && (take(), true); }
bool Parser::take_word(std::string_view word) { return now().names(word) && (take(), true); }

void Parser::expect(std::string_view sign) {
  if (!take(sign)) fail(format("expected '{}', found {}", sign, seen()));
}

std::string_view Parser::expect_name() {
  if (now().kind == Lexeme::Name) return take().text;
  fail("expected a name, found " + seen());
  return {};
}

void Parser::fail(std::string_view what, Code code) {
  if (!error_) error_ = template_error(code, now().line, what);
}

std::string Parser::seen() const {
  switch (now().kind) {
    case Lexeme::End: return "the end of the template";
    case Lexeme::Data: return "text";
    default: return quoted(now().text);
  }
}

std::vector<const Statement*> Parser::whole() { return body({}); }

// Statements up to a tag that begins with one of `ends`, whose word is then now(). Without ends, to the end
// of the template.
std::vector<const Statement*> Parser::body(std::initializer_list<std::string_view> ends) {
  Deeper deeper(*this);
  std::vector<const Statement*> out;
  for (;;) {
    const Lexeme l = now();
    if (error_) return out;
    if (l.kind == Lexeme::End) {
      if (ends.size()) fail(format("expected {{% {} %}}, found the end of the template", *(ends.end() - 1)));
      return out;
    }
    take();
    if (l.kind == Lexeme::Data) {
      out.push_back(&tree_.statements.emplace_back(Statement{Statement::Data, l.line, l.text}));
    } else if (l.kind == Lexeme::PrintBegin) {
      Statement& s = tree_.statements.emplace_back(Statement{Statement::Print, l.line});
      s.value = tuple();
      out.push_back(&s);
      if (now().kind != Lexeme::PrintEnd) fail(format("expected '}}}}', found {}", seen()));
      take();
    } else {
      for (std::string_view end : ends)
        if (now().names(end)) return out;
      out.push_back(statement());
      if (now().kind != Lexeme::BlockEnd) fail(format("expected '%}}', found {}", seen()));
      take();
    }
  }
}

void Parser::last_branch(Statement* s, std::string_view end) {
  if (now().kind != Lexeme::BlockEnd) fail(format("expected '%}}', found {}", seen()));
  take();
  s->branches.push_back({nullptr, body({end})});
  take();
}

const Statement* Parser::statement() {
  Statement* s = &tree_.statements.emplace_back(Statement{Statement::Print, now().line});
  const std::string_view tag = expect_name();
  if (tag == "if") return if_block(s);
  if (tag == "for") return for_block(s);
  if (tag == "set") return set(s);
  if (tag == "macro") return macro(s);
  if (tag == "call") return call_block(s);
  if (tag == "with") return with(s);
  if (tag == "print") {
    s->value = tuple();
  } else if (tag == "break" || tag == "continue") {
    s->kind = tag == "break" ? Statement::Break : Statement::Continue;
    if (!loops_) fail(format("{{% {} %}} outside of a loop", tag));
  } else if (tag == "filter") {
    s->kind = Statement::FilterBlock;
    s->value = filter(nullptr);
    while (take("|")) s->value = filter(s->value);
    last_branch(s, "endfilter");
  } else if (tag == "generation") {
    s->kind = Statement::Scope;
    last_branch(s, "endgeneration");
  } else if (tag == "autoescape") {
    s->kind = Statement::Scope;
    s->value = expression();
    if (s->value->kind != Expression::Constant || truth(s->value->value))
      fail("{% autoescape %} with anything but false is not supported: use the filter e");
    last_branch(s, "endautoescape");
  } else if (tag == "block") {
    s->kind = Statement::Scope;
    const std::string_view name = expect_name();
    while (take_word("scoped") || take_word("required")) {}
    last_branch(s, "endblock");
    take_word(name);
  } else if (tag == "include" || tag == "import" || tag == "from" || tag == "extends") {
    fail(format("{{% {} %}} would read another file, which a chat template may not do", tag),
         Code::Unsupported);
  } else {
    fail(format("there is no tag {}", quoted(tag)));
  }
  return s;
}

const Statement* Parser::if_block(Statement* s) {
  s->kind = Statement::If;
  for (;;) {
    const Expression* test = tuple(Conditionals::No);
    if (now().kind != Lexeme::BlockEnd) fail(format("expected '%}}', found {}", seen()));
    take();
    s->branches.push_back({test, body({"elif", "else", "endif"})});
    if (take_word("elif")) continue;
    if (take_word("else")) last_branch(s, "endif");
    else take();
    return s;
  }
}

const Statement* Parser::for_block(Statement* s) {
  s->kind = Statement::For;
  s->target = target();
  if (!take_word("in")) fail("expected 'in', found " + seen());
  s->value = tuple(Conditionals::No, false, "recursive");
  if (take_word("if")) s->test = expression();
  s->recursive = take_word("recursive");
  if (now().kind != Lexeme::BlockEnd) fail(format("expected '%}}', found {}", seen()));
  take();
  loops_++;
  s->branches.push_back({nullptr, body({"else", "endfor"})});
  loops_--;
  if (take_word("else")) last_branch(s, "endfor");
  else take();
  return s;
}

// A name, a field of a namespace, or several of these.
const Expression* Parser::target() {
  Deeper deeper(*this);
  std::vector<const Expression*> parts;
  const int line = now().line;
  bool comma = false;
  do {
    if (!parts.empty() && (now().names("in") || now().is("=") || now().is(")"))) break;
    if (take("(")) {
      parts.push_back(target());
      expect(")");
    } else {
      Expression* e = make(Expression::Name, now().line);
      e->name = expect_name();
      for (std::string_view constant : {"true", "false", "none", "True", "False", "None"})
        if (e->name == constant) fail(format("cannot assign to {}", constant));
      if (take(".")) {
        Expression* field = make(Expression::Attribute, e->line, {e});
        field->name = expect_name();
        e = field;
      }
      parts.push_back(e);
    }
  } while (take(",") && (comma = true));
  return comma ? make(Expression::Tuple, line, std::move(parts)) : parts[0];
}

const Statement* Parser::set(Statement* s) {
  s->kind = Statement::Set;
  s->target = target();
  if (take("=")) {
    s->value = tuple();
    return s;
  }
  s->kind = Statement::SetBlock;
  while (take("|")) s->value = filter(s->value);
  last_branch(s, "endset");
  return s;
}

void Parser::parameters(Statement* s) {
  expect("(");
  while (!now().is(")") && !error_) {
    if (!s->parameters.empty()) expect(",");
    if (now().is(")")) break;
    Parameter p{expect_name(), nullptr};
    if (take("=")) p.otherwise = expression();
    else if (!s->parameters.empty() && s->parameters.back().otherwise)
      fail("a parameter without a default after one with a default");
    s->parameters.push_back(p);
  }
  expect(")");
}

const Statement* Parser::macro(Statement* s) {
  s->kind = Statement::Macro;
  s->text = expect_name();
  parameters(s);
  macros_.push_back(s);
  const int loops = std::exchange(loops_, 0);  // {% break %} leaves no macro
  last_branch(s, "endmacro");
  loops_ = loops;
  macros_.pop_back();
  return s;
}

const Statement* Parser::call_block(Statement* s) {
  s->kind = Statement::CallBlock;
  s->text = "caller";
  if (now().is("(")) parameters(s);
  s->value = expression();
  if (s->value->kind != Expression::Call) fail("{% call %} needs a call");
  macros_.push_back(s);
  const int loops = std::exchange(loops_, 0);
  last_branch(s, "endcall");
  loops_ = loops;
  macros_.pop_back();
  return s;
}

const Statement* Parser::with(Statement* s) {
  s->kind = Statement::With;
  while (now().kind == Lexeme::Name) {
    if (!s->parameters.empty()) break;
    do {
      Parameter p{expect_name(), nullptr};
      expect("=");
      p.otherwise = expression();
      s->parameters.push_back(p);
    } while (take(","));
  }
  last_branch(s, "endwith");
  return s;
}

Result<std::unique_ptr<const Tree>> parse(std::string_view source) {
  for (size_t at = 0; at < source.size();) {
    const Utf8Step c = utf8_step(source, at);
    if (c.kind != Utf8Step::Whole)
      return Error{Code::Malformed, format("chat template, byte {}: this is not UTF-8", at), ""};
    at += c.bytes;
  }
  auto tree = std::make_unique<Tree>();
  tree->source = normal_source(source);
  auto lexemes = lex(tree->source);
  if (!lexemes) return lexemes.error();
  Parser parser(*tree, std::move(*lexemes));
  tree->body = parser.whole();
  if (parser.error()) return *parser.error();
  return std::unique_ptr<const Tree>(std::move(tree));
}

}  // namespace gimbal::tmpl
