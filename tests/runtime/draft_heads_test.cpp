// Draft heads against llama.cpp: logits and drafts of tiny heads beside tiny models, whose weights are made
// here (scripts/oracle/draft_heads.py asks llama.cpp). And the law of drafts: they never change a text.
#include "model/draft_head.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

#include "engine/drafts.h"
#include "files/gguf.h"
#include "runtime/generate.h"
#include "runtime/head_drafter.h"
#include "runtime/session.h"
#include "support/gguf_writer.h"
#include "support/golden.h"
#include "support/placed.h"
#include "support/plain_weights.h"

namespace gimbal::test {
namespace {

using Json = nlohmann::ordered_json;
using Text = std::vector<int32_t>;

std::vector<std::string> heads() {
  std::vector<std::string> all;
  for (const auto& entry :
       std::filesystem::directory_iterator(GIMBAL_SOURCE_DIR "/tests/data/peer/draft_heads"))
    all.push_back(entry.path().stem().string());
  std::sort(all.begin(), all.end());
  return all;
}
Json golden(const std::string& name) {
  return read_json(std::string(GIMBAL_SOURCE_DIR "/tests/data/peer/draft_heads/") + name + ".json");
}

ModelSource written(const std::string& name, const std::string& bytes) {
  const std::string path = temporary_path(name + ".gguf");
  std::ofstream(path, std::ios::binary) << bytes;
  return open_file(path);
}
ModelSource target_of(const Json& g) { return written("target", plain_model(g["target"])); }
// `named`: of the file, in place of the golden ones.
ModelSource head_of(const Json& g, const std::vector<int64_t>& named) {
  return written("head", plain_model(g["head"], {{"d2t", named}}));
}
ModelSource head_of(const Json& g) { return head_of(g, g["named"]); }

// A target and the head that drafts for it, on one device.
struct Pair {
  explicit Pair(const Json& g, int batch = 20, DType cache = DType::F16)
      : target(target_of(g)), file(head_of(g)), device(open_one("cpu", 0, "threads=1")) {
    auto read = read_draft_head(file);
    EXPECT_TRUE(read && *read);
    if (!read || !*read) return;
    head = **read;
    const auto fits = fit_draft_head(head, file, target);
    EXPECT_TRUE(fits) << fits.error().message;
    RunOptions o;
    o.context = 200, o.batch = batch, o.states = true, o.cache_type = cache;
    RunOptions of_head = o;
    of_head.sequences = 2;
    set_head_options(head, of_head);
    o.drafts = 7, o.state_layers = head.layers;
    model = load_on(*device, target, o), drafts = load_on(*device, file, of_head);
    if (drafts) drafter = *make_head_drafter(*drafts, &head);
  }
  ModelSource target, file;
  std::unique_ptr<Device> device;
  DraftHead head;
  std::unique_ptr<Model> model, drafts;
  std::unique_ptr<Drafter> drafter;
};

// Keeps the states of a session's rows.
struct Kept final : StepWatcher {
  std::vector<float> all;
  void computed(std::span<const int32_t>, int, std::span<const float> states) override {
    all.insert(all.end(), states.begin(), states.end());
  }
};

// Of the first guess behind the text.
std::vector<float> head_logits(Pair& p, const Text& text) {
  Kept kept;
  auto session = *Session::create(*p.model);
  session->watch(&kept);
  EXPECT_TRUE(session->advance(std::span(text).first(text.size() - 1), Session::Wanted::None, {}));
  const auto width = size_t(p.drafts->plan().takes_states);
  EXPECT_EQ(kept.all.size(), width * (text.size() - 1));
  auto sequence = *p.drafts->new_sequence();
  std::vector<float> logits;
  if (p.head.block) {
    const std::vector<float> none(width);
    Batch all;
    for (int i = 0; i + 1 < int(text.size()) + p.drafts->plan().options.logit_rows; i++) {
      const size_t at = size_t(i), last = text.size() - 1;
      all.rows.push_back({sequence.get(),
                          at <= last ? text[at] : p.head.mask,
                          i,
                          {.logits = at >= last},
                          at < last ? &kept.all[at * width] : none.data()});
    }
    auto out = p.drafts->forward(all);
    EXPECT_TRUE(out) << out.error().message;
    if (!out) return logits;
    const auto first = out->logits(p.head.from_first ? 0 : 1);
    logits.assign(first.begin(), first.end());
    std::vector<int32_t> ids(logits.size());
    std::iota(ids.begin(), ids.end(), 0);
    if (p.head.markov) { EXPECT_TRUE(p.head.markov->add(text.back(), ids, logits)); }
    return logits;
  }
  for (size_t i = 0; i + 1 < text.size(); i++) {
    Batch one;
    one.rows.push_back({sequence.get(), text[i + 1], int(i), {.logits = true}, &kept.all[i * width]});
    auto out = p.drafts->forward(one);
    EXPECT_TRUE(out) << out.error().message;
    if (out) logits.assign(out->logits(0).begin(), out->logits(0).end());
  }
  return logits;
}

TEST(DraftHeads, GuessAsLlamaCppDoes) {
  ASSERT_GE(heads().size(), 2u);
  for (const std::string& name : heads()) {
    SCOPED_TRACE(name);
    const Json g = golden(name);
    Pair p(g, 64, DType::F32);  // a batch for the whole text, so that the drafter has all states
    ASSERT_TRUE(p.model && p.drafter);
    const Text tokens = g["tokens"], guesses = g["drafts"];
    const std::vector<float> want = base64_floats(g["logits"]), got = head_logits(p, tokens);
    ASSERT_EQ(got.size(), want.size());
    double largest = 0;
    for (size_t i = 0; i < want.size(); i++) largest = std::max(largest, std::fabs(double(got[i]) - want[i]));
    std::printf("%-16s largest difference %.1e\n", name.c_str(), largest);
    EXPECT_LE(largest, g.contains("gelu_by_table") ? 3e-2 : 1e-4);
    auto session = *Session::create(*p.model);
    session->watch(p.drafter->watcher());
    ASSERT_TRUE(session->advance(std::span(tokens).first(tokens.size() - 1), Session::Wanted::None, {}));
    auto guess = p.drafter->propose(tokens, int(guesses.size()));
    ASSERT_TRUE(guess) << guess.error().message;
    EXPECT_EQ(*guess, guesses);
    EXPECT_EQ(p.drafter->name(), g["head"]["metadata"]["general.architecture"].get<std::string>());
  }
}

// The guesses behind a text, by a drafter that has guessed behind each of its beginnings of at least `from`
// tokens. It keeps the states of `kept` rows.
Text guesses(const Json& g, const Text& text, size_t from, int kept) {
  Pair p(g, kept, DType::F32);
  auto session = *Session::create(*p.model);
  session->watch(p.drafter->watcher());
  Text last;
  for (size_t done = 0, n = from; n <= text.size(); done = n - 1, n++) {
    EXPECT_TRUE(session->advance(std::span(text).subspan(done, n - 1 - done), Session::Wanted::None, {}));
    auto guess = p.drafter->propose(std::span(text).first(n), 5);
    EXPECT_TRUE(guess) << guess.error().message;
    if (guess) last = *guess;
  }
  return last;
}

// A guess is computed in rows that the next text must not find: the rows before are kept, their states are
// not.
TEST(DraftHeads, GuessesLeaveNothingBehind) {
  for (const std::string& name : heads()) {
    SCOPED_TRACE(name);
    const Json g = golden(name);
    const Text text = g["tokens"], plain = guesses(g, text, text.size(), 64);
    EXPECT_EQ(plain.size(), std::min<size_t>(5, g["drafts"].size()));
    EXPECT_EQ(guesses(g, text, 2, 8), plain);
  }
}

Text tell(Session& session, const Text& prompt, const SamplerSettings& sampler, int n, Drafting* drafting) {
  GenerateSettings s;
  s.sampler = sampler, s.max_tokens = n, s.drafting = drafting;
  const auto g = generate(session, nullptr, prompt, s, [](std::string_view, Token) { return true; });
  EXPECT_TRUE(g) << g.error().message;
  return g ? g->tokens : Text();
}

// Also beside a model that gives no states: these are outputs of it, and no more.
TEST(DraftHeads, NeverChangeAText) {
  for (const std::string& name : heads()) {
    SCOPED_TRACE(name);
    Pair p(golden(name));
    ASSERT_TRUE(p.model && p.drafter);
    RunOptions without;
    without.context = 200, without.batch = 64;
    const auto bare = load_on(*p.device, p.target, without);
    ASSERT_TRUE(bare);
    auto session = *Session::create(*p.model), plain = *Session::create(*bare);
    Drafting drafting(std::move(p.drafter), Drafting::Length::Most);
    for (unsigned seed = 1; seed <= 4; seed++) {
      std::mt19937 random(seed);
      Text prompt(50);
      for (int32_t& t : prompt) t = int32_t(random() % unsigned(p.model->config().vocabulary));
      SamplerSettings s;
      s.greedy = seed < 3, s.seed = seed, s.temperature = 0.5f;
      session->rewind(0), plain->rewind(0);
      EXPECT_EQ(tell(*session, prompt, s, 60, &drafting), tell(*plain, prompt, s, 60, nullptr));
    }
    EXPECT_GT(drafting.counts().drafted, 100u);
    EXPECT_FALSE(drafting.ended());
  }
}

// Errors of reading the head, or of fitting it to the target.
std::string refused(ModelSource head, const ModelSource& target) {
  auto read = read_draft_head(head);
  if (!read) return read.error().message;
  if (!*read) return "no head";
  const auto fits = fit_draft_head(**read, head, target);
  return fits ? "" : fits.error().message;
}

TEST(DraftHeads, WhatDoesNotFitIsRefused) {
  const Json own = golden("eagle3"), borrowing = golden("eagle3-norms");
  const ModelSource target = target_of(own), head = head_of(own);
  EXPECT_EQ(refused(head, target), "");
  EXPECT_EQ(refused(target, target), "no head");
  auto says = [&](const Json& g, const std::vector<int64_t>& named, const char* what) {
    const std::string why = refused(head_of(g, named), target);
    EXPECT_NE(why.find(what), std::string::npos) << why;
  };
  const std::vector<int64_t> named = own["named"];
  auto with = [&](const std::string& key, const Json& value) {
    Json changed = own;
    changed["head"]["metadata"]["eagle3." + key] = value;
    return changed;
  };
  says(with("target_hidden_size", 96), named, "states of 96 values, and the model's have 48");
  says(with("target_layers", {0, 1, 3}), named, "reads layer 3, and the model's last one is 2");
  says(with("target_layers", {0, 1}), named, "2 numbers of layers; 3 are expected");
  says(with("target_layers", {0, 1, -1}), named, "-1");
  says(with("target_layers", 1), named, "0 numbers of layers");
  std::vector<int64_t> wrong = named;
  wrong.back() = 512;
  says(own, wrong, "guesses token 512, and the model's last one is 511");
  wrong.back() = -1;
  says(own, wrong, "names the token -1");
  wrong.pop_back();
  says(own, wrong, "199 tokens, but 'output.weight' gives 200 logits");
  says(borrowing, named, "names 200 tokens, but 'output.weight' gives 512 logits");
  const Json assistant = golden("gemma4-assistant");
  const ModelSource gemma = target_of(assistant);
  EXPECT_EQ(refused(head_of(assistant), gemma), "");
  EXPECT_NE(refused(head_of(assistant), target).find("made for gemma4, and the model is 'llama'"),
            std::string::npos)
      << refused(head_of(assistant), target);
  for (const auto& [key, value, why] :
       {std::tuple("embedding_length_out", 60, "states of 60 values"),
        {"attention.sliding_window", 8, "sliding_window is 8, and the model's is 9"},
        {"rope.freq_base_swa", 9, "rope.freq_base_swa is 9"}}) {
    Json changed = assistant;
    changed["head"]["metadata"][std::string("gemma4-assistant.") + key] = value;
    const std::string said = refused(head_of(changed), gemma);
    EXPECT_NE(said.find(why), std::string::npos) << said;
  }
  const Json block = golden("dflash-borrowing");
  const ModelSource qwen = target_of(block);
  EXPECT_EQ(refused(head_of(block), qwen), "");
  EXPECT_EQ(refused(head_of(golden("dflash")), target), "");
  for (const auto& [key, value, why] :
       {std::tuple("dflash.embedding_length", Json(40), "states of 40 values, and the model's have"),
        {"dflash.target_layers", Json::array({0, 3}), "reads layer 3, and the model's last one is 2"},
        {"dflash.target_layers", Json::array(), "0 numbers of layers; one or more"},
        {"dflash.target_layers", 2, "0 numbers of layers"},
        {"dflash.block_size", 1, "block_size"},
        {"tokenizer.ggml.mask_token_id", 512, "its mask is token 512, and the model's last one is 511"},
        {"tokenizer.ggml.mask_token_id", 1 << 24, "mask_token_id' is larger than any token"},
        {"tokenizer.ggml.mask_token_id", "x", "mask_token_id' is missing or no number"}}) {
    Json changed = block;
    changed["head"]["metadata"][key] = value;
    const std::string said = refused(head_of(changed), qwen);
    EXPECT_NE(said.find(why), std::string::npos) << key << ": " << said;
  }
  // Whether the first row gives a guess: with a Markov head, unless the file denies it.
  for (const auto& [name, first] : {std::pair("dflash", false), {"dspark", true}, {"dspark-masks", false}}) {
    Json g = golden(name);
    if (name == std::string("dspark")) g["head"]["metadata"].erase("dflash.sample_from_anchor");
    ModelSource file = head_of(g);
    auto read = read_draft_head(file);
    ASSERT_TRUE(read && *read && fit_draft_head(**read, file, target_of(g)));
    EXPECT_EQ((*read)->from_first, first) << name;
  }
  const auto with_tensors = [&](const auto& change) {
    Json g = golden("dspark");
    for (auto& t : g["head"]["tensors"]) change(t);
    return refused(head_of(g), target);
  };
  EXPECT_EQ(with_tensors([](Json&) {}), "");
  for (const auto& [name, change, why] :
       {std::tuple("markov_w2.weight", std::pair(1, 199),
                   "'markov_w2.weight' is 6 x 199; 6 x 200 is expected"),
        {"markov_w2.weight", {0, 5}, "'markov_w2.weight' is 5 x 200; 6 x 200 is expected"},
        {"markov_w1.weight", {-1, 0}, "'markov_w1.weight' is missing"},
        {"markov_w2.weight", {-1, 0}, "'markov_w2.weight' is missing"}}) {
    const std::string said = with_tensors([&](Json& t) {
      if (t[0] != name) return;
      if (change.first < 0) t[0] = "conf_proj.scale";
      else t[1][size_t(change.first)] = change.second;
    });
    EXPECT_NE(said.find(why), std::string::npos) << said;
  }
  // Alone it is no model.
  const auto alone = configure(head);
  ASSERT_FALSE(alone);
  EXPECT_NE(alone.error().message.find("draft head"), std::string::npos) << alone.error().message;
}

// Keys and tensors of DFlash heads whose computation this version does not have.
TEST(DraftHeads, OtherFormsOfBlocksAreRefused) {
  const auto says = [](const std::string& key, const Json& value, const Json& tensor, const char* what) {
    Json g = golden("dflash");
    if (!key.empty()) g["head"]["metadata"][key] = value;
    if (!tensor.is_null()) g["head"]["tensors"].push_back(tensor);
    const ModelSource target = target_of(g);
    ModelSource file = head_of(g);
    auto head = read_draft_head(file);
    ASSERT_TRUE(head && *head);
    ASSERT_TRUE(fit_draft_head(**head, file, target));
    const auto device = open_one("cpu", 0, "threads=1");
    RunOptions o;
    o.context = 64, o.batch = 16;
    set_head_options(**head, o);
    const auto plan = make_model_plan(file, *device, o);
    ASSERT_FALSE(plan) << what;
    EXPECT_EQ(plan.error().code, Code::Unsupported) << plan.error().message;
    EXPECT_NE(plan.error().message.find(what), std::string::npos) << plan.error().message;
  };
  says("dflash.hidden_activation", "relu", {}, "hidden_activation is 'relu'");
  says("dflash.hyper_connection.count", 4, {}, "hyper-connections");
  says("", {}, Json::array({"selector_hidden.weight", {48, 8}, 0, 0.25}),
       "'selector_hidden.weight' is not a part");
}

// Near the end of the context a block has no room, and nothing is guessed.
TEST(DraftHeads, ABlockStaysInsideTheContext) {
  const Json g = golden("dflash");
  Pair p(g, 64);
  ASSERT_TRUE(p.model && p.drafter);
  const int block = p.head.block, context = p.drafts->context();
  auto session = *Session::create(*p.model);
  session->watch(p.drafter->watcher());
  Text text(size_t(context - block + 1), 7);
  ASSERT_TRUE(session->advance(std::span(text).first(text.size() - 1), Session::Wanted::None, {}));
  auto last = p.drafter->propose(text, 5);
  ASSERT_TRUE(last) << last.error().message;
  EXPECT_EQ(last->size(), 5u);
  text.push_back(7);
  ASSERT_TRUE(session->advance(std::span(text).subspan(text.size() - 2, 1), Session::Wanted::None, {}));
  auto none = p.drafter->propose(text, 5);
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_TRUE(none->empty());
}

// Layers whose inputs are not recorded: models that are no plain stack of layers.
TEST(DraftHeads, ModelsWithoutSuchStatesAreRefused) {
  const ModelSource file = open_file(golden_dir() + "/more/arch/bloom.gguf");
  const auto device = open_one("cpu", 0, "threads=1");
  RunOptions o;
  o.context = o.batch = 16, o.states = true, o.state_layers = {1};
  const auto plan = make_model_plan(file, *device, o);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, Code::Unsupported);
  EXPECT_NE(plan.error().message.find("no state of layer 1"), std::string::npos) << plan.error().message;
}

}  // namespace
}  // namespace gimbal::test
