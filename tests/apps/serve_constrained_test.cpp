// Answers that must have a form, from the built-in model through the whole server: JSON schemas, grammars,
// calls of tools; and what is not a form, or would take for ever.
#include <atomic>
#include <functional>

#include "base/format.h"
#include "support/serving.h"

namespace gimbal::test {
namespace {

class ServeConstrained : public testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<Serving>(); }
  static void TearDownTestSuite() { server_.reset(); }
  static const Serving& server() { return *server_; }

  static Json chat(Json more) {
    Json body = {
        {"messages", {{{"role", "user"}, {"content", "Tell me of Tom."}}}}, {"max_tokens", 200}, {"seed", 5}};
    body.update(more);
    return server().ask("/v1/chat/completions", body)["choices"][0];
  }
  static Json form(const Json& schema) {
    return {{"type", "json_schema"}, {"json_schema", {{"name", "x"}, {"schema", schema}}}};
  }
  static std::string refused(const std::string& path, Json body) {
    body["model"] = server().model;
    const HttpAnswer a = server().ask(post(path, body.dump()));
    EXPECT_EQ(a.status, 400) << a.body;
    return a.body;
  }
  static std::string refused(Json more) {
    more["messages"] = {{{"role", "user"}, {"content", "Hi"}}};
    return refused("/v1/chat/completions", more);
  }

 private:
  static inline std::unique_ptr<Serving> server_;
};

// Finite, so each must end; `holds` is what the schema asks for, in other words.
TEST_F(ServeConstrained, SchemasOfEveryKeyword) {
  const struct {
    const char* schema;
    std::function<bool(const Json&)> holds;
  } kCases[] = {
      {R"({"type":"object","properties":{"a":{"type":"boolean"},"b":{"type":"null"}},"required":["a"],
          "additionalProperties":false})",
       [](const Json& v) { return v["a"].is_boolean(); }},
      {R"({"enum":["red",2,null,{"x":[1]}]})",
       [](const Json& v) {
         return v == "red" || v == 2 || v.is_null() || v == Json{{"x", {1}}};
       }},
      {R"({"const":{"k":"v"}})",
       [](const Json& v) {
         return v == Json{{"k", "v"}};
       }},
      {R"({"anyOf":[{"type":"boolean"},{"const":7}]})",
       [](const Json& v) { return v.is_boolean() || v == 7; }},
      {R"({"oneOf":[{"type":"string","maxLength":2},{"type":"integer","minimum":1,"maximum":9}]})",
       [](const Json& v) { return v.is_string() || (v >= 1 && v <= 9); }},
      {R"({"allOf":[{"type":"integer","minimum":-5},{"maximum":40}]})",
       [](const Json& v) { return v >= -5 && v <= 40; }},
      {R"({"type":"array","prefixItems":[{"const":1}],"items":{"type":"boolean"},"minItems":2,"maxItems":4})",
       [](const Json& v) { return v.size() >= 2 && v.size() <= 4 && v[0] == 1 && v.back().is_boolean(); }},
      {R"({"type":"string","minLength":3,"maxLength":8})",
       [](const Json& v) { return v.get<std::string>().size() >= 3; }},
      {R"({"type":"string","pattern":"^[A-Z][a-z]{2,5}-[0-9]{3}$"})",
       [](const Json& v) { return v.get<std::string>().at(v.get<std::string>().size() - 4) == '-'; }},
      {R"({"type":"number","minimum":1.5,"exclusiveMaximum":2})",
       [](const Json& v) { return v >= 1.5 && v < 2; }},
      {R"({"type":"string","format":"date"})",
       [](const Json& v) { return v.get<std::string>().size() == 10; }},
      {R"({"type":"string","format":"time"})", [](const Json& v) { return v.get<std::string>()[2] == ':'; }},
      {R"({"type":"string","format":"date-time"})",
       [](const Json& v) { return v.get<std::string>()[10] == 'T'; }},
      {R"({"type":"string","format":"uuid"})",
       [](const Json& v) { return v.get<std::string>().size() == 36; }},
      {R"({"$defs":{"leaf":{"type":"object","properties":{"n":{"type":"integer","minimum":0,"maximum":9}},
          "required":["n"]}},"type":"array","items":{"$ref":"#/$defs/leaf"},"minItems":1,"maxItems":2})",
       [](const Json& v) { return v[0]["n"] >= 0 && v[0]["n"] <= 9; }},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.schema);
    const Json choice = chat({{"response_format", form(Json::parse(c.schema))}});
    EXPECT_EQ(choice["finish_reason"], "stop");
    const Json value = Json::parse(choice["message"]["content"].get<std::string>(), nullptr, false);
    ASSERT_FALSE(value.is_discarded()) << choice;
    EXPECT_TRUE(c.holds(value)) << value;
  }
}

