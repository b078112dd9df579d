// JSON schemas: the exact bounds of numbers, lengths and counts, and of alternatives and opposites made of
// them.
#include "grammar/schema_check.h"
#include "support/grammars.h"

namespace gimbal::test {
namespace {

// Alternatives that share one value are not disjoint: `oneOf` then has to exclude it. Alternatives that are
// one apart share nothing.
TEST(SchemaBounds, AlternativesWhoseBoundsTouch) {
  const struct {
    const char *schema, *shared;  // a value of both alternatives; nullptr: they have none
    std::vector<const char*> texts;
  } kCases[] = {
      {R"({"oneOf":[{"type":"string","maxLength":3},{"type":"string","minLength":3}]})",
       "\"abc\"",
       {"\"ab\"", "\"abcd\""}},
      {R"({"oneOf":[{"type":"string","maxLength":2},{"type":"string","minLength":3}]})",
       nullptr,
       {"\"ab\"", "\"abc\""}},
      {R"({"oneOf":[{"type":"array","items":{"type":"null"},"maxItems":2},
                   {"type":"array","items":{"type":"null"},"minItems":2}]})",
       "[null,null]",
       {"[null]", "[null,null,null]"}},
      {R"({"oneOf":[{"type":"array","items":{"type":"null"},"maxItems":1},
                   {"type":"array","items":{"type":"null"},"minItems":2}]})",
       nullptr,
       {"[null]", "[null,null]"}},
      {R"({"oneOf":[{"type":"integer","maximum":4},{"type":"integer","minimum":4}]})", "4", {"3", "5"}},
      {R"({"oneOf":[{"type":"number","maximum":4},{"type":"number","exclusiveMinimum":4}]})",
       nullptr,
       {"4", "4.5"}},
      // They overlap, and the bounds that exclude their number lie within.
      {R"({"oneOf":[{"type":"number","exclusiveMaximum":6},{"type":"number","exclusiveMinimum":4}]})",
       "5",
       {"4", "6"}},
      {R"({"oneOf":[{"type":"number","minimum":4},{"type":"number","exclusiveMaximum":6}]})",
       "5",
       {"3", "6"}},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.schema);
    const auto g = json_schema_grammar(c.schema);
    if (!g) {  // refused by name, which is allowed for what cannot be written
      EXPECT_NE(c.shared, nullptr) << g.error().message;
      EXPECT_NE(g.error().message.find("alternatives 0 and 1"), std::string::npos) << g.error().message;
      continue;
    }
    Matcher m(*g);
    if (c.shared) { EXPECT_FALSE(m.matches(c.shared)); }
    for (const char* text : c.texts) EXPECT_TRUE(m.matches(text)) << text;
  }
}

// Of two bounds with the same number, the one that excludes it holds, in whichever order they come.
TEST(SchemaBounds, EqualBoundsOfWhichOneExcludes) {
  const struct {
    const char *schema, *excluded;
    std::vector<const char*> texts;
  } kCases[] = {
      {R"({"type":"integer","minimum":5,"exclusiveMinimum":5,"maximum":9})", "5", {"6", "9"}},
      {R"({"type":"integer","exclusiveMinimum":5,"minimum":5,"maximum":9})", "5", {"6", "9"}},
      {R"({"type":"integer","maximum":9,"allOf":[{"minimum":5},{"exclusiveMinimum":5.0}]})", "5", {"6", "9"}},
      {R"({"type":"integer","maximum":9,"allOf":[{"exclusiveMinimum":5},{"minimum":5}]})", "5", {"6", "9"}},
      {R"({"type":"integer","minimum":5,"maximum":9,"exclusiveMaximum":9})", "9", {"8", "5"}},
      {R"({"type":"integer","minimum":5,"allOf":[{"maximum":9},{"exclusiveMaximum":9}]})", "9", {"8", "5"}},
      {R"({"type":"integer","minimum":5,"allOf":[{"exclusiveMaximum":9},{"maximum":9}]})", "9", {"8", "5"}},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.schema);
    Matcher m(compiled(c.schema));
    EXPECT_FALSE(m.matches(c.excluded));
    for (const char* text : c.texts) EXPECT_TRUE(m.matches(text)) << text;
  }
}

