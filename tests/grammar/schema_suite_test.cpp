// The keywords of JSON schemas beside the vectors of the JSON-Schema-Test-Suite: which values satisfy a
// schema, and which texts its grammar writes.
#include <fstream>
#include <map>

#include "grammar/grammar.h"
#include "grammar/schema_check.h"
#include "support/grammars.h"

namespace gimbal::test {
namespace {

struct Counted {
  int refused = 0, written = 0, left_out = 0, kept_out = 0;
};

// Formats whose bounds cli.md names: what the suite calls valid beyond them is not taken for the format. Its
// file "format" takes all formats for notes.
bool narrower(const std::string& file) {
  return file == "format" || file.ends_with("email") || file.ends_with("time") ||
         file.ends_with("date-time") || file.ends_with("hostname") || file.ends_with("duration");
}

// Names in punycode are not decoded.
bool punycode(const Json& value) {
  const std::string text = value.dump();
  return text.find("xn--") != text.npos || text.find("XN--") != text.npos;
}

// A text of the grammar, byte by byte at random; empty if it does not end in time.
std::string random_text(States& states, std::mt19937& random) {
  std::string text;
  States::State s = states.start();
  while (text.size() < 300) {
    std::vector<std::pair<char, States::State>> ways;
    for (int b = 0; b < 128; b++)
      if (const auto next = states.next(s, uint8_t(b)); next != States::kDead)
        ways.emplace_back(char(b), next);
    if (states.may_end(s) && (ways.empty() || random() % 4 == 0)) return text;
    if (ways.empty()) return "";
    // Long strings say little: quotes come more often.
    const auto quote = std::find_if(ways.begin(), ways.end(), [](const auto& w) { return w.first == '"'; });
    const auto& way = quote != ways.end() && random() % 3 == 0 ? *quote : ways[random() % ways.size()];
    text += way.first, s = way.second;
  }
  return "";
}

TEST(SchemaSuite, NoForbiddenTextIsWritten) {
  std::ifstream in(GIMBAL_SOURCE_DIR "/tests/data/grammar/json-schema-test-suite.jsonl");
  std::map<std::string, Counted> files;
  std::map<std::string, int> reasons;
  std::mt19937 random(1);
  int drawn = 0;
  for (std::string line; std::getline(in, line);) {
    const Json c = Json::parse(line);
    const std::string file = c["file"];
    const Json& schema = c["schema"];
    SCOPED_TRACE(file + ": " + schema.dump());
    Counted& counted = files[file];
    SchemaReader reader(schema);
    const Status known = reader.check();
    const auto grammar = json_schema_grammar(schema.dump());
    std::optional<Matcher> matcher;
    if (!grammar) {
      EXPECT_EQ(grammar.error().code, Code::Usage);
      const std::string& said = grammar.error().message;
      reasons[said.substr(said.rfind(": ") + 2)]++;
    } else if (grammar->has_text()) {
      matcher.emplace(*grammar);
    }
    for (const Json& test : c["tests"]) {
      const Json& value = test[0];
      const bool valid = test[1];
      if (known) {
        const auto holds = reader.holds(value, schema);
        if (!holds) {
          EXPECT_FALSE(grammar) << holds.error().message;
          counted.refused++;
          continue;
        }
        EXPECT_TRUE(*holds == valid || (valid ? narrower(file) : punycode(value))) << value.dump();
      }
      if (!grammar) {
        counted.refused++;
        continue;
      }
      const bool written = matcher && matcher->matches(value.dump());
      if (valid) (written ? counted.written : counted.left_out)++;
      else counted.kept_out++;
      EXPECT_TRUE(valid || !written || punycode(value)) << "writes " << value.dump();
    }
    for (int i = 0; matcher && i < 20; i++) {
      const std::string text = random_text(matcher->states(), random);
      if (text.empty()) continue;
      const Json value = Json::parse(text, nullptr, false);
      ASSERT_FALSE(value.is_discarded()) << text;
      const auto holds = reader.holds(value, schema);
      ASSERT_TRUE(holds) << holds.error().message;
      EXPECT_TRUE(*holds) << "writes " << text;
      drawn++;
    }
  }
  Counted all;
  for (const auto& [file, n] : files) {
    std::printf("%-40s refused %3d written %3d left out %3d kept out %3d\n", file.c_str(), n.refused,
                n.written, n.left_out, n.kept_out);
    all.refused += n.refused, all.written += n.written, all.left_out += n.left_out,
        all.kept_out += n.kept_out;
  }
  for (const auto& [why, n] : reasons) std::printf("  %3d %s\n", n, why.c_str());
  std::printf("refused %d written %d left out %d kept out %d\n", all.refused, all.written, all.left_out,
              all.kept_out);
  std::printf("%d texts at random\n", drawn);
  EXPECT_LE(all.refused, 95);
  EXPECT_GE(all.written, 590);
  EXPECT_GT(drawn, 2000);
}

}  // namespace
}  // namespace gimbal::test
