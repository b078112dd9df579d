// JSON schemas: which texts they admit, beside xgrammar, llguidance and jsonschema; what is refused, by name;
// and texts written at random, which are read again and checked.
#include "grammar/grammar.h"

#include "grammar/schema_check.h"
#include "support/golden.h"
#include "support/grammars.h"
#include "support/vocabularies.h"

namespace gimbal::test {
namespace {

std::string admits_file() { return GIMBAL_SOURCE_DIR "/tests/data/grammar/admits.json"; }

// Why a text that others admit, and the schema allows, is not written by gimbal.
struct Difference {
  const char *why, *pattern;  // of the text
};
constexpr Difference kNotWritten[] = {
    {"keys come in the order of the schema", R"(^\{"b".*"a"|^\{"[xb]":(true|"x"),"a")"},
    {"no space before a colon", R"(" :)"},
    {"one space between tokens at most, but for indentation", R"(  )"},
    {"whole numbers are written without a point and exponent, bounded ones without an exponent",
     R"(^-?\d+\.0$|^\{"a":1\.0\}$|^\d+(\.\d+)?[eE]\d+$)"},
    {"there is no -0 among whole numbers", R"(^-0$)"},
    {"numbers have at most 18 digits before the point, and exponents two", R"(^\d{19,}$|e\d{3}$)"},
    {"half a surrogate pair is no character", R"(\\ud800"$)"},
    {"other keys than those of the schema are written where additionalProperties speaks of them", R"("c":2)"},
    {"characters of a pattern are spelled in one way", R"(\\u)"},
};

TEST(JsonSchema, AdmitsWhatOthersAdmit) {
  const auto data = read_json(admits_file());
  int texts = 0, alike[3] = {}, asked[3] = {};
  std::map<std::string, int> reasons;
  for (const auto& c : data["cases"]) {
    const std::string schema = c["schema"].dump();
    SCOPED_TRACE(schema);
    Matcher m(compiled(schema));
    for (const auto& t : c["texts"]) {
      const std::string text = t["text"];
      const bool ours = m.matches(text), valid = t["jsonschema"];
      texts++;
      EXPECT_TRUE(valid || !ours) << "admits what the schema does not allow: " << text;
      int i = 0;
      for (const char* who : {"jsonschema", "xgrammar", "llguidance"}) {
        if (!t[who].is_null()) asked[i]++, alike[i] += t[who] == ours;
        i++;
      }
      if (!valid || ours) continue;
      const char* why = nullptr;
      for (const Difference& d : kNotWritten)
        if (CharMachine::pattern(d.pattern)->matches(text)) why = d.why;
      EXPECT_NE(why, nullptr) << "does not admit " << text;
      if (why) reasons[why]++;
    }
  }
  EXPECT_GT(texts, 300);
  std::printf("%d texts; alike: jsonschema %d of %d, xgrammar %d of %d, llguidance %d of %d\n", texts,
              alike[0], asked[0], alike[1], asked[1], alike[2], asked[2]);
  for (const auto& [why, n] : reasons) std::printf("  %3d not written: %s\n", n, why.c_str());
}

// One of each kind; the last cannot write every character.
constexpr const char* kVocabularies[] = {"tok512", "qwen2", "xlm-roberta-6000"};

struct Vocabulary {
  std::string name;
  std::shared_ptr<const TokenTree> tree;
};
const std::vector<Vocabulary>& vocabularies() {
  static const std::vector<Vocabulary> all = [] {
    std::vector<Vocabulary> out;
    for (auto& v : reference_vocabularies(kVocabularies))
      out.push_back({v.name, TokenTree::create(*v.tokenizer, v.tokenizer->size())});
    return out;
  }();
  return all;
}

// With every vocabulary, random tokens out of what is allowed make a text that is JSON and that the schema
// allows; what the schema bounds ends.
TEST(JsonSchema, RandomTextsEndAndAreValid) {
  const auto data = read_json(admits_file());
  int ended_texts = 0, unended = 0;
  for (const auto& v : vocabularies()) {
    SCOPED_TRACE(v.name);
    unsigned seed = 1;
    for (const auto& c : data["cases"]) {
      const Json schema = Json::parse(c["schema"].dump());
      SCOPED_TRACE(schema.dump());
      auto constraint = Constraint::create(compiled(schema.dump()), v.tree);
      if (!constraint) {
        EXPECT_FALSE(v.tree->alphabet().empty()) << constraint.error().message;
        continue;
      }
      SchemaReader reader(schema);
      ASSERT_TRUE(reader.check());
      std::mt19937 random(seed++);
      for (int i = 0; i < 2; i++) {
        bool ended;
        const std::string text = random_text(*constraint, *v.tree, random, 120, &ended);
        if (HasFailure()) return;
        ended_texts += ended, unended += !ended;
        if (!ended) continue;
        const Json value = Json::parse(text, nullptr, false);
        ASSERT_FALSE(value.is_discarded()) << text;
        const auto holds = reader.holds(value, schema);
        ASSERT_TRUE(holds);
        ASSERT_TRUE(*holds) << text;
      }
    }
  }
  std::printf("%d texts ended, %d did not within 120 tokens\n", ended_texts, unended);
  EXPECT_GT(ended_texts, unended);
}

TEST(JsonSchema, FiniteSchemasEnd) {
  const Grammar g =
      compiled(R"({"type":"object","additionalProperties":false,"required":["a","b","c","d"],"properties":{
    "a":{"type":"string","maxLength":8},"b":{"type":"array","maxItems":3,"items":{"type":"number"}},
    "c":{"enum":["x","y"]},"d":{"type":"string","format":"date-time"}}})");
  for (const auto& v : vocabularies()) {
    auto c = Constraint::create(g, v.tree);
    if (!c) continue;
    std::mt19937 random(5);
    for (int i = 0; i < 10; i++) {
      bool ended;
      const std::string text = random_text(*c, *v.tree, random, 1000, &ended);
      EXPECT_TRUE(ended) << v.name << ": " << text;
      EXPECT_FALSE(Json::parse(text, nullptr, false).is_discarded()) << text;
    }
  }
}

