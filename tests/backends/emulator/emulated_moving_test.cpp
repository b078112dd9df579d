// A conversation that changes its devices: the same next tokens as if it had stayed, also after the device it
// was on has been lost.
#include <gtest/gtest.h>

#include "runtime/generate.h"
#include "support/golden.h"
#include "support/moving.h"
#include "support/watched.h"

namespace gimbal::test {
namespace {

class Moving : public testing::Test {
 protected:
  const ModelSource file_ = open_file(golden_dir() + "/stories/stories260K-q8_0.gguf");
  const std::unique_ptr<Tokenizer> tokenizer_ = *Tokenizer::create(file_.metadata());
  const int layers_ = configure(file_)->layers;
  std::unique_ptr<Device> cpu_ = open_one("cpu", 0, "threads=1"), gpu_ = open_one("emulator");

  std::unique_ptr<Model> load(const Device& d, int context = 200, int sequences = 1) {
    return load(std::vector<Placement>{{&d, layers_, ""}}, context, sequences);
  }
  std::unique_ptr<Model> load(const std::vector<Placement>& where, int context = 200, int sequences = 1) {
    RunOptions o;
    o.context = context, o.batch = 16, o.sequences = sequences;
    auto m = load_placed(file_, where, o);
    EXPECT_TRUE(m) << m.error().message;
    return std::move(*m);
  }
  static GenerateSettings greedy(int tokens) {
    GenerateSettings s;
    s.sampler.greedy = true, s.max_tokens = tokens, s.ignore_stop_tokens = true;
    return s;
  }
  static GenerateSettings drawn(int tokens) {
    GenerateSettings s = greedy(tokens);
    s.sampler.greedy = false, s.sampler.seed = 5;
    return s;
  }
  Result<Generated> tell(Session& s, std::span<const Token> prompt, const GenerateSettings& settings) {
    return generate(s, *tokenizer_, prompt, settings, [](std::string_view, Token) { return true; });
  }
};

TEST_F(Moving, FromTheCpuToTheEmulatorAndBackTellsTheSameStory) {
  auto home = load(*cpu_), away = load(*gpu_);
  auto both = load({{cpu_.get(), 2, ""}, {gpu_.get(), layers_ - 2, ""}});
  Model* way[] = {home.get(), away.get(), both.get()};
  check_moves(file_, way, 12);
}

TEST_F(Moving, LeavesNothingBehindAndStaysWhereItIsWhenThatFails) {
  auto home = load(*cpu_), away = load(*gpu_, 100);
  const std::vector<int32_t> tokens = any_tokens(90);
  auto s = *Session::create(*home);
  ASSERT_TRUE(s->advance(tokens, Session::Wanted::None, {}));
  ASSERT_TRUE(s->move_to(*away));
  EXPECT_EQ(s->position(), 90);
  EXPECT_EQ(s->room(), 10);
  EXPECT_EQ(std::vector<int32_t>(s->tokens().begin(), s->tokens().end()), tokens);
  auto other = Session::create(*home);
  ASSERT_TRUE(other) << "the place at home is free again";

  // No place at home now; and a context that is too small; and another model.
  auto taken = s->move_to(*home);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, Code::OutOfMemory);
  auto small = load(*cpu_, 80);
  auto no = s->move_to(*small);
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, Code::Usage);
  EXPECT_NE(no.error().message.find("90"), std::string::npos) << no.error().message;
  EXPECT_NE(no.error().remedy.find("'context' of 90"), std::string::npos) << no.error().remedy;
  const ModelSource another = open_file(golden_dir() + "/quant/q-q8_0.gguf");
  auto stranger = load_placed(another, {{cpu_.get(), configure(another)->layers, ""}}, {});
  ASSERT_TRUE(stranger);
  auto never = s->move_to(**stranger);
  ASSERT_FALSE(never);
  EXPECT_EQ(never.error().code, Code::Usage) << never.error().message;
  EXPECT_TRUE(Session::create(*small)) << "what was tried there was given back";
  EXPECT_EQ(&s->model(), away.get());
  EXPECT_EQ(s->position(), 90);
  EXPECT_TRUE(s->advance(std::span(tokens).first(5), Session::Wanted::None, {}));
}

TEST_F(Moving, ALostDeviceIsAnErrorThatAConversationSurvives) {
  auto fragile = Device::open(Watched<0>::of("emulator"), 0);
  ASSERT_TRUE(fragile);
  Watch& watch = Watched<0>::watches[Watched<0>::latest];
  auto home = load(*cpu_);
  const auto prompt = tokenizer_->encode("Lily and Ben");
  for (const auto& settings : {greedy(30), drawn(30)}) {
    auto alone = *Session::create(*home);
    const auto want = tell(*alone, prompt, settings);
    ASSERT_TRUE(want);
    alone.reset();
    for (int submits : {0, 1, 17}) {
      watch.until_lost = -1;
      auto away = load({{cpu_.get(), 1, ""}, {fragile->get(), layers_ - 1, ""}});
      auto s = *Session::create(*away);
      watch.until_lost = submits;
      auto lost = tell(*s, prompt, settings);
      ASSERT_FALSE(lost);
      EXPECT_EQ(lost.error().code, Code::DeviceLost) << lost.error().message;
      // The lost device stays lost; the session continues elsewhere.
      s->rewind(0);
      watch.until_lost = submits;
      int recovered = 0;
      s->on_device_lost([&](const Error& e, const MoveTo& move) -> Status {
        recovered++;
        EXPECT_EQ(e.code, Code::DeviceLost);
        const auto moved = move({std::shared_ptr<void>(), home.get()});
        return moved ? Status(Done{}) : moved.error();
      });
      auto g = tell(*s, prompt, settings);
      ASSERT_TRUE(g) << g.error().message;
      EXPECT_EQ(recovered, 1);
      EXPECT_EQ(g->tokens, want->tokens) << "lost after " << submits;
      // A way out that fails is the error.
      watch.until_lost = 0;
      s.reset();
      s = *Session::create(*away);
      s->on_device_lost([](const Error&, const MoveTo&) -> Status {
        return Error{Code::Failed, "nowhere to go", ""};
      });
      auto no = tell(*s, prompt, settings);
      ASSERT_FALSE(no);
      EXPECT_EQ(no.error().message, "nowhere to go");
    }
  }
}

}  // namespace
}  // namespace gimbal::test
