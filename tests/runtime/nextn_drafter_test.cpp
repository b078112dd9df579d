// Drafts from a file's own layers for multi-token prediction: they never change a text, they are given the
// token and the state that belong together, and what is not known of a text only makes them poorer.
#include "runtime/nextn_drafter.h"

#include <gtest/gtest.h>

#include <random>

#include "files/gguf.h"
#include "runtime/generate.h"
#include "support/gguf_writer.h"
#include "support/golden.h"
#include "support/nextn.h"
#include "support/placed.h"

namespace gimbal::test {
namespace {

using Text = std::vector<int32_t>;

// A model and the layer that drafts for it, on one device.
struct Pair {
  explicit Pair(const std::string& path, RunOptions o = {})
      : file(open_file(path)), device(open_one("cpu", 0, "threads=1")) {
    if (o.context == 0) o.context = 256;
    if (o.batch == 256) o.batch = 48;
    RunOptions of_layer = o;
    o.drafts = 7, o.states = true;
    of_layer.states = true, of_layer.arch = nextn_of(file);
    EXPECT_TRUE(of_layer.arch);
    model = load_on(*device, file, o);
    layer = load_on(*device, file, of_layer);
    if (layer) drafter = std::move(*NextnDrafter::create(*layer));
  }
  ModelSource file;
  std::unique_ptr<Device> device;
  std::unique_ptr<Model> model, layer;
  std::unique_ptr<NextnDrafter> drafter;
};

Text prompt_of(const Model& m, size_t n, unsigned seed) {
  std::mt19937 random(seed);
  Text t;
  while (t.size() < n) t.push_back(int32_t(random() % unsigned(m.config().vocabulary)));
  return t;
}

Text tell(Session& session, const Text& prompt, const SamplerSettings& sampler, int n, Drafting* drafting) {
  GenerateSettings s;
  s.sampler = sampler, s.max_tokens = n, s.drafting = drafting;
  const auto g = generate(session, nullptr, prompt, s, [](std::string_view, Token) { return true; });
  EXPECT_TRUE(g) << g.error().message;
  return g ? g->tokens : Text();
}

SamplerSettings greedy() {
  SamplerSettings s;
  s.greedy = true;
  return s;
}

std::vector<SamplerSettings> samplers() {
  SamplerSettings warm, penalties;
  warm.seed = 11, warm.temperature = 0.4f;
  penalties.seed = 13, penalties.repeat_penalty = 1.3f, penalties.penalty_window = 16;
  return {greedy(), warm, penalties};
}

std::string golden(const char* name) { return golden_dir() + "/more/arch/" + name + ".gguf"; }
std::vector<const char*> models() {
  std::vector<const char*> all = {"glm4moe", "deepseek2", "qwen35"};
  if (whole_collection()) all.insert(all.end(), {"qwen35moe", "qwen3next"});
  return all;
}

// Two texts, the second behind a part of the first; the prompts are longer than a batch, and than what is
// kept of the states.
TEST(NextnDrafter, NeverChangesAText) {
  for (const char* name : models()) {
    SCOPED_TRACE(name);
    Pair p(with_nextn(golden(name)));
    ASSERT_TRUE(p.model && p.drafter);
    auto plain = *Session::create(*p.model);
    Drafting drafting(std::move(p.drafter), Drafting::Length::Most);
    for (const SamplerSettings& s : samplers()) {
      int kept = 0;
      for (unsigned seed : {1u, 2u}) {
        const Text prompt = prompt_of(*p.model, 70, seed);
        plain->rewind(kept);
        const Text want = tell(*plain, prompt, s, 40, nullptr);
        plain->rewind(kept);
        const DraftCounts before = drafting.counts();
        ASSERT_EQ(tell(*plain, prompt, s, 40, &drafting), want);
        EXPECT_GT((drafting.counts() - before).drafted, 0u);
        kept = 50;
      }
    }
    EXPECT_FALSE(drafting.ended());
  }
}

// A model whose blocks add nothing says the next token by the last one alone; so does its layer, when it is
// given the token.
TEST(NextnDrafter, IsGivenTheTokenBehindTheState) {
  for (const char* name : models()) {
    SCOPED_TRACE(name);
    Pair p(with_nextn(golden(name),
                      {.embedding = 1, .state = 0, .mixed = false, .still = true, .own_norm = false}));
    ASSERT_TRUE(p.model && p.drafter);
    auto session = *Session::create(*p.model);
    Drafting drafting(std::move(p.drafter), Drafting::Length::Most);
    tell(*session, prompt_of(*p.model, 20, 3), greedy(), 60, &drafting);
    const DraftCounts& c = drafting.counts();
    EXPECT_GT(c.drafted, 40u);
    EXPECT_GT(c.accepted, c.drafted * 9 / 10) << c.accepted << " of " << c.drafted;
  }
}

// And when it is given the state, it says again what the model made of it: the token that is known.
TEST(NextnDrafter, IsGivenTheStateBeforeTheToken) {
  for (const char* name : models()) {
    SCOPED_TRACE(name);
    Pair p(with_nextn(golden(name), {.embedding = 0, .state = 1, .mixed = false, .still = true}));
    ASSERT_TRUE(p.model && p.drafter);
    auto session = *Session::create(*p.model);
    session->watch(p.drafter.get());
    Text text = prompt_of(*p.model, 60, 4);
    for (int i = 0; i < 12; i++) {
      auto top = session->advance_top(std::span(text).subspan(size_t(session->position())), 1);
      ASSERT_TRUE(top) << top.error().message;
      text.push_back(int32_t(top->ids[0]));
      auto guess = p.drafter->propose(text, 1);
      ASSERT_TRUE(guess) << guess.error().message;
      EXPECT_EQ(*guess, Text{text.back()}) << i;
    }
  }
}

// Forgotten or unseen positions: guesses come from the remaining ones, and there may be none.
TEST(NextnDrafter, GoesOnBehindWhatItDoesNotKnow) {
  RunOptions o;
  o.context = 200, o.batch = 20;
  Pair p(with_nextn(golden("glm4moe")), o);
  ASSERT_TRUE(p.model && p.drafter);
  auto session = *Session::create(*p.model);
  const Text text = prompt_of(*p.model, 150, 5);
  auto guess = p.drafter->propose(text, 3);
  ASSERT_TRUE(guess && guess->empty()) << "no state is known";
  // Rows that it does not see, then single ones, more than it keeps.
  ASSERT_TRUE(session->advance(std::span(text).first(60), Session::Wanted::None, {}));
  session->watch(p.drafter.get());
  for (size_t i = 60; i < 101; i++)
    ASSERT_TRUE(session->advance(std::span(text).subspan(i, 1), Session::Wanted::None, {}));
  guess = p.drafter->propose(std::span(text).first(102), 3);
  ASSERT_TRUE(guess) << guess.error().message;
  EXPECT_EQ(guess->size(), 3u);
  guess = p.drafter->propose(std::span(text).first(120), 3);
  ASSERT_TRUE(guess && guess->empty()) << "the states of 101 to 118 are not known";
  // Back, and on with another text.
  session->rewind(70);
  Text changed = text;
  changed[70] = (changed[70] + 1) % p.model->config().vocabulary;
  ASSERT_TRUE(session->advance(std::span(changed).subspan(70, 30), Session::Wanted::None, {}));
  guess = p.drafter->propose(std::span(changed).first(101), 3);
  ASSERT_TRUE(guess) << guess.error().message;
  EXPECT_EQ(guess->size(), 3u);
  // To the end of the context.
  ASSERT_TRUE(session->advance(prompt_of(*p.model, 100, 6), Session::Wanted::None, {}));
  Text all(session->tokens().begin(), session->tokens().end());
  all.push_back(1);
  guess = p.drafter->propose(all, 9);
  ASSERT_TRUE(guess) << guess.error().message;
  EXPECT_LE(guess->size(), 9u);
}

// The rows of a prompt are computed before their states are dropped: less memory does not make it shorter.
TEST(NextnDrafter, KnowsAllOfAPromptThatIsLongerThanItsMemory) {
  const auto guesses = [](const std::string& file, int batch) {
    RunOptions o;
    o.context = 200, o.batch = batch;
    Pair p(file, o);
    std::vector<Text> all;
    for (unsigned seed : {1u, 2u, 3u, 4u}) {
      auto session = Session::create(*p.model);
      EXPECT_TRUE(session);
      (*session)->watch(p.drafter.get());
      const Text text = prompt_of(*p.model, 81, seed);
      EXPECT_TRUE((*session)->advance(std::span(text).first(80), Session::Wanted::None, {}));
      auto guess = p.drafter->propose(text, 5);
      EXPECT_TRUE(guess) << guess.error().message;
      all.push_back(guess ? *guess : Text());
      EXPECT_EQ(all.back().size(), 5u);
    }
    return all;
  };
  for (const char* name : models()) {
    const std::string file = with_nextn(golden(name));
    EXPECT_EQ(guesses(file, 20), guesses(file, 100)) << name;
  }
}

// Behind rows whose states are gone, it guesses as one does that never saw them.
TEST(NextnDrafter, BeginsAnewBehindStatesThatAreGone) {
  for (const char* name : models()) {
    SCOPED_TRACE(name);
    const std::string file = with_nextn(golden(name));
    RunOptions o;
    o.context = 200, o.batch = 20;
    for (unsigned seed : {1u, 2u, 3u}) {
      Pair seen(file, o), late(file, o);
      ASSERT_TRUE(seen.drafter && late.drafter);
      const Text text = prompt_of(*seen.model, 62, seed);
      const auto advance = [&](Session& s, size_t from, size_t n) {
        EXPECT_TRUE(s.advance(std::span(text).subspan(from, n), Session::Wanted::None, {}));
      };
      auto a = *Session::create(*seen.model), b = *Session::create(*late.model);
      a->watch(seen.drafter.get());
      advance(*a, 0, 40);
      ASSERT_TRUE(seen.drafter->propose(std::span(text).first(41), 3));
      for (size_t i = 40; i < 61; i++) advance(*a, i, 1);  // one more than it keeps
      advance(*b, 0, 60);
      b->watch(late.drafter.get());
      advance(*b, 60, 1);
      const auto got = seen.drafter->propose(text, 5), want = late.drafter->propose(text, 5);
      ASSERT_TRUE(got) << got.error().message;
      ASSERT_TRUE(want) << want.error().message;
      EXPECT_EQ(want->size(), 5u);
      EXPECT_EQ(*got, *want);
    }
  }
}

TEST(NextnDrafter, BatchesSayWhatIsMissing) {
  Pair p(with_nextn(golden("glm4moe")));
  ASSERT_TRUE(p.model && p.layer);
  auto of_layer = std::move(p.drafter);
  auto s = *p.model->new_sequence();
  auto no_state = p.model->forward({{{s.get(), 1, 0, {}}}, 0, true});
  EXPECT_TRUE(no_state) << "the model has states";
  RunOptions without;
  without.context = without.batch = 16;
  const auto plain = load_on(*p.device, p.file, without);
  auto t = *plain->new_sequence();
  auto refused = plain->forward({{{t.get(), 1, 0, {}}}, 0, true});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::Usage);
  RunOptions of_other = without;
  of_other.states = true, of_other.arch = nextn_of(p.file);
  const auto layer = load_on(*p.device, p.file, of_other);
  auto u = *layer->new_sequence();
  refused = layer->forward({{{u.get(), 1, 0, {}}}, 0});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("no state"), std::string::npos) << refused.error().message;
  const std::vector<float> state(size_t(p.model->config().width), 1);
  EXPECT_FALSE(layer->forward({{{u.get(), -1, 0, {}, state.data()}}, 0})) << "no token";
  EXPECT_TRUE(layer->forward({{{u.get(), 1, 0, {.logits = true}, state.data()}}, 0, true}));
}

