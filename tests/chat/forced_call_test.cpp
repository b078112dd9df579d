// Calls that must be, in the forms of the families: what the grammar admits behind the prompt's end is read
// as the call that it is.
#include "chat/forced_call.h"

#include "base/format.h"
#include "base/json.h"
#include "files/gguf.h"
#include "model/embedded_model.h"
#include "support/grammars.h"
#include "support/remade.h"
#include "support/vocabularies.h"

namespace gimbal::test {
namespace {

const Json kCity =
    Json::parse(R"({"type":"object","properties":{"city":{"type":"string"}},"required":["city"]})");
const Json kNothing = Json::parse(R"({"type":"object","properties":{}})");

// The begin of a forced answer as an engine's tokens give it: marks and control tokens one by one.
void begin(ToolCallSplitter& splitter, std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.starts_with("<|") ? text.find("|>") + 2 : std::min(text.find("<|"), text.size());
    if (text.starts_with("<|")) splitter.control(text.substr(0, end));
    else splitter.push(text.substr(0, end));
    text.remove_prefix(end);
  }
}

TEST(ForcedCall, IsReadAsWhatItIs) {
  const struct {
    const char *source, *body;  // of the template; of the answer
  } kFamilies[] = {
      {"<tool_call>", R"({"name": "weather", "arguments": {"city": "Oslo"}})"},
      {"[TOOL_CALLS]", R"([{"name": "weather", "arguments": {"city": "Oslo"}}])"},
      {"<|tool_call|>", R"([{"name": "weather", "arguments": {"city": "Oslo"}}])"},
      {"<|START_ACTION|>",
       R"([{"tool_call_id": "0", "tool_name": "weather", "parameters": {"city": "Oslo"}}])"},
      {"<|tool_call_start|>", R"({"name": "weather", "arguments": {"city": "Oslo"}})"},
      {"<|python_tag|> \"parameters\"", R"({"name": "weather", "parameters": {"city": "Oslo"}})"},
      {"<|channel|> to=functions.", R"({"name": "weather", "parameters": {"city": "Oslo"}})"},
      {"no calls", R"({"name": "weather", "parameters": {"city": "Oslo"}})"},
  };
  const CallableTool tools[] = {{"weather", &kCity}, {"now", &kNothing}};
  for (const auto& family : kFamilies) {
    SCOPED_TRACE(family.source);
    const auto forced = forced_call(ToolCallFormat::of(family.source), tools);
    ASSERT_TRUE(forced) << forced.error().message;
    Matcher matcher(forced->grammar);
    EXPECT_EQ(matcher.fit(family.body), Fit::Whole) << forced->grammar;
    EXPECT_EQ(matcher.fit(std::string(family.body) + " and"), Fit::No);
    EXPECT_EQ(matcher.fit("I will"), Fit::No);
    ToolCallSplitter splitter(forced->format);
    if (forced->format.kind != ToolCallFormat::Kind::Bare) begin(splitter, forced->begin);
    auto pieces = splitter.push(family.body);
    for (auto& p : splitter.finish()) pieces.push_back(std::move(p));
    std::erase_if(pieces, [](const auto& p) { return p.kind == ToolCallSplitter::Piece::Control; });
    ASSERT_EQ(pieces.size(), 1u);
    ASSERT_EQ(pieces[0].kind, ToolCallSplitter::Piece::Call) << pieces[0].text;
    EXPECT_EQ(pieces[0].call.name, "weather");
    EXPECT_EQ(Json::parse(pieces[0].call.arguments), (Json{{"city", "Oslo"}}));
  }
}

// A vocabulary that has these marks as control tokens, or not.
std::unique_ptr<Tokenizer> tokenizer_with(const std::vector<Mark>& marks) {
  const auto model = *parse_gguf(embedded_model(), "the built-in model");
  auto made = tokenizer_of(remade(model, "", marks));
  EXPECT_TRUE(made);
  return std::move(*made);
}

// Marks that are control tokens, and everything else letter by letter.
std::vector<Token> tokens_of(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<Token> out;
  for (size_t bytes = 0; !text.empty(); text.remove_prefix(bytes)) {
    Token found = -1;
    bytes = 1;
    for (Token t = 0; t < tokenizer.size(); t++) {
      const std::string piece = tokenizer.piece(t, true);
      const bool here = tokenizer.is_control(t) && !piece.empty() && text.starts_with(piece);
      if (here) found = t, bytes = piece.size();
      else if (bytes == 1 && piece == text.substr(0, 1)) found = t;
    }
    EXPECT_GE(found, 0) << text;
    out.push_back(found);
  }
  return out;
}

struct Read {
  std::string text;
  std::vector<ToolCall> calls;
};
// As a server reads an answer: `begin` is of the prompt, `answer` has control tokens written out.
Read read(const Tokenizer& tokenizer, const ForcedCall& asked, std::vector<std::string> names,
          const std::string& answer) {
  ToolCallSplitter splitter(asked.format, std::move(names));
  Read out;
  const auto take = [&](ToolCallSplitter::Pieces pieces) {
    for (auto& p : pieces)
      if (p.kind == ToolCallSplitter::Piece::Call) out.calls.push_back(p.call);
      else if (p.kind == ToolCallSplitter::Piece::Text) out.text += p.text;
  };
  StreamDecoder decoder(tokenizer);
  for (Token t : tokens_of(tokenizer, asked.begin + answer)) {
    if (tokenizer.is_control(t)) take(splitter.control(tokenizer.piece(t, true)));
    else take(splitter.push(decoder.push(t)));
  }
  take(splitter.finish());
  return out;
}

bool fits(const Tokenizer& tokenizer, Constraint constraint, const std::string& answer, bool whole = true) {
  for (Token t : tokens_of(tokenizer, answer))
    if (!constraint.accept(t)) return false;
  return !whole || constraint.may_end();
}

TEST(CallOrForm, TheMarkDecides) {
  const CallableTool tools[] = {{"weather", &kCity}, {"now", &kNothing}};
  const std::string city = R"("city": "Oslo"})";
  const struct {
    const char* source;  // of the template
    std::vector<Mark> marks;
    std::string call, two;  // `two`: of them, where the family writes several
  } kFamilies[] = {
      {"<tool_call>",
       {{"<tool_call>"}, {"</tool_call>"}},
       "<tool_call>\n{\"name\": \"weather\", \"arguments\": {" + city + "}\n</tool_call>",
       "\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"},
      {"<tool_call>",
       {},
       "<tool_call>\n{\"name\": \"weather\", \"arguments\": {" + city + "}\n</tool_call>",
       "\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"},
      {"[TOOL_CALLS]",
       {{"[TOOL_CALLS]"}},
       "[TOOL_CALLS][{\"name\": \"weather\", \"arguments\": {" + city +
           "}, {\"name\": \"now\", \"arguments\": {}}]",
       ""},
      {"<|tool_call|>",
       {{"<|tool_call|>", false}},
       "<|tool_call|>[{\"name\": \"weather\", \"arguments\": {" + city + "}]",
       ""},
      {"<|START_ACTION|>",
       {{"<|START_ACTION|>"}, {"<|END_ACTION|>"}},
       "<|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": \"weather\", \"parameters\": {" + city +
           "}]<|END_ACTION|>",
       ""},
      {"<|tool_call_start|>",
       {{"<|tool_call_start|>"}, {"<|tool_call_end|>"}},
       "<|tool_call_start|>{\"name\": \"weather\", \"arguments\": {" + city + "}<|tool_call_end|>",
       ""},
      {"<｜tool▁call▁begin｜>",
       {{"<｜tool▁call▁begin｜>"},
        {"<｜tool▁call▁end｜>"},
        {"<｜tool▁calls▁begin｜>"},
        {"<｜tool▁calls▁end｜>"}},
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{\"name\": \"weather\", \"arguments\": {" + city +
           "}<｜tool▁call▁end｜>",
       "\n<｜tool▁call▁begin｜>{\"name\": \"now\", \"arguments\": "
       "{}}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
      {"<|python_tag|> \"parameters\"", {}, "{\"name\": \"weather\", \"parameters\": {" + city + "}", ""},
      {"no calls", {}, "{\"name\": \"weather\", \"parameters\": {" + city + "}", ""},
  };
  for (const auto& family : kFamilies) {
    SCOPED_TRACE(format("{} {}", family.source, family.marks.size()));
    const auto tokenizer = tokenizer_with(family.marks);
    const auto tree = TokenTree::create(*tokenizer, tokenizer->size());
    const auto asked =
        call_or_form(ToolCallFormat::of(family.source), tools,
                     "root ::= \"{\\\"name\\\": \\\"\" [A-Za-z]+ \"\\\"}\"", *tokenizer, false);
    ASSERT_TRUE(asked) << asked.error().message;
    const auto constraint = Constraint::create(*Grammar::gbnf(asked->grammar), tree);
    ASSERT_TRUE(constraint) << constraint.error().message << asked->grammar;
    for (const std::string& answer : {family.call, family.call + family.two}) {
      EXPECT_TRUE(fits(*tokenizer, *constraint, answer)) << answer;
      const Read is = read(*tokenizer, *asked, {"weather", "now"}, answer);
      EXPECT_EQ(is.text, "");
      ASSERT_GE(is.calls.size(), 1u);
      EXPECT_EQ(is.calls[0].name, "weather");
      EXPECT_EQ(Json::parse(is.calls[0].arguments), (Json{{"city", "Oslo"}}));
      if (!family.two.empty() && answer != family.call) {
        ASSERT_EQ(is.calls.size(), 2u);
        EXPECT_EQ(is.calls[1].name, "now");
      }
    }
    // An answer of the form that looks like a call is none: there is no such tool.
    const std::string form = R"({"name": "Bob"})";
    EXPECT_TRUE(fits(*tokenizer, *constraint, form));
    const Read is = read(*tokenizer, *asked, {"weather", "now"}, form);
    EXPECT_TRUE(is.calls.empty());
    EXPECT_EQ(is.text, form);
    // Neither is half of each, another tool, or anything else.
    std::string other = family.call;
    other.replace(other.find("weather"), 7, "feather");
    EXPECT_FALSE(fits(*tokenizer, *constraint, other, false));
    for (const std::string& no : {std::string("I will"), form + family.call, family.call + form,
                                  std::string(R"({"name": "weather", "city": "Oslo"})")})
      EXPECT_FALSE(fits(*tokenizer, *constraint, no, false)) << no;
    for (const Mark& mark : family.marks)  // where it is a control token, letters are not the mark
      if (mark.control) { EXPECT_FALSE(fits(*tokenizer, *constraint, mark.text.substr(0, 2), false)); }
    const auto once =
        call_or_form(ToolCallFormat::of(family.source), tools, "root ::= \"a\"", *tokenizer, true);
    ASSERT_TRUE(once);
    const auto single = Constraint::create(*Grammar::gbnf(once->grammar), tree);
    ASSERT_TRUE(single);
    if (!family.two.empty()) { EXPECT_FALSE(fits(*tokenizer, *single, family.call + family.two, false)); }
  }
}

TEST(CallOrForm, AListHasOneCallWhereOneIsAllowed) {
  const CallableTool tools[] = {{"weather", &kCity}, {"now", &kNothing}};
  const auto tokenizer = tokenizer_with({{"[TOOL_CALLS]"}});
  const auto tree = TokenTree::create(*tokenizer, tokenizer->size());
  const std::string call = "{\"name\": \"now\", \"arguments\": {}}";
  for (const bool one_call : {false, true}) {
    SCOPED_TRACE(one_call);
    const auto asked =
        call_or_form(ToolCallFormat::of("[TOOL_CALLS]"), tools, "root ::= \"a\"", *tokenizer, one_call);
    ASSERT_TRUE(asked) << asked.error().message;
    const auto constraint = Constraint::create(*Grammar::gbnf(asked->grammar), tree);
    ASSERT_TRUE(constraint) << constraint.error().message;
    EXPECT_TRUE(fits(*tokenizer, *constraint, "[TOOL_CALLS][" + call + "]"));
    EXPECT_EQ(fits(*tokenizer, *constraint, "[TOOL_CALLS][" + call + ", " + call + "]"), !one_call);
    EXPECT_FALSE(fits(*tokenizer, *constraint, "[TOOL_CALLS][]", false));
  }
}

TEST(CallOrForm, MessagesOfGptOss) {
  const std::vector<Mark> marks = {{"<|channel|>"}, {"<|message|>"}, {"<|constrain|>"}};
  const auto format = ToolCallFormat::of("<|channel|> to=functions.");
  const CallableTool tools[] = {{"weather", &kCity}, {"now", &kNothing}};
  const auto tokenizer = tokenizer_with(marks);
  const auto asked = call_or_form(format, tools, "root ::= [a-z]{3}", *tokenizer, false);
  ASSERT_TRUE(asked) << asked.error().message;
  EXPECT_EQ(asked->begin, "<|channel|>");
  const auto constraint =
      Constraint::create(*Grammar::gbnf(asked->grammar), TokenTree::create(*tokenizer, tokenizer->size()));
  ASSERT_TRUE(constraint) << constraint.error().message;
  const std::string call = "commentary to=functions.weather <|constrain|>json<|message|>{\"city\": \"Oslo\"}";
  EXPECT_TRUE(fits(*tokenizer, *constraint, call));
  EXPECT_TRUE(fits(*tokenizer, *constraint, "final<|message|>yes"));
  EXPECT_FALSE(fits(*tokenizer, *constraint, "final<|message|>{\"city", false));
  EXPECT_FALSE(fits(*tokenizer, *constraint, "analysis", false));
  EXPECT_FALSE(fits(*tokenizer, *constraint, "final<|constrain|>", false));
  const Read is = read(*tokenizer, *asked, {"weather", "now"}, call);
  ASSERT_EQ(is.calls.size(), 1u);
  EXPECT_EQ(is.calls[0].name, "weather");
  EXPECT_EQ(Json::parse(is.calls[0].arguments), (Json{{"city", "Oslo"}}));
  const auto without = call_or_form(format, tools, "root ::= \"a\"", *tokenizer_with({}), false);
  ASSERT_FALSE(without);
  EXPECT_NE(without.error().message.find("<|channel|>"), std::string::npos) << without.error().message;
  const auto wrong = call_or_form(format, tools, "root ::= (", *tokenizer, false);
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("grammar, line 1"), std::string::npos);
}

// A form may hold what looks like a mark: calls stand at the beginning, or nowhere.
TEST(CallOrForm, WhatLooksLikeACallWithinAText) {
  ToolCallSplitter splitter(ToolCallFormat::of("<tool_call>"), {"now"});
  std::string text;
  int calls = 0;
  const std::string answer = "{\"a\": \"<tool_call>now</tool_call>\"}";
  for (char c : answer)
    for (auto& p : splitter.push(std::string(1, c)))
      p.kind == ToolCallSplitter::Piece::Call ? void(calls++) : void(text += p.text);
  for (auto& p : splitter.finish())
    p.kind == ToolCallSplitter::Piece::Call ? void(calls++) : void(text += p.text);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(text, answer);
}

TEST(ForcedCall, OneToolOfAHeader) {
  const CallableTool tools[] = {{"weather", &kCity}};
  const auto forced = forced_call(ToolCallFormat::of("<|channel|> to=functions."), tools);
  ASSERT_TRUE(forced);
  EXPECT_NE(forced->begin.find("to=functions.weather "), std::string::npos);
  EXPECT_EQ(Matcher(forced->grammar).fit(R"({"city": "Oslo"})"), Fit::Whole);
  ToolCallSplitter splitter(forced->format);
  begin(splitter, forced->begin);
  splitter.push(R"({"city": "Oslo"})");
  const auto pieces = splitter.finish();
  ASSERT_FALSE(pieces.empty());
  EXPECT_EQ(pieces[0].kind, ToolCallSplitter::Piece::Call);
  EXPECT_EQ(pieces[0].call.name, "weather");
}

TEST(ForcedCall, SchemasOfTools) {
  const CallableTool now[] = {{"now", &kNothing}};
  Matcher matcher(forced_call({}, now)->grammar);
  EXPECT_EQ(matcher.fit(R"({"name": "now", "parameters": {}})"), Fit::Whole);
  EXPECT_EQ(matcher.fit(R"({"name": "now", "parameters": {"x)"), Fit::No) << "nothing is to be said";
  for (const char* schema : {R"({"type":"string"})", R"({"not":{}})", "3"}) {
    const Json j = Json::parse(schema);
    const CallableTool tools[] = {{"now", &kNothing}, {"odd", &j}};
    const auto no = forced_call({}, tools);
    ASSERT_FALSE(no) << schema;
    EXPECT_NE(no.error().message.find("the tool 'odd'"), std::string::npos) << no.error().message;
  }
  const CallableTool name[] = {{"two words", &kNothing}};
  EXPECT_FALSE(forced_call({}, name));
}

}  // namespace
}  // namespace gimbal::test
