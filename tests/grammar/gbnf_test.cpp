// GBNF: which texts match, the errors of invalid grammars, and hostile ones, which get an answer or
// an error soon.
#include "support/grammars.h"

namespace gimbal::test {
namespace {

struct Case {
  const char *grammar, *whole, *not_whole;  // texts between spaces; ~: a space, @: nothing, $: a line
};

std::vector<std::string> texts_in(std::string_view list) {
  std::vector<std::string> out(1);
  for (char c : list)
    if (c == ' ') out.emplace_back();
    else if (c != '@') out.back() += c == '~' ? ' ' : c == '$' ? '\n' : c;
  return out;
}

constexpr Case kCases[] = {
    {R"(root ::= "a")", "a", "@ b aa"},
    {R"(root ::= "")", "@", "a"},
    {R"(root ::= "a" "bc"* "d"?)", "a abc abcbcd ad", "@ abd add bc"},
    {R"(root ::= ("a" | "b" "c")+)", "a bc abc bca", "@ b c"},
    {"root ::= x | y\nx ::= \"1\"\ny ::= \"2\" x", "1 21", "2 11"},
    {"# begins\n\nroot ::= # the first\n  \"a\"\n  | \"b\" |\n  \"c\"\n# ends", "a b c", "@ ab"},
    {"root ::= (\n \"a\" # one\n \"b\"\n)  \n", "ab", "a b"},
    {R"(root ::= [a-c] [^a-c] [-x] [x-])", "ad-x cé-- b~xx", "aa-x ad ad-y"},
    {R"(root ::= "a"{2} "b"{1,3} "c"{2,} "d"{,1})", "aabcc aabbbccccd", "abcc aabbbbcc aabc aabccdd"},
    {R"(root ::= [0-9]{3,1000000})", "123 1234567890", "12 12a"},
    {R"(root ::= "a"{ 1 , 2 })", "a aa", "@ aaa"},
    {R"(root ::= "a"{0} "b"{0,0} "c"{1})", "c", "@ ac"},
    {R"(root ::= . .)", "ab é€ 😀$", "a abc"},
    {R"(root ::= "\n\t\\\"\[\]\x41\u00e9\U0001F600")", "$\t\\\"[]Aé😀", "@"},
    {R"(root ::= [\]\\\x30-\u0039\^\-])", "] \\ 5 ^ -", "[ a"},
    {R"(root ::= [é-ü€])", "é ü ê €", "è ý e"},
    {R"(root ::= [^\x00-\x7f])", "é 😀 ퟿", "a"},
    {"root ::= \"(\" root \")\" | \"x\"", "x (x) (((x)))", "(x ((x) x)"},
    {"root ::= \"a\" root | \"a\"", "a aaaa", "@ b"},
    {"root ::= \"a\" root \"b\" | \"\"", "@ ab aabb aaabbb", "a aab abb"},
    {"root ::= x x x\nx ::= \"a\"?", "@ a aa aaa", "aaaa"},
    {"root ::= x{2,3} \"!\"\nx ::= \"a\"?", "! a! aaa!", "aaaa!"},
    {"root ::= x* \"b\"\nx ::= \"a\"* ", "b aaab", "a ba"},
    {"root ::= (\"a\"{2}){2}", "aaaa", "aa aaa aaaaa"},
    {"root ::= (\"a\"{1,2} \",\"){2,3}", "a,a, aa,a,aa,", "a, a,a,a,a, aaa,a,"},
    {"root ::= \"a\" root | \"a\" root \"b\" | \"\"", "@ a ab aab aaabb", "b abb"},
    {"root ::= e\ne ::= t (\"+\" t)*\nt ::= f (\"*\" f)*\nf ::= [0-9]+ | \"(\" e \")\"", "1 1+2*3 (1+2)*3",
     "1+ (1 *2"},
    {R"(root ::= x "c"
x ::= "a" | "a" "b" | dead
dead ::= "a" dead)",
     "ac abc", "aac"},
    {R"(root ::= "x" ([] | "y"))", "xy", "x"},
};

