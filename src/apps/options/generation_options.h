// The options of generation: sampling, input text and output length, grammars, reasoning. The same in every
// program that generates.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/toolkit/arguments.h"
#include "chat/chat_prompt.h"
#include "runtime/generate.h"
#include "runtime/sampler.h"

namespace gimbal {

struct SamplingOptions {
  SamplerSettings settings;
  std::optional<uint64_t> seed;
  std::map<std::string, std::vector<std::string>> texts;  // typed, by the setting's name

  void declare(Arguments&);  // in their own section
  // Call it after parsing: fills in `settings`, with a random seed if none was given. Errors: Usage for
  // values out of range.
  Status finish();
};

// Input text and output length.
struct TextOptions {
  std::optional<std::string> prompt, file;
  bool print_tokens = false, stats = false;
  GenerateSettings settings;

  void declare(Arguments&);  // in two sections: text and sampling
  // Call it after parsing: fills in `settings`. Errors: Usage for values out of range, or two prompts.
  Status finish();
  // The prompt: -p, or else --file or stdin without a trailing newline. Errors: those of read_text().
  Result<std::string> text(const std::function<uint64_t()>& max_bytes) const;

 private:
  std::optional<int> max_tokens_;
  SamplingOptions sampling_;
};

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

// The options of a model's reasoning, and of its chat template: in `run` for one chat, in `serve` for
// requests that do not say.
class ReasoningOptions {
 public:
  void declare_for_chat(Arguments&);      // --think show, on, hide or off
  void declare_for_requests(Arguments&);  // --think on, off or auto; --reasoning-format
  // After parsing. --think wins over the variable of the template. Errors: Usage for a text that is no JSON,
  // and those of set_variables().
  Result<TemplateSettings> of_template() const;

  void refuse() { think_ = "off"; }  // no reasoning, whatever was asked
  int budget() const { return budget_; }
  bool shown() const { return think_ != "hide"; }
  bool in_text() const { return format_ == "none"; }  // the reasoning stays in an answer's text

 private:
  void declare_both(Arguments&, const char* budget);

  int budget_ = -1;
  std::string think_, format_;
  std::optional<std::string> variables_;
};

}  // namespace gimbal
