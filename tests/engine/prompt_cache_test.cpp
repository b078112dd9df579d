// What a model remembers of a prompt, kept in a file: the same next tokens, and files that are of no use.
#include "engine/prompt_cache.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "discovery/registry.h"
#include "support/adapters.h"
#include "support/cli.h"
#include "support/golden.h"
#include "support/placed.h"
#include "support/schedules.h"

namespace gimbal {
namespace {

using test::contains;

class PromptCache : public testing::Test {
 protected:
  static LoadedModelPtr load(const std::string& path, DType cache = DType::F16,
                             const std::vector<Lora>& lora = {}, bool embeddings = false,
                             CacheRotation rotation = CacheRotation::Auto) {
    EngineOptions o;
    o.backend = "cpu", o.threads = 1, o.verify = Verify::Never;
    o.run.context = 256, o.run.batch = 32, o.run.sequences = 2, o.run.cache_type = cache;
    o.run.embeddings = embeddings, o.run.cache_rotation = rotation;
    Engine engine(backend_registry(), std::move(o), [](const Event&) { return true; });
    auto file = open_model_file(path, {.kernel_config = "", .lora = lora});
    EXPECT_TRUE(file) << file.error().message;
    auto loaded = engine.load(*file);
    EXPECT_TRUE(loaded) << loaded.error().message;
    return loaded ? *loaded : nullptr;
  }
  static std::unique_ptr<Session> session(const LoadedModelPtr& m) {
    return std::move(*Session::create(*m->model));
  }
  static std::vector<float> advance(Session& s, std::span<const int32_t> tokens) {
    std::vector<float> last;
    auto ok = s.advance(tokens, Session::Wanted::Last,
                        [&](size_t, std::span<const float> l) { last.assign(l.begin(), l.end()); });
    EXPECT_TRUE(ok) << ok.error().message;
    return last;
  }
  static std::string golden(const char* name) { return test::golden_dir() + "/" + name + ".gguf"; }

