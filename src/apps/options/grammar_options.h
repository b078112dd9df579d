// The options that constrain the generated text.
#pragma once
#include <optional>

#include "apps/toolkit/arguments.h"
#include "runtime/generate.h"

namespace gimbal {

// A grammar, or a JSON schema: a file, or its text, which contains ::= or {.
Result<Grammar> read_grammar(const std::string& source, bool schema);

class GrammarOptions {
 public:
  void declare(Arguments&);
  bool given() const { return gbnf_ || schema_; }
  std::string gbnf() const { return grammar_ ? grammar_->to_gbnf() : ""; }  // after read(); empty: none
  // Reads the given file. Errors: those of files, Grammar::gbnf() and json_schema_grammar(); Usage if both
  // options are given.
  Status read();
  // With a grammar, constrains the text of these settings and completes it within its limits. Outlives them.
  // Errors: those of Constraint::create().
  Status apply(const ModelSource& file, const Tokenizer&, GenerateSettings&);

 private:
  std::optional<std::string> gbnf_, schema_;
  std::optional<Grammar> grammar_;
  std::optional<Constraint> constraint_;
};

}  // namespace gimbal