TEST_F(ServeConstrained, ASchemaThatRefersToItself) {
  const Json tree = Json::parse(
      R"({"type":"object","properties":{"v":{"enum":[1,2]},"c":{"type":"array","maxItems":2,"items":{"$ref":"#"}}},
          "required":["v","c"],"additionalProperties":false})");
  const Json choice = chat({{"response_format", form(tree)}, {"max_tokens", 300}});
  const std::string text = choice["message"]["content"];
  EXPECT_TRUE(text.starts_with("{")) << text;
  if (choice["finish_reason"] == "stop") {
    EXPECT_TRUE(Json::parse(text, nullptr, false).contains("c")) << text;
  }
}

TEST_F(ServeConstrained, AnyObjectTextAndGrammar) {
  Json choice = chat({{"response_format", {{"type", "json_object"}}}, {"max_tokens", 3}});
  EXPECT_EQ(choice["finish_reason"], "length") << "what is cut says so";
  EXPECT_TRUE(choice["message"]["content"].get<std::string>().starts_with("{"));
  choice = chat({{"response_format", {{"type", "text"}}}, {"max_tokens", 5}});
  EXPECT_EQ(choice["finish_reason"], "length");
  const Json grammar = "root ::= (\"yes\" | \"no\") \" \" [0-9]{3}";
  for (const Json& way : {Json{{"temperature", 0}}, Json{{"temperature", 2}, {"top_p", 0.9}},
                          Json{{"repeat_penalty", 1.5}, {"min_p", 0.05}}}) {
    Json with = {{"grammar", grammar}};
    with.update(way);
    const std::string text = chat(with)["message"]["content"];
    EXPECT_TRUE(text.starts_with("yes ") || text.starts_with("no ")) << text;
    EXPECT_EQ(text.size(), text[0] == 'y' ? 7u : 6u) << text;
  }
  const Json several = server().ask("/v1/completions", {{"prompt", {"Once", "Then"}},
                                                        {"grammar", "root ::= [a-z]{5}"},
                                                        {"n", 3},
                                                        {"max_tokens", 20}})["choices"];
  ASSERT_EQ(several.size(), 6u);
  for (const Json& c : several) EXPECT_EQ(c["text"].get<std::string>().size(), 5u) << c;
}

// The same bits alone and among others, constrained or not.
TEST_F(ServeConstrained, OthersChangeNothing) {
  const Json body = {{"prompt", "A cat"},
                     {"seed", 3},
                     {"max_tokens", 40},
                     {"logprobs", 2},
                     {"stop", {"zz"}},
                     {"logit_bias", {{"300", 2}}},
                     {"grammar", "root ::= ([a-z]{1,9} \" \"){4,8} \"end\""}};
  const Json alone = server().ask("/v1/completions", body)["choices"][0];
  EXPECT_TRUE(alone["text"].get<std::string>().ends_with("end")) << alone;
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; i++)
    clients.emplace_back([&, i] {
      if (i % 2) {
        EXPECT_EQ(server().ask("/v1/completions", body)["choices"][0], alone);
      } else {
        Json other = {{"prompt", "The dog"}, {"max_tokens", 40}, {"n", 2}};
        if (i % 4) other["grammar"] = format("root ::= [a-z ]{{{},30}} \".\"", i);
        server().ask("/v1/completions", other);
      }
    });
  for (std::thread& c : clients) c.join();
}

TEST_F(ServeConstrained, OllamaAndResponses) {
  const Json schema = {{"type", "object"},
                       {"properties", {{"age", {{"type", "integer"}, {"minimum", 1}, {"maximum", 99}}}}},
                       {"required", {"age"}}};
  const Json messages = {{{"role", "user"}, {"content", "Hi"}}};
  Json j = server().ask("/api/chat", {{"messages", messages}, {"format", schema}, {"stream", false}});
  EXPECT_GE(Json::parse(j["message"]["content"].get<std::string>())["age"], 1);
  EXPECT_EQ(j["done_reason"], "stop");
  j = server().ask("/api/generate", {{"prompt", "Hi"}, {"format", schema}, {"stream", false}});
  EXPECT_LE(Json::parse(j["response"].get<std::string>())["age"], 99);
  j = server().ask("/api/generate", {{"prompt", "Hi"},
                                     {"raw", true},
                                     {"format", "json"},
                                     {"stream", false},
                                     {"options", {{"num_predict", 6}}}});
  EXPECT_TRUE(j["response"].get<std::string>().starts_with("{"));
  Json body = {
      {"input", "Hi"},
      {"max_output_tokens", 60},
      {"text", {{"format", {{"type", "json_schema"}, {"name", "n"}, {"strict", true}, {"schema", schema}}}}}};
  j = server().ask("/v1/responses", body);
  EXPECT_EQ(j["status"], "completed");
  EXPECT_GE(Json::parse(j["output"][0]["content"][0]["text"].get<std::string>())["age"], 1);
  EXPECT_EQ(j["text"]["format"]["type"], "json_schema");
}