  const std::string path_ = test::temporary_path("prompt.cache");
};

TEST_F(PromptCache, GoesOnWithTheSameBits) {
  // Attention over all, windows (whose cache holds the window only), recurrent states with attention.
  for (const char* name : {"arch/llama-gqa", "arch/gpt-oss", "more/arch/qwen35"}) {
    SCOPED_TRACE(name);
    const auto model = load(golden(name));
    ASSERT_TRUE(model);
    const auto tokens = test::any_tokens(200, 500);
    const auto text = std::span(tokens).first(150), rest = std::span(tokens).subspan(150);
    std::vector<float> want;
    {
      const auto s = session(model);
      advance(*s, text);
      ASSERT_TRUE(save_prompt(path_, *model, s->sequence()));
      want = advance(*s, rest);
    }
    // Another process would have loaded the model anew.
    const auto again = load(golden(name));
    const auto s = session(again);
    const auto restored = restore_prompt(path_, *again, *s);
    ASSERT_TRUE(restored) << restored.error().message;
    EXPECT_EQ(restored->tokens, 150) << restored->why_not;
    EXPECT_EQ(s->keep_common(tokens), 150);
    EXPECT_EQ(test::bits_differ(advance(*s, rest), want), "");
    // Only a beginning is common: the rest is computed anew.
    const auto other = session(again);
    ASSERT_TRUE(restore_prompt(path_, *again, *other));
    other->rewind(100);
    advance(*other, text.subspan(100));
    EXPECT_EQ(test::bits_differ(advance(*other, rest), want), "");
  }
}

// A file knows which pictures its prompt has: another one at the same places is computed.
TEST_F(PromptCache, KeepsWhichEmbeddingsThereAre) {
  const auto model = load(golden("arch/llama-gqa"), DType::F16, {}, true);
  ASSERT_TRUE(model);
  const int width = model->model->config().width;
  auto picture = [&](float value) {
    std::vector<float> values(size_t(width) * 30);
    for (size_t i = 0; i < values.size(); i++) values[i] = value * float(int(i % 17) - 8);
    std::vector<int32_t> tokens = test::any_tokens(100, 500);
    std::fill_n(tokens.begin() + 40, 30, kNoToken);
    return Inputs(std::move(tokens), {{40, *Embeddings::create(std::move(values), width), 0, 30}});
  };
  const Inputs a = picture(0.01f), b = picture(0.02f);
  auto last = [](Session& s, const InputView& inputs) {
    std::vector<float> logits;
    auto ok = s.advance(inputs, Session::Wanted::Last,
                        [&](size_t, std::span<const float> l) { logits.assign(l.begin(), l.end()); });
    EXPECT_TRUE(ok) << ok.error().message;
    return logits;
  };
  auto s = session(model);
  const auto of_a = last(*s, a);
  ASSERT_TRUE(save_prompt(path_, *model, s->sequence()));
  EXPECT_EQ(s->keep_common(b), 40);
  const auto of_b = last(*s, InputView(b).subview(40));
  EXPECT_NE(test::bits_differ(of_a, of_b), "");
  const auto again = load(golden("arch/llama-gqa"), DType::F16, {}, true);
  for (const bool other : {false, true}) {
    auto restored = session(again);
    const auto r = restore_prompt(path_, *again, *restored);
    ASSERT_TRUE(r) << r.error().message;
    EXPECT_EQ(r->tokens, 100) << r->why_not;
    const Inputs& wanted = other ? b : a;
    const int held = restored->keep_common(wanted);
    EXPECT_EQ(held, other ? 40 : 99);
    EXPECT_EQ(
        test::bits_differ(last(*restored, InputView(wanted).subview(size_t(held))), other ? of_b : of_a), "");
    // Another device computes the embeddings anew.
    const auto elsewhere = load(golden("arch/llama-gqa"), DType::F16, {}, true);
    ASSERT_TRUE(restored->move_to(*elsewhere->model));
    EXPECT_EQ(common_prefix(restored->inputs(), wanted), 100u);
    restored->rewind(99);
    EXPECT_EQ(test::bits_differ(last(*restored, InputView(wanted).subview(99)), other ? of_b : of_a), "");
    restored = nullptr;
  }
  s = nullptr;
  const auto for_tokens = load(golden("arch/llama-gqa"));
  auto none = session(for_tokens);
  const auto refused = restore_prompt(path_, *for_tokens, *none);
  ASSERT_TRUE(refused) << refused.error().message;
  EXPECT_EQ(refused->tokens, 0);
}

TEST_F(PromptCache, KeepsEveryPictureOfAPrompt) {
  const auto model = load(golden("arch/llama-gqa"), DType::F16, {}, true);
  ASSERT_TRUE(model);
  const int width = model->model->config().width;
  const auto picture = [&](float value, int rows) {
    return *Embeddings::create(std::vector<float>(size_t(rows) * size_t(width), value), width);
  };
  std::vector<int32_t> tokens = test::any_tokens(100, 500);
  std::fill_n(tokens.begin() + 20, 10, kNoToken), std::fill_n(tokens.begin() + 60, 12, kNoToken);
  const Inputs inputs(tokens, {{20, picture(0.5f, 10), 0, 10}, {60, picture(-0.25f, 12), 0, 12}});
  const auto last = [](Session& s, const InputView& rows) {
    std::vector<float> logits;
    auto ok = s.advance(rows, Session::Wanted::Last,
                        [&](size_t, std::span<const float> l) { logits.assign(l.begin(), l.end()); });
    EXPECT_TRUE(ok) << ok.error().message;
    return logits;
  };
  const auto s = session(model);
  const auto want = last(*s, inputs);
  ASSERT_TRUE(save_prompt(path_, *model, s->sequence()));
  const auto again = load(golden("arch/llama-gqa"), DType::F16, {}, true);
  const auto restored = session(again);
  const auto r = restore_prompt(path_, *again, *restored);
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->tokens, 100) << r->why_not;
  EXPECT_EQ(restored->keep_common(inputs), 99);
  EXPECT_EQ(test::bits_differ(last(*restored, InputView(inputs).subview(99)), want), "");
}

// A file with a right hash that names rows beyond its embeddings, or positions beyond all ints.
TEST_F(PromptCache, HostileSpansAreRefused) {
  const auto model = load(golden("arch/llama-gqa"), DType::F16, {}, true);
  const int width = model->model->config().width;
  std::vector<int32_t> tokens = test::any_tokens(60, 500);
  std::fill_n(tokens.begin() + 40, 10, kNoToken);
  const Inputs inputs(
      tokens, {{40, *Embeddings::create(std::vector<float>(size_t(10 * width), 0.5f), width), 0, 10}});
  const auto s = session(model);
  ASSERT_TRUE(s->advance(inputs, Session::Wanted::Last, [](size_t, std::span<const float>) {}));
  ASSERT_TRUE(save_prompt(path_, *model, s->sequence()));
  const std::string whole = *read_file(path_);
  constexpr size_t kSpan = 32 + 60 * 4 + 4;  // behind the head, the tokens and the number of spans
  const auto with = [&](std::array<int32_t, 3> position_first_rows) {
    std::string changed = whole;
    std::memcpy(&changed[kSpan], position_first_rows.data(), 12);
    Hash hash;
    const std::string_view covered = std::string_view(changed).substr(0, changed.size() - 8);
    for (size_t at = 0; at < covered.size(); at += 1 << 20) hash.add(covered.substr(at, 1 << 20));
    const uint64_t value = hash.value();
    std::memcpy(&changed[changed.size() - 8], &value, 8);
    EXPECT_TRUE(write_file(path_, changed));
    const auto into = session(model);
    return *restore_prompt(path_, *model, *into);
  };
  EXPECT_EQ(with({40, 0, 10}).tokens, 60);
  for (const auto& hostile : {std::array<int32_t, 3>{40, 1, 10},
                              {40, 0, 11},
                              {40, 0, INT32_MAX},
                              {40, INT32_MAX, 10},
                              {INT32_MAX - 5, 0, 10},
                              {-1, 0, 10},
                              {40, -1, 10},
                              {40, 0, 0},
                              {40, 0, -1}}) {
    const RestoredPrompt r = with(hostile);
    EXPECT_EQ(r.tokens, 0) << hostile[0] << ' ' << hostile[1] << ' ' << hostile[2];
    EXPECT_TRUE(contains(r.why_not, "is damaged")) << r.why_not;
  }
}

TEST_F(PromptCache, OfSomethingElseOrDamagedIsSaidAndNotUsed) {
  const auto model = load(golden("arch/llama-gqa"));
  const auto tokens = test::any_tokens(70, 500);
  auto keep = [&](const LoadedModelPtr& m) {
    const auto s = session(m);
    advance(*s, tokens);
    ASSERT_TRUE(save_prompt(path_, *m, s->sequence()));
  };
  keep(model);
  auto why = [&](const LoadedModelPtr& m) {
    const auto s = session(m);
    const auto r = restore_prompt(path_, *m, *s);
    EXPECT_TRUE(r) << r.error().message;
    EXPECT_EQ(r->tokens, 0);
    EXPECT_EQ(s->position(), 0);
    return r->why_not;
  };
  EXPECT_SAYS(why(load(golden("arch/llama-mha-tied"))), "another model");
  EXPECT_SAYS(why(load(golden("arch/llama-gqa"), DType::F32)), "cache format");
  // The same shapes with other numbers, and the same model with an adapter, also at another strength.
  const test::Adapted adapted = test::make_adapter(golden("arch/llama-gqa"));
  EXPECT_SAYS(why(load(adapted.merged)), "another model");
  EXPECT_SAYS(why(load(golden("arch/llama-gqa"), DType::F16, {{adapted.adapter, 1}})), "another model");
  keep(load(golden("arch/llama-gqa"), DType::F16, {{adapted.adapter, 1}}));
  EXPECT_SAYS(why(load(golden("arch/llama-gqa"), DType::F16, {{adapted.adapter, 0.5f}})), "another model");
  // Rotated keys are no keys of a cache that is not rotated, and the other way round.
  const auto cached = [&](CacheRotation rotation) {
    return load(golden("arch/llama31-ropefreqs"), DType::Q8_0, {}, false, rotation);
  };
  for (const auto& [kept, read] :
       {std::pair(CacheRotation::On, CacheRotation::Off), {CacheRotation::Off, CacheRotation::On}}) {
    keep(cached(kept));
    EXPECT_SAYS(why(cached(read)), "another model");
    const auto again = cached(kept);
    EXPECT_GT(restore_prompt(path_, *again, *session(again))->tokens, 0);
  }
  keep(load(golden("arch/llama-gqa"), DType::F16, {{adapted.adapter, 1}}));
  // A session with scales of its own.
  const auto same = load(golden("arch/llama-gqa"), DType::F16, {{adapted.adapter, 1}});
  const auto other = session(same);
  ASSERT_TRUE(other->adapt(std::vector<float>{0.5f}));
  const auto restored = restore_prompt(path_, *same, *other);
  ASSERT_TRUE(restored);
  EXPECT_EQ(restored->tokens, 0);
  EXPECT_SAYS(restored->why_not, "other adapters");
  keep(model);
  const std::string whole = *read_file(path_);
  for (size_t at : {size_t(0), size_t(20), size_t(40), whole.size() / 2, whole.size() - 1}) {
    std::string bad = whole;
    bad[at] = char(bad[at] ^ 1);
    ASSERT_TRUE(write_file(path_, bad));
    EXPECT_SAYS(why(model), "damaged");
  }
  for (size_t n : {size_t(0), size_t(10), size_t(39), whole.size() - 1}) {
    ASSERT_TRUE(write_file(path_, whole.substr(0, n)));
    EXPECT_SAYS(why(model), "damaged");
  }
  ASSERT_TRUE(write_file(path_, "a letter to somebody, which is long enough to be looked at"));
  EXPECT_SAYS(why(model), "not a prompt cache");
  std::filesystem::remove(path_);
  EXPECT_EQ(why(model), "");
}

TEST_F(PromptCache, TheCommandSaysWhatItRead) {
  const test::Args run = {"run", "--backend", "cpu", "--raw",          "--greedy", "-n",
                          "20",  "-t",        "1",   "--prompt-cache", path_,      "-p"};
  auto with = [&](const char* prompt) {
    test::Args a = run;
    a.push_back(prompt);
    return test::gimbal(a);
  };
  const auto first = with("Once upon a time there was a little");
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.err.find("read from"), std::string::npos);
  const auto second = with("Once upon a time there was a little");
  EXPECT_EQ(second.out, first.out);
  EXPECT_SAYS(second.err, "tokens read from");
  const auto longer = with("Once upon a time there was a little dog. His name");
  EXPECT_SAYS(longer.err, "tokens read from");
  test::Args plain(run.begin(), run.end() - 3);
  // Another prompt of as many tokens takes the file's place.
  with("Once upon a time 1");
  const std::string one = *read_file(path_);
  with("Once upon a time 2");
  EXPECT_NE(*read_file(path_), one);
  const std::string two = *read_file(path_);
  with("Once upon a time 2");
  EXPECT_EQ(*read_file(path_), two);
  plain.push_back("-p"), plain.push_back("Once upon a time there was a little dog. His name");
  EXPECT_EQ(longer.out, test::gimbal(plain).out);
}

}  // namespace
}  // namespace gimbal
