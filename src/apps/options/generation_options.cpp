#include "apps/options/generation_options.h"

#include <climits>
#include <random>

#include "apps/toolkit/input_output.h"
#include "base/format.h"
#include "base/json.h"
#include "grammar/grammar.h"
#include "model/arch.h"
#include "runtime/sampling_table.h"

namespace gimbal {
namespace {

template <class T>
std::string help_of(const SamplingSetting& s, T default_) {
  if (s.off == double(default_)) return format("{} (default)", s.help);
  return format("{} (default {})", s.help, default_);
}

}  // namespace

void SamplingOptions::declare(Arguments& a) {
  a.section("Sampling");
  for (const SamplingSetting& s : kSamplingSettings) {
    if (!s.option) continue;
    if (const auto* flag = std::get_if<bool Sampling::*>(&s.member)) {
      a.flag(s.option, s.help, settings.**flag);
    } else if (std::holds_alternative<uint64_t Sampling::*>(s.member)) {
      a.whole(s.option, s.value, s.help, seed, uint64_t(0), UINT64_MAX);
    } else if (const auto* number = std::get_if<float Sampling::*>(&s.member)) {
      a.number(s.option, s.value, help_of(s, settings.**number).c_str(), settings.**number);
    } else if (const auto* whole = std::get_if<int Sampling::*>(&s.member)) {
      a.whole(s.option, s.value, help_of(s, settings.**whole).c_str(), settings.**whole, int(s.low),
              int(s.high));
    } else if (std::holds_alternative<std::vector<std::string> Sampling::*>(s.member)) {
      a.texts(s.option, s.value, s.help, texts[s.field]);
    }
  }
}

Status SamplingOptions::finish() {
  for (const SamplingSetting& s : kSamplingSettings) {
    const auto* member = std::get_if<std::vector<std::string> Sampling::*>(&s.member);
    if (!member || texts[s.field].empty()) continue;
    settings.** member = texts[s.field];
    if (texts[s.field] == std::vector<std::string>{"none"}) (settings.**member).clear();
  }
  settings.seed = seed ? *seed : std::random_device()();  // 32 bits: whole in every JSON reader
  return validate(settings);
}

void TextOptions::declare(Arguments& a) {
  a.section("Text");
  a.text("-p,--prompt", "TEXT", "the prompt; without -p and -f it is read from stdin", prompt);
  a.text("-f,--file", "FILE",
         "read the prompt from a file or pipe; one newline at its end is dropped; -: stdin", file);
  a.whole("-n,--max-tokens", "N", "maximum number of tokens to generate; -1: no maximum (default)",
          max_tokens_, -1, 1 << 30);
  a.texts("--stop", "TEXT", "stop before this text is printed; repeatable", settings.stops);
  a.flag("--ignore-eos", "do not stop at the model's end-of-text token", settings.ignore_stop_tokens);
  a.flag("--print-tokens", "print the ids of the generated tokens instead of their text", print_tokens);
  a.flag("--stats", "print speed, memory, kernels and seed to stderr", stats);
  sampling_.declare(a);
}

Status TextOptions::finish() {
  if (prompt && file) return Error{Code::Usage, "-p and --file each give a prompt", "give only one of them"};
  settings.max_tokens = max_tokens_.value_or(-1);
  if (auto ok = sampling_.finish(); !ok) return ok;
  settings.sampler = sampling_.settings;
  return validate_stops(settings.stops);
}

Result<std::string> TextOptions::text(const std::function<uint64_t()>& max_bytes) const {
  if (prompt) return *prompt;
  auto read = read_text(file.value_or("-"), max_bytes);
  if (!read) return read.error();
  return without_last_newline(std::move(*read));
}

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

void ReasoningOptions::declare_for_chat(Arguments& a) {
  a.one_of("--think",
           "thinking before the answer: show it dimmed (or on), hide it, or turn it off; by default the chat "
           "template decides",
           think_, {"show", "hide", "on", "off"});
  declare_both(a, "the most tokens that a model thinks; then it must answer; -1: no limit (default)");
}

void ReasoningOptions::declare_for_requests(Arguments& a) {
  a.one_of(
      "--think",
      "thinking before the answer, where a request does not say (default auto: the chat template decides)",
      think_, {"on", "off", "auto"});
  a.one_of("--reasoning-format",
           "the reasoning in answers of /v1/chat/completions, where a request does not say: apart from the "
           "text (default auto), or none: in the text, between <think> and </think>",
           format_, {"auto", "deepseek", "none"});
  declare_both(a,
               "the most tokens that a model thinks, where a request does not say; -1: no limit (default)");
}

void ReasoningOptions::declare_both(Arguments& a, const char* budget) {
  a.text("--chat-template-kwargs", "JSON",
         "variables for the model's chat template, as an object: {\"enable_thinking\": false}", variables_);
  a.whole("--reasoning-budget", "N", budget, budget_, -1, INT_MAX);
}

Result<TemplateSettings> ReasoningOptions::of_template() const {
  TemplateSettings out;
  if (variables_)
    if (auto ok = set_variables(parse_json(*variables_), out); !ok)
      return Error{Code::Usage, format("--chat-template-kwargs: {}", ok.error().message), ok.error().remedy};
  if (!think_.empty() && think_ != "auto") out.thinks = think_ != "off";
  return out;
}

}  // namespace gimbal
