// Pictures of requests become rows before the text model gets them.
#include "server/picture_service.h"

#include <future>

#include "base/result.h"
#include "files/gguf.h"
#include "model/embedded_model.h"
#include "server/scripted_service.h"

namespace gimbal::test {
namespace {

// Two rows of four values for each byte of the file, behind one token.
Result<std::shared_ptr<const PictureRows>> rows_for(std::string_view file) {
  if (file == "bad") return Error{Code::Malformed, "it is damaged"};
  auto rows = std::make_shared<PictureRows>();
  rows->chunks = {{{7}, -1}, {{}, 0}};
  rows->rows.push_back(*Embeddings::create(std::vector<float>(file.size() * 8, float(file[0])), 4));
  return std::shared_ptr<const PictureRows>(std::move(rows));
}

class Pictures : public testing::Test {
 protected:
  static GenerationRequest request(std::vector<Token> prompt, const std::vector<std::string>& files) {
    GenerationRequest r;
    r.prompt = std::move(prompt);
    for (const std::string& f : files) r.pictures.push_back(std::make_shared<const std::string>(f));
    return r;
  }
  // How it ends.
  std::string ask(GenerationRequest r) {
    std::promise<std::string> end;
    GenerationSink sink;
    sink.token = [](const TokenEvent&) {};
    sink.end = [&](const GenerationEnd&) { end.set_value("end"); };
    sink.failed = [&](const Error& e) { end.set_value(e.message); };
    auto future = end.get_future();
    if (auto ok = service_.submit(new_request_id(), std::move(r), std::move(sink)); !ok)
      return ok.error().message;
    return future.get();
  }

