// Pictures in the public library: a trained model says in words what is on drawn ones.
#include "base/file.h"
#include "media/golden_pictures.h"
// The library's own names come first: src/library/internal.h.
#include <gimbal/engine.h>

namespace {

using namespace gimbal::v1;

struct DrawnShape {
  std::string file, prompt, answer;
};

std::vector<DrawnShape> drawn_shapes() {
  std::vector<DrawnShape> all;
  const auto golden = gimbal::test::read_json(gimbal::test::golden_dir() + "/vision/shapes.json");
  for (const auto& one : golden["answers"]) {
    auto bytes = gimbal::read_file(gimbal::test::golden_picture(one["image"]));
    if (!bytes) continue;
    all.push_back({std::move(*bytes), one["prompt"], one["answer"]});
    if (all.size() == 3) return all;
  }
  ADD_FAILURE() << "there are " << all.size() << " pictures";
  return {};
}

ModelOptions seeing(int sequences) {
  ModelOptions m;
  m.context = 512, m.sequences = sequences, m.cache_type = "f32";
  m.mmproj = gimbal::test::golden_dir() + "/vision/mmproj-shapes.gguf";
  m.chat_template = "{{ bos_token }}{{ messages[-1].content }}";
  return m;
}

Engine engine() {
  Options o;
  o.backend = "cpu", o.threads = 2, o.verify = Verify::Never;
  return Engine(o);
}

std::string shapes_model() { return gimbal::test::golden_dir() + "/vision/text-shapes.gguf"; }

template <class T>
T greedy() {
  T o;
  o.greedy = true, o.max_tokens = 48;
  return o;
}

TEST(LibraryPictures, WordsOfASequence) {
  auto model = engine().load(shapes_model(), seeing(1));
  ASSERT_TRUE(model) << model.error().message;
  auto sequence = model->new_sequence();
  ASSERT_TRUE(sequence);
  for (const DrawnShape& shape : drawn_shapes()) {
    auto o = greedy<TextOptions>();
    o.images = {shape.file};
    sequence->rewind(0);
    auto text = sequence->generate(shape.prompt, o);
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_EQ(text->text, shape.answer);
    EXPECT_GT(text->prompt_tokens, 20);
    Message message{"user", "What is in the picture?"};
    message.images = {shape.file};
    auto reply = sequence->chat(std::vector{message}, greedy<ChatOptions>());
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(" " + reply->message.content, shape.answer);
    EXPECT_EQ(reply->generated.prompt_tokens, text->prompt_tokens);
  }
}

TEST(LibraryPictures, WordsOfABatch) {
  auto model = engine().load(shapes_model(), seeing(3));
  ASSERT_TRUE(model) << model.error().message;
  auto batch = model->new_batch();
  ASSERT_TRUE(batch);
  const auto shapes = drawn_shapes();
  std::vector<uint64_t> texts, replies;
  for (const DrawnShape& shape : shapes) {
    auto o = greedy<TextOptions>();
    o.images = {shape.file};
    texts.push_back(*batch->submit(shape.prompt, o));
    Message message{"user", "What is in the picture?"};
    message.images = {shape.file};
    replies.push_back(*batch->submit(std::vector{message}, greedy<ChatOptions>()));
  }
  for (size_t i = 0; i < shapes.size(); i++) {
    EXPECT_EQ(batch->wait(texts[i])->text, shapes[i].answer);
    EXPECT_EQ(" " + batch->wait_reply(replies[i])->message.content, shapes[i].answer);
  }
}

TEST(LibraryPictures, Refusals) {
  const auto shapes = drawn_shapes();
  ASSERT_FALSE(shapes.empty());
  auto model = engine().load(shapes_model(), seeing(1));
  ASSERT_TRUE(model);
  auto sequence = model->new_sequence();
  auto o = greedy<TextOptions>();
  o.images = {shapes[0].file};
  const auto field = [](const auto& result) { return result ? std::string() : result.error().field; };
  EXPECT_EQ(field(sequence->generate("<__media__> and <__media__>", o)), "images");
  EXPECT_EQ(field(sequence->generate(std::vector<Token>{1, 2}, o)), "images");
  o.images = {shapes[0].file.substr(0, shapes[0].file.size() / 2)};
  EXPECT_EQ(field(sequence->generate("What?", o)), "images");
  o.images = {shapes[0].file}, o.certificate = true;
  EXPECT_EQ(field(sequence->generate("What?", o)), "certificate");
  Message answer{"assistant", "A star."};
  answer.images = {shapes[0].file};
  EXPECT_EQ(field(sequence->chat(std::vector{answer}, {})), "messages");

  ModelOptions blind = seeing(1);
  blind.mmproj.clear();
  auto without = engine().load(shapes_model(), blind);
  ASSERT_TRUE(without);
  auto reader = without->new_sequence();
  o.certificate = false;
  EXPECT_EQ(field(reader->generate("What?", o)), "images");

  ModelOptions wrong = seeing(1);
  wrong.mmproj = shapes_model();
  EXPECT_FALSE(engine().load(shapes_model(), wrong));
  wrong = seeing(1), wrong.embed = true;
  EXPECT_EQ(field(engine().load(shapes_model(), wrong)), "mmproj");
}

TEST(LibraryPictures, ThePlanHasTheEncoder) {
  auto plan = engine().plan(shapes_model(), seeing(1));
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_FALSE(plan->image_memory.empty());
  EXPECT_TRUE(engine().plan("default")->image_memory.empty());
}

}  // namespace
