// Requests that a libllama answers, with a scripted child in place of the library: turns, cancelling,
// refusals, a full queue, a child that dies or lies, and the end of the service while requests wait.
// Threads: the service's.
#include "llama/library_service.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <future>

#include "base/json.h"
#include "base/sockets.h"
#include "files/gguf.h"
#include "support/golden.h"

namespace gimbal::llama {
namespace {

constexpr int kVocabulary = 512;
constexpr const char* kChild = "scripted-library";

// The logits behind a text: they name one next token, which depends on all tokens before.
int32_t scripted_next(const std::vector<int32_t>& text) {
  uint32_t h = 7;
  for (int32_t t : text) h = h * 31 + uint32_t(t);
  return int32_t(300 + h % 200);
}

// The child: the protocol of llama/protocol.h by hand. `mode`: "dies" ends it at its 12th step, "lies" sends
// a row that is too short, "slow" takes 2 ms for a step, "silent" answers nothing after the beginning.
int scripted_library(const std::string& mode) {
  const int socket = kWorkerSocket;
  FrameReader reader;
  std::vector<int32_t> text;
  int steps = 0;
  const auto answer = [&](const Json& j) {
    const std::string bytes = encoded(j);
    return send_all(socket, bytes.data(), bytes.size());
  };
  char piece[4096];
  for (ssize_t n; (n = read(socket, piece, sizeof piece)) > 0;) {
    reader.feed({piece, size_t(n)});
    for (auto frame = reader.next(); frame && *frame; frame = reader.next()) {
      const Json request = parse_json((*frame)->bytes);
      const std::string what = request.value("do", "");
      if (what == "open") {
        answer({{"release", "scripted"},
                {"model_struct", 1},
                {"context_struct", 1},
                {"layers", false},
                {"system", ""}});
      } else if (what == "load") {
        answer({{"vocabulary", request["model"] == "other" ? 7 : kVocabulary},
                {"layers", 1},
                {"width", 1},
                {"half_values", false},
                {"description", ""},
                {"sandbox", Json::array()},
                {"not_in_sandbox", Json::array()}});
      } else if (what == "begin") {
        text.clear();
        answer(Json::object());
      } else {
        const auto more = request["tokens"].get<std::vector<int32_t>>();
        text.insert(text.end(), more.begin(), more.end());
        if (mode == "dies" && ++steps == 12) std::abort();
        if (mode == "silent") pause();
        if (mode == "slow") usleep(2000);
        std::vector<float> row(kVocabulary, -9.0f);
        row[size_t(scripted_next(text))] = 9;
        if (mode == "lies") row.pop_back();
        const std::string bytes = encoded_row(int(more.size()) - 1, row);
        send_all(socket, bytes.data(), bytes.size());
        answer(Json::object());
      }
    }
  }
  return 0;
}

struct LibraryAnswer {
  std::vector<Token> tokens;
  std::optional<GenerationEnd> end;
  std::optional<Error> failed;
};

class LibraryServiceTest : public testing::Test {
 protected:
  LibraryServiceTest() : file_(*open_gguf(test::golden_dir() + "/stories/stories260K-f32.gguf")) {
    tokenizer_ = *Tokenizer::create(file_.metadata());
  }

  Result<std::unique_ptr<LibraryService>> service(
      const std::string& mode, const std::string& model = "model",
      std::chrono::milliseconds patience = std::chrono::seconds(60)) {
    return LibraryService::create(
        [=, this]() -> Result<LlamaProcess> {
          starts_++;
          auto process = LlamaProcess::start({"/proc/self/exe", kChild, mode}, "libllama.so", patience);
          if (!process) return process.error();
          if (auto loaded = process->load(model); !loaded) return loaded.error();
          return process;
        },
        *tokenizer_, {.context = 4096});
  }

  static GenerationRequest request(std::vector<Token> prompt, int tokens) {
    GenerationRequest r;
    r.prompt = std::move(prompt), r.max_tokens = tokens, r.sampler.greedy = true;
    return r;
  }

