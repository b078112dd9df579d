// libFuzzer over grammars and JSON schemas: the first byte says which. Whatever is asked for, the answer is a
// grammar or an error that names it; the automaton's continuation can be completed; a grammar written
// again is the same.
#include <algorithm>
#include <cstring>
#include <string>

#include "grammar/grammar.h"
#include "grammar/states.h"
#include "require.h"

namespace {

using namespace gimbal;

// Some ways through it, each to an end or as far as `steps` go.
void read(const Grammar& grammar, const uint8_t* choices, size_t size) {
  auto automaton = Automaton::create(grammar);
  if (!automaton) {
    require(automaton.error().message.starts_with("grammar: "));
    return;
  }
  States states(*automaton);
  States::State s = states.start();
  require(s != States::kDead || states.exceeded());
  states.allow(200'000);
  for (size_t i = 0; i < 64 && size; i++) {
    States::State next = States::kDead;
    for (int b = 0; b < 256 && next == States::kDead; b++)
      next = states.next(s, uint8_t(b + choices[i % size]));
    if (states.exceeded()) return;
    require(next != States::kDead || states.may_end(s));
    if (next == States::kDead) return;
    s = next;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const bool schema = data[0] & 1;
  const auto grammar = schema ? json_schema_grammar(text) : Grammar::gbnf(text);
  if (!grammar) {
    require(grammar.error().message.starts_with(schema ? "JSON schema" : "grammar, line "));
    return 0;
  }
  read(*grammar, data, size);
  // Written again there are more groups, which have a limit.
  if (!schema &&
      std::count_if(text.begin(), text.end(), [](char c) { return c && std::strchr("(*+?{", c); }) < 60)
    require(bool(Grammar::gbnf(grammar->to_gbnf())));
  return 0;
}
