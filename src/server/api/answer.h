// From requests to the engine to one answer over HTTP: collects the choices that it consists of, and lets a
// writer put them into an API's form, as they come or all at once.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "chat/reply_parser.h"
#include "server/api/error.h"
#include "server/api/request_log.h"
#include "server/http/message.h"
#include "server/model.h"

namespace gimbal::api {

struct Services;

struct ToolUse : ToolCall {
  std::string id;
  int index = 0;  // among the calls of its choice
};

// What became certain with a token, or behind the last one.
struct Piece {
  int choice = 0;
  std::string text, reasoning;
  std::vector<ToolUse> calls = {};
  const TokenTold* told = nullptr;  // nullptr: behind the last token
};

struct Choice {
  std::string text, reasoning;  // all so far
  std::vector<ToolUse> calls;
  std::vector<TokenTold>
      tokens;  // with their probabilities, where these were asked for and it is not streamed
  GenerationEnd end;
  bool ended = false;
};

// The end of a choice in the words that most APIs share: "length" where the tokens or the context were used
// up, else "tool_calls" or "stop".
const char* finish_word(const Choice&);

struct Usage {
  int prompt_tokens = 0, shared_tokens = 0, completion_tokens = 0;
};

// One API's form of an answer. Called by one thread at a time.
class Writer {
 public:
  virtual ~Writer() = default;
  virtual std::string whole(const std::vector<Choice>&, const Usage&) = 0;  // JSON
  // The parts of a stream, each appended to `out`.
  virtual const char* stream_type() const { return "text/event-stream"; }
  virtual void begin(std::string& out) { static_cast<void>(out); }
  virtual void piece(std::string& out, const Piece&) = 0;
  virtual void end(std::string& out, const Choice&, int index) = 0;
  virtual void finish(std::string& out, const std::vector<Choice>&, const Usage&) = 0;
  virtual void error(std::string& out, const ApiError&) = 0;
};

struct Plan {
  ServedModelPtr model;
  std::vector<GenerationRequest> choices;
  int prompts = 1;  // of the choices: the first n belong to the first prompt, and so on
  bool stream = false;
  bool splits_reasoning = false;  // and calls of tools, as `task` says; its prompt is in `choices`
  ChatTask task = {};
  bool logprobs = false;     // were asked for
  bool every_token = false;  // an event for each, also without text
  std::vector<http::Header> headers;
  Dialect dialect = Dialect::OpenAi;
  std::string id;          // of the answer: what its receipt is found by
  std::string request_id;  // for errors
  std::shared_ptr<RequestRecord> record;
  std::unique_ptr<Writer> writer;
};

class Answer final : public http::Source, public std::enable_shared_from_this<Answer> {
 public:
  // Gives the choices to the engine; the exchange is answered by and by. Nothing: it was.
  static void start(Services&, Plan, std::shared_ptr<http::Exchange>);

  Answer(Services&, Plan, std::shared_ptr<http::Exchange>);
  ~Answer() override;
  void pull(http::Outgoing&) override;
  void gone() override;
  // With an error of its API. From any thread.
  void end(const ApiError&);

 private:
  struct Line {  // of one choice: what its engine told, and nobody has taken yet
    std::vector<TokenTold> told;
    std::optional<GenerationEnd> end;
    uint64_t id = 0;
    bool submitted = false;
    bool enough = false;  // the rest was cancelled
  };

  GenerationSink sink(size_t choice);
  void told(size_t choice, const TokenTold&);
  void ended(size_t choice, const GenerationEnd&);
  void failed(const ApiError&);
  void cancel();
  void write(size_t choice, std::string text, const TokenTold*, bool last, std::string& out);
  void end_behind_call(size_t choice);
  void take_lines(std::string& out);
  Usage usage() const;
  void keep_receipt();
  void record(const std::string& end);  // for the log
  std::string finish_words() const;

  Services& services_;
  Plan plan_;
  std::shared_ptr<http::Exchange> exchange_;

  // Under the mutex: what the engine's thread writes.
  std::mutex mutex_;
  std::vector<Line> lines_;
  std::optional<ApiError> error_;
  bool gone_ = false, prompt_counted_ = false;
  size_t open_ = 0;  // choices that have not ended
  int prompt_tokens_ = 0, told_tokens_ = 0;
  double first_token_ = -1;  // now()

  // Of the connection's thread.
  std::vector<Choice> choices_;
  std::vector<ReplyParser> parsers_;
  bool begun_ = false, done_ = false;
};

}  // namespace gimbal::api