  // Submits it; the future has the answer. `on_token`: called with each.
  std::future<LibraryAnswer> ask(LibraryService& s, GenerationRequest r, uint64_t id = new_request_id(),
                                 std::function<void()> on_token = {}) {
    auto answer = std::make_shared<LibraryAnswer>();
    auto done = std::make_shared<std::promise<LibraryAnswer>>();
    GenerationSink sink;
    sink.token = [=](const TokenEvent& t) {
      answer->tokens.push_back(t.token);
      if (on_token) on_token();
    };
    sink.end = [=](const GenerationEnd& e) { answer->end = e, done->set_value(*answer); };
    sink.failed = [=](const Error& e) { answer->failed = e, done->set_value(*answer); };
    auto future = done->get_future();
    if (auto ok = s.submit(id, std::move(r), std::move(sink)); !ok)
      answer->failed = ok.error(), done->set_value(*answer);
    return future;
  }

  static std::vector<Token> scripted_answer(std::vector<Token> prompt, int tokens) {
    std::vector<Token> all;
    for (int i = 0; i < tokens; i++) all.push_back(scripted_next(prompt)), prompt.push_back(all.back());
    return all;
  }

  ModelSource file_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::atomic<int> starts_ = 0;
};

TEST_F(LibraryServiceTest, AnswersOneAfterTheOther) {
  auto s = service("");
  ASSERT_TRUE(s) << s.error().message;
  std::vector<std::future<LibraryAnswer>> all;
  for (int i = 0; i < 20; i++) all.push_back(ask(**s, request({1, i, 5}, 1 + i)));
  for (int i = 0; i < 20; i++) {
    const LibraryAnswer a = all[size_t(i)].get();
    ASSERT_TRUE(a.end) << a.failed->message;
    EXPECT_EQ(a.tokens, scripted_answer({1, i, 5}, 1 + i));
    EXPECT_EQ(a.end->tokens, 1 + i);
    EXPECT_EQ(a.end->prompt_tokens, 3);
    EXPECT_EQ(a.end->finish, Finish::Length);
  }
  const SchedulerNumbers n = (*s)->numbers();
  EXPECT_EQ(n.tokens_generated, 210u);
  EXPECT_EQ(n.prompt_tokens, 60u);
  EXPECT_EQ(n.waiting, 0);
  EXPECT_EQ(starts_, 1);
}

TEST_F(LibraryServiceTest, ALongPromptAndAContinuedOne) {
  auto s = service("");
  ASSERT_TRUE(s);
  std::vector<Token> text(1500, 9);
  for (int turn = 0; turn < 3; turn++) {
    const LibraryAnswer a = ask(**s, request(text, 6)).get();
    ASSERT_TRUE(a.end) << a.failed->message;
    EXPECT_EQ(a.tokens, scripted_answer(text, 6)) << turn;
    text.insert(text.end(), a.tokens.begin(), a.tokens.end());
    text.push_back(3);
  }
  // A shorter text, and the same again.
  for (int i = 0; i < 2; i++)
    EXPECT_EQ(ask(**s, request({1, 9}, 4)).get().tokens, scripted_answer({1, 9}, 4));
}

TEST_F(LibraryServiceTest, RunningAndWaitingRequestsAreCancelled) {
  auto s = service("slow");
  ASSERT_TRUE(s);
  const uint64_t running = new_request_id(), waiting = new_request_id();
  std::promise<void> begun;
  auto first = ask(**s, request({1, 2}, 4000), running, [&, once = false]() mutable {
    if (!std::exchange(once, true)) begun.set_value();
  });
  auto second = ask(**s, request({1, 3}, 4000), waiting);
  begun.get_future().wait();
  (*s)->cancel(waiting);
  const LibraryAnswer never = second.get();
  EXPECT_EQ(never.end->finish, Finish::Cancelled);
  EXPECT_TRUE(never.tokens.empty());
  (*s)->cancel(running);
  const LibraryAnswer cut = first.get();
  ASSERT_TRUE(cut.end);
  EXPECT_EQ(cut.end->finish, Finish::Cancelled);
  EXPECT_EQ(size_t(cut.end->tokens), cut.tokens.size());
  (*s)->cancel(123456);  // unknown
  EXPECT_EQ(ask(**s, request({1, 4}, 3)).get().tokens, scripted_answer({1, 4}, 3));
}

TEST_F(LibraryServiceTest, RefusesWhatTheLibraryCannot) {
  auto s = service("");
  ASSERT_TRUE(s);
  GenerationRequest certified = request({1}, 3), scored = request({1}, 3), adapted = request({1}, 3);
  certified.certify = scored.scores_prompt = true, scored.logprobs = 1, adapted.adapters = {1};
  for (const GenerationRequest& r : {certified, scored, adapted}) {
    const LibraryAnswer a = ask(**s, r).get();
    ASSERT_TRUE(a.failed);
    EXPECT_EQ(a.failed->code, Code::Usage);
    EXPECT_NE(a.failed->message.find("gimbal's own engine"), std::string::npos);
  }
  EXPECT_EQ(ask(**s, request({1, kVocabulary}, 3)).get().failed->code, Code::Usage);
  EXPECT_EQ(ask(**s, request({}, 3)).get().failed->code, Code::Usage);
  EXPECT_EQ(ask(**s, request(std::vector<Token>(5000, 1), 3)).get().failed->reason,
            std::string(reason::kContextFull));
  EXPECT_FALSE(service("", "other")) << "a vocabulary of another size";
}

TEST_F(LibraryServiceTest, AFullQueueIsAnError) {
  auto s = service("slow");
  ASSERT_TRUE(s);
  std::vector<std::future<LibraryAnswer>> all;
  for (size_t i = 0; i < LibraryService::kMostWaiting + 3; i++)
    all.push_back(ask(**s, request({1, 2}, 4000)));
  size_t full = 0;
  for (auto& one : all)
    if (one.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
      const LibraryAnswer a = one.get();
      full += a.failed && a.failed->reason == std::string_view(reason::kQueueFull);
    }
  EXPECT_GE(full, 2u);
}

TEST_F(LibraryServiceTest, AChildThatDiesOrLiesIsReplaced) {
  for (const std::string mode : {"dies", "lies"}) {
    starts_ = 0;
    auto s = service(mode);
    ASSERT_TRUE(s);
    const LibraryAnswer a = ask(**s, request({1, 2}, 40)).get();
    ASSERT_TRUE(a.failed) << mode;
    EXPECT_TRUE(std::string_view(a.failed->reason).starts_with("library-")) << a.failed->reason;
    if (mode == "dies") {
      EXPECT_EQ(a.tokens, scripted_answer({1, 2}, 11)) << "what came before its end";
      EXPECT_EQ(ask(**s, request({1, 2}, 5)).get().tokens, scripted_answer({1, 2}, 5));
      EXPECT_EQ(starts_, 2);
    }
  }
}

TEST_F(LibraryServiceTest, ASilentChildIsStopped) {
  auto s = service("silent", "model", std::chrono::milliseconds(300));
  ASSERT_TRUE(s);
  const LibraryAnswer a = ask(**s, request({1, 2}, 4)).get();
  ASSERT_TRUE(a.failed);
  EXPECT_EQ(a.failed->reason, std::string("library-silent"));
}

TEST_F(LibraryServiceTest, ItsEndAnswersAll) {
  std::vector<std::future<LibraryAnswer>> all;
  {
    auto s = service("slow");
    ASSERT_TRUE(s);
    for (int i = 0; i < 5; i++) all.push_back(ask(**s, request({1, i}, 4000)));
  }
  for (auto& one : all) {
    const LibraryAnswer a = one.get();
    EXPECT_TRUE(a.failed || a.end->finish == Finish::Cancelled);
  }
}

}  // namespace

int main_of_library(int argc, char** argv) {
  if (argc == 3 && argv[1] == std::string_view(kChild)) return scripted_library(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace gimbal::llama

int main(int argc, char** argv) { return gimbal::llama::main_of_library(argc, argv); }
