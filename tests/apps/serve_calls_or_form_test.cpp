// Answers that have a form or are calls of tools, in every API of the whole server. The model is the built-in
// one with the marks of families for control tokens and their chat templates: no golden model has such marks.
#include "base/format.h"
#include "files/gguf.h"
#include "model/embedded_model.h"
#include "support/remade.h"
#include "support/serving.h"

namespace gimbal::test {
namespace {

const Json kParameters = Json::parse(
    R"({"type":"object","properties":{"city":{"type":"string","maxLength":12},
        "days":{"type":"integer","minimum":1,"maximum":7}},"required":["city"],"additionalProperties":false})");
const Json kTools =
    Json::array({{{"type", "function"}, {"function", {{"name", "weather"}, {"parameters", kParameters}}}},
                 {{"type", "function"}, {"function", {{"name", "now"}}}}});
const Json kSchema = Json::parse(
    R"({"type":"object","properties":{"answer":{"type":"integer","minimum":1,"maximum":9}},"required":["answer"],
        "additionalProperties":false})");
const Json kMessages = {{{"role", "user"}, {"content", "Tell me of Tom."}}};
const Json kForm = {{"type", "json_schema"}, {"json_schema", {{"name", "x"}, {"schema", kSchema}}}};

struct Family {
  const char* name;
  std::string words;  // of its template
  std::vector<Mark> marks;
  bool thinks = false;  // the prompt ends within its reasoning
};
const Family kMistral = {"mistral", "[TOOL_CALLS]", {{"[TOOL_CALLS]"}}};
const Family kHermes = {"hermes", "<tool_call>", {{"<tool_call>"}, {"</tool_call>"}}};
const Family kThinks = {"thinks", "<tool_call>", {{"<tool_call>"}, {"</tool_call>"}}, true};
const Family kGptOss = {
    "gpt-oss", "<|channel|> to=functions.", {{"<|channel|>"}, {"<|message|>"}, {"<|constrain|>"}}};

std::string model_of(const Family& family) {
  const auto inside = *parse_gguf(embedded_model(), "the built-in model");
  const std::string path = temporary_path(std::string(family.name) + ".gguf");
  EXPECT_TRUE(write_file(
      path, remade(inside, template_with(family.words) + (family.thinks ? "<think>" : ""), family.marks)));
  return path;
}
// The k-th of its marks: they are the last tokens of 512.
std::string mark_id(const Family& family, size_t k) { return std::to_string(512 - family.marks.size() + k); }

void expect_call(const std::string& name, const Json& arguments) {
  EXPECT_TRUE(arguments.is_object()) << arguments;
  if (name == "weather") {
    EXPECT_TRUE(arguments["city"].is_string()) << arguments;
    if (arguments.contains("days")) { EXPECT_TRUE(arguments["days"] >= 1 && arguments["days"] <= 7); }
  } else {
    EXPECT_EQ(name, "now");
    EXPECT_TRUE(arguments.empty()) << arguments;
  }
}
void expect_form(const std::string& text) {
  const Json j = Json::parse(text, nullptr, false);
  EXPECT_TRUE(j.is_object() && j.size() == 1 && j["answer"] >= 1 && j["answer"] <= 9) << text;
}
// True: it is a call.
bool expect_either(const Json& choice) {
  const Json& m = choice["message"];
  const bool call = choice["finish_reason"] == "tool_calls";
  if (call) {
    EXPECT_EQ(m["tool_calls"].size(), 1u) << choice;
    EXPECT_TRUE(m["content"].is_null()) << choice;
    for (const Json& c : m["tool_calls"])
      expect_call(c["function"]["name"], Json::parse(c["function"]["arguments"].get<std::string>()));
  } else {
    EXPECT_EQ(choice["finish_reason"], "stop") << choice;
    EXPECT_FALSE(m.contains("tool_calls")) << choice;
    expect_form(m["content"].is_string() ? m["content"].get<std::string>() : "");
  }
  return call;
}

Json asked(const Json& more) {
  Json body = {{"messages", kMessages}, {"tools", kTools},    {"parallel_tool_calls", false},
               {"max_tokens", 220},     {"temperature", 1.5}, {"response_format", kForm}};
  body.update(more);
  return body;
}
Json chat(const Serving& s, const Json& more) {
  return s.ask("/v1/chat/completions", asked(more))["choices"];
}
// The identities of calls are drawn.
Json without_ids(Json choices) {
  for (Json& c : choices)
    if (c["message"].contains("tool_calls"))
      for (Json& t : c["message"]["tool_calls"]) t.erase("id");
  return choices;
}