TEST(JsonSchema, RefusesByName) {
  const std::pair<const char*, const char*> kRefused[] = {
      {"{", "is no JSON"},
      {"[]", "a schema is an object"},
      {R"({"type":"object","unevaluatedProperties":false})", "the keyword 'unevaluatedProperties' is not"},
      {R"({"properties":{"a":{"minimun":1}}})", "at #/properties/a: the keyword 'minimun'"},
      {R"({"type":"array","uniqueItems":true})", "'uniqueItems' of items that are not listed"},
      {R"({"uniqueItems":1})", "'uniqueItems' must be true or false"},
      {R"({"multipleOf":0})", "'multipleOf' must be a number above 0"},
      {R"({"multipleOf":1234567})", "'multipleOf' needs too large a grammar"},
      {R"({"$defs":{"x":{"contains":1}}})", "at #/$defs/x/contains: a schema is an object"},
      {R"({"not":{"multipleOf":3}})", "the opposite of 'multipleOf' cannot be written"},
      {R"({"not":{"const":[1]}})", "the opposite of an object or a list"},
      {R"({"type":"object","minProperties":3,"additionalProperties":{}})", "only 1 different keys"},
      {R"({"type":"integer","maximum":18446744073709551616000001})", "has more digits than are kept"},
      {R"({"const":1.8446744073709552e19})", "has a number that JSON's readers round"},
      {R"({"patternProperties":{"(":{}}})", "the pattern '(' cannot be used"},
      {R"({"type":"text"})", "'type' must be"},
      {R"({"type":[]})", "'type' must be"},
      {R"({"minLength":-1})", "'minLength' must be"},
      {R"({"minLength":1.5})", "'minLength' must be"},
      {R"({"maxItems":4e9})", "'maxItems' must be"},
      {R"({"const":9007199254740992.0})", "has a number that JSON's readers round"},
      {R"({"const":-9007199254740992.0})", "has a number that JSON's readers round"},
      {R"({"maxLength":"3"})", "'maxLength' must be"},
      {R"({"minimum":"3"})", "'minimum' must be a number"},
      {R"({"enum":3})", "'enum' must be"},
      {R"({"required":[1]})", "'required' must be"},
      {R"({"anyOf":[]})", "'anyOf' must be"},
      {R"({"anyOf":{"a":{}}})", "'anyOf' must be a list of schemas that is not empty"},
      {R"({"type":"array","prefixItems":{"a":{}}})", "'prefixItems' must be a list of schemas"},
      {R"({"$ref":"#/$defs/x"})", "there is no schema '#/$defs/x'"},
      {R"({"$ref":"http://x/y"})", "there is no schema"},
      {R"({"$ref":"#"})", "refers to itself without an end"},
      {R"({"allOf":[{"$ref":"#"}]})", "refers to itself without an end"},
      {R"x({"pattern":"("})x", "the pattern '(' cannot be used"},
      {R"x({"pattern":"(?=a)"})x", "looking ahead"},
      {R"({"pattern":"(a)\\1"})", "\\1 is not supported"},
      {R"({"pattern":"a\\"})", "\\ is not supported"},
      {R"({"pattern":"\\bword"})", "\\b is not supported"},
      {R"({"pattern":"a{0,500000}"})", "it repeats too often"},
      {R"({"pattern":"^(a{0,500}){0,500}$"})", "needs more than"},
      {R"({"type":"object","propertyNames":{"anyOf":[{"minLength":2},{"pattern":"^a"}]}})",
       "'anyOf' is not supported here"},
      {R"({"pattern":"a^b"})", "at the ends only"},
      {R"({"pattern":"^([a-z]{1,300}){1,300}$"})", "needs more than"},
      {R"({"pattern":"^[a-z]*a[a-z]{40}$"})", "needs more than"},
      {R"({"oneOf":[{"multipleOf":2},{"multipleOf":3}]})", "the alternatives 0 and 1"},
  };
  for (const auto& [schema, said] : kRefused) {
    const auto g = json_schema_grammar(schema);
    ASSERT_FALSE(g) << schema;
    EXPECT_EQ(g.error().code, Code::Usage);
    EXPECT_EQ(g.error().message.find("JSON schema"), 0u) << g.error().message;
    EXPECT_NE((g.error().message + g.error().remedy).find(said), std::string::npos)
        << schema << ": " << g.error().message;
  }
  // Schemas that differ little from refused ones.
  for (const char* schema :
       {R"({"minLength":1.0})", R"({"maxItems":3999999999.0})", R"({"const":9007199254740991.0})",
        R"({"const":"\"12345678901234567890.5"})", R"({"type":"object","unevaluatedProperties":true})",
        R"({"unevaluatedItems":{}})"})
    EXPECT_TRUE(json_schema_grammar(schema)) << schema;
  // Understood, and nothing is allowed.
  for (const char* schema :
       {"false", R"({"enum":[]})", R"({"minLength":3,"maxLength":2})",
        R"({"type":"integer","minimum":3,"maximum":2})", R"({"allOf":[{"type":"string"},{"type":"null"}]})",
        R"({"type":"integer","minimum":1.2,"maximum":1.8})",
        R"({"type":"object","required":["a"],"properties":{"a":false}})",
        R"({"$defs":{"x":{"type":"array","items":{"$ref":"#/$defs/x"},"minItems":1}},"$ref":"#/$defs/x"})",
        R"({"anyOf":[{"$ref":"#"}]})", R"({"type":"string","const":1})", R"({"not":{}})",
        R"({"type":"integer","multipleOf":10,"minimum":11,"maximum":19})",
        R"({"type":"object","properties":{"a":{}},"additionalProperties":false,"minProperties":2})",
        R"({"type":"array","items":{"enum":[1,2]},"uniqueItems":true,"minItems":3})"}) {
    const auto g = json_schema_grammar(schema);
    ASSERT_TRUE(g) << g.error().message;
    const auto a = Automaton::create(*g);
    ASSERT_FALSE(a) << schema;
    EXPECT_FALSE(g->has_text()) << schema;
    EXPECT_NE(a.error().message.find("no text matches"), std::string::npos);
  }
}

std::string times(const std::string& s, int n) {
  std::string out;
  for (int i = 0; i < n; i++) out += s;
  return out;
}

// Each is an answer or an error, neither of which takes long.
TEST(JsonSchema, HostileSchemasEnd) {
  EXPECT_FALSE(json_schema_grammar(times("[", 100'000)));
  EXPECT_FALSE(json_schema_grammar(times(R"({"items":)", 50'000) + "{}" + times("}", 50'000)));
  EXPECT_FALSE(json_schema_grammar(times(R"({"items":)", 201) + "{}" + times("}", 201)));
  EXPECT_TRUE(json_schema_grammar(times(R"({"items":)", 200) + "{}" + times("}", 200)));
  // choices that multiply
  std::string choices = R"({"allOf":[)";
  for (int i = 0; i < 40; i++)
    choices += std::string(i ? "," : "") + R"({"anyOf":[{"minimum":)" + std::to_string(i) +
               R"(},{"maximum":)" + std::to_string(1000 + i) + "}]}";
  EXPECT_FALSE(json_schema_grammar(choices + "]}"));
  // a chain of references, and a ring of them
  std::string chain = R"({"$ref":"#/$defs/d0","$defs":{)";
  for (int i = 0; i < 20'000; i++)
    chain += "\"d" + std::to_string(i) + R"(":{"$ref":"#/$defs/d)" + std::to_string(i + 1) + "\"},";
  EXPECT_EQ(json_schema_grammar(chain + R"("d20000":{"type":"null"}}})").error().message,
            "JSON schema: an object of it has too many members");
  chain = R"({"$ref":"#/$defs/d0","$defs":{)";
  for (int i = 0; i < 3'000; i++)
    chain += "\"d" + std::to_string(i) + R"(":{"$ref":"#/$defs/d)" + std::to_string(i + 1) + "\"},";
  EXPECT_FALSE(json_schema_grammar(chain + R"("d3000":{"type":"null"}}})"));
  EXPECT_FALSE(json_schema_grammar(
      R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}})"));
  // alternatives by the thousand
  std::string one = R"({"oneOf":[)";
  for (int i = 0; i < 2'000; i++) one += std::string(i ? "," : "") + R"({"const":)" + std::to_string(i) + "}";
  const auto many = json_schema_grammar(one + "]}");
  EXPECT_TRUE(many || many.error().message.find("oneOf") != std::string::npos);
  std::string list = R"({"enum":[)";
  for (int i = 0; i < 30'000; i++) list += std::string(i ? "," : "") + "\"v" + std::to_string(i) + "\"";
  Matcher m(compiled(list + "]}"));
  EXPECT_TRUE(m.matches("\"v29999\""));
  EXPECT_FALSE(m.matches("\"v30000\""));
  std::string object = R"({"properties":{)";
  for (int i = 0; i < 3'000; i++)
    object += std::string(i ? "," : "") + "\"k" + std::to_string(i) + R"(":{"type":"integer"})";
  Matcher keys(compiled(object + "}}"));
  EXPECT_TRUE(keys.matches(R"({"k3":1,"k2999":2})"));
  EXPECT_FALSE(keys.matches(R"({"k2999":1,"k3":2})"));
  Matcher longest(compiled(R"({"type":"string","maxLength":100000000})"));
  EXPECT_TRUE(longest.matches("\"" + times("ab", 1000) + "\""));
  Matcher most(
      compiled(R"({"type":"array","items":{"type":"integer"},"minItems":1000,"maxItems":4000000000})"));
  EXPECT_TRUE(most.matches("[1" + times(",1", 999) + "]"));
  EXPECT_FALSE(most.matches("[1" + times(",1", 998) + "]"));
  for (const char* bounds : {R"({"type":"number","minimum":1e-300,"maximum":1e300})",
                             R"({"type":"integer","minimum":-1e308,"exclusiveMaximum":1e308})"})
    EXPECT_TRUE(Automaton::create(compiled(bounds)));
}

// The same of keywords that need automata, opposites, or a state for each item.
TEST(JsonSchema, HostileKeywordsEnd) {
  std::string numbers = R"({"properties":{)", keys = R"({"patternProperties":{)",
              objects = R"({"properties":{)";
  for (int i = 0; i < 300; i++) {
    const std::string n = std::to_string(i), comma = i ? "," : "";
    numbers += comma + "\"k" + n + R"(":{"type":"integer","multipleOf":)" + std::to_string(99'000 + i) + "}";
    keys += comma + "\"" + n + "[a-z]{0,50}x\":{}";
  }
  for (int i = 0; i < 200; i++)
    objects += std::string(i ? "," : "") + "\"k" + std::to_string(i) +
               R"x(":{"patternProperties":{"a.{40}b":{},"c.{40})x" + std::to_string(i) + R"(":{},"x":{}}})";
  const auto ends = [](const std::string& schema) {
    const auto g = json_schema_grammar(schema);
    EXPECT_TRUE(g || g.error().code == Code::Usage);
  };
  EXPECT_FALSE(json_schema_grammar(numbers + "}}"));
  EXPECT_FALSE(json_schema_grammar(keys + "}}"));
  EXPECT_FALSE(json_schema_grammar(objects + "}}"));
  std::string all = R"({"allOf":[)";
  for (int i = 2; i < 60; i++)
    all += std::string(i > 2 ? "," : "") + R"({"multipleOf":)" + std::to_string(i) + "}";
  EXPECT_FALSE(json_schema_grammar(all + "]}"));
  EXPECT_TRUE(json_schema_grammar(times(R"({"not":)", 100) + R"({"type":"null"})" + times("}", 100)));
  ends(times(R"({"if":{"minimum":1},"then":)", 60) + "{}" + times("}", 60));
  ends(times(R"({"oneOf":[{"minimum":1},{"maximum":5},)", 30) + "{}" + times("]}", 30));
  EXPECT_FALSE(
      json_schema_grammar(R"({"type":"array","contains":{"const":1},"minContains":300,"maxItems":3000})"));
  EXPECT_FALSE(json_schema_grammar(R"({"contains":{},"minContains":4000000000})"));
  EXPECT_FALSE(json_schema_grammar(R"({"minProperties":4000000000})"));
  EXPECT_TRUE(
      json_schema_grammar(R"({"type":"object","maxProperties":4000000000,"additionalProperties":{}})"));
  std::string values = R"({"type":"array","uniqueItems":true,"items":{"enum":[)";
  for (int i = 0; i < 5000; i++) values += (i ? "," : "") + std::to_string(i);
  Matcher rising(compiled(values + "]}}"));
  EXPECT_TRUE(rising.matches("[3,7,4999]"));
  EXPECT_FALSE(rising.matches("[3,7,7]"));
}

TEST(CharMachine, IsWhatThePatternSays) {
  const struct {
    const char* pattern;
    std::vector<const char*> matching, others;
  } kPatterns[] = {
      {"^a|b$", {"a", "ax", "b", "xb"}, {"xa", "bx", ""}},
      {"^(?:ab){2}$", {"abab"}, {"ab", "ababab"}},
      {"^[^a-c]+?$", {"d", "é😀"}, {"a", ""}},
      {R"(^\d\D\w\W\s\S$)", {"1a_- x"}, {"aa_- x"}},
      {R"(^[\d.\-x]\u00e9\x41$)", {"1éA", ".éA", "-éA"}, {"yéA"}},
      {R"(^\u{1F600}\ud83d\ude00$)", {"😀😀"}, {"😀"}},
      {R"(^[\b]$)", {"\b"}, {"b", "\\"}},
      // The four line ends of ECMA-262.
      {"^.$", {"a", "😀", "\v", "\u2027", "\u202a"}, {"\n", "\r", "\u2028", "\u2029", "", "ab"}},
      {"^$", {""}, {"a"}},
      {"", {"", "anything\n"}, {}},
      {"^(|a|b*)$", {"", "a", "bbb"}, {"ab"}},
      {"^a{,2}$", {"a{,2}"}, {"a", "aa"}},
      {"^(?<name>x)y$", {"xy"}, {"x"}},
  };
  for (const auto& p : kPatterns) {
    SCOPED_TRACE(p.pattern);
    const auto m = CharMachine::pattern(p.pattern);
    ASSERT_TRUE(m) << m.error().message;
    for (const char* text : p.matching) EXPECT_TRUE(m->matches(text)) << text;
    for (const char* text : p.others) EXPECT_FALSE(m->matches(text)) << text;
  }
  const std::string keys[] = {"a", "ab", "é"};
  const CharMachine others = CharMachine::except(keys);
  for (const char* text : {"", "abc", "b", "aa", "éé"}) EXPECT_TRUE(others.matches(text)) << text;
  for (const std::string& key : keys) EXPECT_FALSE(others.matches(key)) << key;
  const auto both = CharMachine::pattern("^[a-m]+$")->both(*CharMachine::pattern("^.*k.*$"));
  EXPECT_TRUE(both->matches("aka"));
  EXPECT_FALSE(both->matches("akz"));
  EXPECT_FALSE(both->matches("aa"));
  EXPECT_FALSE(both->of_length(4, 5)->matches("aka"));
  EXPECT_TRUE(both->of_length(4, 5)->matches("akaa"));
  const auto any_number = CharMachine::pattern("^a*$");
  EXPECT_TRUE(any_number->of_length(0, kUnbounded)->matches(""));
  EXPECT_FALSE(any_number->of_length(1, kUnbounded)->matches(""));
  EXPECT_TRUE(any_number->of_length(1, kUnbounded)->matches("aaa"));
}

TEST(JsonObject, IsAnyObject) {
  Matcher m(json_object_grammar());
  for (const char* text : {"{}", R"({"a": [1, {"b": null}], "é": "\n"})", "{\n  \"a\": -1.5e3\n}"})
    EXPECT_TRUE(m.matches(text)) << text;
  for (const char* text : {"[]", "1", R"({"a":})", R"({"a":1,})", "{} {}"})
    EXPECT_FALSE(m.matches(text)) << text;
}

}  // namespace
}  // namespace gimbal::test
