// gimbal grammar: whether a text matches a grammar or a schema, and where it stops matching.
#include <algorithm>

#include "apps/commands/command.h"
#include "apps/options/generation_options.h"
#include "apps/toolkit/input_output.h"
#include "apps/toolkit/terminal.h"
#include "base/json.h"
#include "grammar/states.h"

namespace gimbal {
namespace {

constexpr size_t kMaxSteps = 2'000'000'000;  // some ten seconds

class CheckGrammar final : public Command {
 public:
  void declare(Arguments& a) override {
    a.text("--check", "FILE|TEXT", "a grammar in the format GBNF; what holds `::=` is its text", gbnf_);
    a.text("--schema", "FILE|TEXT", "a JSON schema; what holds `{` is its text", schema_);
    a.text("--text", "TEXT", "the text", text_);
    a.text("-i,--input", "FILE", "a file with the text, byte by byte; - is stdin", input_);
    a.example("gimbal grammar --schema schema.json --text '{\"name\": \"Ann\"}'");
  }

  Result<int> run() override {
    if (gbnf_.has_value() == schema_.has_value())
      return Error{Code::Usage, "there must be one grammar", "give either --check FILE or --schema FILE"};
    if (text_.has_value() == input_.has_value())
      return Error{Code::Usage, "there must be one text", "give either --text TEXT or --input FILE"};
    auto grammar = read_grammar(gbnf_ ? *gbnf_ : *schema_, schema_.has_value());
    if (!grammar) return grammar.error();
    auto text = text_ ? Result<std::string>(*text_) : read_text(*input_);
    if (!text) return text.error();
    auto automaton = Automaton::create(*grammar);
    if (!automaton) return automaton.error();
    States states(*std::move(automaton));
    states.allow(kMaxSteps);
    States::State s = states.start();
    size_t at = 0;
    for (; at < text->size(); at++) {
      const States::State next = states.next(s, uint8_t((*text)[at]));
      if (states.exceeded())
        return Error{Code::Failed,
                     format("the grammar is too ambiguous to read this text beyond byte {}", at),
                     "write it so that each text is read in few ways"};
      if (next == States::kDead) break;
      s = next;
    }
    return report(*text, at, at == text->size() && states.may_end(s));
  }

 private:
  int report(const std::string& text, size_t at, bool matches) const {
    const std::string_view before = std::string_view(text).substr(0, at);
    const size_t line = size_t(std::count(before.begin(), before.end(), '\n')) + 1;
    const std::string_view of_line = before.substr(before.rfind('\n') + 1);
    const auto column =
        std::count_if(of_line.begin(), of_line.end(), [](char c) { return (uint8_t(c) & 0xc0) != 0x80; }) + 1;
    if (json) {
      Json out = {{"matches", matches}, {"bytes", at}};
      if (!matches) out.update({{"line", line}, {"column", column}, {"incomplete", at == text.size()}});
      print_json(out, true);
    } else if (matches) {
      print("The text matches.\n");
    } else if (at == text.size()) {
      print(format("The text ends too early: more must follow (line {}, column {}, byte {}).\n", line, column,
                   at));
    } else {
      print(format("The text stops matching at line {}, column {} (byte {}), before {}.\n", line, column, at,
                   gimbal::quoted(shortened(text.substr(at), 40))));
    }
    return matches ? kDone : kFailed;
  }

  std::optional<std::string> gbnf_, schema_, text_, input_;
};

}  // namespace

std::unique_ptr<Command> make_grammar() { return std::make_unique<CheckGrammar>(); }

}  // namespace gimbal
