// POST /v1/completions over a scripted service: log-probabilities of the prompt, and answers of a given form.
#include "server/api_server.h"

namespace gimbal::test {
namespace {

using Completions = ApiTest;

Json once_with(const Json& more) {
  Json j = {{"model", "stories"}, {"prompt", "Once"}};
  j.update(more);
  return j;
}

// Tokens without a text of their own have the one that the vocabulary lists.
TEST_F(Completions, ControlTokensHaveTheirNamesInLogprobs) {
  service().says("a</s>");
  const Json j = json(
      ask("/v1/chat/completions",
          {{"model", "stories"}, {"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"logprobs", true}}));
  const Json& last = j["choices"][0]["logprobs"]["content"].back();
  EXPECT_EQ(last["token"], "</s>") << j;
  EXPECT_EQ(last["bytes"], Json({'<', '/', 's', '>'}));
}

// As lm-evaluation-harness reads them: a number for each token of the prompt but the first, and the answer's
// behind them; the token that ends an answer is among these.
TEST_F(Completions, AnEchoHasTheLogprobsOfThePrompt) {
  const Tokenizer& tokenizer = models.model->tokenizer();
  const std::string text = "Once upon a caf\xc3\xa9 day";
  const std::vector<Token> prompt = tokenizer.encode(text);
  const Json asked = once_with({{"prompt", text}, {"echo", true}, {"logprobs", 2}, {"max_tokens", 0}});
  const Json c = json(ask("/v1/completions", asked))["choices"][0];
  EXPECT_EQ(c["text"], text);
  EXPECT_EQ(c["finish_reason"], "length");
  const Json& l = c["logprobs"];
  ASSERT_EQ(l["tokens"].size(), prompt.size());
  EXPECT_TRUE(l["token_logprobs"][0].is_null());
  EXPECT_TRUE(l["top_logprobs"][0].is_null());
  EXPECT_EQ(l["text_offset"][1], 0) << "the token that begins a text has none";
  for (size_t i = 1; i < prompt.size(); i++) {
    EXPECT_EQ(l["token_logprobs"][i], -0.25 * double(i));
    EXPECT_EQ(l["top_logprobs"][i].size(), 2u);
    EXPECT_EQ(l["tokens"][i], tokenizer.piece(prompt[i], true));
  }
  // Offsets count characters: the last token is " day" or its end.
  const std::string last = l["tokens"].back();
  EXPECT_EQ(l["text_offset"].back().get<size_t>() + last.size(), text.size() - 1) << l;

  // A second prompt, choices, a stream, and an answer that a stop token ends.
  service().says("a b");
  const Json many = once_with({{"prompt", {text, "Once"}}, {"echo", true}, {"logprobs", 1}, {"n", 2}});
  const Json all = json(ask("/v1/completions", many))["choices"];
  ASSERT_EQ(all.size(), 4u);
  Json streamed = many;
  streamed["stream"] = true;
  std::vector<Json> lists(4, Json::array());
  std::vector<std::string> texts(4);
  for (const std::string& e : events(ask("/v1/completions", streamed))) {
    if (e == "[DONE]") continue;
    const Json one = Json::parse(e)["choices"][0];
    const size_t index = one["index"];
    texts[index] += one["text"];
    if (one["logprobs"].is_null()) continue;
    for (size_t i = 0; i < one["logprobs"]["tokens"].size(); i++)
      lists[index].push_back({one["logprobs"]["tokens"][i], one["logprobs"]["token_logprobs"][i],
                              one["logprobs"]["text_offset"][i]});
  }
  const size_t answer = tokenizer.encode("a b", {.add_bos = false, .parse_special = true}).size();
  for (size_t k = 0; k < 4; k++) {
    const Json& whole = all[k]["logprobs"];
    const size_t size = tokenizer.encode(k < 2 ? text : "Once").size() + answer + 1;
    ASSERT_EQ(whole["tokens"].size(), size) << k;
    EXPECT_EQ(whole["token_logprobs"].back(), -0.25 * double(size - 1)) << "the stop token's";
    EXPECT_EQ(all[k]["text"], texts[k]);
    ASSERT_EQ(lists[k].size(), size) << k;
    for (size_t i = 0; i < size; i++)
      EXPECT_EQ(lists[k][i], Json({whole["tokens"][i], whole["token_logprobs"][i], whole["text_offset"][i]}))
          << k << " " << i;
  }
}

TEST_F(Completions, ManyLogprobsOfPromptsAreRefused) {
  Json ids = Json::array();
  for (int i = 0; i < 250; i++) ids.push_back(5);
  Json prompts = Json::array();
  for (int i = 0; i < 64; i++) prompts.push_back(ids);
  const Json asked = once_with({{"prompt", prompts}, {"echo", true}, {"logprobs", 20}, {"max_tokens", 0}});
  expect_wrong("/v1/completions", asked, "prompt");
  EXPECT_NE(ask("/v1/completions", asked).body.find("262144"), std::string::npos);
}

TEST_F(Completions, ACompletionOfAGivenForm) {
  const Json schema = {
      {"type", "object"}, {"properties", {{"u", {{"type", "string"}}}}}, {"required", {"u"}}};
  const Json form = {{"type", "json_schema"}, {"json_schema", {{"name", "x"}, {"schema", schema}}}};
  ASSERT_EQ(ask("/v1/completions", once_with({{"response_format", form}})).status, 200);
  const Json messages = {{{"role", "user"}, {"content", "Hi"}}};
  const HttpAnswer same =
      ask("/v1/chat/completions", {{"model", "stories"}, {"messages", messages}, {"response_format", form}});
  ASSERT_EQ(same.status, 200);
  const auto asked = service().asked();
  EXPECT_FALSE(asked[0].grammar.empty());
  EXPECT_EQ(asked[0].grammar, asked[1].grammar);
  expect_wrong("/v1/completions", once_with({{"response_format", form}, {"grammar", "root ::= \"a\""}}),
               "response_format.json_schema.schema");
}

}  // namespace
}  // namespace gimbal::test
