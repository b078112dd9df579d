// Texts of the public library: one by one and many at once, with grammars, log-probabilities and files of
// computed prompts. The references are the golden stories, and the texts of one sequence alone.
#include <gimbal/engine.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>

#include "support/golden.h"

namespace {

using namespace gimbal;

Engine engine_on_cpu() {
  Options o;
  o.backend = "cpu", o.threads = 1, o.verify = Verify::Never;
  return Engine(std::move(o));
}

Model load(const std::string& model, int sequences, int context = 256, const std::string& draft = "") {
  ModelOptions m;
  m.context = context, m.sequences = sequences, m.draft = draft;
  auto loaded = engine_on_cpu().load(model, m);
  if (!loaded) ADD_FAILURE() << loaded.error().message;
  return *loaded;
}

Generated alone(Model& model, const std::string& prompt, const TextOptions& options) {
  auto sequence = model.new_sequence();
  EXPECT_TRUE(sequence) << sequence.error().message;
  auto text = sequence->generate(prompt, options);
  EXPECT_TRUE(text) << text.error().message;
  return text ? *text : Generated();
}

void expect_same(const Generated& a, const Generated& b) {
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.finish, b.finish);
  EXPECT_EQ(a.prompt_tokens, b.prompt_tokens);
  EXPECT_EQ(a.logprobs, b.logprobs);
  ASSERT_EQ(a.top.size(), b.top.size());
  for (size_t i = 0; i < a.top.size(); i++)
    for (size_t k = 0; k < a.top[i].size(); k++) {
      EXPECT_EQ(a.top[i][k].token, b.top[i][k].token);
      EXPECT_EQ(a.top[i][k].logprob, b.top[i][k].logprob);
    }
}

const std::vector<std::string> kPrompts = {"Once upon a time", "Once upon a day", "The dog was",
                                           "One day, a little boy", "Tom saw a cat. Lily saw a cat. Tom saw"};

TEST(Texts, TheGoldenStoriesAloneAndTogether) {
  const auto golden = test::read_json(test::golden_dir() + "/stories/stories260K-f32.json");
  const std::string file = test::golden_dir() + "/stories/" + golden["model"].get<std::string>();
  Model one = load(file, 1, 512), many = load(file, 3, 512);
  auto batch = many.new_batch();
  ASSERT_TRUE(batch) << batch.error().message;
  TextOptions greedy;
  greedy.greedy = true;
  std::vector<std::pair<uint64_t, std::vector<Token>>> texts;
  for (const auto& c : golden["cases"]) {
    const std::vector<Token> prompt = c["tokens"], want = c.value("greedy", std::vector<Token>());
    if (want.empty() || c["greedy_agree_steps"].get<size_t>() != want.size()) continue;
    greedy.max_tokens = int(want.size());
    auto sequence = one.new_sequence();
    auto text = sequence->generate(prompt, greedy);
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_EQ(text->tokens, want);
    auto id = batch->submit(prompt, greedy);
    ASSERT_TRUE(id) << id.error().message;
    texts.emplace_back(*id, want);
  }
  EXPECT_GE(texts.size(), 2u);
  for (const auto& [id, want] : texts) EXPECT_EQ(batch->wait(id)->tokens, want);
}

TEST(Texts, ManyAreAsEachAlone) {
  Model one = load("default", 1), many = load("default", 3);
  auto batch = many.new_batch();
  ASSERT_TRUE(batch) << batch.error().message;
  TextOptions sampled;
  sampled.seed = 5, sampled.max_tokens = 20, sampled.logprobs = 2, sampled.typical_p = 0.9f;
  sampled.repeat_penalty = 1.2f, sampled.penalty_window = 8;
  auto all = batch->generate(kPrompts, sampled);
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), kPrompts.size());
  for (size_t i = 0; i < kPrompts.size(); i++) {
    const Generated text = alone(one, kPrompts[i], sampled);
    expect_same((*all)[i], text);
    ASSERT_EQ(text.logprobs.size(), text.tokens.size());
    EXPECT_EQ(text.top[0].size(), 2u);
    EXPECT_LE(text.logprobs[0], text.top[0][0].logprob);
  }
  std::string story;
  for (int i = 0; i < 12; i++) story += "Tom saw a cat. ";
  for (int i = 0; i < 2; i++) ASSERT_TRUE(batch->generate(std::span(&story, 1), sampled));
  EXPECT_GT(batch->numbers().shared_tokens, 0u) << "the second has the same beginning";
  EXPECT_GT(batch->numbers().steps, 40u);
}

