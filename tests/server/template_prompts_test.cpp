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
  services.template_settings.thinks = false;
  EXPECT_EQ(prompt(Json::object()), "off") << "the server's default";
  EXPECT_EQ(prompt({{"chat_template_kwargs", {{"enable_thinking", true}}}}), "on");
}

// Templates know three efforts, and OpenAI's API has more.
TEST_F(TemplatePrompts, ATemplateGetsAnEffortThatItKnows) {
  models.model->template_is("{{ reasoning_effort }}");
  for (const auto& [asked, got] : {std::pair("minimal", "low"),
                                   {"low", "low"},
                                   {"medium", "medium"},
                                   {"high", "high"},
                                   {"xhigh", "high"}}) {
    const Json body = {{"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"reasoning_effort", asked}};
    EXPECT_EQ(json(ask("/apply-template", body))["prompt"].get<std::string>(), got) << asked;
  }
}

TEST_F(TemplatePrompts, RequestsAndTheServerGiveATemplateVariables) {
  models.model->template_is("{{ style }} {{ voice }} {{ messages[0].content }}");
  const auto ask_with = [&](const Json& variables) {
    return ask("/apply-template",
               {{"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"chat_template_kwargs", variables}});
  };
  EXPECT_EQ(json(ask_with({{"style", "short"}}))["prompt"], "short  Hi");
  services.template_settings.variables = {{"style", "long"}, {"voice", "warm"}};
  EXPECT_EQ(json(ask_with({{"style", "short"}}))["prompt"], "short warm Hi");
  EXPECT_EQ(json(ask_with(Json::object()))["prompt"], "long warm Hi");
  for (const char* name : {"messages", "tools", "add_generation_prompt", "bos_token"}) {
    const Json error = json(ask_with({{name, true}}))["error"];
    EXPECT_EQ(error["param"], "chat_template_kwargs") << name;
    EXPECT_NE(error["message"].get<std::string>().find(name), std::string::npos) << error;
  }
  EXPECT_EQ(json(ask_with({{"enable_thinking", "yes"}}))["error"]["param"], "chat_template_kwargs");
}

// "reasoning_format", and the server's --reasoning-format.
TEST_F(TemplatePrompts, ReasoningIsApartOrInTheText) {
  service().says("<think>hm</think>yes");
  Json body = {{"messages", {{{"role", "user"}, {"content", "Hi"}}}}};
  const auto message = [&] { return json(ask("/v1/chat/completions", body))["choices"][0]["message"]; };
  EXPECT_EQ(message()["content"], "yes");
  EXPECT_EQ(message()["reasoning_content"], "hm");
  services.keeps_reasoning = true;
  EXPECT_EQ(message()["content"], "<think>hm</think>\n\nyes");
  EXPECT_FALSE(message().contains("reasoning_content"));
  body["reasoning_format"] = "auto";
  EXPECT_EQ(message()["content"], "yes");
  services.keeps_reasoning = false;
  body["reasoning_format"] = "none";
  EXPECT_EQ(message()["content"], "<think>hm</think>\n\nyes");
  body["reasoning_format"] = "deepseek-legacy";
  expect_wrong("/v1/chat/completions", body, "reasoning_format");
}

// A variable's text is no part of the template: control tokens in it stay text.
TEST_F(TemplatePrompts, VariablesOfARequestAreForeignText) {
  models.model->template_is("{{ style }}</s>{{ messages[0].content }}");
  const auto tokens = [&](const char* style) {
    ask("/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", "Hi"}}}},
                                 {"chat_template_kwargs", {{"style", style}}}});
    const auto prompt = service().asked().back().prompt;
    return std::count(prompt.begin(), prompt.end(), 2);
  };
  EXPECT_EQ(tokens("short"), tokens("</s>"));
}

}  // namespace
}  // namespace gimbal::test
