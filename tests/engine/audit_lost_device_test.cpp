// Certificates and audits where a device is lost: an answer whose device was lost has the certificate of one
// without a loss, and an audit continues on the next device. The device is lost in the prompt, because the
// fake computes other bits than the definitions: no row of the answer may come from it.
#include <gtest/gtest.h>

#include "audit/audit.h"
#include "engine/engine.h"
#include "runtime/generate.h"
#include "support/cli.h"
#include "support/fake_plugins.h"

namespace gimbal {
namespace {

constexpr int kTexts = 3;
const char* const kPrompt =
    "Once upon a time there was a little girl named Lily. She liked to play with her dog";

class AuditLostDevice : public testing::Test {
 protected:
  AuditLostDevice() {
    setenv("XDG_CACHE_HOME", test::temporary_path("cache").c_str(), 1);
    options_.threads = 1, options_.verify = Verify::Never, options_.run.kernels.allow_fast = true;
    options_.run.batch = 4;  // so the prompt takes several steps
  }

  // An engine with a fake card that is lost at its third step, or with the CPU alone.
  Engine& engine(bool lost) {
    engine_.reset(), registry_.reset();
    if (lost) folder_.put("metal", "hardware,lost-at=3");
    BackendPlaces places;
    places.folders = {folder_.path()};
    registry_ = std::make_unique<Registry>(places);
    options_.backend = lost ? "metal" : "cpu";
    engine_ = std::make_unique<Engine>(*registry_, options_);
    return *engine_;
  }

  Certificate write(bool lost) {
    Engine& e = engine(lost);
    auto loaded = e.load(*open_model_file("default"));
    EXPECT_TRUE(loaded) << loaded.error().message;
    LoadedModelPtr on = *loaded;
    auto tokenizer = *Tokenizer::create(on->source.file->metadata());
    const auto prompt = tokenizer->encode(kPrompt);
    auto session = *Session::create(*on->model);
    session->on_device_lost(e.on_device_lost(on));
    GenerateSettings s;
    s.sampler.seed = 3, s.max_tokens = 30, s.certify = true;
    auto g = generate(*session, *tokenizer, prompt, s, [](std::string_view, Token) { return true; });
    EXPECT_TRUE(g) << g.error().message;
    EXPECT_EQ(on->opened.device->id(), "cpu:0");
    EXPECT_EQ(on != *loaded, lost);
    return certificate_of({"m", std::string(64, 'a'), 1, {}},
                          certified_settings(on->model->plan(), *on->source.file), prompt, s, "", g->tokens,
                          g->finish, g->rows);
  }

  test::PluginFolder folder_;
  EngineOptions options_;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(AuditLostDevice, AnAnswerHasTheSameCertificate) {
  EXPECT_EQ(canonical_text(write(true)), canonical_text(write(false)));
}

TEST_F(AuditLostDevice, AnAuditContinuesOnTheNextDevice) {
  Certificate right = write(false), wrong = right;
  wrong.answer.tokens[9] = wrong.answer.tokens[9] == 300 ? 301 : 300;
  const AuditJob jobs[kTexts] = {{&right}, {&wrong}, {&right}};
  Engine& e = engine(true);
  ASSERT_TRUE(set_audit_options(jobs, e.run()));
  auto loaded = e.load(*open_model_file("default"));
  ASSERT_TRUE(loaded) << loaded.error().message;
  LoadedModelPtr on = *loaded;
  auto tokenizer = *Tokenizer::create(on->source.file->metadata());
  const auto results = audit(jobs, *on->model, *tokenizer, {}, e.on_device_lost(on));
  EXPECT_NE(on, *loaded) << "the device was not lost";
  for (size_t i = 0; i < kTexts; i++) {
    ASSERT_TRUE(results[i]) << results[i].error().message;
    EXPECT_EQ(results[i]->position, i == 1 ? 9 : -1) << results[i]->explanation;
    EXPECT_EQ(results[i]->rows, i == 1 ? 9 : 30);
  }
  // Without another device, the loss is each one's error.
  Engine& alone = engine(true);
  ASSERT_TRUE(set_audit_options(jobs, alone.run()));
  auto again = alone.load(*open_model_file("default"));
  ASSERT_TRUE(again) << again.error().message;
  for (const auto& r : audit(jobs, *(*again)->model, *tokenizer)) {
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, Code::DeviceLost);
  }
}

}  // namespace
}  // namespace gimbal
