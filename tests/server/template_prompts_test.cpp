// What a chat template makes of a request, as the endpoints show it that only render or count.
#include "server/api_server.h"

namespace gimbal::test {
namespace {

class TemplatePrompts : public ApiTest {};

// /completion puts BOS before a text, so the text of a prompt must not begin with it.
TEST_F(TemplatePrompts, ATemplatesPromptGoesBackUnchanged) {
  models.model->template_is("{{ bos_token }}{% for m in messages %}[{{ m.content }}]{% endfor %}");
  const Json hi = {{"messages", {{{"role", "user"}, {"content", "Hi"}}}}};
  const Json prompt = json(ask("/apply-template", hi))["prompt"];
  EXPECT_EQ(prompt, "[Hi]");
  ask("/v1/chat/completions", hi);
  ask("/completion", {{"prompt", prompt}});
  const auto asked = service().asked();
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[0].prompt, asked[1].prompt);
  EXPECT_EQ(asked[0].prompt[0], models.model->tokenizer().bos());
  EXPECT_NE(asked[0].prompt[1], models.model->tokenizer().bos());
}

// To render and to count takes no place in the context.
TEST_F(TemplatePrompts, PromptsBeyondTheContextAreRenderedAndCounted) {
  std::string text;
  for (int i = 0; i < 300; i++) text += "word ";
  const Json body = {{"messages", {{{"role", "user"}, {"content", text}}}}};
  EXPECT_NE(json(ask("/apply-template", body))["prompt"].get<std::string>().find(text), std::string::npos);
  const int counted = json(ask("/v1/chat/completions/input_tokens", body))["input_tokens"];
  EXPECT_GT(counted, models.model->context());
  EXPECT_EQ(json(ask("/v1/messages/count_tokens",
                     {{"model", "stories"}, {"messages", body["messages"]}}))["input_tokens"],
            counted);
  for (const char* path : {"/v1/chat/completions", "/v1/messages", "/api/chat"}) {
    Json more = body;
    more["model"] = "stories";
    if (path == std::string_view("/v1/messages")) more["max_tokens"] = 5;
    EXPECT_EQ(ask(path, more).status, 400) << path;
  }
  expect_wrong("/v1/responses", {{"model", "stories"}, {"input", text}}, "input");
  EXPECT_TRUE(service().asked().empty());
}

// Some templates think only where a variable says so.
TEST_F(TemplatePrompts, ATemplateLearnsWhatARequestSaysOfThinking) {
  models.model->template_is(
      "{% if enable_thinking is not defined and thinking is not defined %}open"
      "{% elif enable_thinking and thinking %}on{% elif not enable_thinking and not thinking %}off{% endif "
      "%}");
  const auto prompt = [&](const Json& more) {
    Json body = {{"messages", {{{"role", "user"}, {"content", "Hi"}}}}};
    body.update(more);
    return json(ask("/apply-template", body))["prompt"];
  };
  EXPECT_EQ(prompt(Json::object()), "open");
  EXPECT_EQ(prompt({{"chat_template_kwargs", {{"enable_thinking", true}}}}), "on");
  EXPECT_EQ(prompt({{"chat_template_kwargs", {{"thinking", false}}}}), "off");
  EXPECT_EQ(prompt({{"reasoning_effort", "high"}}), "on");
  EXPECT_EQ(prompt({{"reasoning_effort", "none"}}), "off");
}

}  // namespace
}  // namespace gimbal::test
