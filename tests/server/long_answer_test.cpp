// Answers of more tokens than a whole answer or a stream keeps apart, from models whose marks are control
// tokens.
#include "server/api_server.h"
#include "support/remade.h"

namespace gimbal::test {
namespace {

// A model whose marks of calls are control tokens.
class Marks : public ApiTest {
 protected:
  void SetUp() override {
    const auto file = parse_gguf(embedded_model(), "the built-in model");
    bytes_ = remade(
        *file, template_with("<|channel|> to=functions."),
        {{"<|start|>"}, {"<|channel|>"}, {"<|message|>"}, {"<|end|>"}, {"<|constrain|>"}, {"<|call|>"}});
    models.model = OneModel::shared(
        new ScriptedModel({reinterpret_cast<const std::byte*>(bytes_.data()), bytes_.size()}));
    models.model->has_context(4096);
    ApiTest::SetUp();
  }
  std::string bytes_;
};

// An answer that is sent as a whole waits as a whole, and a stream waits while its client does not read;
// marks keep their places in both.
TEST_F(Marks, BehindALongTextAreFound) {
  const Json tools = Json::parse(
      R"([{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{}}}}}])");
  const auto ask_for = [&](bool stream) {
    return ask("/v1/chat/completions", {{"model", "stories"},
                                        {"messages", {{{"role", "user"}, {"content", "Hi"}}}},
                                        {"tools", tools},
                                        {"max_tokens", 4000},
                                        {"stream", stream}});
  };
  std::string words = "once";
  for (int i = 1; i < 700; i++) words += i % 2 ? " upon" : " once";
  service().says("<|channel|>analysis<|message|>" + words +
                 "<|end|><|start|>assistant<|channel|>analysis<|message|>" + words +
                 "<|end|><|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json" +
                 R"(<|message|>{"city": "Paris"}<|call|>)");
  const Json j = json(ask_for(false))["choices"][0];
  EXPECT_EQ(j["finish_reason"], "tool_calls");
  ASSERT_EQ(j["message"]["tool_calls"].size(), 1u);
  EXPECT_EQ(j["message"]["tool_calls"][0]["function"]["name"], "weather");
  EXPECT_EQ(Json::parse(j["message"]["tool_calls"][0]["function"]["arguments"].get<std::string>()),
            (Json{{"city", "Paris"}}));
  EXPECT_EQ(j["message"]["reasoning_content"], words + "\n\n " + words);
  std::string thought, name;
  for (const std::string& e : events(ask_for(true))) {
    if (e == "[DONE]") continue;
    const Json d = Json::parse(e)["choices"][0]["delta"];
    if (d.contains("reasoning_content")) thought += d["reasoning_content"].get<std::string>();
    if (d.contains("tool_calls")) name = d["tool_calls"][0]["function"]["name"];
  }
  EXPECT_EQ(thought, words + "\n\n " + words);
  EXPECT_EQ(name, "weather");
}

// Each token with log-probabilities is kept apart. A stream that its client does not read ends; a whole
// answer is read when it is whole.
TEST_F(Marks, AWholeAnswerWithLogprobsMayBeLong) {
  models.model->has_context(40'000);
  std::string words = "once";
  for (int i = 1; i < 17'000; i++) words += " upon";
  service().says(words);
  const HttpAnswer a = ask("/v1/completions",
                           {{"model", "stories"}, {"prompt", "Hi"}, {"logprobs", 0}, {"max_tokens", 20'000}});
  ASSERT_EQ(a.status, 200) << a.body.substr(0, 300);
  const Json j = json(a);
  EXPECT_EQ(j["choices"][0]["text"], " " + words);
  EXPECT_EQ(j["choices"][0]["logprobs"]["tokens"].size(), j["usage"]["completion_tokens"]);
  EXPECT_GT(j["usage"]["completion_tokens"], 16'384);
}

}  // namespace
}  // namespace gimbal::test