TEST(ServeCallsOrForm, TheFirstTokenDecides) {
  for (const Family& family : {kMistral, kHermes, kThinks}) {
    SCOPED_TRACE(family.name);
    const Serving s({model_of(family)});
    for (int seed = 0; seed < 4; seed++) {
      const Json force = {{mark_id(family, 0), 100}}, forbid = {{mark_id(family, 0), -100}};
      EXPECT_TRUE(expect_either(chat(s, {{"logit_bias", force}, {"seed", seed}})[0]));
      EXPECT_FALSE(expect_either(chat(s, {{"logit_bias", forbid}, {"seed", seed}})[0]));
    }
    // Any of several choices is one or the other, and grammars do as schemas.
    for (const Json& c : chat(s, {{"n", 6}, {"logit_bias", {{mark_id(family, 0), 4}}}})) expect_either(c);
    for (int seed = 0; seed < 4; seed++) {
      const Json c =
          chat(s, {{"response_format", nullptr}, {"grammar", "root ::= [a-z]{3}"}, {"seed", seed}})[0];
      if (c["finish_reason"] == "stop") {
        EXPECT_EQ(c["message"]["content"].get<std::string>().size(), 3u) << c;
      }
    }
    // Several calls, where they may be.
    const Json several = chat(
        s,
        {{"parallel_tool_calls", true}, {"logit_bias", {{mark_id(family, 0), 100}}}, {"max_tokens", 220}})[0];
    EXPECT_TRUE(several["finish_reason"] == "tool_calls" || several["finish_reason"] == "length") << several;
  }
}

TEST(ServeCallsOrForm, MessagesOfGptOss) {
  const Serving s({model_of(kGptOss)});
  int calls = 0;
  for (int seed = 0; seed < 12; seed++) calls += expect_either(chat(s, {{"seed", seed}})[0]);
  EXPECT_GT(calls, 0);
  EXPECT_LT(calls, 12);
}

// Alone, streamed, beside others, and with guessed tokens: the same, to the bits of probabilities.
TEST(ServeCallsOrForm, TheSameWhoeverElseIsServed) {
  const std::string model = model_of(kHermes);
  const Serving plain({model, "--draft", "off"}),
      guesses({model, "--draft", "ngram", "--workers", "cpu,cpu"});
  std::vector<Json> bodies, alone;
  int calls = 0;
  for (int seed = 0; seed < 8; seed++) {
    const Json bias = {{mark_id(kHermes, 0), seed % 3 ? 6 : -100}};
    bodies.push_back({{"seed", seed}, {"logit_bias", bias}, {"logprobs", true}, {"top_logprobs", 2}});
    if (seed % 2) bodies.back()["temperature"] = 0.2;
    alone.push_back(without_ids(chat(plain, bodies.back())));
    calls += expect_either(alone.back()[0]);
  }
  EXPECT_GT(calls, 0);
  EXPECT_LT(calls, 8);
  std::vector<std::thread> clients;
  for (size_t i = 0; i < bodies.size(); i++)
    clients.emplace_back([&, i] {
      EXPECT_EQ(without_ids(chat(guesses, bodies[i])), alone[i]);
      Json body = asked(bodies[i]);
      body["model"] = guesses.model, body["stream"] = true;
      const HttpAnswer a = guesses.ask(post("/v1/chat/completions", body.dump()));
      std::string text, arguments;
      for (size_t at = 0; (at = a.body.find("data: {", at)) != a.body.npos; at++) {
        const Json e = Json::parse(a.body.substr(at + 6, a.body.find('\n', at) - at - 6));
        if (e["choices"].empty()) continue;
        const Json& d = e["choices"][0]["delta"];
        if (d.contains("content") && d["content"].is_string()) text += d["content"].get<std::string>();
        if (d.contains("tool_calls"))
          arguments += d["tool_calls"][0]["function"]["arguments"].get<std::string>();
      }
      const Json& m = alone[i][0]["message"];
      EXPECT_EQ(text, m["content"].is_null() ? "" : m["content"].get<std::string>());
      EXPECT_EQ(arguments, m.contains("tool_calls")
                               ? m["tool_calls"][0]["function"]["arguments"].get<std::string>()
                               : "");
    });
  for (std::thread& c : clients) c.join();
}

