// Shared by the parsers of expressions and statements: the lexemes and one sticky error. After an error,
// every lexeme reads as the text's end, so all loops end.
#pragma once
#include <optional>

#include "template/lexer.h"
#include "template/syntax.h"

namespace gimbal::tmpl {

class Parser {
 public:
  Parser(Tree& tree, std::vector<Lexeme> lexemes) : tree_(tree), lexemes_(std::move(lexemes)) {}
  std::vector<const Statement*> whole();
  const std::optional<Error>& error() const { return error_; }

 private:
  // ---- lexemes
  const Lexeme& now() const { return lexemes_[error_ ? lexemes_.size() - 1 : at_]; }
  const Lexeme& next() const {
    return lexemes_[error_ || at_ + 1 >= lexemes_.size() ? lexemes_.size() - 1 : at_ + 1];
  }
  Lexeme take();
  bool take(std::string_view sign);  // if present
  bool take_word(std::string_view word);
  void expect(std::string_view sign);
  std::string_view expect_name();
  void fail(std::string_view what, Code code = Code::Malformed);
  std::string seen() const;  // describes now(), for an error

  // ---- expressions (expression_parser.cpp)
  enum class Conditionals : uint8_t { No, Yes };
  const Expression* expression(Conditionals = Conditionals::Yes);
  const Expression* either();
  const Expression* both();
  const Expression* negation();
  const Expression* comparison();
  const Expression* sum();
  const Expression* concatenation();
  const Expression* product();
  const Expression* power();
  const Expression* unary(bool filters = true);
  const Expression* primary();
  const Expression* postfix(const Expression*);
  const Expression* subscript(const Expression*);
  const Expression* filters_and_tests(const Expression*);
  const Expression* filter(const Expression* of);  // after the "|"
  const Expression* test(const Expression* of);    // after the "is"
  const Expression* list();
  const Expression* dict();
  // One expression, or several separated by commas. `end`: a word that may follow a trailing comma.
  const Expression* tuple(Conditionals = Conditionals::Yes, bool in_parentheses = false,
                          std::string_view end = {});
  std::vector<Argument> arguments();
  const Expression* string();
  const Expression* number(const Lexeme&);
  bool at_tuple_end(std::string_view end) const;
  Expression* make(Expression::Kind, int line, std::vector<const Expression*> items = {});
  const Expression* chain(Expression::Kind, std::string_view sign, const Expression* (Parser::*part)());

  // ---- statements (statement_parser.cpp)
  std::vector<const Statement*> body(std::initializer_list<std::string_view> ends);
  const Statement* statement();
  const Statement* if_block(Statement*);
  const Statement* for_block(Statement*);
  const Statement* set(Statement*);
  const Statement* macro(Statement*);
  const Statement* call_block(Statement*);
  const Statement* with(Statement*);
  const Expression* target();
  void parameters(Statement*);
  // Parses the body up to {% end %}, including the end tag.
  void last_branch(Statement*, std::string_view end);

  // Bounds the nesting, which the evaluator follows by recursion.
  struct Deeper {
    explicit Deeper(Parser& p) : p(p) {
      if (++p.depth_ > kMaxNesting) p.fail("this is nested too deeply");
    }
    ~Deeper() { p.depth_--; }
    Parser& p;
  };
  static constexpr int kMaxNesting = 200;

  Tree& tree_;
  std::vector<Lexeme> lexemes_;
  size_t at_ = 0;
  int depth_ = 0, loops_ = 0;
  std::vector<Statement*> macros_;  // enclosing the current position
  std::optional<Error> error_;
};

}  // namespace gimbal::tmpl
