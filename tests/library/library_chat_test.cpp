// Chats of the public library: prompts by the file's template as Python's jinja2 renders them, and answers
// with calls of tools.
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/remade.h"
// The library's own names come first: src/library/internal.h.
#include <gimbal/engine.h>

#include "files/gguf.h"
#include "support/golden.h"

namespace {

using namespace gimbal::v1;
using Json = nlohmann::json;

Model load(const std::string& model, int sequences = 2) {
  Options o;
  o.backend = "cpu", o.threads = 1, o.verify = Verify::Never;
  ModelOptions m;
  m.context = 512, m.sequences = sequences;
  auto loaded = Engine(o).load(model, m);
  if (!loaded) ADD_FAILURE() << loaded.error().message;
  return *loaded;
}

// A golden model with this chat template.
std::string with_template(const std::string& source) {
  const auto from = gimbal::open_gguf(gimbal::test::golden_dir() + "/stories/stories260K-f32.gguf");
  const std::string path = gimbal::test::temporary_path("templated.gguf");
  std::ofstream(path, std::ios::binary)
      << gimbal::test::remade(*from, source, {{"<|im_start|>"}, {"<|im_end|>"}});
  return path;
}

std::vector<Message> messages_of(const Json& list) {
  std::vector<Message> all;
  for (const Json& m : list) all.push_back({m["role"], m["content"]});
  return all;
}

Tool weather() {
  return {"weather", "Weather of a city",
          R"({"type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]}}, "required": ["city"]})"};
}

TEST(LibrarySequence, AForkContinuesFromTheSameText) {
  Model model = load("default");
  TextOptions greedy;
  greedy.greedy = true, greedy.max_tokens = 24;
  std::string beginning = "Once upon a time there was a girl named Lily";
  for (int i = 0; i < 4; i++) beginning += ", who had a dog and a cat and a very big red ball";
  const auto told = [&](Sequence& s, const std::string& end) {
    auto g = s.generate(end, greedy);
    EXPECT_TRUE(g) << g.error().message;
    return g ? std::pair(g->tokens, g->prompt_tokens) : std::pair(std::vector<Token>(), 0);
  };
  std::vector<std::vector<Token>> alone;
  for (const char* end : {". One day", " and a tree. They"}) {
    auto fresh = model.new_sequence();
    ASSERT_TRUE(fresh && fresh->logits(model.tokenizer().encode(beginning)));
    alone.push_back(told(*fresh, end).first);
  }
  EXPECT_NE(alone[0], alone[1]);

  auto first = model.new_sequence();
  ASSERT_TRUE(first && first->logits(model.tokenizer().encode(beginning)));
  auto second = first->fork();
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->tokens(), first->tokens());
  EXPECT_FALSE(first->fork()) << "the model was loaded for two";
  const auto one = told(*second, " and a tree. They"), other = told(*first, ". One day");
  EXPECT_EQ(one.first, alone[1]);
  EXPECT_EQ(other.first, alone[0]) << "what the fork wrote is its own";
  EXPECT_LT(one.second, 12) << "the beginning was not computed again";
}

TEST(LibraryChat, PromptsAreThoseOfTheTemplate) {
  const Json golden = gimbal::test::read_json(gimbal::test::golden_dir() + "/chat/chatml.json");
  const Model model = load(with_template(golden["template"]));
  int compared = 0;
  for (const Json& c : golden["cases"]) {
    const Json& context = c["context"];
    if (!context.value("add_generation_prompt", false) || context.contains("tools")) continue;
    bool plain = true;
    for (const Json& m : context["messages"])
      plain = plain && m["content"].is_string() && m.size() == 2 && m["role"] != "tool";
    if (!plain || context.size() > 4) continue;
    auto prompt = model.chat_prompt(messages_of(context["messages"]));
    ASSERT_TRUE(prompt) << prompt.error().message;
    EXPECT_EQ(prompt->text, c["expected"].get<std::string>()) << c["name"];
    EXPECT_EQ(prompt->tokens, model.tokenizer().encode(prompt->text));
    compared++;
  }
  EXPECT_GE(compared, 3);
}

TEST(LibraryChat, AConversationContinuesInItsSequence) {
  Model model = load("default");
  auto sequence = model.new_sequence();
  ChatOptions greedy;
  greedy.greedy = true, greedy.max_tokens = 12;
  std::vector<Message> messages = {{"system", "Tell stories."}, {"user", "Once upon a time"}};
  std::string streamed;
  auto reply =
      sequence->chat(messages, greedy, [&](const ReplyPiece& p) { return streamed += p.text, true; });
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->message.role, "assistant");
  EXPECT_FALSE(reply->message.content.empty());
  EXPECT_EQ(reply->message.content, streamed);
  EXPECT_EQ(reply->generated.finish, Finish::Length);
  // The same prompt by hand gives the same text.
  auto plain = model.new_sequence();
  auto text = plain->generate(model.chat_prompt(messages)->tokens, greedy);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(text->tokens, reply->generated.tokens);
  EXPECT_EQ(text->prompt_tokens, reply->generated.prompt_tokens);
  messages.push_back(reply->message), messages.push_back({"user", "And then"});
  auto second = sequence->chat(messages, greedy);
  ASSERT_TRUE(second) << second.error().message;
  plain->rewind(0);
  EXPECT_EQ(plain->generate(model.chat_prompt(messages)->tokens, greedy)->tokens, second->generated.tokens);
}

