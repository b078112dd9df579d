// Chat templates against other people's data: what Python's jinja2 rendered, set up as transformers does.
// What the data does not reach is compared with jinja2 itself by oracle_test.py.
#include "template/template.h"

#include <gtest/gtest.h>

#include <random>

#include "base/format.h"
#include "base/json.h"
#include "base/text.h"
#include "support/golden.h"
#include "template/text.h"

namespace gimbal::test {
namespace {

RenderOptions at(const std::string& iso) {
  RenderOptions o;
  EXPECT_NE(strptime(iso.c_str(), "%Y-%m-%dT%H:%M:%S", &o.now), nullptr) << iso;
  return o;
}

Result<Rendered> render(const std::string& source, const Json& variables, const RenderOptions& options = {}) {
  auto t = Template::parse(source);
  if (!t) return t.error();
  return t->render(variables, options);
}

std::string text_of(const std::string& source, const Json& variables = Json::object()) {
  auto r = render(source, variables);
  return r ? r->text : "error: " + r.error().message;
}

std::string error_of(const std::string& source, const Json& variables = Json::object(),
                     RenderOptions options = {}) {
  auto r = render(source, variables, options);
  return r ? "no error: " + r->text.substr(0, 100) : r.error().message;
}

void expect_case(const std::string& source, const Json& c, const RenderOptions& options) {
  auto r = render(source, c["context"], options);
  if (c.contains("expected")) {
    ASSERT_TRUE(r) << r.error().message;
    EXPECT_EQ(r->text, c["expected"].get<std::string>());
    return;
  }
  ASSERT_FALSE(r) << r->text;
  EXPECT_TRUE(r.error().message.ends_with(": " + c["error"].get<std::string>())) << r.error().message;
  if (c["error_kind"] == "raise_exception") {
    EXPECT_STREQ(r.error().reason, reason::kTemplateRaised);
    EXPECT_EQ(r.error().code, Code::Failed);
  }
}

TEST(Template, GoldenRenderings) {
  int cases = 0;
  for (const std::string& path : golden_files("chat", ".json")) {
    const Json file = read_json(path);
    const RenderOptions options = at(file["now"]);
    for (const Json& c : file["cases"]) {
      SCOPED_TRACE(path + " " + (c.contains("name") ? c["name"].get<std::string>() : c["id"].dump()));
      expect_case(c.contains("template") ? c["template"] : file["template"], c, options);
      cases++;
    }
  }
  EXPECT_GT(cases, whole_collection() ? 280 : 180);
}

// The snippets of oracle_snippets.py, one feature each: `oracle_test.py --record` wrote what jinja2 renders.
TEST(Template, SnippetsAreRenderedAsJinja2Does) {
  const Json file = read_json(GIMBAL_SOURCE_DIR "/tests/data/peer/template/snippets.json");
  const RenderOptions options = at(file["now"]);
  int rendered = 0, failed = 0;
  for (const Json& c : file["renderings"]) {
    SCOPED_TRACE(c["source"].get<std::string>());
    const auto r = render(c["source"], file["variables"], options);
    if (c["text"].is_null()) EXPECT_FALSE(r) << r->text;
    else if (!r) ADD_FAILURE() << r.error().message;
    else EXPECT_EQ(r->text, c["text"].get<std::string>());
    (c["text"].is_null() ? failed : rendered)++;
  }
  EXPECT_GT(rendered, 190);
  EXPECT_GT(failed, 50);
}

// ---- What came in with the variables is marked, whatever is done to it.

// The text with what is foreign in brackets.
std::string marked(const std::string& source, const Json& variables) {
  auto r = render(source, variables);
  if (!r) return "error: " + r.error().message;
  std::string out;
  uint32_t at = 0;
  for (const tmpl::Span& s : r->foreign) {
    EXPECT_LE(at, s.begin);
    EXPECT_LT(s.begin, s.end);
    out += r->text.substr(at, s.begin - at) + "[" + r->text.substr(s.begin, s.end - s.begin) + "]";
    at = s.end;
  }
  return out + r->text.substr(at);
}

TEST(Template, ForeignTextStaysMarked) {
  const Json v = {{"bos_token", "<s>"},
                  {"m", {{{"role", "user"}, {"content", " a<b>a "}}, {{"role", "<x>"}, {"content", "q"}}}}};
  EXPECT_EQ(marked("{{ bos_token }}{{ m[0].content }}|", v), "<s>[ a<b>a ]|");
  EXPECT_EQ(marked("<|{{ m[0].role }}|>{{ m[1].role }}", v), "<|user|>[<x>]")
      << "a role that is a plain word is harmless";
  EXPECT_EQ(marked("{{ '<' + m[0].content|trim + '>' }}", v), "<[a<b>a]>");
  EXPECT_EQ(marked("{{ m[0].content.strip()[1:-1] }}", v), "[<b>]");
  EXPECT_EQ(marked("{{ m[0].content.replace('a', 'z') }}", v), "[ ]z[<b>]z[ ]");
  EXPECT_EQ(marked("{{ 'xax'.replace('a', m[1].content) }}", v), "x[q]x");
  EXPECT_EQ(marked("{{ m[0].content.split('<')|join('|') }}", v), "[ a]|[b>a ]");
  EXPECT_EQ(marked("{{ m[0].content|upper }}", v), "[ A<B>A ]");
  EXPECT_EQ(marked("{{ m[1]|tojson }}", v), "[{\"role\": \"<x>\", \"content\": \"q\"}]");
  EXPECT_EQ(marked("{{ [1, m[1].content] }}", v), "[[1, 'q']]");
  EXPECT_EQ(marked("{{ '%s!%s' % (m[1].content, 'p') }}", v), "[q]!p");
  EXPECT_EQ(marked("{{ 'a{}b'.format(m[1].content) }}", v), "a[q]b");
  EXPECT_EQ(marked("{% macro f(x) %}({{ x }}){% endmacro %}{{ f(m[1].content) }}", v), "([q])");
  EXPECT_EQ(marked("{% set x %}-{{ m[1].content }}-{% endset %}{{ x * 2 }}", v), "-[q]--[q]-");
  EXPECT_EQ(marked("{% filter indent(2) %}a\n{{ m[1].content }}{% endfilter %}", v), "a\n  [q]");
  EXPECT_EQ(marked("{% for c in m[0].content|trim %}{{ c }}.{% endfor %}", v), "[a].[<].[b].[>].[a].");
  EXPECT_EQ(marked("{{ m[1].content ~ 1 ~ m[1].content|e }}", v), "[q]1[q]");
  EXPECT_EQ(marked("{% for k in m[1] %}{{ k }}{% endfor %}", v), "[rolecontent]")
      << "keys come in with the variables, too";
  const Json call = {{"arguments", {{"<|end|>", 1}}}};
  EXPECT_EQ(marked("{{ arguments }}", call), "[{'<|end|>': 1}]");
  EXPECT_EQ(marked("{{ arguments|tojson }}", call), "[{\"<|end|>\": 1}]");
}

// ---- Filters against their definition, over many values.

TEST(Template, FiltersKeepTheirPromises) {
  const std::vector<Json> lists = {Json::array(), {3, 1, 2},      {"b", "A", "c", "a"},
                                   {1, 1, 2},     {"", " ", "x"}, {1.5, -2, 0}};
  for (const Json& l : lists) {
    const Json v = {{"l", l}};
    SCOPED_TRACE(l.dump());
    EXPECT_EQ(text_of("{{ l|reverse|reverse|list == l }}", v), text_of("{{ l|list == l }}", v));
    EXPECT_EQ(text_of("{{ l|sort|length == l|length }}", v), "True");
    EXPECT_EQ(text_of("{{ l|sort|list == l|sort|sort }}", v), "True");
    EXPECT_EQ(text_of("{{ l|sort(reverse=true)|length }}", v), std::to_string(l.size()));
    EXPECT_EQ(text_of("{{ l|batch(2)|sum(start=[]) == l }}", v), "True");
    EXPECT_EQ(text_of("{{ l|slice(3)|sum(start=[]) == l }}", v), "True");
    EXPECT_EQ(text_of("{{ (l|select('string')|list|length) + (l|reject('string')|list|length) }}", v),
              std::to_string(l.size()));
    EXPECT_EQ(text_of("{{ l|map('string')|join == l|join }}", v), "True");
    EXPECT_EQ(Json::parse(text_of("{{ l|tojson }}", v)), l);
    EXPECT_EQ(Json::parse(text_of("{{ l|tojson(indent=3) }}", v)), l);
    if (!l.empty()) { EXPECT_EQ(text_of("{{ l|min == (l|sort)[0] and l|max == (l|sort)[-1] }}", v), "True"); }
  }
  for (const char* s :
       {"", "a", "  pad ", "Grüße 你好 😀", "a,b,,c", "line\nline\r\n\nend\n", "ÀÉÎ жук ΣΑΣ"}) {
    const Json v = {{"s", s}};
    SCOPED_TRACE(s);
    for (const char* holds : {"s|reverse|reverse == s",
                              "s[::-1] == s|reverse",
                              "s|upper|upper == s|upper",
                              "s|lower|lower == s|lower",
                              "s|trim|trim == s|trim",
                              "s.split(',')|join(',') == s",
                              "s[:2] + s[2:] == s",
                              "s|list|join == s",
                              "s|list|length == s|length",
                              "s.replace('a', 'a') == s",
                              "s.splitlines(true)|join == s",
                              "s in 'x' ~ s ~ 'y'",
                              "s.partition(',')|join == s",
                              "s.rpartition(',')|join == s",
                              "s.find(s) == 0",
                              "(s ~ 'z').endswith('z')",
                              "s|center(40)|trim == s|trim",
                              "s.ljust(9)|length == s.rjust(9)|length",
                              "'%s' % s == s",
                              "'{}'.format(s) == s",
                              "s|string is sameas s"})
      EXPECT_EQ(text_of("{{ " + std::string(holds) + " }}", v), "True") << holds;
    EXPECT_EQ(Json::parse(text_of("{{ s|tojson }}", v)), Json(s));
    EXPECT_EQ(Json::parse(text_of("{{ s|tojson(ensure_ascii=true) }}", v)), Json(s));
  }
}

// ---- Errors name the line and the construct.

TEST(Template, ErrorsNameLineAndConstruct) {
  EXPECT_EQ(error_of("a\n{{ x.y }}"), "chat template, line 2, in {{ }}: 'x' is undefined");
  EXPECT_EQ(error_of("\n\n{% if 1 + 'a' %}{% endif %}"),
            "chat template, line 3, in {% if %}: unsupported operand type(s) for +: 'int' and 'str'");
  EXPECT_EQ(error_of("{% for a, b in [1] %}{% endfor %}"),
            "chat template, line 1, in {% for %}: 'int' object is not iterable");
  EXPECT_EQ(error_of("{% macro f() %}\n{{ x.y }}{% endmacro %}\n{{ f() }}"),
            "chat template, line 2, in {{ }}: 'x' is undefined");
  EXPECT_EQ(error_of("{% macro f() %}\n{{ 1 }}{% endmacro %}\n{% if f() + 1 %}{% endif %}"),
            "chat template, line 3, in {% if %}: can only concatenate str (not \"int\") to str")
      << "behind a call of a macro";
  EXPECT_EQ(error_of("{{ 'a'|nosuch }}"), "chat template, line 1, in {{ }}: there is no filter 'nosuch'");
  for (const char* lone : {"{{ 'a{b'.format(1) }}", "{{ 'a}b'.format(1) }}", "{{ '{'.format(1) }}"})
    EXPECT_NE(error_of(lone).find("single '{' or '}' in a format string"), std::string::npos)
        << error_of(lone);
  EXPECT_EQ(error_of("\n{% if x"), "chat template, line 2: {% has no end '%}'");
  EXPECT_EQ(error_of("{% if x %}\n"),
            "chat template, line 1: expected {% endif %}, found the end of the template");
  EXPECT_EQ(error_of("{% frob %}"), "chat template, line 1: there is no tag 'frob'");
  EXPECT_EQ(error_of("{{ a b }}"), "chat template, line 1: expected '}}', found 'b'");
  EXPECT_EQ(error_of("a\n\xff"), "chat template, byte 2: this is not UTF-8");
  auto reads = Template::parse("{% include 'x' %}");
  ASSERT_FALSE(reads);
  EXPECT_EQ(reads.error().code, Code::Unsupported);
  EXPECT_EQ(Template::parse("{{").error().code, Code::Malformed);
  EXPECT_EQ(render("x", Json::array()).error().code, Code::Usage);
}

// ---- Limits.

TEST(Template, StepsDepthOutputAndMemoryAreBounded) {
  RenderOptions small;
  small.limits = {10000, 1000, 1 << 20};
  EXPECT_NE(error_of("{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}",
                     Json::object(), small)
                .find("stopped after 10000 steps"),
            std::string::npos);
  EXPECT_NE(error_of("{% for i in range(999) %}aaaaaaaaaa{% endfor %}", Json::object(), small)
                .find("it writes more than 1000 bytes"),
            std::string::npos);
  // A filter, a test or a method of a long text is work, whatever it gives.
  small.limits = {10000, 1 << 20, 1 << 20};
  for (const char* use : {"x|length", "x|int", "x is lower", "x|wordcount", "x.isdigit()", "x.find('b')"})
    EXPECT_NE(error_of(format("{{% set x = 'a' * 100000 %}}{{% for i in range(9) %}}{{% if {} %}}{{% endif "
                              "%}}{{% endfor %}}",
                              use),
                       Json::object(), small)
                  .find("stopped after 10000 steps"),
              std::string::npos)
        << use;
  small.limits = {20000000, 1 << 30, 1 << 20};
  EXPECT_NE(error_of("{% set ns = namespace(x='0123456789') %}{% for i in range(99) %}{% set ns.x = ns.x + "
                     "ns.x %}{% endfor %}",
                     Json::object(), small)
                .find("its values take more than"),
            std::string::npos);
  EXPECT_NE(
      error_of(
          "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}")
          .find("nested too deeply"),
      std::string::npos);
  EXPECT_NE(error_of("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}").find("nested too deeply"),
            std::string::npos);
  EXPECT_NE(error_of("{{ 'a' * 999999999999 }}").find("repeated too often"), std::string::npos);
  EXPECT_NE(error_of("{{ 9 ** 99 }}").find("more than 64 bits"), std::string::npos);
  EXPECT_NE(error_of("{{ -9223372036854775807 - 2 }}").find("more than 64 bits"), std::string::npos);
  for (const char* nest : {"(", "[", "not ", "-", "{'a':"}) {
    std::string deep = "{{ ";
    for (int i = 0; i < 100000; i++) deep += nest;
    EXPECT_FALSE(Template::parse(deep + "1 }}")) << nest;
  }
  std::string blocks;
  for (int i = 0; i < 10000; i++) blocks += "{% if 1 %}";
  EXPECT_NE(error_of(blocks).find("nested too deeply"), std::string::npos);
  EXPECT_EQ(text_of("{% set ns = namespace() %}{% set ns.me = [ns] %}{{ ns }}"),
            "<Namespace {'me': Undefined}>")
      << "it holds itself";
}

// Needles and texts of two letters, so that they nearly match everywhere.
TEST(Template, SearchFindsWhatTheStandardLibraryFinds) {
  std::mt19937 random(5);
  const auto letters = [&](size_t n) {
    std::string s(n, 'a');
    for (char& c : s) c = random() % 8 ? 'a' : 'b';
    return s;
  };
  size_t found = 0;
  for (int i = 0; i < 3000; i++) {
    std::string text = letters(random() % 300);
    const std::string what =
        i % 2 && text.size() > 40 ? text.substr(random() % 8, 33 + random() % 20) : letters(random() % 60);
    text += letters(random() % 50) + text;
    const size_t from = random() % (text.size() + 3);
    EXPECT_EQ(tmpl::find_text(text, what, from), text.find(what, from)) << text << " " << what << " " << from;
    EXPECT_EQ(tmpl::rfind_text(text, what), text.rfind(what)) << text << " " << what;
    found += what.size() > 32 && text.find(what) != std::string::npos;
  }
  EXPECT_GT(found, 1000u);
}

// Work that grows with the square of a length takes longer here than any test may.
TEST(Template, WorkIsLinearInALength) {
  EXPECT_EQ(text_of("{{ (('x' * 3999999 ~ 'y') * 3).find('x' * 4000000) }}"), "-1");
  EXPECT_EQ(text_of("{{ (('y' ~ 'x' * 3999999) * 3).rsplit('x' * 4000000)|length }}"), "1");
  if (!fewer_cases()) {  // their time says nothing under a sanitizer
    EXPECT_EQ(text_of("{{ ('x' * 4000000) in ('x' * 3999999 ~ 'y') * 3 }}"), "False");
    EXPECT_EQ(text_of("{{ (('y' ~ 'x' * 3999999) * 3).rfind('x' * 4000000) }}"), "-1");
    EXPECT_EQ(text_of("{{ (('x' * 3999999 ~ 'y') * 3).count('x' * 4000000) }}"), "0");
    EXPECT_EQ(text_of("{{ (('x' * 3999999 ~ 'y') * 3).replace('x' * 4000000, 'z')|length }}"), "12000000");
    EXPECT_EQ(text_of("{{ (('x' * 3999999 ~ 'y') * 3).split('x' * 4000000)|length }}"), "1");
    EXPECT_EQ(text_of("{{ (('x' * 3999999 ~ 'y') * 3).partition('x' * 4000000)[1] }}"), "");
    EXPECT_EQ(text_of("{{ ('x' * 1000000).strip('y' * 1000000 ~ 'x') }}"), "");
    EXPECT_EQ(text_of("{{ ('a ' * 1000000).rsplit()|length }}"), "1000000");
    EXPECT_EQ(text_of("{{ ('<' * 6000000)|striptags|length }}"), "6000000");
    EXPECT_EQ(text_of("{{ ('<!--' * 1500000)|striptags|length }}"), "6000000");
    EXPECT_NE(error_of("{% set x = 'a' * 9000000 %}{% for i in range(99) %}{% set y = x.replace('a', 'b') %}"
                       "{% endfor %}")
                  .find("stopped after 20000000 steps"),
              std::string::npos);
  }
  // Short texts give what jinja2 gives.
  EXPECT_EQ(text_of("{{ '  a b\u00a0é '.rsplit() }}{{ ' a  b c'.rsplit(none, 1) }}"),
            "['a', 'b', 'é'][' a  b', 'c']");
  EXPECT_EQ(text_of("{{ 'éaxé'.strip('é') }}{{ '<b>a</b> <!-- x > y --> d'|striptags }}"), "axa d");
}

TEST(Template, TextThatIsNotUtf8IsRepaired) {
  const auto r = render("{{ x }}", {{"x", "a\xff\xc3"}});
  ASSERT_TRUE(r);
  EXPECT_EQ(r->text, "a\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(Template, TheClockIsTheCallers) {
  EXPECT_EQ(render("{{ strftime_now('%d %b %Y, %A %j') }}", Json::object(), at("2024-07-26T12:00:00"))->text,
            "26 Jul 2024, Friday 208");
}

// As jinja2 3.1 renders them.
TEST(Template, CallersMarkupAndMaps) {
  EXPECT_EQ(text_of("{% macro x(caller=none) %}[{% if caller %}{{ caller() }}{% endif %}]{% endmacro %}"
                    "{% call x() %}a{% endcall %}{{ x() }}"),
            "[a][]");
  EXPECT_EQ(text_of(R"({{ ("a{}{b}"|safe).format("<", b=">") }})"), "a&lt;&gt;");
  EXPECT_EQ(text_of(R"({{ ("a{}"|safe).format("<b>"|safe) }})"), "a<b>");
  EXPECT_EQ(text_of(R"({{ ("a{}"|safe).format(1)|e }}{{ "a{}".format("<") }})"), "a1a<");
  EXPECT_EQ(text_of("[{{ '%0-5d' % 12 }}{{ '%-05d' % 12 }}{{ '%05d' % 12 }}]"), "[12   12   00012]");
  EXPECT_EQ(text_of(R"({{ "{a}-{b}".format_map({"a": 1, "b": "x"}) }})"), "1-x");
  EXPECT_EQ(text_of("{% autoescape false %}{{ '<' }}{% endautoescape %}"), "<");
  EXPECT_EQ(
      error_of("a\n{% autoescape true %}{{ '<' }}{% endautoescape %}"),
      "chat template, line 2: {% autoescape %} with anything but false is not supported: use the filter e");
}

}  // namespace
}  // namespace gimbal::test