// Limits hold beside other rules that count, and at numbers that are no whole ones.
TEST(SchemaBounds, LimitsBesideOtherRules) {
  const struct {
    const char* schema;
    std::vector<const char*> texts, others;
  } kCases[] = {
      {R"({"type":"array","items":{"enum":[1,2]},"contains":{"const":1},"minItems":3})",
       {"[1,2,2]", "[2,2,2,1]", "[1,1,1]"},
       {"[]", "[1]", "[2,1]", "[2,2,2]"}},
      {R"({"type":"array","items":{"enum":[1,2]},"contains":{"const":1},"minContains":2,"maxItems":3})",
       {"[1,1]", "[1,2,1]"},
       {"[1,2]", "[1,1,1,1]", "[1,2,2,1]"}},
      {R"({"type":"object","maxProperties":2,"additionalProperties":{"type":"null"}})",
       {"{}", R"({"a":null})", R"({"a":null,"b":null})"},
       {R"({"a":null,"b":null,"c":null})"}},
      {R"({"properties":{"a":{"const":1}},"type":"object","maxProperties":2,"additionalProperties":{"const":2}})",
       {R"({"a":1})", R"({"a":1,"b":2})", R"({"b":2,"c":2})"},
       {R"({"a":1,"b":2,"c":2})", R"({"b":2,"c":2,"d":2})"}},
      {R"({"type":"object","patternProperties":{"^a":{"const":1}},"additionalProperties":{"const":2}})",
       {R"({"ab":1})", R"({"b":2})", R"({"b":2,"a":1})"},
       {R"({"ab":2})", R"({"b":1})", R"({"b":3})", R"({"a":1,"b":3})"}},
      {R"({"type":"integer","minimum":3,"exclusiveMaximum":5.5})", {"3", "4", "5"}, {"2", "6"}},
      {R"({"type":"integer","exclusiveMinimum":-5.5,"exclusiveMaximum":-2.5})",
       {"-5", "-4", "-3"},
       {"-6", "-2", "2"}},
      {R"({"type":"integer","exclusiveMinimum":-0.5,"exclusiveMaximum":0.5})", {"0"}, {"1", "-1"}},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.schema);
    Matcher m(compiled(c.schema));
    for (const char* text : c.texts) EXPECT_TRUE(m.matches(text)) << text;
    for (const char* text : c.others) EXPECT_FALSE(m.matches(text)) << text;
  }
}

// Opposites of opposites, and of choices within choices.
TEST(SchemaBounds, OppositesAreExact) {
  const struct {
    const char* schema;
    std::vector<const char*> texts, others;
  } kCases[] = {
      {R"({"not":{"anyOf":[{"enum":[null,3]},{"type":"string"}]}})",
       {"4", "true", "[]"},
       {"null", "3", "\"a\""}},
      {R"({"type":"integer","not":{"allOf":[{"minimum":3},{"maximum":5}]}})",
       {"2", "6", "-7"},
       {"3", "4", "5"}},
      {R"({"type":"integer","not":{"minimum":3,"exclusiveMaximum":false}})", {"2", "-7"}, {"3", "9"}},
      {R"({"type":"integer","not":{"maximum":3,"exclusiveMinimum":false}})", {"4", "9"}, {"3", "-7"}},
      {R"({"not":{"not":{"enum":["a",1]}}})", {"\"a\"", "1"}, {"2", "\"b\"", "null"}},
      {R"({"type":"integer","not":{"anyOf":[{"minimum":3,"maximum":5},{"const":9}]}})",
       {"2", "6", "10", "-7"},
       {"3", "4", "5", "9", "2.5"}},
      {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{}},"not":{"required":["a","b"]}})",
       {R"({"a":1})", R"({"b":1})", "{}"},
       {R"({"a":1,"b":2})"}},
      {R"({"type":"object","propertyNames":{"enum":["a",1,"b"]},"additionalProperties":{"const":1}})",
       {"{}", R"({"a":1})", R"({"b":1})", R"({"a":1,"b":1})"},
       {R"({"c":1})"}},
      {R"({"oneOf":[{"type":"integer"},{"minimum":2}]})", {"1", "2.5"}, {"3", "1.5"}},
      {R"({"anyOf":[{"prefixItems":[{"prefixItems":[{},{}],"items":true},{"oneOf":[{},{}]}],"items":{},"contains":{}},
           {"oneOf":[{"items":{}},{"items":{"enum":[7]}}]}]})",
       {"[1]", "[7,8]"},
       {"[]", "[7]"}},
      {R"({"type":"object","properties":{"b":{"const":1}},"minProperties":2})",
       {R"({"b":1,"c":2})"},
       {R"({"b":1})"}},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.schema);
    Matcher m(compiled(c.schema));
    for (const char* text : c.texts) EXPECT_TRUE(m.matches(text)) << text;
    for (const char* text : c.others) EXPECT_FALSE(m.matches(text)) << text;
  }
}

// Lists of different items, where no grammar has to compare them: their places have schemas that share no
// value.
TEST(SchemaBounds, DifferentItemsByTheirPlaces) {
  const char* const kPlaces =
      R"({"type":"array","uniqueItems":true,"prefixItems":[{"type":"integer"},{"type":"null"}])";
  for (const char* end : {R"(,"maxItems":2})", R"(,"items":false})"}) {
    Matcher m(compiled(kPlaces + std::string(end)));
    for (const char* text : {"[]", "[1]", "[1,null]"}) EXPECT_TRUE(m.matches(text)) << text;
    for (const char* text : {"[null]", "[1,null,2]"}) EXPECT_FALSE(m.matches(text)) << text;
  }
  for (const char* end : {"}", R"(,"maxItems":3})", R"(,"items":{"type":"integer"}})"})
    EXPECT_FALSE(json_schema_grammar(kPlaces + std::string(end))) << "other items may be equal: " << end;
  EXPECT_FALSE(json_schema_grammar(
      R"({"type":"array","uniqueItems":true,"maxItems":2,"prefixItems":[{"type":"integer"},{"type":"number"}]})"));
}

