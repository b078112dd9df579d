// Filters at their edges: what jinja2 3.1.6 renders.
#include <gtest/gtest.h>

#include "base/json.h"
#include "template/template.h"

namespace gimbal::test {
namespace {

TEST(TemplateFilters, RenderAsJinja2AtTheirEdges) {
  const struct {
    const char *source, *rendered;
  } cases[] = {
      {"{{ 'ab-cd(ef{gh[ij<kl.mn o'|title }}", "Ab-Cd(Ef{Gh[Ij<Kl.mn O"},
      {R"({{ 'a\n\nb'|indent }})", "a\n\n    b"},
      {R"({{ 'a\n\nb'|indent(blank=true) }})", "a\n    \n    b"},
      {R"({{ 'a\r\nb\rc'|indent(2) }})", "a\n  b\n  c"},
      {"{{ 'abc'|center(6) }}|", " abc  |"},
      {"{{ 'ab'|center(5) }}|", "  ab |"},
      {"{{ 'abc'|center(5) }}|", " abc |"},
      {"{{ 'ab'|center(1) }}|", "ab|"},
      {"{{ ' a <b> c </b> '|striptags }}|", "a c|"},
      {"{{ 'a/b c'|urlencode }}", "a/b%20c"},
      {"{{ {'a/b': 'c/d e'}|urlencode }}", "a%2Fb=c%2Fd+e"},
      {"{{ '0X1F'|int(base=16) }} {{ '0x1f'|int(0, 16) }} {{ '0x1f'|int }}", "31 31 0"},
      {"{{ '0B11'|int(base=2) }} {{ '0O17'|int(base=8) }}", "3 15"},
      {"{{ 25|round(-1) }} {{ 35|round(-1) }} {{ 15.0|round(-1) }}", "20 40 20.0"},
      {"{{ 2.5|round }} {{ 3.5|round }} {{ -2.5|round }}", "2.0 4.0 -2.0"},
      {"{{ 1|filesizeformat }} {{ 999|filesizeformat }} {{ 1000|filesizeformat }}",
       "1 Byte 999 Bytes 1.0 kB"},
      {"{{ 1023|filesizeformat(true) }} {{ 1024|filesizeformat(true) }}", "1023 Bytes 1.0 KiB"},
      {"{{ 1000000|filesizeformat }}", "1.0 MB"},
      {"{{ '1p3'|float }} {{ '0x1p3'|float }} {{ '0x10'|float }}", "0.0 0.0 0.0"},
      {"{{ 'infP'|float }} {{ 'nan(1)'|float }} {{ '1e3'|float }}", "0.0 0.0 1000.0"},
      {"{{ '1_000'|int }} {{ '1_0.5'|float }}", "1000 10.5"},
      {"{{ [1, 2, 3, 4]|slice(2, 'x')|list }}", "[[1, 2, 'x'], [3, 4, 'x']]"},
      {"{{ [1, 2, 3]|slice(2, 'x')|list }} {{ []|slice(2, 0)|list }}", "[[1, 2], [3, 'x']] [[0], [0]]"},
      {"{{ ['a', 'A', 'b']|max }} {{ ['B', 'b']|max }} {{ ['A', 'a', 'b']|min }}", "b B A"},
      {"{{ 'ab'.rpartition('c') }} {{ 'ab'.partition('c') }}", "('', '', 'ab') ('ab', '', '')"},
      {"{{ '_1'|int }} {{ '1_'|int }} {{ '1__0'|int }} {{ '_1'|float }}", "0 0 0 0.0"},
      {R"({{ 'a\nb'|indent(0) }}|{{ 'a\nb'|indent(-1) }}|{{ 'a\nb'|indent(1) }})", "a\nb|a\nb|a\n b"},
      {R"({{ '\nb'|indent }} {{ '\n\nb'|indent(1) }} {{ '\nb'|indent(1, true) }})", "\n    b \n\n b  \n b"},
      // U+0008 is just below white space, U+0970 and letters of other scripts are above digits, and U+FF00 is
      // no character.
      {R"({{ '\x08a\x08'|trim|length }} {{ '\ta\r'|trim|length }} {{ '\x08'.isspace() }})", "3 1 False"},
      {R"({{ '\u0966\u096f'.isdigit() }} {{ '\u0965'.isdigit() }} {{ '\u0970'.isdigit() }} {{ 'あ'.isdigit() }})",
       "True False False False"},
      {R"({{ '\uff00'.isalpha() }} {{ '\uff20'.isalpha() }} {{ '\uff21'.isalpha() }})", "False False True"},
      {R"({{ ['\u205f', '\u2060', '\u206f', '\u2070'] }})", "['\\u205f', '\\u2060', '\\u206f', '⁰']"},
      {"{{ 'ύώόάέ'|upper }} {{ 'ΎΏΌΆΈ'|lower }}", "ΎΏΌΆΈ ύώόάέ"},
      {"{{ {'a': 1} == {'a': 1, 'b': 2} }} {{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }}", "False True"},
      {"{% for x in 'ab' %}{{ loop }}{% endfor %}", "<LoopContext 1/2><LoopContext 2/2>"},
  };
  for (const auto& c : cases) {
    const auto parsed = Template::parse(c.source);
    ASSERT_TRUE(parsed) << c.source;
    const auto rendered = parsed->render(Json::object(), {});
    ASSERT_TRUE(rendered) << c.source << ": " << rendered.error().message;
    EXPECT_EQ(rendered->text, c.rendered) << c.source;
  }
}

}  // namespace
}  // namespace gimbal::test
