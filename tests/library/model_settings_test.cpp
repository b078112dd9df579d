// Settings of a model in the library: those that take the place of its file's, compared with a file that
// says the same; and several models with settings of their own.
#include <gimbal/engine.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/adapters.h"
#include "support/gguf_model.h"
#include "support/golden.h"

namespace {

using namespace gimbal;

Options quick() {
  Options o;
  o.threads = 1, o.verify = Verify::Never;
  return o;
}

std::vector<float> logits_of(const std::string& file, const ModelOptions& options = {}) {
  auto model = Engine(quick()).load(file, options);
  EXPECT_TRUE(model) << (model ? "" : model.error().message);
  if (!model) return {};
  auto sequence = model->new_sequence();
  const auto tokens = model->tokenizer().encode("Once upon a time there was a little girl");
  auto logits = sequence->logits(tokens);
  EXPECT_TRUE(logits) << (logits ? "" : logits.error().message);
  return logits ? *logits : std::vector<float>();
}

Error refused(const std::string& file, const ModelOptions& options) {
  auto model = Engine(quick()).load(file, options);
  EXPECT_FALSE(model);
  return model ? Error{} : model.error();
}

TEST(ModelSettings, RotaryPositionsAreThoseOfAFileThatSaysTheSame) {
  using test::story_with;
  const std::string plain = test::story_with("plain", {});
  const auto usual = logits_of(plain);
  ModelOptions o;
  o.rope_freq_base = 500000;
  EXPECT_EQ(logits_of(plain, o), logits_of(story_with("base", {{"llama.rope.freq_base", 500000.f}})));
  EXPECT_NE(logits_of(plain, o), usual);

  o = {};
  o.rope_scaling = "linear", o.rope_freq_scale = 0.25f;
  const std::string linear = story_with(
      "linear", {{"llama.rope.scaling.type", std::string("linear")}, {"llama.rope.scaling.factor", 4.f}});
  EXPECT_EQ(logits_of(plain, o), logits_of(linear));
  EXPECT_NE(logits_of(plain, o), usual);
  o.rope_scaling = "file";
  EXPECT_EQ(logits_of(plain, o), logits_of(linear)) << "files without a type are scaled linearly";
  o = {};
  o.rope_scaling = "none";
  EXPECT_EQ(logits_of(linear, o), usual);

  o = {};
  o.rope_scaling = "yarn", o.rope_freq_scale = 0.125f, o.yarn_original_context = 256, o.yarn_beta_fast = 4;
  o.yarn_beta_slow = 0.4f, o.yarn_attn_factor = 1.5f;
  const std::string yarn = story_with("yarn", {{"llama.rope.scaling.type", std::string("yarn")},
                                               {"llama.rope.scaling.factor", 8.f},
                                               {"llama.rope.scaling.original_context_length", 256.f},
                                               {"llama.rope.scaling.yarn_beta_fast", 4.f},
                                               {"llama.rope.scaling.yarn_beta_slow", 0.4f},
                                               {"llama.rope.scaling.attn_factor", 1.5f}});
  EXPECT_EQ(logits_of(plain, o), logits_of(yarn));
  for (auto member :
       {&ModelOptions::yarn_beta_fast, &ModelOptions::yarn_beta_slow, &ModelOptions::yarn_attn_factor}) {
    ModelOptions other = o;
    other.*member *= 1.5f;
    EXPECT_NE(logits_of(plain, other), logits_of(yarn)) << "each counts";
  }
}

TEST(ModelSettings, WhatWouldChangeNothingIsRefused) {
  ModelOptions o;
  o.yarn_beta_fast = 16;
  EXPECT_EQ(refused("default", o).field, "yarn_beta_fast");
  o = {}, o.rope_scaling = "none", o.rope_freq_scale = 0.5f;
  EXPECT_EQ(refused("default", o).field, "rope_freq_scale");
  o = {}, o.rope_scaling = "yarn";
  EXPECT_EQ(refused("default", o).field, "rope_scaling");
  o = {}, o.rope_freq_base = -1;
  EXPECT_EQ(refused("default", o).field, "rope_freq_base");
  o = {}, o.rope_scaling = "dynamic";
  EXPECT_EQ(refused("default", o).field, "rope_scaling");
  o = {}, o.chat_template = "no-such-form";
  EXPECT_EQ(refused("default", o).field, "chat_template");
  EXPECT_NE(refused("default", o).remedy.find("chatml"), std::string::npos);
  o = {}, o.chat_template = "{% if %}";
  EXPECT_EQ(refused("default", o).field, "chat_template");
}

std::string prompt_of(const std::string& model, const std::string& chat_template) {
  ModelOptions o;
  o.chat_template = chat_template;
  auto loaded = Engine(quick()).load(model, o);
  EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error().message);
  const std::vector<Message> messages{{"system", "Be kind."}, {"user", "Hi"}};
  auto prompt = loaded->chat_prompt(messages);
  EXPECT_TRUE(prompt) << (prompt ? "" : prompt.error().message);
  return prompt ? prompt->text : "";
}