TEST(LibraryChat, AThoughtEndsWithItsBudget) {
  Model model = load(with_template(
      "{% for m in messages %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}<think>{% endif %}"));
  const std::vector<Message> messages = {{"user", "Once upon a time"}};
  ChatOptions options;
  options.greedy = true, options.max_tokens = 30;
  const auto answered = [&](int budget) {
    options.reasoning_budget = budget;
    auto sequence = model.new_sequence();
    auto reply = sequence->chat(messages, options);
    EXPECT_TRUE(reply) << reply.error().message;
    return *reply;
  };
  const Reply unlimited = answered(-1), four = answered(4), none = answered(0);
  EXPECT_EQ(unlimited.message.content, "") << "this model never ends its thoughts";
  EXPECT_FALSE(four.message.reasoning.empty());
  EXPECT_TRUE(unlimited.message.reasoning.starts_with(four.message.reasoning)) << "the same thoughts, cut";
  EXPECT_FALSE(four.message.content.empty());
  EXPECT_EQ(std::vector(four.generated.tokens.begin(), four.generated.tokens.begin() + 4),
            std::vector(unlimited.generated.tokens.begin(), unlimited.generated.tokens.begin() + 4));
  EXPECT_EQ(none.message.reasoning, "");
  EXPECT_FALSE(none.message.content.empty());

  options.reasoning_budget = -2;
  auto refused = model.new_sequence()->chat(messages, options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "reasoning_budget");

  options.reasoning_budget = 4;
  auto batch = model.new_batch();
  ASSERT_TRUE(batch) << batch.error().message;
  auto id = batch->submit(messages, options);
  ASSERT_TRUE(id) << id.error().message;
  auto reply = batch->wait_reply(*id);
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->generated.tokens, four.generated.tokens) << "in a batch, too";
}

TEST(LibraryChat, ARequiredCallIsACall) {
  Model model = load("default");
  ChatOptions options;
  options.seed = 1, options.tools = {weather()}, options.tool_choice = ToolChoice::Required;
  options.max_tokens = 100;
  const std::vector<Message> messages = {{"user", "Is it raining?"}};
  Reply alone;
  {
    auto sequence = model.new_sequence();
    auto reply = sequence->chat(messages, options);
    ASSERT_TRUE(reply) << reply.error().message;
    alone = std::move(*reply);
  }
  ASSERT_EQ(alone.message.tool_calls.size(), 1u) << alone.generated.text;
  const ToolCall& call = alone.message.tool_calls[0];
  EXPECT_EQ(call.name, "weather");
  const Json arguments = Json::parse(call.arguments, nullptr, false);
  ASSERT_TRUE(arguments.is_object()) << call.arguments;
  EXPECT_TRUE(arguments["city"] == "Rome" || arguments["city"] == "Oslo");
  EXPECT_EQ(alone.message.content, "");

  auto batch = model.new_batch();
  ASSERT_TRUE(batch) << batch.error().message;
  std::vector<ToolCall> streamed;
  auto id = batch->submit(messages, options, [&](const ReplyPiece& p) {
    streamed.insert(streamed.end(), p.tool_calls.begin(), p.tool_calls.end());
    return true;
  });
  ASSERT_TRUE(id) << id.error().message;
  auto together = batch->wait_reply(*id);
  ASSERT_TRUE(together) << together.error().message;
  EXPECT_EQ(together->generated.tokens, alone.generated.tokens);
  ASSERT_EQ(together->message.tool_calls.size(), 1u);
  EXPECT_EQ(together->message.tool_calls[0].arguments, call.arguments);
  ASSERT_EQ(streamed.size(), 1u);

  // The call and its result are part of the next prompt.
  const std::vector<Message> next = {messages[0], alone.message, {"tool", "It is.", "", {}, "call_1"}};
  auto prompt = model.chat_prompt(next, options);
  ASSERT_TRUE(prompt) << prompt.error().message;
  EXPECT_NE(prompt->text.find("\"name\": \"weather\""), std::string::npos) << prompt->text;
}

TEST(LibraryChat, SaysWhatIsWrong) {
  const Model model = load("default");
  const std::vector<Message> hello = {{"user", "Hello"}};
  ChatOptions o;
  EXPECT_EQ(model.chat_prompt({}, o).error().field, "messages");
  const std::vector<Message> odd = {{"robot", "Hello"}};
  EXPECT_EQ(model.chat_prompt(odd, o).error().field, "messages");
  o.tool_choice = ToolChoice::Required;
  EXPECT_EQ(model.chat_prompt(hello, o).error().field, "tool_choice");
  o.tools = {weather()}, o.tool = "clock";
  EXPECT_EQ(model.chat_prompt(hello, o).error().field, "tool");
  o.tool = "", o.grammar = "root ::= \"a\"";
  EXPECT_EQ(model.chat_prompt(hello, o).error().field, "tool_choice");
  o.grammar = "", o.tools[0].parameters = "[";
  EXPECT_EQ(model.chat_prompt(hello, o).error().field, "tools");
  const Model refusing = load(with_template("{{ raise_exception('no system prompt, please') }}"));
  EXPECT_NE(refusing.chat_prompt(hello).error().message.find("no system prompt"), std::string::npos);
  const Model broken = load(with_template("{% if %}"));
  EXPECT_FALSE(broken.chat_prompt(hello)) << "and it loads: texts need no template";
}

}  // namespace