const Json kTools = Json::parse(
    R"([{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":
        {"city":{"type":"string"},"days":{"type":"integer","minimum":1,"maximum":7}},"required":["city"]}}},
        {"type":"function","function":{"name":"now"}}])");

TEST_F(ServeConstrained, CallsThatMustBe) {
  const Json named = {{"type", "function"}, {"function", {{"name", "weather"}}}};
  for (const Json& choice : {Json("required"), named})
    for (int seed = 0; seed < 6; seed++) {
      const Json asked = {{"tools", kTools}, {"tool_choice", choice}, {"max_tokens", 160}, {"seed", seed}};
      const Json c = chat(asked);
      EXPECT_EQ(c["finish_reason"], "tool_calls") << c;
      ASSERT_EQ(c["message"]["tool_calls"].size(), 1u) << c;
      EXPECT_TRUE(c["message"]["content"].is_null()) << c;
      const Json call = c["message"]["tool_calls"][0]["function"];
      const Json arguments = Json::parse(call["arguments"].get<std::string>());
      if (choice.is_object()) { EXPECT_EQ(call["name"], "weather"); }
      if (call["name"] == "weather") {
        EXPECT_TRUE(arguments["city"].is_string());
      } else {
        EXPECT_EQ(call["arguments"], "{}");
      }
      if (seed) continue;
      // streamed: the same call
      Json body = {{"messages", {{{"role", "user"}, {"content", "Tell me of Tom."}}}},
                   {"model", server().model},
                   {"stream", true}};
      body.update(asked);
      const HttpAnswer a = server().ask(post("/v1/chat/completions", body.dump()));
      EXPECT_EQ(a.status, 200);
      EXPECT_SAYS(a.body, Json(call["arguments"]).dump());
      EXPECT_SAYS(a.body, "\"finish_reason\":\"tool_calls\"");
      EXPECT_TRUE(a.body.ends_with("data: [DONE]\n\n"));
    }
}

TEST_F(ServeConstrained, CallsInOtherApis) {
  const Json messages = {{{"role", "user"}, {"content", "Hi"}}};
  const Json parameters = kTools[0]["function"]["parameters"];
  for (const Json& choice : {Json{{"type", "any"}, {"disable_parallel_tool_use", true}},
                             Json{{"type", "tool"}, {"name", "weather"}}}) {
    const Json j =
        server().ask("/v1/messages", {{"messages", messages},
                                      {"max_tokens", 160},
                                      {"tools", {{{"name", "weather"}, {"input_schema", parameters}}}},
                                      {"tool_choice", choice}});
    EXPECT_EQ(j["stop_reason"], "tool_use") << j;
    EXPECT_EQ(j["content"][0]["type"], "tool_use");
    EXPECT_TRUE(j["content"][0]["input"]["city"].is_string());
  }
  const Json j = server().ask(
      "/v1/responses", {{"input", "Hi"},
                        {"max_output_tokens", 160},
                        {"tools", {{{"type", "function"}, {"name", "weather"}, {"parameters", parameters}}}},
                        {"tool_choice", {{"type", "function"}, {"name", "weather"}}}});
  EXPECT_EQ(j["status"], "completed") << j;
  EXPECT_EQ(j["output"][0]["type"], "function_call");
}

