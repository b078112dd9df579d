// The prefix store of the public library: texts of sequences, chats and batches read the pages that earlier
// engines wrote, with the bits that they have without a store.
#include <fstream>
#include <thread>

#include "support/golden.h"
// The library's own names come first: src/library/internal.h.
#include <gimbal/engine.h>

namespace {

using namespace gimbal::v1;
namespace fs = std::filesystem;

class StoreFolder {
 public:
  StoreFolder() : path_(fs::temp_directory_path() / ("library-store-" + std::to_string(getpid()))) {
    fs::remove_all(path_);
  }
  ~StoreFolder() { fs::remove_all(path_); }
  Engine engine(const std::string& salt = "") const {
    Options o = on_cpu();
    o.prefix_store.folder = path_, o.prefix_store.salt = salt;
    return Engine(std::move(o));
  }
  static Options on_cpu() {
    Options o;
    o.backend = "cpu", o.threads = 1, o.verify = Verify::Never;
    return o;
  }
  std::vector<fs::path> pages() const {
    std::vector<fs::path> all;
    for (const auto& e : fs::recursive_directory_iterator(path_))
      if (e.is_regular_file() && e.file_size() > 1000) all.push_back(e.path());
    return all;
  }
  const fs::path& path() const { return path_; }

 private:
  const fs::path path_;
};

std::string stories() { return gimbal::test::golden_dir() + "/stories/stories260K-q8_0.gguf"; }

Result<Model> load(Engine& engine, int sequences = 1, const std::string& model = stories()) {
  ModelOptions m;
  m.context = 512, m.sequences = sequences;
  return engine.load(model, m);
}

std::string long_prompt() {
  std::string all;
  for (int i = 0; i < 24; i++) all += "Once upon a time, there was a little girl named Lily. ";
  return all;
}

TextOptions greedy() {
  TextOptions o;
  o.greedy = true, o.max_tokens = 20, o.logprobs = 0;
  return o;
}

// The text of a new model's first sequence.
Generated written(Engine engine, const std::string& prompt) {
  auto model = load(engine);
  if (!model) return ADD_FAILURE() << model.error().message, Generated();
  auto sequence = model->new_sequence();
  auto text = sequence->generate(prompt, greedy());
  return text ? *text : (ADD_FAILURE() << text.error().message, Generated());
}

void expect_equal(const Generated& got, const Generated& want) {
  EXPECT_EQ(got.tokens, want.tokens);
  EXPECT_EQ(got.logprobs, want.logprobs);
  EXPECT_EQ(got.prompt_tokens, want.prompt_tokens);
}

TEST(LibraryPrefixStore, ALaterEngineReadsWhatAnEarlierOneComputed) {
  const StoreFolder folder;
  const Generated want = written(Engine(StoreFolder::on_cpu()), long_prompt());
  ASSERT_GT(want.prompt_tokens, 256);
  EXPECT_EQ(want.stored_tokens, 0);
  const Generated first = written(folder.engine(), long_prompt());
  expect_equal(first, want);
  EXPECT_EQ(first.stored_tokens, 0);
  Engine again = folder.engine();
  EXPECT_EQ(again.prefix_store_numbers().bytes, 0u) << "not open yet";
  const Generated second = written(again, long_prompt());
  expect_equal(second, want);
  EXPECT_EQ(second.stored_tokens, (want.prompt_tokens - 1) / 64 * 64);
  const PrefixStoreNumbers n = again.prefix_store_numbers();
  EXPECT_EQ(n.hits, 1u);
  EXPECT_EQ(n.tokens, uint64_t(second.stored_tokens));
  EXPECT_EQ(n.pages_read, uint64_t(second.stored_tokens / 64));
  EXPECT_EQ(n.pages_damaged, 0u);
  EXPECT_GT(n.bytes, 0u);
  EXPECT_TRUE(n.errors.empty());
}

TEST(LibraryPrefixStore, TextsOfABatchAndChatsReadThem) {
  const StoreFolder folder;
  const std::vector<Message> messages = {{.role = "user", .content = long_prompt()}};
  ChatOptions chat;
  chat.greedy = true, chat.max_tokens = 20;
  std::vector<std::string> answers;
  for (int round = 0; round < 2; round++) {
    Engine engine = folder.engine();
    auto model = load(engine, 2);
    ASSERT_TRUE(model) << model.error().message;
    {
      auto batch = model->new_batch();
      ASSERT_TRUE(batch) << batch.error().message;
      const auto id = batch->submit(long_prompt(), greedy());
      ASSERT_TRUE(id) << id.error().message;
      auto text = batch->wait(*id);
      ASSERT_TRUE(text) << text.error().message;
      EXPECT_EQ(text->stored_tokens, round ? (text->prompt_tokens - 1) / 64 * 64 : 0);
      answers.push_back(text->text);
    }
    auto sequence = model->new_sequence();
    auto reply = sequence->chat(messages, chat);
    ASSERT_TRUE(reply) << reply.error().message;
    if (round) { EXPECT_GE(reply->generated.stored_tokens, 256); }
    answers.push_back(reply->message.content);
  }
  EXPECT_EQ(answers[0], answers[2]);
  EXPECT_EQ(answers[1], answers[3]);
}

TEST(LibraryPrefixStore, ADamagedPageIsComputedAgainAndReported) {
  const StoreFolder folder;
  const Generated want = written(folder.engine(), long_prompt());
  const auto pages = folder.pages();
  ASSERT_GE(pages.size(), 4u);
  for (const auto& page : pages) {
    std::fstream file(page, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(500);
    const int byte = file.get();
    file.seekp(500), file.put(char(byte ^ 1));
  }
  Engine engine = folder.engine();
  const Generated got = written(engine, long_prompt());
  expect_equal(got, want);
  EXPECT_EQ(got.stored_tokens, 0);
  const PrefixStoreNumbers n = engine.prefix_store_numbers();
  EXPECT_GE(n.pages_damaged, 1u);
  ASSERT_FALSE(n.errors.empty());
  EXPECT_NE(n.errors[0].find("damaged page"), std::string::npos) << n.errors[0];
}

// A page of this model takes 64 KiB: three fit, and the prompt has more.
TEST(LibraryPrefixStore, PagesThatGoForOthersAreReportedAsEvicted) {
  const StoreFolder folder;
  Options o = StoreFolder::on_cpu();
  o.prefix_store.folder = folder.path(), o.prefix_store.bytes = 200'000;
  const Engine engine(std::move(o));
  const Generated text = written(engine, long_prompt());
  const auto pages = uint64_t(text.prompt_tokens / 64);
  ASSERT_GT(pages, 4u);
  PrefixStoreNumbers n;
  for (int i = 0; i < 6000 && n.pages_written + n.pages_dropped < pages; i++) {
    if (i) std::this_thread::sleep_for(std::chrono::milliseconds(10));  // a thread writes them
    n = engine.prefix_store_numbers();
  }
  EXPECT_GE(n.pages_written, pages);
  EXPECT_EQ(n.pages_dropped, 0u);
  EXPECT_EQ(n.pages_evicted, n.pages_written - folder.pages().size());
  EXPECT_LE(n.bytes, 200'000u);
}

TEST(LibraryPrefixStore, PagesOfAnotherSaltAreNotFound) {
  const StoreFolder folder;
  const std::string mine(32, 'm'), theirs(32, 't');
  written(folder.engine(mine), long_prompt());
  EXPECT_EQ(written(folder.engine(theirs), long_prompt()).stored_tokens, 0);
  EXPECT_EQ(written(folder.engine(), long_prompt()).stored_tokens, 0);
  EXPECT_GE(written(folder.engine(mine), long_prompt()).stored_tokens, 256);
}

TEST(LibraryPrefixStore, ErrorsNameTheSetting) {
  const StoreFolder folder;
  const auto refused = [](PrefixStoreSettings settings) {
    Options o = StoreFolder::on_cpu();
    o.prefix_store = std::move(settings);
    Engine engine(std::move(o));
    const auto model = load(engine);
    EXPECT_FALSE(model);
    return model ? Error() : model.error();
  };
  const Error small = refused({folder.path(), 99'999, ""});
  EXPECT_EQ(small.code, Code::Usage);
  EXPECT_EQ(small.field, "prefix_store_bytes");
  const Error secret = refused({folder.path(), 1'000'000, "too short"});
  EXPECT_EQ(secret.field, "prefix_store_salt");
  EXPECT_EQ((secret.message + secret.value).find("too short"), std::string::npos) << "it is a secret";
  EXPECT_FALSE(fs::exists(folder.path()));
  EXPECT_EQ(refused({stories(), 1'000'000, ""}).code, Code::Usage) << "a file is no folder";
}

TEST(LibraryPrefixStore, AModelWithoutStorablePagesIsRefusedAndEmbeddingsNeedNone) {
  const StoreFolder folder;
  Options o = StoreFolder::on_cpu();
  o.prefix_store.folder = folder.path(), o.numerics = Numerics::Fast;
  Engine fast(std::move(o));
  const auto refused = load(fast);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::Unsupported) << refused.error().message;
  ModelOptions embeds;
  embeds.embed = true;
  const StoreFolder other;
  Engine engine = other.engine();
  EXPECT_TRUE(engine.load(stories(), embeds));
  EXPECT_EQ(engine.prefix_store_numbers().bytes, 0u);
}

}  // namespace