TEST(Gbnf, AcceptsAndRefusesTexts) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.grammar);
    const Grammar grammar = Matcher::parsed(c.grammar);
    const Grammar again = Matcher::parsed(grammar.to_gbnf());
    SCOPED_TRACE(grammar.to_gbnf());
    Matcher m(grammar), n(again);
    for (const std::string& text : texts_in(c.whole)) {
      EXPECT_EQ(int(m.fit(text)), int(Fit::Whole)) << "'" << text << "'";
      EXPECT_EQ(int(n.fit(text)), int(Fit::Whole)) << "written again: '" << text << "'";
    }
    for (const std::string& text : texts_in(c.not_whole)) {
      EXPECT_NE(int(m.fit(text)), int(Fit::Whole)) << "'" << text << "'";
      EXPECT_NE(int(n.fit(text)), int(Fit::Whole)) << "written again: '" << text << "'";
    }
  }
}

// Nothing leads to where no text ends.
TEST(Gbnf, HasNoDeadEnds) {
  Matcher m("root ::= \"a\" dead | \"ab\"\ndead ::= \"b\" dead");
  EXPECT_EQ(int(m.fit("a")), int(Fit::Beginning));
  EXPECT_EQ(int(m.fit("ab")), int(Fit::Whole));
  EXPECT_EQ(int(m.fit("abb")), int(Fit::No));
}