TEST(Texts, DraftsChangeNone) {
  Model plain = load("default", 2), drafting = load("default", 2, 256, "ngram");
  TextOptions options;
  options.seed = 7, options.max_tokens = 60;
  const Generated text = alone(plain, kPrompts.back(), options);
  const Generated drafted = alone(drafting, kPrompts.back(), options);
  EXPECT_EQ(drafted.text, text.text);
  auto batch = drafting.new_batch();
  ASSERT_TRUE(batch) << batch.error().message;
  auto all = batch->generate(std::span(&kPrompts.back(), 1), options);
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ((*all)[0].text, text.text);
}

TEST(Texts, MatchGrammarsAndSchemas) {
  Model one = load("default", 1), many = load("default", 2);
  auto batch = many.new_batch();
  ASSERT_TRUE(batch) << batch.error().message;
  TextOptions options;
  options.seed = 3, options.max_tokens = 60;
  options.grammar = "root ::= \"yes\" | \"no way\"";
  const Generated text = alone(one, "Was it a cat? ", options);
  EXPECT_TRUE(text.text == "yes" || text.text == "no way") << text.text;
  EXPECT_EQ(text.finish, Finish::StopToken);
  auto id = batch->submit("Was it a cat? ", options);
  expect_same(*batch->wait(*id), text);

  options.grammar = "", options.complete = true, options.max_tokens = 30;
  options.json_schema = R"({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
                            "additionalProperties": false})";
  const auto json = nlohmann::json::parse(alone(one, "A number: ", options).text, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_TRUE(json["n"].is_number_integer());

  options.grammar = "root ::= \"a\"";
  auto sequence = one.new_sequence();
  EXPECT_EQ(sequence->generate("a", options).error().field, "grammar") << "both";
  EXPECT_EQ(batch->submit("a", options).error().field, "grammar");
  options.grammar = "", options.json_schema = "{\"type\": \"nonsense\"}";
  EXPECT_EQ(sequence->generate("a", options).error().field, "json_schema");
  options.json_schema = "", options.grammar = "root ::= missing";
  EXPECT_EQ(sequence->generate("a", options).error().code, Code::Usage);
  auto broken = batch->submit("a", options);
  ASSERT_TRUE(broken) << "the grammar is read while the text waits";
  EXPECT_EQ(batch->wait(*broken).error().code, Code::Usage);
}

TEST(Texts, EndWhenTheirSinkSaysSo) {
  Model model = load("default", 2);
  auto batch = model.new_batch();
  ASSERT_TRUE(batch) << batch.error().message;
  std::string first, second;
  TextOptions greedy;
  greedy.greedy = true;
  auto stopped = batch->submit(kPrompts[0], greedy,
                               [&](std::string_view text) { return first += text, first.size() < 10; });
  auto whole =
      batch->submit(kPrompts[1], greedy, [&](std::string_view text) { return second += text, true; });
  auto text = batch->wait(*stopped);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(text->finish, Finish::Cancelled);
  EXPECT_EQ(text->text, first);
  EXPECT_LT(first.size(), 30u);
  batch->cancel(*whole);
  EXPECT_EQ(batch->wait(*whole)->finish, Finish::Cancelled);
  EXPECT_EQ(batch->wait(*whole).error().code, Code::NotFound);
  EXPECT_EQ(batch->wait(12345).error().code, Code::NotFound);
  EXPECT_EQ(batch->wait_reply(*batch->submit("Hello", greedy)).error().code, Code::Usage);
  greedy.temperature = -1;
  EXPECT_EQ(batch->submit("Hello", greedy).error().field, "temperature");
  EXPECT_EQ(batch->submit(std::string(4000, 'a')).error().reason, "context-full");
}

TEST(Texts, ASequenceAndABatchDoNotShareAModel) {
  Model model = load("default", 2);
  {
    auto sequence = model.new_sequence();
    ASSERT_TRUE(sequence);
    EXPECT_EQ(model.new_batch().error().code, Code::Usage);
  }
  auto batch = model.new_batch();
  ASSERT_TRUE(batch) << batch.error().message;
  EXPECT_EQ(model.new_sequence().error().code, Code::Usage);
  EXPECT_EQ(model.new_batch().error().code, Code::Usage);
  { const Batch ended = std::move(*batch); }
  EXPECT_TRUE(model.new_sequence());
}