TEST(ServeCallsOrForm, InOtherApis) {
  const Serving s({model_of(kMistral)});
  int calls = 0, forms = 0;
  const auto call = [&](const std::string& name, const Json& arguments) {
    calls++, expect_call(name, arguments);
  };
  const auto form = [&](const Json& text) { forms++, expect_form(text.get<std::string>()); };
  for (int seed = 0; seed < 10; seed++) {
    const Json ollama =
        s.ask("/api/chat", {{"messages", kMessages},
                            {"tools", kTools},
                            {"format", kSchema},
                            {"stream", false},
                            {"options", {{"seed", seed}, {"temperature", 1.9}, {"num_predict", 220}}}});
    if (ollama["message"].contains("tool_calls"))
      for (const Json& t : ollama["message"]["tool_calls"])
        call(t["function"]["name"], t["function"]["arguments"]);
    else if (ollama["done_reason"] == "stop") form(ollama["message"]["content"]);
    Json tools = Json::array();
    for (const Json& t : kTools) {
      tools.push_back({{"type", "function"}});
      tools.back().update(t["function"]);
    }
    const Json r =
        s.ask("/v1/responses",
              {{"input", "Hi"},
               {"max_output_tokens", 220},
               {"tools", tools},
               {"parallel_tool_calls", false},
               {"temperature", 1.9},
               {"text", {{"format", {{"type", "json_schema"}, {"name", "n"}, {"schema", kSchema}}}}}});
    EXPECT_EQ(r["status"], "completed") << r;
    for (const Json& item : r["output"])
      if (item["type"] == "function_call")
        call(item["name"], Json::parse(item["arguments"].get<std::string>()));
      else form(item["content"][0]["text"]);
    for (Json& t : tools) {
      t.erase("type");
      t["input_schema"] = t.contains("parameters") ? t["parameters"] : Json{{"type", "object"}};
      t.erase("parameters");
    }
    const Json m = s.ask("/v1/messages",
                         {{"messages", kMessages},
                          {"max_tokens", 220},
                          {"tools", tools},
                          {"temperature", 1.0},
                          {"tool_choice", {{"type", "auto"}, {"disable_parallel_tool_use", true}}},
                          {"output_config", {{"format", {{"type", "json_schema"}, {"schema", kSchema}}}}}});
    EXPECT_TRUE(m["stop_reason"] == "tool_use" || m["stop_reason"] == "end_turn") << m;
    for (const Json& block : m["content"])
      if (block["type"] == "tool_use") call(block["name"], block["input"]);
      else form(block["text"]);
  }
  EXPECT_GE(calls, 1);
  EXPECT_GE(forms, 1);
}

// Forms and tools that are refused, by name; and some that try to be read as something else.
TEST(ServeCallsOrForm, HostileOnesAreAnswered) {
  const Serving s({model_of(kHermes)});
  const auto ask = [&](Json more) {
    Json body = asked(more);
    body["model"] = s.model;
    return s.ask(post("/v1/chat/completions", body.dump()));
  };
  const auto refused = [&](const Json& more) {
    const HttpAnswer a = ask(more);
    EXPECT_EQ(a.status, 400) << a.body;
    return a.body;
  };
  const Json none = nullptr;
  EXPECT_SAYS(refused({{"response_format", none}, {"grammar", "root ::= <no such>"}}), "'<no such>'");
  EXPECT_SAYS(refused({{"response_format", none}, {"grammar", "root ::= <[2]>"}}), "ends an answer");
  EXPECT_SAYS(refused({{"response_format", none}, {"grammar", "root ::= root \"a\" | \"b\""}}),
              "left recursion");
  Json tools = kTools;
  tools[0]["function"]["name"] = "a b";
  EXPECT_SAYS(refused({{"tools", tools}}), "'a b'");
  tools[0]["function"]["name"] = "weather\"}";
  EXPECT_EQ(ask({{"tools", tools}}).status, 400);
  tools = kTools;
  tools[0]["function"]["parameters"]["not"] = Json::object();
  EXPECT_SAYS(refused({{"tools", tools}}), "'weather'");
  Json many = Json::array();
  for (int i = 0; i < 500; i++)
    many.push_back(
        {{"type", "function"}, {"function", {{"name", format("t{}", i)}, {"parameters", kParameters}}}});
  EXPECT_SAYS(refused({{"tools", many}}), "too large together");
  // A form that says the mark: it is text there.
  const HttpAnswer said = ask({{"response_format", none},
                               {"grammar", "root ::= \"x <tool_call>now</tool_call>\""},
                               {"logit_bias", {{mark_id(kHermes, 0), -100}}}});
  const Json c = Json::parse(said.body)["choices"][0];
  EXPECT_EQ(c["message"]["content"], "x <tool_call>now</tool_call>") << c;
  EXPECT_EQ(c["finish_reason"], "stop");
}

}  // namespace
}  // namespace gimbal::test
