// A template as a tree. Names are views of the source; nodes and constants belong to the Tree.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "template/value.h"

namespace gimbal::tmpl {

struct Expression;

struct Argument {
  enum Kind : uint8_t { Positional, Named, Items, Entries } kind;  // x, name=x, *x, **x
  std::string_view name;
  const Expression* value;
};

struct Expression {
  enum Kind : uint8_t {
    Constant,     // value
    Name,         // name
    List,         // items
    Tuple,        // items
    Dict,         // items: key, value, key, value ...
    Attribute,    // items[0].name
    Item,         // items[0][items[1]]
    Slice,        // items[0][items[1]:items[2]:items[3]]; null where left out
    Call,         // items[0](arguments)
    Filter,       // items[0]|name(arguments); items[0] null: the text of a block
    Test,         // items[0] is name(arguments)
    Unary,        // signs[0] of items[0]: "not", "-", "+"
    Binary,       // items[0] signs[0] items[1] signs[1] ..., from left to right
    Concat,       // items[0] ~ items[1] ~ ...
    Compare,      // items[0] signs[0] items[1] signs[1] ...
    And,          // items[0] and items[1] and ...
    Or,           //
    Conditional,  // items[0] if items[1] else items[2]; items[2] may be null
  } kind;
  int line;
  std::string_view name{};
  Value value{};
  std::vector<const Expression*> items{};
  std::vector<std::string_view> signs{};
  std::vector<Argument> arguments{};
};

struct Branch {
  const Expression* test;  // null: the else branch
  std::vector<const Statement*> body;
};

struct Parameter {
  std::string_view name;
  const Expression* otherwise;  // default value; null: none
};

struct Statement {
  enum Kind : uint8_t {
    Data,         // text
    Print,        // value
    If,           // branches
    For,          // target in value, if test: branches[0]; branches[1] if there were no items
    Set,          // target = value
    SetBlock,     // target = branches[0], through the filters of value if not null
    Macro,        // text(parameters): branches[0]
    CallBlock,    // value, a Call; parameters and branches[0] of caller()
    With,         // parameters: branches[0]
    FilterBlock,  // value: filters over branches[0]
    Scope,        // branches[0] in its own scope: generation, autoescape, block
    Break,
    Continue,
  } kind;
  int line;
  std::string_view text{};
  const Expression *target = nullptr, *value = nullptr, *test = nullptr;
  std::vector<Branch> branches{};
  std::vector<Parameter> parameters{};
  bool recursive = false;
  bool catches_varargs = false, catches_kwargs = false, knows_caller = false;  // of a Macro: names it uses
};

const char* construct(Statement::Kind);  // "{% for %}"

struct Tree {
  std::string source;
  std::vector<const Statement*> body;
  Heap constants;
  std::deque<Expression> expressions;
  std::deque<Statement> statements;
};

// Errors: Malformed with the line, for an invalid template; Unsupported for tags that read other files.
Result<std::unique_ptr<const Tree>> parse(std::string_view source);

}  // namespace gimbal::tmpl