// By the logits, in double; and the same with more rows of logits in a step.
TEST(Texts, APromptIsScored) {
  Model one = load("default", 2);
  const auto prompt = one.tokenizer().encode("Once upon a time there was a");
  const size_t width = size_t(one.vocabulary());
  std::vector<double> want;
  {
    auto sequence = one.new_sequence();
    auto rows = sequence->all_logits(prompt);
    ASSERT_TRUE(rows) << rows.error().message;
    ASSERT_EQ(rows->size(), prompt.size() * width);
    auto other = one.new_sequence();
    EXPECT_EQ(*other->logits(prompt), std::vector<float>(rows->end() - ptrdiff_t(width), rows->end()));
    for (size_t i = 0; i + 1 < prompt.size(); i++) {
      double sum = 0;
      for (size_t k = 0; k < width; k++) sum += std::exp(double((*rows)[i * width + k]));
      want.push_back((*rows)[i * width + size_t(prompt[i + 1])] - std::log(sum));
    }
    TextOptions o;
    o.logprobs = 0, o.prompt_logprobs = true;
    EXPECT_EQ(sequence->generate("a", o).error().field, "prompt_logprobs");
  }
  for (int rows : {0, 3, 64}) {
    ModelOptions m;
    m.context = 256, m.logit_rows = rows;
    auto model = engine_on_cpu().load("default", m);
    ASSERT_TRUE(model);
    auto batch = model->new_batch();
    ASSERT_TRUE(batch);
    TextOptions o;
    o.max_tokens = 2, o.greedy = true, o.prompt_logprobs = true;
    EXPECT_EQ(batch->submit(prompt, o).error().field, "prompt_logprobs") << "without logprobs";
    o.logprobs = 2;
    std::atomic<int> ends = 0;
    o.on_end = [&] { ends++; };
    auto id = batch->submit(prompt, o);
    ASSERT_TRUE(id);
    auto text = batch->wait(*id);
    ASSERT_TRUE(text);
    EXPECT_EQ(text->tokens.size(), 2u);
    EXPECT_EQ(text->logprobs.size(), 2u);
    ASSERT_EQ(text->prompt_logprobs.size(), want.size());
    for (size_t i = 0; i < want.size(); i++) {
      EXPECT_NEAR(text->prompt_logprobs[i], want[i], 1e-5);
      EXPECT_EQ(text->prompt_top[i].size(), 2u);
    }
    { const Batch done = std::move(*batch); }  // its thread has ended
    EXPECT_EQ(ends, 1);
  }
}

TEST(Texts, TokensKnowTheirPartOfTheText) {
  Model model = load("default", 1);
  for (const std::string text : {"Once upon a time", "  two", "d\u00e9j\u00e0 vu \U0001F642", ""}) {
    const auto tokens = model.tokenizer().encode(text);
    auto parts = model.tokenizer().parts(text, tokens);
    ASSERT_TRUE(parts) << parts.error().message;
    ASSERT_EQ(parts->size(), tokens.size());
    EXPECT_EQ((*parts)[0].end, 0u) << "the token that begins a text";
    size_t at = 0;
    for (const TextPart& p : *parts) {
      EXPECT_EQ(p.begin, at);
      at = p.end;
    }
    EXPECT_EQ(at, text.size());
  }
  EXPECT_EQ(model.tokenizer().parts("other", model.tokenizer().encode("text")).error().code,
            Code::Unsupported);
}

TEST(Texts, APromptIsKeptInAFile) {
  const std::string path = test::temporary_path("kept");
  Model model = load("default", 2);
  auto first = model.new_sequence(), second = model.new_sequence();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*second->restore(path), 0) << "there is no file";
  const auto prompt = model.tokenizer().encode("Once upon a time there was a");
  const std::vector<float> logits = *first->logits(prompt);
  ASSERT_TRUE(first->save(path));
  EXPECT_EQ(first->restore(path).error().code, Code::Usage) << "it holds tokens";
  auto restored = second->restore(path);
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(*restored, int(prompt.size()));
  EXPECT_EQ(second->tokens(), prompt);
  EXPECT_EQ(*second->logits(std::span(&prompt[1], 1)), *first->logits(std::span(&prompt[1], 1)));
}

}  // namespace
