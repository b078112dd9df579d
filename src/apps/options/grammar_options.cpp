#include "apps/options/grammar_options.h"

#include "apps/toolkit/input_text.h"
#include "grammar/json_schema.h"
#include "model/arch.h"

namespace gimbal {

Result<Grammar> read_grammar(const std::string& source, bool schema) {
  std::string text = source;
  if (text.find(schema ? "{" : "::=") == text.npos) {
    auto read = read_text(text);
    if (!read) return read.error();
    text = std::move(*read);
  }
  auto grammar = schema ? json_schema_grammar(text) : Grammar::gbnf(text);
  if (grammar && schema && !grammar->has_text())
    return Error{Code::Usage, "JSON schema: no value satisfies it", "allow some value", "", "json_schema"};
  return grammar;
}

void GrammarOptions::declare(Arguments& a) {
  a.text("--grammar", "FILE|TEXT",
         "write only texts that match this grammar, in the format GBNF; what holds `::=` is its text", gbnf_);
  a.text("--json-schema", "FILE|TEXT", "write only JSON that this schema allows; what holds `{` is its text",
         schema_);
}

Status GrammarOptions::read() {
  if (!given()) return Done{};
  if (gbnf_ && schema_)
    return Error{Code::Usage, "--grammar and --json-schema each say what may be written",
                 "give only one of them"};
  auto grammar = read_grammar(gbnf_ ? *gbnf_ : *schema_, !gbnf_);
  if (!grammar) return grammar.error();
  grammar_ = std::move(*grammar);
  return Done{};
}

Status GrammarOptions::apply(const ModelSource& file, const Tokenizer& tokenizer,
                             GenerateSettings& settings) {
  if (!grammar_) return Done{};
  const auto config = configure(file);
  if (!config) return config.error();
  auto constraint = Constraint::create(*grammar_, TokenTree::create(tokenizer, config->vocabulary));
  if (!constraint) return constraint.error();
  constraint_ = std::move(*constraint);
  settings.constraint = &*constraint_, settings.completes = true;
  return Done{};
}

}  // namespace gimbal