TEST_F(ServeConstrained, WhatIsRefusedIsNamed) {
  EXPECT_SAYS(refused({{"response_format", form({{"type", "string"}, {"not", Json::object()}})}}),
              "response_format.json_schema.schema");
  EXPECT_SAYS(refused({{"response_format", form({{"type", "text"}})}}), "response_format.json_schema.schema");
  EXPECT_SAYS(refused({{"response_format", {{"type", "json_schema"}}}}), "response_format.json_schema");
  EXPECT_SAYS(refused({{"response_format", {{"type", "xml"}}}}), "response_format.type");
  EXPECT_SAYS(refused({{"response_format", form(false)}}), "no value satisfies");
  EXPECT_SAYS(refused({{"grammar", "root ::= ("}}), "line 1");
  EXPECT_SAYS(refused({{"grammar", "root ::= root \"a\" | \"b\""}}), "left recursion");
  EXPECT_SAYS(refused({{"grammar", "root ::= \"a\""}, {"response_format", {{"type", "json_object"}}}}),
              "'grammar'");
  EXPECT_SAYS(refused({{"tool_choice", "required"}}), "'tools'");
  EXPECT_SAYS(refused({{"tools", kTools}, {"tool_choice", "must"}}), "tool_choice");
  EXPECT_SAYS(
      refused(
          {{"tools", kTools}, {"tool_choice", "required"}, {"response_format", {{"type", "json_object"}}}}),
      "tool_choice");
  EXPECT_SAYS(refused({{"tools", kTools},
                       {"tool_choice", {{"type", "function"}, {"function", {{"name", "other"}}}}}}),
              "'other'");
  Json tools = kTools;
  tools[0]["function"]["parameters"]["$dynamicRef"] = "#x";
  EXPECT_SAYS(refused({{"tools", tools}, {"tool_choice", "required"}}), "$dynamicRef");
  EXPECT_SAYS(refused("/api/generate", {{"prompt", "Hi"}, {"format", {{"uniqueItems", true}}}}),
              "uniqueItems");
  EXPECT_SAYS(refused("/api/generate", {{"prompt", "Hi"}, {"format", "yaml"}}), "format");
}

// Each is answered, with an answer or an error, while another client is served.
TEST_F(ServeConstrained, HostileFormsAreAnswered) {
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) server().ask("/v1/completions", {{"prompt", "Once"}, {"max_tokens", 8}});
  });
  std::vector<Json> bodies;
  const auto schema = [&](Json s) { bodies.push_back({{"response_format", form(std::move(s))}}); };
  Json deep = {{"type", "integer"}};
  for (int i = 0; i < 90; i++) deep = {{"type", "array"}, {"items", deep}};
  schema(deep);
  Json values = Json::array();
  for (int i = 0; i < 10'000; i++) values.push_back("value " + std::to_string(i * 7919));
  schema({{"enum", values}});
  schema({{"type", "array"}, {"items", {{"type", "string"}}}, {"minItems", 1'000'000'000}});
  schema({{"type", "string"}, {"minLength", 100'000}, {"maxLength", 4'000'000'000}});
  for (const char* pattern : {"^(a|aa)+$", "(((a{0,100}){0,100}){0,100}){0,100}", "^(a?){500}a{500}$",
                              "^.*a.{30}$", "^([a-z]{1,300}){1,300}$", "(x+x+)+y"})
    schema({{"type", "string"}, {"pattern", pattern}});
  Json all = Json::array();
  for (int i = 0; i < 30; i++)
    all.push_back({{"anyOf", {{{"minimum", i}}, {{"maximum", 1000 + i}}, {{"type", "string"}}}}});
  schema({{"allOf", all}});
  schema({{"$ref", "#/$defs/a"},
          {"$defs", {{"a", {{"anyOf", {{{"$ref", "#/$defs/a"}}, {{"$ref", "#/$defs/a"}}}}}}}}});
  for (std::string grammar :
       {std::string("root ::= root root | \"a\""), std::string("root ::= a a a\na ::= \"x\"* \"y\"*"),
        std::string("root ::= (((\"a\"{0,1000}){0,1000}){0,1000}){0,1000}"),
        std::string("root ::= \"a\"{1000000}"),
        "root ::= " + std::string(150, '(') + "\"a\"" + std::string(150, ')'),
        std::string("root ::= a*\na ::= \"b\"?"), "root ::= \"" + std::string(200'000, 'x') + "\""})
    bodies.push_back({{"grammar", grammar}});
  for (Json& body : bodies) {
    body["messages"] = {{{"role", "user"}, {"content", "Hi"}}};
    body["model"] = server().model;
    body["max_tokens"] = 12;
    const HttpAnswer a = server().ask(post("/v1/chat/completions", body.dump()));
    EXPECT_TRUE(a.status == 200 || a.status == 400) << a.status << a.body << body.dump().substr(0, 200);
  }
  done = true;
  other.join();
}

}  // namespace
}  // namespace gimbal::test
