// Calls of tools in the text of an answer. What models write is taken from the golden renderings of their own
// templates (tests/data/chat, made by jinja2): a conversation with a call in it shows the call as the model
// would have written it.
#include "chat/tool_calls.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/format.h"
#include "base/json.h"
#include "support/golden.h"
#include "template/template.h"

namespace gimbal::test {
namespace {

using Piece = ToolCallSplitter::Piece;

struct Answer {
  std::string text;  // control tokens in brackets: [<|end|>]
  std::vector<ToolCall> calls;
};

void add(Answer& to, const ToolCallSplitter::Pieces& pieces) {
  for (const Piece& p : pieces) {
    if (p.kind == Piece::Text) to.text += p.text;
    if (p.kind == Piece::Control) to.text += "[" + p.text + "]";
    if (p.kind == Piece::Call) to.calls.push_back(p.call);
  }
}

// The answer in pieces of so many bytes; what is in `controls` comes as control tokens.
Answer split(ToolCallFormat format, std::string_view answer, size_t bytes,
             const std::vector<std::string>& controls = {}) {
  ToolCallSplitter s(format);
  Answer out;
  while (!answer.empty()) {
    const std::string* control = nullptr;
    size_t next = answer.size();
    for (const std::string& c : controls)
      if (const size_t at = answer.find(c); at < next) next = at, control = &c;
    if (next == 0) {
      add(out, s.control(*control));
      answer.remove_prefix(control->size());
      continue;
    }
    const size_t n = std::min(bytes, next);
    add(out, s.push(answer.substr(0, n)));
    answer.remove_prefix(n);
  }
  add(out, s.finish());
  return out;
}

void expect_calls(const Answer& a, const Json& expected, const std::string& where) {
  ASSERT_EQ(a.calls.size(), expected.size()) << where << ": " << a.text;
  for (size_t i = 0; i < expected.size(); i++) {
    EXPECT_EQ(a.calls[i].name, expected[i]["function"]["name"].get<std::string>()) << where;
    EXPECT_EQ(Json::parse(a.calls[i].arguments, nullptr, false), expected[i]["function"]["arguments"])
        << where;
  }
}

const std::vector<std::string> kControls = {"<|start|>", "<|channel|>", "<|message|>",   "<|end|>",
                                            "<|call|>",  "<|return|>",  "<|constrain|>", "[TOOL_CALLS]"};

TEST(ToolCalls, AreReadAsTheTemplatesWriteThem) {
  const std::set<std::string> writes_none = {
      "ibm-granite-granite-3.3-2B-Instruct"};  // leaves calls out of its history
  std::set<std::string> found;
  int read = 0;
  for (const std::filesystem::path path : golden_files("chat", ".json")) {
    const std::string name = path.stem().string();
    const Json golden = read_json(path.string());
    if (!golden.contains("template") || writes_none.count(name)) continue;
    const std::string source = golden["template"].get<std::string>();
    const ToolCallFormat format = ToolCallFormat::of(source);
    if (format.kind == ToolCallFormat::Kind::None) continue;
    auto parsed = Template::parse(source);
    ASSERT_TRUE(parsed) << name;
    for (const Json& one : golden["cases"]) {
      const Json& messages = one["context"]["messages"];
      size_t at = 0;
      while (at < messages.size() && !messages[at].contains("tool_calls")) at++;
      if (at == messages.size() || !one.contains("expected") || !one["expected"].is_string()) continue;
      // The prompt up to the call; behind it, in the whole conversation, the answer.
      Json before = one["context"];
      before["messages"] = Json::array();
      for (size_t i = 0; i < at; i++) before["messages"].push_back(messages[i]);
      before["add_generation_prompt"] = true;
      RenderOptions options;
      strptime(golden["now"].get<std::string>().c_str(), "%Y-%m-%dT%H:%M:%S", &options.now);
      auto prompt = parsed->render(before, options);
      if (!prompt) continue;
      const std::string whole = one["expected"].get<std::string>();
      if (!whole.starts_with(prompt->text)) continue;
      std::string answer = whole.substr(prompt->text.size());
      size_t end = answer.size();
      for (const char* eos : {"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "</s>", "<|call|>",
                              "<\xef\xbd\x9c"
                              "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
                              "<|END_OF_TURN_TOKEN|>"})
        end = std::min(end, answer.find(eos));
      answer.resize(end);
      for (size_t bytes : {size_t(1), size_t(3), size_t(7), answer.size()})
        expect_calls(split(format, answer, bytes, kControls), messages[at]["tool_calls"],
                     name + ": " + answer);
      read++;
      found.insert(name);
    }
  }
  EXPECT_TRUE(found.count("openai-gpt-oss-120b"));
  EXPECT_GE(read, 5);
}

// Forms whose templates are not among the golden ones, as their makers' templates write them.
TEST(ToolCalls, OtherFormsBetweenMarks) {
  const Json call = {
      {{"function", {{"name", "get_weather"}, {"arguments", {{"city", "Paris"}, {"days", 3}}}}}}};
  const ToolCallFormat qwen = ToolCallFormat::of("... <tool_call> ... </tool_call>");
  for (const char* body : {"<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</"
                           "parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>",
                           "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</"
                           "arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>",
                           "<tool_call>[{\"name\": \"get_weather\", \"arguments\": \"{\\\"city\\\": "
                           "\\\"Paris\\\", \\\"days\\\": 3}\"}]</tool_call>"})
    for (size_t bytes : {size_t(1), size_t(5), size_t(1000)})
      expect_calls(split(qwen, body, bytes), call, body);
  const ToolCallFormat mistral = ToolCallFormat::of("[TOOL_CALLS]");
  expect_calls(split(mistral, "[TOOL_CALLS]get_weather[ARGS]{\"city\": \"Paris\", \"days\": 3}", 1), call,
               "named");
  const ToolCallFormat lfm = ToolCallFormat::of("<|tool_list_start|>");
  expect_calls(split(lfm, "<|tool_call_start|>[get_weather(city='Paris', days=3)]<|tool_call_end|>", 2), call,
               "python");
  const ToolCallFormat bare = ToolCallFormat::of("<|python_tag|> ... \"parameters\"");
  expect_calls(
      split(bare, "\n{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\", \"days\": 3}}", 1),
      call, "bare");
}

// An odd number of escaped quotes, with what ends a value behind them, belongs to the string; other escapes
// are Python's.
TEST(ToolCalls, EscapesOfPythonsCalls) {
  const ToolCallFormat lfm = ToolCallFormat::of("<|tool_list_start|>");
  const std::pair<const char*, const char*> kTexts[] = {
      {R"("a 5\" nail, c")", "a 5\" nail, c"},
      {R"("a\")] b")", "a\")] b"},
      {R"('it\'s, so)')", "it's, so)"},
      {R"('a "b, c')", "a \"b, c"},
      {R"('two\nlines\tand \\n')", "two\nlines\tand \\n"},
      {R"("two\nlines, it\'s")", "two\nlines, it's"},
      {R"('caf\xe9 \u20ac')", "caf\u00e9 \u20ac"},
      {R"('C:\Windows')", "C:\\Windows"},
      {R"('a "b\n')", "a \"b\n"},
      {"'a\nb\\t'", "a\nb\t"},
      {R"('\u12\n')", "\\u12\n"},
  };
  for (const auto& [written, meant] : kTexts)
    for (size_t bytes : {size_t(1), size_t(1000)}) {
      const std::string answer = format("<|tool_call_start|>[say(text={}, n=3)]<|tool_call_end|>", written);
      const Json call = {{{"function", {{"name", "say"}, {"arguments", {{"text", meant}, {"n", 3}}}}}}};
      expect_calls(split(lfm, answer, bytes), call, answer);
    }
}

// "name{...}" of each call; "none": no call.
std::string calls_of(std::string_view body) {
  const auto calls = parse_tool_calls(body);
  if (!calls) return "none";
  std::string out;
  for (const ToolCall& c : *calls) out += (out.empty() ? "" : " ") + c.name + Json::parse(c.arguments).dump();
  return out;
}

TEST(ToolCalls, BodiesInEveryForm) {
  const std::pair<const char*, const char*> kBodies[] = {
      // JSON
      {R"({"name":"f"})", "f{}"},
      {R"( {"name":"f","arguments":null,"parameters":{"a":1}} )", R"(f{"a":1})"},
      {R"({"tool_name":"f","args":{"a":[{"b":"}"}]}})", R"(f{"a":[{"b":"}"}]})"},
      {R"({"function":"f","parameters":{"a":"\\\"}"}})", R"(f{"a":"\\\"}"})"},
      {R"({"type":"function","function":{"name":"f","arguments":"{\"a\":1}"}})", R"(f{"a":1})"},
      {R"([{"name":"f"},{"name":"g","arguments":{}}])", "f{} g{}"},
      {R"({"name":"f"};{"name":"g"} , [{"name":"h"}])", "f{} g{} h{}"},
      {R"({"name":"f","arguments":{"name":"g"}})", R"(f{"name":"g"})"},
      {R"({"name":"f","tool_name":"g"})", "f{}"},
      {R"({"name":"f","arguments":3})", "none"},
      {R"({"name":"f","arguments":"no JSON"})", "none"},
      {R"({"name":"a b"})", "none"},
      {R"({"name":""})", "none"},
      {R"({"name":"f"}{"age":3})", "none"},
      {R"({"name":"f"} and more)", "none"},
      {R"({"name":"f","a":"x}")", "none"},
      {R"([3])", "none"},
      // Python
      {"[f()]", "f{}"},
      {"[ f ( a = 1 , b = 'x' ) , g(c=[1, {\"d\": (2)}]) ]",
       R"(f{"a":1,"b":"x"} g{"c":"[1, {\"d\": (2)}]"})"},
      {"[f(a=True, b=False, c=None, d=true, e=x y)]", R"(f{"a":true,"b":false,"c":null,"d":true,"e":"x y"})"},
      {"[f(a=[1, 2], b={\"c\": [3]})]", R"(f{"a":[1,2],"b":{"c":[3]}})"},
      {"[f(a=['x', 'it\\'s'], b={'c': True, \"d\": [None, False]})]",
       R"(f{"a":["x","it's"],"b":{"c":true,"d":[null,false]}})"},
      {"[f(a=['True', Truest], b=-1.5e3)]", R"(f{"a":"['True', Truest]","b":-1500.0})"},
      {"[f(a='x' + 'y', b=(1, 2))]", R"x(f{"a":"'x' + 'y'","b":"(1, 2)"})x"},
      {"[f(a=['it\\'', '\\n\\\\'])]", R"(f{"a":["it'","\n\\"]})"},
      {"[f(a='never ends)]", "none"},
      {"[f(a='ends with a backslash\\", "none"},
      {"[f(a='[(\"', b=\")'\")]", R"(f{"a":"[(\"","b":")'"})"},
      {"[f(a='', b=\"'\")]", R"(f{"a":"","b":"'"})"},
      {"[f(a=1,)]", R"(f{"a":1})"},
      {"[f(a=)]", "none"},
      {"[f(a)]", "none"},
      {"[f(a=1 b=2)]", R"(f{"a":"1 b=2"})"},
      {"[f(a=1)", "none"},
      {"[f(a=1]", "none"},
      {"[f(=1)]", "none"},
      {"[f] x", "none"},
      {"[f()] x", "none"},
      {"[f(),]", "none"},
      {"[f(),", "none"},
      {"[]", ""},
      // <function=...>
      {"<function=f></function>", "f{}"},
      {"<function=f><parameter=a>\n1 </parameter><parameter=b>x > y</parameter></function>",
       R"(f{"a":1,"b":"x > y"})"},
      {"x<function= f ><parameter= a >True</parameter></function><function=g></function>",
       R"(f{"a":true} g{})"},
      {"<function=f><parameter=a>1</function>", "f{}"},
      {"<function=f", "none"},
      {"<function=f>", "none"},
      {"<function=a b></function>", "none"},
      // <arg_key>
      {"f\n<arg_key>a</arg_key><arg_value> None </arg_value>", R"(f{"a":null})"},
      {"f<arg_key>a</arg_key>\n<arg_value>1</arg_value><arg_key>b</arg_key>", R"(f{"a":1})"},
      {"<arg_key>a</arg_key><arg_value>1</arg_value>", "none"},
      // a name before JSON
      {"f{\"a\":1}", R"(f{"a":1})"},
      {"f[ARGS]{} trailing", "f{}"},
      {"f[CALL_ID]1[ARGS]{\"a\":{}}", R"(f{"a":{}})"},
      {"function<|sep|>f\n```json\n{\"a\":1}\n```", R"(f{"a":1})"},
      {"f{\"a\"", "none"},
      {"f g{}", "none"},
      {"f[ARGS][1]", "none"},
      // a name
      {"  f-1.a:b/C_9 ", "f-1.a:b/C_9{}"},
      {"f g", "none"},
      {"f!", "none"},
      {"", "none"},
      {" \n", "none"},
  };
  for (const auto& [body, calls] : kBodies) EXPECT_EQ(calls_of(body), calls) << body;
  const std::string longest(256, 'f');
  EXPECT_EQ(calls_of(longest), longest + "{}");
  EXPECT_EQ(calls_of(longest + "f"), "none");
}

TEST(ToolCalls, TextAroundThemAndSeveralOfThem) {
  const ToolCallFormat f = ToolCallFormat::of("<tool_call></tool_call>");
  for (size_t bytes : {size_t(1), size_t(4), size_t(1000)}) {
    const Answer a = split(f,
                           "I look. <tool_call>{\"name\": \"a\", \"arguments\": "
                           "{}}</tool_call>\n<tool_call>{\"name\": \"b\"}</tool_call>",
                           bytes);
    EXPECT_EQ(a.text, "I look.");
    ASSERT_EQ(a.calls.size(), 2u);
    EXPECT_EQ(a.calls[1].name, "b");
    EXPECT_EQ(a.calls[1].arguments, "{}");
  }
}

// What is no call comes as it is written.
TEST(ToolCalls, NothingIsLost) {
  const ToolCallFormat marked = ToolCallFormat::of("<tool_call></tool_call>"),
                       bare = ToolCallFormat::of("<|python_tag|> \"parameters\"");
  for (const char* text :
       {"a < b <tool", "<tool_call>no call at all</tool_call> more", "<tool_call>{\"name\": \"cut",
        "<tool_call>{\"arguments\": {}}</tool_call>", "<tool_call>{\"name\": 3}</tool_call>", "x</tool_call>",
        "<tool_call></tool_call>", "<tool_call>[]</tool_call>", "{\"name\": \"Ada\", \"age\": 3} is JSON",
        "{\"city\": 1}", "  {", ""})
    for (const ToolCallFormat& f : {marked, bare, ToolCallFormat{}})
      for (size_t bytes : {size_t(1), size_t(3), size_t(1000)}) {
        const Answer a = split(f, text, bytes);
        EXPECT_TRUE(a.calls.empty()) << text;
        EXPECT_EQ(a.text, text);
      }
}

TEST(ToolCalls, ChannelsPassWhereTheyHoldNoCall) {
  const ToolCallFormat f{ToolCallFormat::Kind::Harmony};
  for (size_t bytes : {size_t(1), size_t(9), size_t(1000)}) {
    const Answer plain =
        split(f, "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>yes",
              bytes, kControls);
    EXPECT_EQ(plain.text,
              "[<|channel|>]analysis[<|message|>]hm[<|end|>][<|start|>]assistant[<|channel|>]final[<|message|"
              ">]yes");
    const Answer call = split(f,
                              "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>"
                              "commentary to=functions.f <|constrain|>json<|message|>{\"x\": 1}",
                              bytes, kControls);
    ASSERT_EQ(call.calls.size(), 1u);
    EXPECT_EQ(call.calls[0].name, "f");
    EXPECT_EQ(call.calls[0].arguments, "{\"x\": 1}");
    EXPECT_EQ(call.text, "[<|channel|>]analysis[<|message|>]hm[<|end|>]");
  }
}

// What a template must contain for its calls to be found, and the marks that follow from it.
TEST(ToolCalls, FormatsFollowFromTheTemplate) {
  using Kind = ToolCallFormat::Kind;
  const auto of = [](std::string_view source) { return ToolCallFormat::of(source); };
  for (const char* none : {"", "<|channel|>", "to=functions.f", "<|python_tag", "tool_call", "\"parameters\"",
                           "<|channel|> to=x", "<|channel|> functions."})
    EXPECT_EQ(of(none).kind, Kind::None) << none;
  EXPECT_EQ(of("<|channel|> to=functions.").kind, Kind::Harmony);
  EXPECT_EQ(of("\"<|channel|>\" \"to=\" + \"functions.\" + name").kind, Kind::Harmony);
  EXPECT_EQ(of("{\"parameters\": dictionary of argument name and its value}").kind, Kind::Bare);
  EXPECT_EQ(of("<|python_tag|> \"parameters\"").kind, Kind::Bare);
  const std::string bar = "\xef\xbd\x9c", block = "\xe2\x96\x81";
  const auto deepseek = [&](const std::string& words) {
    std::string mark = "<" + bar;
    for (char c : words) mark += c == ' ' ? block : std::string(1, c);
    return mark + bar + ">";
  };
  const std::tuple<std::string, std::string, std::string> kMarked[] = {
      {"<|tool_call_start|>", "<|tool_call_start|>", "<|tool_call_end|>"},
      {"<|tool_list_start|>", "<|tool_call_start|>", "<|tool_call_end|>"},
      {"<|START_ACTION|>", "<|START_ACTION|>", "<|END_ACTION|>"},
      {"[TOOL_CALLS]", "[TOOL_CALLS]", ""},
      {"<|tool_call|>", "<|tool_call|>", ""},
      {"<tool_call>", "<tool_call>", "</tool_call>"},
      {"<|python_tag|>", "<|python_tag|>", ""},
      {"[TOOL_CALLS] <tool_call>", "[TOOL_CALLS]", ""},  // the first of the table
      {deepseek("tool call begin"), deepseek("tool call begin"), deepseek("tool call end")},
  };
  for (const auto& [source, begin, end] : kMarked) {
    const ToolCallFormat f = of("{{ tools }} " + source + " ...");
    EXPECT_EQ(f.kind, Kind::Marked) << source;
    EXPECT_EQ(f.begin, begin) << source;
    EXPECT_EQ(f.end, end) << source;
    const bool around = begin == deepseek("tool call begin");
    EXPECT_EQ(f.all_begin, around ? deepseek("tool calls begin") : "") << source;
    EXPECT_EQ(f.all_end, around ? deepseek("tool calls end") : "") << source;
  }
}

// "t" and a text, "c" and a control token's name, "f" and a call's name; one after the other.
std::string order(const ToolCallSplitter::Pieces& pieces) {
  std::string out;
  for (const Piece& p : pieces)
    out += p.kind == Piece::Text      ? "t'" + p.text + "'"
           : p.kind == Piece::Control ? "c" + p.text
                                      : "f" + p.call.name;
  return out;
}

// What cannot be part of a call is given at once.
TEST(ToolCalls, OnlyWhatMayBeACallWaits) {
  ToolCallSplitter marked(ToolCallFormat::of("<tool_call>"));
  EXPECT_EQ(order(marked.push("a <")), "t'a'");
  EXPECT_EQ(order(marked.push("b ")), "t' <b'");
  EXPECT_EQ(order(marked.push("\n<tool_cal")), "");
  EXPECT_EQ(order(marked.push("m, c")), "t' \n<tool_calm, c'");
  EXPECT_EQ(order(marked.push(" <tool_call>f</tool_call>")), "ff");
  EXPECT_EQ(order(marked.push("\n<tool_call>g</tool_call> h")), "fgt' h'");
  EXPECT_EQ(marked.calls(), 2);
  EXPECT_EQ(order(marked.push(" ")), "");
  EXPECT_EQ(order(marked.finish()), "");

  ToolCallSplitter bare(ToolCallFormat::of("<|python_tag|> \"parameters\""));
  for (const char* waits : {" ", "{ ", "\"na"}) EXPECT_EQ(order(bare.push(waits)), "");
  EXPECT_EQ(order(bare.push("ture\": 1")), "t' { \"nature\": 1'");
  EXPECT_EQ(order(bare.push(", {\"name\": \"f\"}")), "t', {\"name\": \"f\"}'") << "text has come before";
  ToolCallSplitter typed(ToolCallFormat::of("<|python_tag|> \"parameters\""));
  EXPECT_EQ(order(typed.push("{\"type\": \"function\", \"function\": {\"name\": \"f\"}}")), "");
  EXPECT_EQ(order(typed.finish()), "ff");
  for (const char* at_once : {"Hi", "[", "{\"x", "{}", "{\"names\""}) {
    ToolCallSplitter one(ToolCallFormat::of("<|python_tag|> \"parameters\""));
    EXPECT_EQ(order(one.push(at_once)), format("t'{}'", at_once));
  }
}

TEST(ToolCalls, ControlTokensKeepTheirPlaces) {
  ToolCallSplitter s(ToolCallFormat::of("<tool_call>"));
  EXPECT_EQ(order(s.push("a \n")), "t'a'");
  EXPECT_EQ(order(s.control("<|x|>")), "t' \n'c<|x|>");
  EXPECT_EQ(order(s.push("b <tool")), "t'b'");
  EXPECT_EQ(order(s.control("<|y|>")), "t' <tool'c<|y|>") << "before the token, not behind it";
  EXPECT_EQ(order(s.push("_call>")), "t'_call>'") << "no mark: a token lay between";
  EXPECT_EQ(order(s.control("<tool_call>")), "");
  EXPECT_EQ(order(s.push("f")), "");
  EXPECT_EQ(order(s.control("<|sep|>")), "") << "part of a call";
  EXPECT_EQ(order(s.push("g")), "");
  EXPECT_EQ(order(s.control("</tool_call>")), "t'<tool_call>f<|sep|>g</tool_call>'");
  EXPECT_EQ(order(s.control("<|sep|>")), "c<|sep|>") << "outside of calls";
  ToolCallSplitter bare(ToolCallFormat::of("<|python_tag|> \"parameters\""));
  EXPECT_EQ(order(bare.push("{\"name\": \"f\"}")), "");
  EXPECT_EQ(order(bare.control("<|eom_id|>")), "c<|eom_id|>");
  EXPECT_EQ(order(bare.finish()), "ff") << "the token that ends an answer is no part of its call";
  ToolCallSplitter harmony(ToolCallFormat{ToolCallFormat::Kind::Harmony});
  EXPECT_EQ(order(harmony.control("<|channel|>")), "");
  EXPECT_EQ(order(harmony.push("final")), "");
  EXPECT_EQ(order(harmony.control("<|end|>")), "c<|channel|>t'final'c<|end|>");
  ToolCallSplitter none(ToolCallFormat{});
  EXPECT_EQ(order(none.push("a ")), "t'a'");
  EXPECT_EQ(order(none.control("<tool_call>")), "t' 'c<tool_call>");
  // Marks around all calls are no text, wherever they stand.
  const ToolCallFormat f{ToolCallFormat::Kind::Marked, "<c>", "</c>", "<all>", "</all>"};
  for (size_t bytes : {size_t(1), size_t(2), size_t(1000)})
    for (const auto& controls : {std::vector<std::string>{}, {"<c>", "</c>", "<all>", "</all>"}}) {
      const Answer a = split(f, "Look: <all><c>f</c> <c>g</c>\n</all> done", bytes, controls);
      EXPECT_EQ(a.text, "Look:\n done") << bytes;
      EXPECT_EQ(a.calls.size(), 2u) << bytes;
    }
}

// An answer that is either text or calls: what comes first decides, and calls are those of known tools.
TEST(ToolCalls, InsteadOfATextOrNotAtAll) {
  const std::string f = "<tool_call>f</tool_call>", g = "<tool_call>g</tool_call>",
                    both = "<tool_call>[{\"name\": \"f\"}, {\"name\": \"g\"}]</tool_call>";
  const std::tuple<std::string, std::string, int> kAnswers[] = {
      {f, "", 1},
      {" \n" + f + "\n" + f + " ", "", 2},
      {f + " and text", " and text", 1},
      {"text " + f, "text " + f, 0},
      {g, g, 0},
      {both, both, 0},
      {g + f, g + f, 0},
      {f + " a " + f, " a " + f, 1},
      {"a<tool" + f + "<tool_call>", "a<tool" + f + "<tool_call>", 0},
      {"<tool_call>f", "", 1},
      {"<tool_call>g", "<tool_call>g", 0},
  };
  for (const auto& [answer, text, calls] : kAnswers)
    for (size_t bytes : {size_t(1), size_t(7), size_t(1000)}) {
      ToolCallSplitter s(ToolCallFormat::of("<tool_call>"), {"e", "f"});
      Answer a;
      for (size_t at = 0; at < answer.size(); at += bytes) add(a, s.push(answer.substr(at, bytes)));
      add(a, s.finish());
      EXPECT_EQ(a.text, text) << answer << " by " << bytes;
      EXPECT_EQ(int(a.calls.size()), calls) << answer << " by " << bytes;
      EXPECT_EQ(s.calls(), calls);
    }
  ToolCallSplitter s(ToolCallFormat::of("<tool_call>"), {"f"});
  EXPECT_EQ(order(s.push("a")), "t'a'");
  EXPECT_EQ(order(s.push("<tool")), "t'<tool'") << "after a text nothing waits";
  ToolCallSplitter at_once(ToolCallFormat::of("<tool_call>"), {"f"});
  EXPECT_EQ(order(at_once.push("a <tool_call>f")), "t'a <tool_call>f'");
}

// Both headers of OpenAI's description of Harmony: the address behind the role, and behind the channel.
TEST(ToolCalls, HeadersOfGptOss) {
  const ToolCallFormat f{ToolCallFormat::Kind::Harmony};
  const std::tuple<const char*, const char*, const char*> kAnswers[] = {
      {" to=functions.f<|channel|>commentary json<|message|>{}<|call|>", "f", ""},
      {" to=functions.f <|channel|>commentary <|constrain|>json<|message|>{}<|call|>", "f", ""},
      {"<|channel|>commentary to=functions.f<|message|>{}", "f", ""},
      {"<|channel|>commentary to=functions.f<|constrain|>json<|message|> {} <|end|>", "f", ""},
      {"<|channel|>commentary to=functions.f<|message|>{}<|call|><|start|>assistant<|channel|>commentary "
       "to=functions.g<|message|>{}<|call|>",
       "f g", ""},
      {"<|channel|>commentary to=functions.f<|message|>{}<|start|>assistant<|channel|>final<|message|>yes",
       "f", "[<|start|>]assistant[<|channel|>]final[<|message|>]yes"},
      {"<|channel|>final<|message|>to=functions.f<|return|>", "",
       "[<|channel|>]final[<|message|>]to=functions.f[<|return|>]"},
      {"<|channel|>commentary to=browser.find<|message|>{}<|end|>", "",
       "[<|channel|>]commentary to=browser.find[<|message|>]{}[<|end|>]"},
      {"<|channel|>final<|message|>a<|channel|>commentary to=functions.f<|message|>{}", "f",
       "[<|channel|>]final[<|message|>]a"},
      {"<|channel|>final<|end|>x", "", "[<|channel|>]final[<|end|>]x"},
      {"<|channel|>final<|message|>a \n<|end|>", "", "[<|channel|>]final[<|message|>]a \n[<|end|>]"},
      {"<|channel|>final <|message|>a \n", "", "[<|channel|>]final [<|message|>]a \n"},
      {"<|channel|>comm", "", "[<|channel|>]comm"},
  };
  for (const auto& [answer, calls, text] : kAnswers)
    for (size_t bytes : {size_t(1), size_t(6), size_t(1000)}) {
      const Answer a = split(f, answer, bytes, kControls);
      std::string names;
      for (const ToolCall& c : a.calls) {
        names += (names.empty() ? "" : " ") + c.name;
        EXPECT_EQ(c.arguments, "{}") << answer;
      }
      EXPECT_EQ(names, calls) << answer << " by " << bytes;
      EXPECT_EQ(a.text, text) << answer << " by " << bytes;
    }
}

}  // namespace
}  // namespace gimbal::test
