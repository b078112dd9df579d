// Masks over the vocabularies of the reference data: a token is allowed exactly if its bytes are, and
// whatever is taken, the text can be completed.
#include "grammar/constraint.h"

#include <set>

#include "base/format.h"
#include "support/gguf_writer.h"
#include "support/grammars.h"
#include "support/vocabularies.h"

namespace gimbal::test {
namespace {

constexpr const char* kJson = R"(root ::= object
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws (string ":" ws value ("," ws string ":" ws value)*)? ws "}"
array ::= "[" ws (value ("," ws value)*)? ws "]"
string ::= "\"" ([^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
number ::= "-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]{1,15})?
ws ::= [ \n\t]{0,4})";

// Every text of these ends by itself.
constexpr const char* kFinite[] = {
    R"(root ::= "yes" | "no" | "perhaps é 你好")",
    R"(root ::= "\"" [^"\\\x00-\x1f]{0,12} "\"")",
    R"(root ::= [a-z]{3,40} ("-" [0-9]{2}){0,3})",
    R"(root ::= .{5})",
    R"(root ::= "{\"n\": " [0-9]{1,4} ", \"s\": \"" ([^"\\\x00-\x1f] | "\\n"){2,30} "\"}")",
};

// One of each kind: small and large ones with bytes, and two that cannot write every character.
constexpr const char* kVocabularies[] = {"tok512", "phi-3", "qwen2", "bert-bge", "xlm-roberta-6000"};

struct Vocabulary {
  std::string name;
  std::shared_ptr<const TokenTree> tree;
  std::unique_ptr<Tokenizer> tokenizer;
};

const std::vector<Vocabulary>& vocabularies() {
  static const std::vector<Vocabulary> all = [] {
    std::vector<Vocabulary> out;
    for (auto& v : reference_vocabularies(kVocabularies))
      out.push_back(
          {v.name, TokenTree::create(*v.tokenizer, v.tokenizer->size() + 3), std::move(v.tokenizer)});
    EXPECT_EQ(out.size(), std::size(kVocabularies));
    return out;
  }();
  return all;
}

// Well-formed UTF-8 (The Unicode Standard, table 3-7) without quotes, backslashes and control characters.
TEST(TokenTree, PlainTextIsWellFormed) {
  const auto ends =
      [](std::initializer_list<int> bytes) {  // 1: a whole character, 0: its beginning, -1: neither
        int state = 0;
        for (const int b : bytes)
          if (state = TokenTree::plain_next(state, uint8_t(b)); state < 0) return -1;
        return int(state == 0);
      };
  for (int a = 0; a < 256; a++) {
    const bool alone = a >= 0x20 && a < 0x7f && a != '"' && a != '\\';
    const int more = a < 0xc2 ? 0 : a < 0xe0 ? 1 : a < 0xf0 ? 2 : a < 0xf5 ? 3 : 0;
    EXPECT_EQ(ends({a}), alone ? 1 : more ? 0 : -1) << a;
    if (!more) continue;
    const int low = a == 0xe0   ? 0xa0
                    : a == 0xf0 ? 0x90
                                : 0x80,
              high = a == 0xed   ? 0x9f
                     : a == 0xf4 ? 0x8f
                                 : 0xbf;
    for (int b = 0; b < 256; b++) {
      const int behind = b < low || b > high ? -1 : more == 1;
      EXPECT_EQ(ends({a, b}), behind) << a << " " << b;
      if (behind != 0) continue;
      for (const int c : {0x7f, 0x80, 0xbf, 0xc0}) {
        const int third = c < 0x80 || c > 0xbf ? -1 : more == 2;
        EXPECT_EQ(ends({a, b, c}), third) << a << " " << b << " " << c;
        if (third != 0) continue;
        for (const int d : {0x7f, 0x80, 0xbf, 0xc0})
          EXPECT_EQ(ends({a, b, c, d}), d < 0x80 || d > 0xbf ? -1 : 1) << a << " " << d;
      }
    }
  }
}

TEST(TokenTree, HoldsEachTokenOnce) {
  for (const auto& v : vocabularies()) {
    SCOPED_TRACE(v.name);
    size_t nodes_with_token = 0, texts = 0;
    for (const auto* nodes : {&v.tree->plain(), &v.tree->others()})
      for (size_t i = 0; i < nodes->size(); i++) {
        nodes_with_token += (*nodes)[i].token >= 0;
        ASSERT_GT((*nodes)[i].next, i);
        ASSERT_LE((*nodes)[i].next, nodes->size());
      }
    for (Token t = 0; t < v.tokenizer->size(); t++) {
      const bool left_out = v.tokenizer->is_control(t) || v.tokenizer->is_stop(t) || t == v.tokenizer->bos();
      ASSERT_EQ(std::string(v.tree->text(t)), left_out ? "" : v.tokenizer->piece(t)) << t;
      ASSERT_EQ(v.tree->is_end(t), v.tokenizer->is_stop(t) || t == v.tokenizer->bos());
      texts += !v.tree->text(t).empty();
    }
    if (v.tree->alphabet().empty()) EXPECT_EQ(nodes_with_token + v.tree->twins().size(), texts);
    else EXPECT_LE(nodes_with_token + v.tree->twins().size(), texts);
  }
}

// Token by token, what the automaton says of its bytes.
void expect_mask(const Constraint& constraint, const std::string& so_far, Matcher& matcher,
                 const Vocabulary& v) {
  Constraint c = constraint;
  const auto mask = c.allowed();
  ASSERT_TRUE(mask) << mask.error().message;
  States::State place = matcher.states().start();
  const bool whole = matcher.fit(so_far, place) == Fit::Whole;
  for (Token t = 0; t < v.tokenizer->size() + 3; t++) {
    const std::string_view text = v.tree->text(t);
    const bool want =
        v.tree->is_end(t) ? whole : !text.empty() && matcher.fit(text, States::State(place)) != Fit::No;
    if (Constraint::allows(*mask, size_t(t)) == want) continue;
    FAIL() << "token " << t << " '" << text << "' behind '" << so_far << "'";
  }
}

// Any text, nearly any, few characters, the same ones up to a number, and others behind them: the ways in
// which masks are found.
TEST(Constraint, AllowsATokenIfItsBytesFit) {
  const char* const kGrammars[] = {
      kJson,
      kFinite[1],
      kFinite[4],
      "root ::= .*",
      "root ::= .{0,6}",
      "root ::= [^x\\n]{0,1000}",
      "root ::= [^\\n]* \"\\n\"",
      "root ::= [a-z ]{3} [0-9]?",
      "root ::= [a-zé]{2,30} | [A-Z]{5,7}",
      "root ::= [^é]{1,4}",
  };
  for (const auto& v : vocabularies()) {
    if (!v.tree->alphabet().empty()) continue;  // below
    SCOPED_TRACE(v.name);
    for (const char* gbnf : kGrammars) {
      SCOPED_TRACE(gbnf);
      Matcher matcher(gbnf);
      auto c = Constraint::create(Matcher::parsed(gbnf), v.tree);
      ASSERT_TRUE(c) << c.error().message;
      std::mt19937 random(7);
      std::string text;
      for (int step = 0; step < 4; step++) {
        expect_mask(*c, text, matcher, v);
        if (HasFatalFailure()) return;
        const auto mask = c->allowed();
        Token t;
        do t = Token(random() % unsigned(v.tokenizer->size()));
        while (!Constraint::allows(*mask, size_t(t)));
        ASSERT_TRUE(c->accept(t));
        if (v.tree->is_end(t)) break;
        text += v.tree->text(t);
      }
    }
  }
}

// A vocabulary without all bytes writes the characters that are tokens, and no others that only begin one.
TEST(TokenTree, TheAlphabetIsWhatCanBeWrittenAlone) {
  GgufWriter file;
  file.string("tokenizer.ggml.model", "llama")
      .strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a", "b", "cd", "\u00e9", "\u00f6x"})
      .array("tokenizer.ggml.token_type", kI32, std::vector<int32_t>{2, 3, 3, 1, 1, 1, 1, 1})
      .array("tokenizer.ggml.scores", kF32, std::vector<float>(8, -1));
  const auto tokenizer = tokenizer_of(file.build());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const auto tree = TokenTree::create(**tokenizer, (*tokenizer)->size());
  std::vector<uint32_t> bounds;
  for (const CharRange& r : tree->alphabet()) bounds.push_back(r.low), bounds.push_back(r.high);
  EXPECT_EQ(bounds, (std::vector<uint32_t>{'a', 'b', 0xe9, 0xe9}));
}

TEST(Constraint, EveryTextCanBeCompleted) {
  int ended_texts = 0, refused = 0;
  for (const auto& v : vocabularies()) {
    SCOPED_TRACE(v.name);
    for (const char* gbnf : kFinite) {
      SCOPED_TRACE(gbnf);
      auto c = Constraint::create(Matcher::parsed(gbnf), v.tree);
      if (!c) {
        EXPECT_FALSE(v.tree->alphabet().empty()) << c.error().message;
        EXPECT_NE(c.error().message.find("vocabulary can write"), std::string::npos) << c.error().message;
        refused++;
        continue;
      }
      Matcher matcher(gbnf);
      std::mt19937 random(1);
      for (int i = 0; i < 12; i++) {
        bool ended;
        const std::string text = random_text(*c, *v.tree, random, 300, &ended);
        ASSERT_TRUE(ended) << text;
        ASSERT_TRUE(matcher.matches(text)) << text;
        ended_texts++;
      }
    }
    auto c = Constraint::create(Matcher::parsed(kJson), v.tree);
    if (!c) continue;
    std::mt19937 random(2);
    bool ended;
    random_text(*c, *v.tree, random, 400, &ended);
  }
  EXPECT_GT(ended_texts, 150);
  EXPECT_LE(refused, 5) << "vocabularies without bytes, which lack characters";
}

// With room for the shortest text in single bytes, every text ends in time.
TEST(Constraint, ATextEndsWithinItsTokens) {
  for (const auto& v : vocabularies()) {
    if (!v.tree->alphabet().empty()) continue;
    SCOPED_TRACE(v.name);
    for (const auto& [gbnf, least] : {std::pair(kJson, 2),
                                      {"root ::= \"[\" ([a-z ]+ \",\"){3} .* \"]\"", 8},
                                      {kFinite[3], 5},
                                      {"root ::= \"x\"{4} | [0-9]*", 0}}) {
      auto c = Constraint::create(Matcher::parsed(gbnf), v.tree);
      ASSERT_TRUE(c);
      Matcher matcher(gbnf);
      std::mt19937 random(3);
      for (int most : {least + 1, least + 2, least + 9, 60}) {
        bool ended;
        const std::string text = random_text(*c, *v.tree, random, most, &ended, most);
        EXPECT_TRUE(ended) << most << ": " << text;
        EXPECT_TRUE(matcher.matches(text)) << text;
      }
      // Without room it is not tried.
      if (least > 2) {
        Constraint fresh = *c;
        const auto all = std::vector<uint64_t>(fresh.allowed()->begin(), fresh.allowed()->end());
        const auto mask = *fresh.allowed(least);
        EXPECT_TRUE(std::equal(mask.begin(), mask.end(), all.begin()));
      }
    }
  }
}

// Of a vocabulary: one that ends no text and can be named.
Token control_token(const Vocabulary& v) {
  for (Token t = 0; t < v.tokenizer->size(); t++)
    if (const std::string name = v.tokenizer->piece(t, true);
        v.tree->is_control(t) && name.starts_with("<") && name.find('>') == name.size() - 1)
      return t;
  return -1;
}

TEST(Constraint, ControlTokensStandWhereTheyAreNamed) {
  int seen = 0;
  for (const auto& v : vocabularies()) {
    const Token mark = control_token(v);
    if (mark < 0 || !v.tree->alphabet().empty()) continue;  // some cannot write digits
    SCOPED_TRACE(v.name);
    seen++;
    const std::string name = v.tokenizer->piece(mark, true);
    // By name or by number, a few times, within a repetition, and where a text of the same letters may stand.
    for (const std::string& written : {name, format("<[{}]>", mark)}) {
      const std::string gbnf = format("root ::= \"a\" ({0} [0-9]{{2}}){{2}} | {0} \"<\" [a-z]? {0}", written);
      const Grammar grammar = Matcher::parsed(gbnf);
      auto c = Constraint::create(Matcher::parsed(grammar.to_gbnf()), v.tree);
      ASSERT_TRUE(c) << c.error().message;
      const auto put = [&](std::string_view text) {
        for (const char ch : text) {
          Token t = 0;
          while (v.tree->text(t) != std::string_view(&ch, 1)) t++;
          if (!c->accept(t)) return false;
        }
        return true;
      };
      const auto may_come = [&] { return Constraint::allows(*c->allowed(), size_t(mark)); };
      EXPECT_TRUE(may_come());
      EXPECT_FALSE(put("<")) << "letters are not the token";
      ASSERT_TRUE(put("a"));
      EXPECT_TRUE(may_come());
      EXPECT_FALSE(put("0"));
      ASSERT_TRUE(c->accept(mark));
      EXPECT_FALSE(may_come());
      EXPECT_FALSE(c->accept(mark));
      ASSERT_TRUE(put("42"));
      ASSERT_TRUE(may_come());
      EXPECT_TRUE(Constraint::allows(*c->allowed(4), size_t(mark))) << "it, two digits and the end";
      ASSERT_TRUE(c->accept(mark));
      ASSERT_TRUE(put("42"));
      EXPECT_TRUE(c->may_end());
      c->rewind(0);
      ASSERT_TRUE(c->accept(mark));
      ASSERT_TRUE(put("<"));
      EXPECT_TRUE(may_come());
      EXPECT_TRUE(c->allowed(2));
      EXPECT_TRUE(Constraint::allows(*c->allowed(2), size_t(mark)));
      ASSERT_TRUE(c->accept(mark));
      EXPECT_TRUE(c->may_end());
    }
    // No other control token came to be allowed, and no text lost what it may say.
    auto any = Constraint::create(Matcher::parsed("root ::= .* " + name + "?"), v.tree);
    ASSERT_TRUE(any);
    const auto mask = *any->allowed();
    for (Token t = 0; t < v.tokenizer->size(); t++)
      if (v.tree->is_control(t)) { ASSERT_EQ(Constraint::allows(mask, size_t(t)), t == mark) << t; }
  }
  EXPECT_GE(seen, 2);
}

TEST(Constraint, TokensThatCannotBeNamed) {
  for (const auto& v : vocabularies()) {
    SCOPED_TRACE(v.name);
    const auto why = [&](const std::string& gbnf) {
      const auto c = Constraint::create(Matcher::parsed(gbnf), v.tree);
      return c ? std::string("nothing") : c.error().message;
    };
    EXPECT_NE(why("root ::= <no such token>").find("no token '<no such token>'"), std::string::npos);
    EXPECT_NE(why(format("root ::= <[{}]>", v.tokenizer->size() + 5)).find("no token"), std::string::npos);
    EXPECT_NE(why("root ::= <[-1]>").find("no token"), std::string::npos);
    EXPECT_NE(why("root ::= <[99999999999]>").find("no token"), std::string::npos);
    EXPECT_NE(why(format("root ::= <[{}]>", v.tree->ends()[0])).find("ends an answer"), std::string::npos);
    std::string many = "root ::=";
    for (int i = 0; i < 100; i++) many += format(" <[{}]>", 300 + i);
    EXPECT_NE(why(many).find("more than 64 tokens"), std::string::npos) << why(many);
  }
  // A token that is a text counts as this text, however it is written.
  const auto& v = vocabularies().front();
  Token a = 0;
  while (v.tree->text(a) != "a") a++;
  const auto named = Constraint::create(Matcher::parsed(format("root ::= <[{}]>", a)), v.tree);
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_TRUE(Constraint(*named).accept(a));
  EXPECT_FALSE(Automaton::create(Matcher::parsed("root ::= <a>"))) << "there is no vocabulary";
}

// Thousands of alternatives are one place in a text, whichever way they are written.
TEST(Constraint, ManyLiteralsAreOnePlace) {
  const auto& v = vocabularies()[2];
  std::mt19937 random(11);
  std::vector<std::string> words;
  for (int i = 0; i < 4'000; i++) {
    std::string word;
    for (size_t n = 1 + random() % 9; n > 0; n--) word += char('a' + random() % 5);
    words.push_back(word);
  }
  std::string list = "root ::= ", rules = "root ::= ", tails = "root ::= (";
  for (size_t i = 0; i < words.size(); i++) {
    const char* bar = i ? " | " : "";
    list += bar + ('"' + words[i] + '"');
    rules += bar + format("w{}", i);
    tails += bar + format("\"{}\" [0-{}]", words[i], i % 10);
  }
  for (size_t i = 0; i < words.size(); i++) rules += format("\nw{} ::= \"{}\"", i, words[i]);
  for (const std::string& gbnf : {list, rules, tails + ")"}) {
    Matcher matcher(gbnf);
    const bool digit = gbnf.find('[') != gbnf.npos;
    for (size_t i = 0; i < words.size(); i += 37) {
      EXPECT_TRUE(matcher.matches(words[i] + (digit ? "0" : ""))) << words[i];
      EXPECT_FALSE(matcher.matches(words[i] + "f"));
    }
    if (!digit) {  // exactly these
      const std::set<std::string> all(words.begin(), words.end());
      for (int i = 0; i < 2'000; i++) {
        std::string word;
        for (size_t n = 1 + random() % 5; n > 0; n--) word += char('a' + random() % 5);
        EXPECT_EQ(matcher.matches(word), all.contains(word)) << word;
      }
    }
    auto c = Constraint::create(Matcher::parsed(gbnf), v.tree);
    ASSERT_TRUE(c);
    for (int i = 0; i < 20; i++) {
      bool ended;
      const std::string text = random_text(*c, *v.tree, random, 40, &ended);
      EXPECT_TRUE(ended && matcher.matches(text)) << text;
    }
  }
}

// In pieces of any size, the same masks, and the same end where it is too much.
TEST(Constraint, PiecesFindWhatOneGoFinds) {
  std::mt19937 random(4);
  int paused = 0, refused = 0;
  for (const auto& v : vocabularies()) {
    if (!v.tree->alphabet().empty()) continue;
    SCOPED_TRACE(v.name);
    for (const std::string& gbnf :
         {std::string(kJson), std::string(kFinite[3]), overlapping_grammar(40),
          std::string("root ::= n\nn ::= [a-z] | [a-f] n [a-z]{0,40} | [c-h ] n [a-z ]{0,60}")}) {
      auto whole = Constraint::create(Matcher::parsed(gbnf), v.tree);
      ASSERT_TRUE(whole) << whole.error().message;
      Constraint pieces = *whole;
      for (int i = 0; i < 12; i++) {
        const int left = i % 4 == 3 ? 30 : INT_MAX;
        size_t size = 1 + random() % 30'000, steps = size;
        for (; !pieces.prepare(left, steps); size *= 2, steps = size) paused++;
        const auto want = whole->allowed(left), found = pieces.allowed(left);
        ASSERT_EQ(bool(want), bool(found)) << gbnf << " behind " << i;
        if (!want) {
          EXPECT_EQ(want.error().message, found.error().message);
          refused++;
          break;
        }
        ASSERT_TRUE(std::equal(want->begin(), want->end(), found->begin(), found->end()))
            << gbnf << " behind " << i;
        std::vector<Token> all;
        for (Token t = 0; t < v.tokenizer->size(); t++)
          if (Constraint::allows(*want, size_t(t))) all.push_back(t);
        const Token next = all[random() % all.size()];
        if (v.tree->is_end(next)) break;
        if (const Status ok = whole->accept(next); !ok) break;
        pieces.follow(next);
      }
    }
  }
  EXPECT_GT(paused, 20);
  EXPECT_GT(refused, 0);
}

TEST(Constraint, EndsAndGoesBack) {
  const auto& v = vocabularies().front();
  auto c = Constraint::create(Matcher::parsed("root ::= \"ab\" \"c\"?"), v.tree);
  ASSERT_TRUE(c);
  auto put = [&](Constraint& in, const std::string& text) {
    for (char ch : text) {
      Token t = 0;
      while (v.tree->text(t) != std::string(1, ch)) t++;
      const Status ok = in.accept(t);
      if (!ok) return false;
    }
    return true;
  };
  const Token end = v.tree->ends()[0];
  EXPECT_FALSE(c->accept(end));
  EXPECT_FALSE(put(*c, "b"));
  EXPECT_EQ(c->position(), 0u) << "what was refused is no part of the text";
  ASSERT_TRUE(put(*c, "ab"));
  EXPECT_TRUE(c->may_end());
  EXPECT_TRUE(Constraint::allows(*c->allowed(), size_t(end)));
  Constraint branch = *c;
  ASSERT_TRUE(put(branch, "c"));
  branch.end_late(true);
  EXPECT_TRUE(Constraint::allows(*branch.allowed(), size_t(end))) << "nothing else may come";
  EXPECT_TRUE(branch.accept(end));
  EXPECT_TRUE(Constraint::allows(*branch.allowed(), size_t(end))) << "and again";
  EXPECT_EQ(c->position(), 2u);
  c->end_late(true);
  EXPECT_FALSE(Constraint::allows(*c->allowed(), size_t(end))) << "c may come";
  c->rewind(1);
  EXPECT_FALSE(c->may_end());
  EXPECT_FALSE(put(*c, "c"));
  EXPECT_TRUE(put(*c, "bc"));
  EXPECT_FALSE(put(*c, "c"));
}

}  // namespace
}  // namespace gimbal::test