TEST(Gbnf, IsUtf8ByteByByte) {
  Matcher any("root ::= .*");
  for (const char* broken :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x80", "\xed\xa0", "\xf0\x80", "\xf4\x90", "\xf5", "a\xff"})
    EXPECT_EQ(int(any.fit(broken)), int(Fit::No)) << broken;
  for (const char* half : {"\xc3", "\xe2\x82", "\xf0\x9f\x98"})
    EXPECT_EQ(int(any.fit(half)), int(Fit::Beginning));
}

TEST(Gbnf, ErrorsNameLineAndColumn) {
  const std::pair<std::string, const char*> kWrong[] = {
      {"", "line 1, column 1: there is no rule"},
      {"  # only this\n", "line 2, column 1: there is no rule"},
      {"x ::= \"a\"", "there is no rule 'root'"},
      {"root ::= \"a\" x", "line 1, column 14: there is no rule 'x'"},
      {"root ::= \"a\"\n\nroot ::= \"b\"", "line 3, column 1: the rule 'root' is defined twice"},
      {"root ::= \"a", "line 1, column 10: the literal"},
      {"root ::= \"é\" \"\\q\"", "line 1, column 15: this is no escape"},
      {"root ::= [a-", "line 1, column 10: the class"},
      {"root ::= [b-a]", "line 1, column 11: the range ends before it begins"},
      {"root ::= (\"a\" ", "expected ')', found the end"},
      {"root ::= \"a\" )", "line 1, column 14: expected the end of the line, found ')'"},
      {"root = \"a\"", "line 1, column 6: expected '::=', found '='"},
      {"root ::= \"a\"{3,2}", "line 1, column 13: {3,2} repeats fewer times"},
      {"root ::= \"a\"{x}", "line 1, column 14: expected a number"},
      {"root ::= \"a\"{9999999999}", "line 1, column 14: more than 4294967294 repetitions"},
      {"root ::= *", "line 1, column 10: expected the end of the line, found '*'"},
      {"root ::= \"\\ud800\"", "line 1, column 11: U+D800 is no character"},
      {"root ::= \"\\U00110000\"", "is no character"},
      {"root ::= \"\\x4\"", "needs 2 hexadecimal digits"},
      {"root ::= <think", "line 1, column 10: a token is written as <name> or <[number]>"},
      {"root ::= <>", "line 1, column 10: a token is written"},
      {"root ::= <a\nb>", "line 1, column 10: a token is written"},
      {"root ::= !<think>", "line 1, column 10: any token but one"},
      {"root ::= \"a\xff\"", "line 1, column 12: this is no UTF-8"},
      {"ro!ot ::= \"a\"", "line 1, column 3: expected '::='"},
  };
  for (const auto& [text, said] : kWrong) {
    const auto g = Grammar::gbnf(text);
    ASSERT_FALSE(g) << text;
    EXPECT_EQ(g.error().code, Code::Usage);
    EXPECT_EQ(g.error().message.find("grammar, line "), 0u) << g.error().message;
    EXPECT_NE(g.error().message.find(said), std::string::npos) << text << ": " << g.error().message;
  }
}

std::string repeated(const std::string& s, int n) {
  std::string out;
  for (int i = 0; i < n; i++) out += s;
  return out;
}

TEST(Gbnf, WhatCannotBeAnAutomatonSaysWhy) {
  const std::pair<const char*, const char*> kWrong[] = {
      {"root ::= root \"a\" | \"b\"", "the rule 'root' begins with itself"},
      {"root ::= x\nx ::= y \"a\" | \"a\"\ny ::= \"b\"? x", "begins with itself (left recursion)"},
      {"root ::= (root){2,5} \"x\" | \"y\"", "begins with itself"},
      {"root ::= \"a\" root", "no text matches"},
      {"root ::= []", "no text matches"},
      {"root ::= \"a\"{2} x\nx ::= x \"a\"", "no text matches"},
  };
  for (const auto& [text, said] : kWrong) {
    const auto a = Automaton::create(Matcher::parsed(text));
    ASSERT_FALSE(a) << text;
    EXPECT_NE(a.error().message.find(said), std::string::npos) << a.error().message;
  }
}

// Each of these is an answer or an error, and neither takes long.
TEST(Gbnf, HostileGrammarsEnd) {
  EXPECT_FALSE(Grammar::gbnf("root ::= " + repeated("(", 100'000) + "\"a\"" + repeated(")", 100'000)));
  EXPECT_TRUE(Grammar::gbnf("root ::= " + repeated("(", 200) + "\"a\"" + repeated(")", 200)));
  EXPECT_FALSE(Grammar::gbnf("root ::= \"a\"" + repeated("*", 1000)));
  EXPECT_FALSE(Grammar::gbnf(repeated("root ::= \"a\" ", 200'000)));
  Matcher nested("root ::= " + repeated("(", 150) + "\"a\"" + repeated(")+", 150));
  EXPECT_TRUE(nested.matches("aaaa"));
  Matcher counted("root ::= ((\"a\"{0,1000}){0,1000}){0,1000}");
  counted.states().allow(20'000'000);
  States::State s = counted.states().start();
  for (int i = 0; i < 200 && s != States::kDead; i++) s = counted.states().next(s, 'a');
  EXPECT_TRUE(s != States::kDead || counted.states().exceeded());
  // 2^n readings of n letters, as one set of stacks
  Matcher ambiguous("root ::= \"a\" root | \"a\" root \"b\" | \"a\" root \"c\" | \"\"");
  EXPECT_TRUE(ambiguous.matches(repeated("a", 200) + repeated("b", 150)));
  // each rule calls the next one twice
  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 2000; i++)
    chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + " \"x\" | r" +
             std::to_string(i + 1) + " \"y\"\n";
  Matcher twice(chain + "r2000 ::= \"a\"");
  EXPECT_TRUE(twice.matches("a" + repeated("xy", 1000)));
  std::string empties = "root ::= ";
  for (int i = 0; i < 5000; i++) empties += "\"a\"? ";
  Matcher optional(empties);
  EXPECT_TRUE(optional.matches(repeated("a", 50)));
  // deep stacks
  Matcher deep("root ::= \"[\" root? \"]\"");
  EXPECT_TRUE(deep.matches(repeated("[", 50'000) + repeated("]", 50'000)));
}

// States that are forgotten change nothing.
TEST(States, KeepWhatIsNeeded) {
  Matcher m("root ::= item (\",\" item)*\nitem ::= [a-z]{1,50} | \"[\" root \"]\"");
  States& states = m.states();
  std::vector<States::State> path{states.start()};
  const std::string text = "abc,[x,[yy,z]],[q],zzzz";
  for (char c : text) path.push_back(states.next(path.back(), uint8_t(c)));
  for (int round = 0; round < 3; round++) {
    const size_t before = states.bytes();
    std::vector<bool> ends;
    for (auto s : path) ends.push_back(states.may_end(s));
    states.keep(path);
    EXPECT_TRUE(round == 0 || states.bytes() <= before);
    for (size_t i = 0; i < path.size(); i++) EXPECT_EQ(states.may_end(path[i]), ends[i]);
    for (size_t i = 0; i < text.size(); i++) EXPECT_EQ(states.next(path[i], uint8_t(text[i])), path[i + 1]);
    EXPECT_EQ(path[0], states.start());
  }
}

}  // namespace
}  // namespace gimbal::test