TEST(ModelSettings, ATemplateByNameFileOrText) {
  const std::string text = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}";
  EXPECT_EQ(prompt_of("default", text), "<system>Be kind.<user>Hi");
  const std::string path = testing::TempDir() + "form.jinja";
  ASSERT_TRUE(std::ofstream(path) << text);
  EXPECT_EQ(prompt_of("default", path), "<system>Be kind.<user>Hi");
  EXPECT_EQ(
      prompt_of("default", "chatml"),
      "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  const std::string file = test::story_with("chat", {{"tokenizer.chat_template", text}});
  EXPECT_EQ(prompt_of(file, ""), "<system>Be kind.<user>Hi");
  EXPECT_NE(prompt_of(file, "chatml"), prompt_of(file, "")) << "it comes before the file's";
}

size_t threads_of_this_process() {
  return size_t(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

TEST(ModelSettings, EachFieldOfASpecCounts) {
  Engine engine(quick());
  ModelSpec spec;
  spec.base_path = "default";
  EXPECT_EQ(engine.load(spec)->name(), "stories260K");
  spec.name = "mine";
  EXPECT_EQ(engine.load(spec)->name(), "mine");
  spec.ctx_len = 77;
  EXPECT_EQ(engine.load(spec)->context(), 77);
  spec.chat_template = "{{ messages[0].content }}!";
  auto model = engine.load(spec);
  const std::vector<Message> hi{{"user", "Hi"}};
  EXPECT_EQ(model->chat_prompt(hi)->text, "Hi!");
  const size_t before = threads_of_this_process();
  spec.n_threads = 4;
  auto threaded = engine.load(spec);
  const std::vector<Token> enough(60, 403);  // to be worth several threads, which start with the work
  ASSERT_TRUE(threaded->new_sequence()->logits(enough));
  EXPECT_EQ(threads_of_this_process(), before + 3) << "the caller computes as well";
  spec.lora_path = "/no/such/adapter.gguf";
  EXPECT_EQ(engine.load(spec).error().code, Code::NotFound);
  spec = {};
  spec.base_path = "/no/such/model.gguf";
  EXPECT_EQ(engine.load(spec).error().code, Code::NotFound);
}

TEST(ModelSettings, TwoModelsWithSettingsOfTheirOwn) {
  Engine engine(quick());
  const std::string other = test::story_with("base", {{"llama.rope.freq_base", 500.f}});
  const auto text = [](Model& model) {
    auto sequence = model.new_sequence();
    TextOptions o;
    o.greedy = true, o.max_tokens = 40;
    return sequence->generate("Once upon a time", o)->text;
  };
  ModelOptions small;
  small.context = 64;
  auto first = engine.load("default");
  auto second = engine.load(other, small);
  DeviceSettings fast = quick();
  fast.numerics = Numerics::Fast, fast.backend = "cpu";
  auto third = engine.load("default", {}, fast);
  ASSERT_TRUE(first && second && third);
  EXPECT_EQ(second->context(), 64);
  EXPECT_NE(first->context(), 64);
  EXPECT_NE(first->name(), second->name());
  const std::string a = text(*first), b = text(*second);
  EXPECT_NE(a, b);
  EXPECT_EQ(text(*first), a) << "also after the other has computed";
  auto alone = Engine(quick()).load(other, small);
  EXPECT_EQ(text(*alone), b);
  DeviceSettings absent = quick();
  absent.backend = "metal", absent.strict = true;
  EXPECT_EQ(engine.load("default", {}, absent).error().code, Code::NoBackend) << "of this model alone";
  EXPECT_TRUE(engine.load("default"));
}

// Each text has the tokens that it has in a model that was loaded with its adapters only.
TEST(ModelSettings, AdaptersByText) {
  const std::string path = test::golden_dir() + "/stories/stories260K-f32.gguf";
  const std::string a = test::make_adapter(path).adapter, b = test::make_adapter(path, 8).adapter;
  TextOptions greedy;
  greedy.greedy = true, greedy.max_tokens = 24;
  const auto with = [&](std::vector<float> scales) {
    TextOptions o = greedy;
    o.adapters = std::move(scales);
    return o;
  };
  const auto alone = [&](std::vector<LoraAdapter> lora) {
    ModelOptions m;
    m.lora = std::move(lora);
    auto model = Engine(quick()).load(path, m);
    return model->new_sequence()->generate("Once upon a time", greedy)->tokens;
  };
  const std::vector<std::vector<Token>> want = {alone({{a, 0.7f}}), alone({}), alone({{b, 0.5f}}),
                                                alone({{a, -1}, {b, 2}})};
  const std::vector<std::vector<float>> scales = {{}, {0, 0}, {0, 0.5f}, {-1, 2}};
  for (size_t i = 1; i < want.size(); i++) EXPECT_NE(want[i], want[i - 1]) << "adapters that do nothing";
  ModelOptions m;
  m.lora = {{a, 0.7f}, {b, 0}}, m.sequences = 4;
  auto model = Engine(quick()).load(path, m);
  ASSERT_TRUE(model);
  ASSERT_EQ(model->adapters().size(), 2u);
  EXPECT_EQ(model->adapters()[0].scale, 0.7f);
  EXPECT_EQ(model->adapters()[1].path, b);
  {
    auto s = model->new_sequence();
    EXPECT_EQ(s->generate("Once upon a time", with({0, 0.5f}))->tokens, want[2]);
    auto no = s->generate("There", with({1, 0}));
    ASSERT_FALSE(no) << "after tokens of other scales";
    EXPECT_EQ(no.error().field, "adapters");
    EXPECT_TRUE(s->generate("There", greedy)) << "continues with its scales";
    EXPECT_EQ(model->new_sequence()->generate("x", with({1})).error().code, Code::Usage) << "one of two";
    s->rewind(0);
    ASSERT_TRUE(s->adapt(scales[3]));
    EXPECT_EQ(s->generate("Once upon a time", greedy)->tokens, want[3]);
  }
  auto batch = model->new_batch();
  ASSERT_TRUE(batch);
  std::vector<uint64_t> ids;
  for (int round = 0; round < 2; round++)
    for (const auto& s : scales) ids.push_back(*batch->submit("Once upon a time", with(s)));
  for (size_t i = 0; i < ids.size(); i++) EXPECT_EQ(batch->wait(ids[i])->tokens, want[i % want.size()]) << i;
  EXPECT_EQ(batch->submit("x", with({1, 2, 3})).error().field, "adapters");
}

TEST(ModelSettings, ALoadIsCancelledByItsProgress) {
  Options o = quick();
  int loading = 0;
  o.events = [&](const Event& e) { return e.kind != Event::Loading || ++loading < 0; };
  auto model = Engine(o).load("default");
  ASSERT_FALSE(model);
  EXPECT_GT(loading, 0);
}

}  // namespace