// A layer of another shape is refused, when it is asked for and not before.
TEST(NextnDrafter, MisshapenLayersAreRefused) {
  for (const char* wrong : {"eh_proj", "enorm", "hnorm", "shared_head_norm"}) {
    const ModelSource whole = open_file(with_nextn(golden("glm4moe")));
    GgufWriter w;
    w.string("general.architecture", "glm4moe");
    for (const auto& [key, entry] : whole.metadata()) {
      if (const auto* n = std::get_if<uint64_t>(&entry.value)) w.scalar(key, kU64, *n);
      else if (const auto* x = std::get_if<double>(&entry.value)) w.f32(key, float(*x));
      else if (const auto* flag = std::get_if<bool>(&entry.value)) w.boolean(key, *flag);
    }
    for (const StoredTensor& t : whole.tensors()) {
      std::vector<uint64_t> dims(t.dim, t.dim + t.rank);
      const auto bytes = *whole.read(t);
      std::string data(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      if (t.name.find(std::string(".nextn.") + wrong) != t.name.npos)
        dims[0] /= 2, data.resize(data.size() / 2);
      w.tensor(t.name, dims, info(t.type).gguf, data);
    }
    const std::string bytes = w.build();
    auto file = parse_gguf(Bytes(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()), "test");
    ASSERT_TRUE(file) << file.error().message;
    const auto device = open_one("cpu", 0, "threads=1");
    RunOptions o;
    o.context = o.batch = 16;
    EXPECT_TRUE(make_model_plan(*file, *device, o));
    o.states = true, o.arch = nextn_of(*file);
    auto plan = make_model_plan(*file, *device, o);
    ASSERT_FALSE(plan) << wrong;
    EXPECT_EQ(plan.error().code, Code::Malformed) << plan.error().message;
    EXPECT_NE(plan.error().message.find(wrong), std::string::npos) << plan.error().message;
  }
}

}  // namespace
}  // namespace gimbal::test
