// Calls that must be, in the forms of the families: what the grammar admits behind the prompt's end is read
// as the call that it is.
#include "chat/forced_call.h"

#include "base/json.h"
#include "support/grammars.h"

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