// Different items of listed values: each list of some of them, and only values that fulfil all parts.
TEST(SchemaBounds, DifferentItemsOfListedValues) {
  const std::string kListed = R"({"type":"array","uniqueItems":true,"items":)";
  for (const char* items :
       {R"({"allOf":[{"maximum":2},{"enum":[1,2,3,2]}]})", R"({"allOf":[{"enum":[1,2,3,2]},{"maximum":2}]})",
        R"({"enum":[3,1,2],"maximum":2,"allOf":[{"minimum":0}]})"}) {
    SCOPED_TRACE(items);
    Matcher m(compiled(kListed + items + "}"));
    for (const char* text : {"[]", "[1]", "[2]", "[1,2]", "[2,1]"}) EXPECT_TRUE(m.matches(text)) << text;
    for (const char* text : {"[3]", "[1,3]", "[1,1]", "[2,1,2]", "[1,2,3]"})
      EXPECT_FALSE(m.matches(text)) << text;
  }
}

// The values of an enum, each of which has to fulfil all other keywords, too.
TEST(SchemaBounds, ValuesOfAnEnumBesideConditions) {
  const struct {
    const char* schema;
    std::vector<const char*> texts, others;
  } kCases[] = {
      {R"({"enum":[1,5,-2,"a"],"if":{"type":"integer"},"then":{"minimum":0},"maximum":3})",
       {"1", "\"a\""},
       {"5", "-2"}},
      {R"({"enum":["a","ab","abc"],"if":{"minLength":2},"then":{"maxLength":2},"else":{"const":"b"}})",
       {"\"ab\""},
       {"\"a\"", "\"abc\""}},
      {R"({"type":"string","pattern":"^[ab]{1,2}$","not":{"enum":["ab","b"]}})",
       {"\"a\"", "\"aa\"", "\"ba\"", "\"bb\""},
       {"\"ab\"", "\"b\"", "\"aab\""}},
      {R"({"$ref":"#/$defs/a%20b%3f%4A","$defs":{"a b?J":{"const":2}}})", {"2"}, {"1"}},
      {R"({"$ref":"#/$defs/%30%39%41%46%61%66%29%4f%4F","$defs":{"09AFaf)OO":{"const":2}}})", {"2"}, {"1"}},
      // Digits in a text behind a quotation mark are no number.
      {R"({"const":"\"12345678901234567890"})", {R"("\"12345678901234567890")"}, {"12345678901234567890"}},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.schema);
    Matcher m(compiled(c.schema));
    for (const char* text : c.texts) EXPECT_TRUE(m.matches(text)) << text;
    for (const char* text : c.others) EXPECT_FALSE(m.matches(text)) << text;
  }
}

// The bounds of numbers, beside comparing.
TEST(SchemaBounds, NumbersAreExact) {
  std::mt19937 random(3);
  auto number = [&](int digits, int parts) {
    std::string s = random() % 2 ? "-" : "";
    std::string whole = std::to_string(random() % unsigned(std::pow(10, digits)));
    s += whole;
    if (parts && random() % 2) {
      s += '.';
      for (int i = 0; i < parts; i++) s += char('0' + random() % 10);
    }
    return s;
  };
  for (int round = 0; round < 300; round++) {
    const bool whole = round % 2, low_excluded = random() % 2, high_excluded = random() % 2;
    const std::string low = number(1 + round % 3, 2), high = number(1 + round % 3, 1);
    NumberBounds bounds;
    std::string schema = whole ? R"({"type":"integer")" : R"({"type":"number")";
    if (round % 5)
      schema += std::string(low_excluded ? R"(,"exclusiveMinimum":)" : R"(,"minimum":)") + low,
          bounds.at_least(Decimal::of(low), low_excluded);
    if (round % 7)
      schema += std::string(high_excluded ? R"(,"exclusiveMaximum":)" : R"(,"maximum":)") + high,
          bounds.at_most(Decimal::of(high), high_excluded);
    schema += "}";
    SCOPED_TRACE(schema);
    if (!bounds.bounded()) continue;
    const Grammar g = compiled(schema);
    auto automaton = Automaton::create(g);
    const bool none = !automaton;
    std::optional<Matcher> m;
    if (!none) m.emplace(g);
    for (int i = 0; i < 200; i++) {
      std::string text = number(1 + i % 4, whole ? 0 : i % 4);
      if (i == 0) text = low;
      if (i == 1) text = high;
      const Decimal d = Decimal::of(text);
      if (d.zero() && text.starts_with('-')) continue;
      if (whole && text.find('.') != std::string::npos) continue;
      const bool want = bounds.hold(d) && (!whole || d.whole_number());
      ASSERT_EQ(!none && m->matches(text), want) << text;
    }
  }
}

}  // namespace
}  // namespace gimbal::test