  const ModelSource file_ = *parse_gguf(embedded_model(), "the built-in model");
  const std::unique_ptr<Tokenizer> tokenizer_ = std::move(*Tokenizer::create(file_.metadata()));
  ScriptedService text_{*tokenizer_};
  int encoded_ = 0;
  std::vector<std::string> order_;
  std::mutex slow_;           // held: the picture "slow" is not ready
  std::promise<void> begun_;  // "endless" is being encoded: until its request is cancelled
  PictureService service_{text_, 64, [this](std::string_view f, const PictureWatch& watch) {
                            if (f == "slow") const std::lock_guard wait(slow_);
                            if (f == "endless") {
                              begun_.set_value();
                              while (watch(1, 2)) std::this_thread::yield();
                              return Result<PictureRowsPtr>(cancelled());
                            }
                            order_.emplace_back(f);
                            return encoded_++, rows_for(f);
                          }};
};

TEST_F(Pictures, RowsTakeTheirPlaces) {
  GenerationRequest r = request({1, kNoToken, 2, kNoToken}, {"a", "bb"});
  r.max_tokens = 1000;
  EXPECT_EQ(ask(std::move(r)), "end");
  const GenerationRequest got = text_.asked().back();
  const std::vector<Token> expected = {1, 7, -1, -1, 2, 7, -1, -1, -1, -1};
  EXPECT_EQ(got.prompt, expected);
  ASSERT_EQ(got.embeddings.size(), 2u);
  EXPECT_EQ(got.embeddings[0].position, 2);
  EXPECT_EQ(got.embeddings[1].position, 6);
  EXPECT_EQ(got.embeddings[1].rows, 4);
  EXPECT_TRUE(got.pictures.empty());
  EXPECT_EQ(got.max_tokens, 64 - 10 + 1);
}

TEST_F(Pictures, APictureThatWasSentBeforeCostsNothing) {
  EXPECT_EQ(ask(request({kNoToken, kNoToken}, {"a", "a"})), "end");
  EXPECT_EQ(ask(request({3, kNoToken}, {"a"})), "end");
  EXPECT_EQ(encoded_, 1);
  const auto asked = text_.asked();
  EXPECT_EQ(asked[0].embeddings[0].of, asked[1].embeddings[0].of);
}

// A text, or a picture that was seen, does not wait behind one that is being encoded.
TEST_F(Pictures, ASeenPictureWaitsForNothing) {
  EXPECT_EQ(ask(request({kNoToken}, {"a"})), "end");
  std::unique_lock held(slow_);
  GenerationSink unseen;
  unseen.token = [](const TokenEvent&) {};
  std::promise<void> done;
  unseen.end = [&](const GenerationEnd&) { done.set_value(); };
  unseen.failed = [&](const Error&) { done.set_value(); };
  ASSERT_TRUE(service_.submit(new_request_id(), request({kNoToken}, {"slow"}), std::move(unseen)));
  EXPECT_EQ(ask(request({1, 2}, {})), "end");
  EXPECT_EQ(ask(request({kNoToken, 5}, {"a"})), "end");
  EXPECT_EQ(text_.asked().size(), 3u);
  held.unlock();
  done.get_future().wait();
  EXPECT_EQ(text_.asked().size(), 4u);
}

TEST_F(Pictures, ClientsTakeTurns) {
  std::unique_lock held(slow_);
  std::vector<std::future<std::string>> all;
  const auto send = [&](const char* client, const char* file) {
    GenerationRequest r = request({kNoToken}, {file});
    r.client = client;
    auto end = std::make_shared<std::promise<std::string>>();
    all.push_back(end->get_future());
    GenerationSink sink;
    sink.token = [](const TokenEvent&) {};
    sink.end = [end](const GenerationEnd&) { end->set_value("end"); };
    sink.failed = [end](const Error& e) { end->set_value(e.message); };
    ASSERT_TRUE(service_.submit(new_request_id(), std::move(r), std::move(sink)));
  };
  send("x", "slow"), send("x", "1"), send("x", "2"), send("y", "3"), send("z", "4");
  held.unlock();
  for (auto& one : all) EXPECT_EQ(one.get(), "end");
  EXPECT_EQ(order_, (std::vector<std::string>{"slow", "3", "1", "4", "2"}));
}

// A cancelled request ends within its picture, and the picture behind it is encoded.
TEST_F(Pictures, ACancelledRequestEndsWithinItsPicture) {
  std::promise<Finish> end;
  GenerationSink sink;
  sink.token = [](const TokenEvent&) {};
  sink.end = [&](const GenerationEnd& e) { end.set_value(e.finish); };
  sink.failed = [&](const Error& e) { ADD_FAILURE() << e.message, end.set_value(Finish::Length); };
  const uint64_t id = new_request_id();
  ASSERT_TRUE(service_.submit(id, request({kNoToken}, {"endless"}), std::move(sink)));
  begun_.get_future().wait();
  service_.cancel(id);
  EXPECT_EQ(end.get_future().get(), Finish::Cancelled);
  EXPECT_TRUE(text_.asked().empty());
  EXPECT_EQ(ask(request({kNoToken}, {"a"})), "end");
  EXPECT_EQ(order_, std::vector<std::string>{"a"});
}

TEST_F(Pictures, ARequestIsCancelledBeforeItsPictureIsLookedAt) {
  std::unique_lock held(slow_);
  GenerationSink first;
  first.token = [](const TokenEvent&) {};
  std::promise<void> done;
  first.end = [&](const GenerationEnd&) { done.set_value(); };
  first.failed = [&](const Error&) { done.set_value(); };
  ASSERT_TRUE(service_.submit(new_request_id(), request({kNoToken}, {"slow"}), std::move(first)));
  std::promise<Finish> end;
  GenerationSink sink;
  sink.token = [](const TokenEvent&) {};
  sink.end = [&](const GenerationEnd& e) { end.set_value(e.finish); };
  sink.failed = [&](const Error& e) { ADD_FAILURE() << e.message, end.set_value(Finish::Length); };
  const uint64_t id = new_request_id();
  ASSERT_TRUE(service_.submit(id, request({kNoToken}, {"a"}), std::move(sink)));
  service_.cancel(id);
  EXPECT_EQ(end.get_future().get(), Finish::Cancelled);
  held.unlock();
  done.get_future().wait();
  EXPECT_EQ(text_.asked().size(), 1u);
}

TEST_F(Pictures, Refusals) {
  EXPECT_EQ(ask(request({1, kNoToken}, {"bad"})), "picture 1 of 1: it is damaged");
  EXPECT_EQ(ask(request({1, 2}, {"a"})), "the prompt has 0 places for 1 pictures");
  EXPECT_EQ(ask(request({1, kNoToken}, {"a", "b"})), "the prompt has 1 places for 2 pictures");
  GenerationRequest rows = request({1, kNoToken}, {"a"});
  rows.embeddings.push_back({1, *Embeddings::create(std::vector<float>(4, 1.f), 4), 0, 1});
  EXPECT_NE(ask(std::move(rows)), "end") << "a place has a picture or rows, not both";
  EXPECT_TRUE(text_.asked().empty());
  EXPECT_EQ(ask(request({1, 2}, {})), "end");
}

TEST(RecentPictures, TheOldestGoFirst) {
  const auto rows = *rows_for("a");  // 32 bytes
  RecentPictures recent(2 * rows->bytes());
  for (const char* name : {"1", "2"}) recent.add(name, rows);
  EXPECT_TRUE(recent.find("1"));
  recent.add("3", rows);
  EXPECT_TRUE(recent.find("1"));
  EXPECT_FALSE(recent.find("2"));
  EXPECT_TRUE(recent.find("3"));
}

}  // namespace
}  // namespace gimbal::test
