// A trained model says in words what is on drawn pictures: decoding, pieces, encoder, prompt and text
// together.
#include <gtest/gtest.h>

#include "base/file.h"
#include "media/picture.h"
#include "model/vision/picture_prompt.h"
#include "runtime/generate.h"
#include "runtime/picture_encoder.h"
#include "support/engine.h"
#include "support/golden.h"
#include "support/placed.h"

namespace gimbal::test {
namespace {

TEST(PictureWords, NameShapeColourAndPlace) {
  const std::string folder = golden_dir() + "/vision/";
  const auto golden = read_json(folder + "shapes.json");
  const auto vision = open_vision(open_file(folder + golden["mmproj"].get<std::string>()));
  ASSERT_TRUE(vision) << vision.error().message;
  const auto device = open_one("cpu", 0, "threads=2");
  auto plan = make_model_plan(*vision->source, *device, encoder_options(*vision, vision->most_patches, {}));
  ASSERT_TRUE(plan) << plan.error().message;
  auto encoder = Model::load(std::move(*plan), *vision->source);
  ASSERT_TRUE(encoder) << encoder.error().message;

  EngineOptions o;
  o.run.cache_type = DType::F32, o.run.embeddings = true;
  auto text = open_engine(folder + golden["text"].get<std::string>(), o);
  ASSERT_TRUE(text) << text.error().message;
  const auto tokenizer = Tokenizer::create(text->file->metadata());
  ASSERT_TRUE(tokenizer);
  size_t asked = 0;
  for (const auto& k : golden["answers"]) {
    const auto bytes = read_file(folder + "images/" + k["image"].get<std::string>(), kMaxPictureBytes);
    ASSERT_TRUE(bytes);
    const auto picture = decode_picture(*bytes);
    ASSERT_TRUE(picture) << picture.error().message;
    const auto pieces = pieces_of(vision->settings, *picture, 0);
    ASSERT_TRUE(pieces && pieces->size() == 1);
    const auto chunks =
        picture_prompt(**tokenizer, vision->settings, k["prompt"].get<std::string>(), *pieces, 1);
    ASSERT_TRUE(chunks) << chunks.error().message;
    const auto rows = PictureEncoder(**encoder, *vision).encode(pieces->front());
    ASSERT_TRUE(rows) << rows.error().message;
    Inputs prompt;
    for (const PromptChunk& c : *chunks) {
      for (Token t : c.tokens) prompt.push(t);
      for (int i = 0; c.piece >= 0 && i < (*rows)->rows(); i++) prompt.push({kNoToken, &*rows, i});
    }
    auto session = Session::create(*text->model);
    ASSERT_TRUE(session);
    GenerateSettings settings;
    settings.sampler.temperature = 0;
    settings.max_tokens = 48;
    std::string answer;
    const auto done = generate(**session, **tokenizer, prompt, settings, [&](std::string_view piece, Token) {
      answer += piece;
      return true;
    });
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(answer, k["answer"].get<std::string>()) << k["image"];
    asked++;
  }
  EXPECT_GE(asked, 3u);
}

}  // namespace
}  // namespace gimbal::test
