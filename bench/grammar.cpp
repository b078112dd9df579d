// The cost of a constraint: a vocabulary of 150,000 and more (Qwen2's, out of the test data), a few grammars
// and schemas, texts written at random; the time of each mask, of building the tree and of compiling. "in a
// step": the longest time that the engine's thread spends on one (scheduler/masks.h); "beside": masks that
// another thread continues with.
//   ninja -C build/release gimbal_grammar && g++ -std=c++20 -O2 -Isrc bench/grammar.cpp \
//     build/release/libgimbal_{grammar,tokenizer,files,tensor,base}.a -lfmt -lpcre2-8 -o /tmp/grammar-bench
//   zcat tests/data/vocab/qwen2.gguf.gz > /tmp/qwen2.gguf && /tmp/grammar-bench /tmp/qwen2.gguf
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <random>

#include "files/gguf.h"
#include "grammar/constraint.h"
#include "grammar/grammar.h"

using namespace gimbal;

namespace {

// Of this thread: what else the machine does takes none of it.
double milliseconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) * 1e3 + double(t.tv_nsec) * 1e-6;
}

struct Case {
  const char* name;
  bool schema;
  const char* text;
};
constexpr Case kCases[] = {
    {"any JSON object", true, R"({"type":"object"})"},
    {"schema: object, strings", true,
     R"({"type":"object","properties":{"name":{"type":"string"},"text":{"type":"string"},"n":{"type":"integer"}},"required":["name","text","n"]})"},
    {"schema: string of at most 500", true, R"({"type":"string","minLength":400,"maxLength":500})"},
    {"schema: pattern", true, R"({"type":"string","pattern":"^([A-Z][a-z]+ ){10,60}$"})"},
    {"schema: list of enums, dates", true,
     R"({"type":"array","minItems":30,"items":{"anyOf":[{"enum":["red","green","blue"]},{"type":"string","format":"date-time"}]}})"},
    {"schema: a tree", true,
     R"({"$defs":{"n":{"type":"object","properties":{"v":{"type":"string"},"c":{"type":"array","items":{"$ref":"#/$defs/n"}}},"required":["v","c"]}},"$ref":"#/$defs/n"})"},
    {"grammar: lines of letters", false, "root ::= ([a-zA-Z ,.]{1,80} \"\\n\"){20,}"},
    {"grammar: up to 1000 letters", false, "root ::= [a-z]{0,1000}"},
    {"grammar: up to 1000 of most", false, "root ::= [^x\\n]{0,1000}"},
    {"grammar: up to 1000 of all", false, "root ::= .{0,1000}"},
    {"grammar: any text", false, "root ::= .*"},
    {"grammar: arithmetic", false,
     "root ::= e\ne ::= t ([-+] t)*\nt ::= f ([*/] f)*\nf ::= [0-9]{1,4} | \"(\" e \")\""},
};

// Thousands of alternatives, each written in another way: what somebody sends who wants others to wait.
std::vector<Case> hostile() {
  static std::vector<std::string> texts;
  std::mt19937 random(5);
  std::string values, consts, rules, bodies, classes, ambiguous;
  for (int i = 0; i < 30'000; i++) {
    std::string word;
    for (size_t n = 4 + random() % 17; n > 0; n--) word += char('a' + random() % 26);
    const std::string bar = i ? "|" : "";
    values += (i ? ",\"" : "\"") + word + "\"";
    if (i < 600) consts += (i ? ",{\"const\":\"" : "{\"const\":\"") + word + "\"}";
    if (i >= 10'000) continue;
    const std::string number = std::to_string(i);
    rules += bar + "r" + number;
    bodies += "\nr" + number + " ::= [" + word.substr(0, 2) + "] \"" + word + "\" [0-9]*";
    classes += bar + "[" + word.substr(0, 3) + "]" + " \"" + word + "\"";
    if (i < 40) ambiguous += bar + "[a-z ]{" + std::to_string(i) + ",500} \"" + word + "\"";
  }
  std::string mutual, nested, again;
  for (int i = 0; i < 60; i++) {
    const std::string number = std::to_string(i), next = std::to_string((i * 7 + 1) % 60);
    const auto letter = [&](int k) { return std::string(1, char('a' + (i * 5 + k) % 24)); };
    const std::string chars = "[" + letter(0) + "-" + char(letter(0)[0] + 2) + " A-Z]";
    mutual += "\nm" + number + " ::= " + chars + " (m" + next + " | m" + std::to_string((i * 11 + 5) % 60) +
              " [a-z])?";
    nested += (i ? " | " : "") + chars + " n [a-z ]{0," + number + "}";
    if (i < 12)
      again +=
          (i ? " | " : "") + ("([a-z]{" + std::to_string(i + 1) + ",") + std::to_string(i + 9) + "} [ ,.])";
  }
  texts = {"{\"enum\":[" + values + "]}",
           "{\"anyOf\":[" + consts + "]}",
           "root ::= " + rules + bodies,
           "root ::= " + classes,
           "root ::= " + ambiguous,
           "root ::= (" + rules + ")+" + bodies,
           "root ::= m0 (m1 | m2 | m3 | m4 | m5 | m6)" + mutual,
           "root ::= n\nn ::= [a-z] | " + nested,
           "root ::= (" + again + ")+"};
  return {{"schema: enum of 30,000", true, texts[0].c_str()},
          {"schema: 600 constants", true, texts[1].c_str()},
          {"grammar: 10,000 rules", false, texts[2].c_str()},
          {"grammar: 10,000 classes", false, texts[3].c_str()},
          {"grammar: 40 that overlap", false, texts[4].c_str()},
          {"grammar: 10,000 rules, repeated", false, texts[5].c_str()},
          {"grammar: 60 rules of each other", false, texts[6].c_str()},
          {"grammar: recursion in 60 ways", false, texts[7].c_str()},
          {"grammar: words of 12 lengths", false, texts[8].c_str()}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::puts("grammar-bench VOCABULARY.gguf"), 2;
  auto file = open_gguf(argv[1]);
  if (!file) return std::puts(file.error().message.c_str()), 1;
  auto tokenizer = Tokenizer::create(file->metadata());
  if (!tokenizer) return std::puts(tokenizer.error().message.c_str()), 1;
  const double begin = milliseconds();
  const auto tree = TokenTree::create(**tokenizer, (*tokenizer)->size());
  std::printf("%d tokens, %zu + %zu nodes: tree in %.0f ms\n", (*tokenizer)->size(), tree->plain().size(),
              tree->others().size(), milliseconds() - begin);
  std::printf("%-32s %10s %7s %9s %9s %9s %9s %9s %7s\n", "", "compile ms", "masks", "mean ms", "median",
              "99 %", "longest", "in a step", "beside");
  std::vector<Case> cases(std::begin(kCases), std::end(kCases));
  for (const Case& c : hostile()) cases.push_back(c);
  for (const Case& c : cases) {
    const double start = milliseconds();
    auto grammar = c.schema ? json_schema_grammar(c.text) : Grammar::gbnf(c.text);
    if (!grammar) return std::puts(grammar.error().message.c_str()), 1;
    auto constraint = Constraint::create(*grammar, tree);
    if (!constraint) return std::puts(constraint.error().message.c_str()), 1;
    const double compiled = milliseconds() - start;
    std::vector<double> times;
    double longest = 0;  // of the first pieces
    int elsewhere = 0;   // masks that these did not find
    std::mt19937 random(1);
    for (int text = 0; text < 8; text++) {
      Constraint fresh = *constraint;  // nothing kept from the text before
      for (int i = 0; i < 200; i++) {
        const double before = milliseconds();
        size_t steps = 40'000;
        const bool whole = fresh.prepare(INT_MAX, steps);
        const double first = milliseconds() - before;
        auto mask = fresh.allowed();
        times.push_back(milliseconds() - before);
        longest = std::max(longest, first), elsewhere += !whole;
        if (!mask) {
          if (text == 0) std::printf("%s, behind %d tokens: %s\n", c.name, i, mask.error().message.c_str());
          break;
        }
        Token t = -1;
        for (int tries = 0; t < 0; tries++) {
          const Token guess = Token(random() % unsigned((*tokenizer)->size()));
          if (tries > 2000) {
            for (Token u = 0; t < 0; u++) t = Constraint::allows(*mask, size_t(u)) ? u : -1;
          } else if (Constraint::allows(*mask, size_t(guess))) {
            t = guess;
          }
        }
        if (tree->is_end(t)) break;
        fresh.follow(t);
      }
    }
    std::sort(times.begin(), times.end());
    double sum = 0;
    for (double t : times) sum += t;
    std::printf("%-32s %10.2f %7zu %9.3f %9.3f %9.3f %9.3f %9.3f %7d\n", c.name, compiled, times.size(),
                sum / double(times.size()), times[times.size() / 2], times[times.size() * 99 / 100],
                times.back(), longest, elsewhere);
  }
}
