// Turns requests to the engine into one HTTP answer: collects its choices and lets a Writer format them for
// an API, streamed or all at once.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "chat/reply_parser.h"
#include "server/api/certificates.h"
#include "server/api/error.h"
#include "server/api/request_log.h"
#include "server/api/slots.h"
#include "server/http/message.h"
#include "server/model.h"

namespace gimbal::api {

// Ends an answer by its lines, for editors that insert it into a file: the fields `n_indent` and
// `t_max_predict_ms` of llama.cpp's server, and an answer of no text at all (`n_predict` 0).
struct LineLimits {
  int indent = 0;        // spaces and tabs that each line behind the first must begin with
  double seconds = 0;    // from the first token on; then the next line's end ends the answer. 0: no limit
  bool nothing = false;  // the first token ends the answer, and is not part of it

  // Takes the next text and cuts it where the answer ends. True: it ends there.
  bool ends(std::string& text, double seconds_so_far);

  bool any() const { return indent > 0 || seconds > 0 || nothing; }

 private:
  bool begins_line_ = false;
  int found_ = 0;  // of the line's indentation
};

struct Services;

struct ToolUse : ToolCall {
  std::string id;
  int index = 0;  // among the calls of its choice
};

struct Choice;

// Moments of a choice, as now() tells them: its first step with rows, or its arrival where that is unknown;
// its first token; its end. 0: not yet.
struct Moments {
  double begun = 0, first = 0, end = 0;
};

// The text that one token finalized, or the remainder after the last token.
struct Piece {
  int choice = 0;
  std::string text, reasoning;
  std::vector<ToolUse> calls = {};
  const TokenEvent* told = nullptr;  // nullptr: after the last token
  const Choice* of = nullptr;        // its choice, with this piece
};

struct Choice {
  std::string text, reasoning;  // all so far
  std::vector<ToolUse> calls;
  std::vector<TokenEvent>
      tokens;  // with their log probabilities, if they were requested and the answer is not streamed
  // With GenerationRequest::scores_prompt: the prompt's tokens after its first one; the stop token.
  std::vector<TokenEvent> prompt;
  std::optional<TokenEvent> stop;
  GenerationEnd end;
  bool begun = false, ended = false;  // `begun`: in a stream
  Moments moments;
  int slot = -1;     // its number; -1: it never ran
  bool cut = false;  // ended by Plan::limits
};

// The reason for a choice's end, in the words of most APIs: "length" if the token limit or the context was
// reached, else "tool_calls" or "stop".
const char* finish_word(const Choice&);

struct Usage {
  int prompt_tokens = 0, shared_tokens = 0, completion_tokens = 0;
};

// One API's form of an answer. Called by one thread at a time.
class Writer {
 public:
  virtual ~Writer() = default;
  virtual std::string whole(const std::vector<Choice>&, const Usage&) = 0;
  virtual const char* whole_type() const { return "application/json"; }
  // The parts of a stream, each appended to `out`.
  virtual const char* stream_type() const { return "text/event-stream"; }
  virtual void begin(std::string& out) { static_cast<void>(out); }
  // Before the first piece or end() of this choice.
  virtual void prompt(std::string& out, const Choice&, int index) {
    static_cast<void>(out), static_cast<void>(index);
  }
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
  bool splits_reasoning = false;  // and tool calls, according to `task`; its prompt is in `choices`
  ChatTask task = {};
  bool logprobs = false;                  // requested
  bool every_token = false;               // one event per token, even without text
  std::optional<LineLimits> limits = {};  // of each choice's text
  std::vector<http::Header> headers;
  Dialect dialect = Dialect::OpenAi;
  std::string id;     // of the answer; key of its receipt
  std::string owner;  // of the receipt: Call::owner
  CertificateWish certificate = CertificateWish::No;
  std::string model_digest = {};  // for certificates
  Refused refused = {};           // the answer, in place of all else: the wanted certificate is impossible
  std::string request_id;         // for errors
  std::shared_ptr<RequestRecord> record;
  std::unique_ptr<Writer> writer;
};

class Answer final : public http::Source, public std::enable_shared_from_this<Answer> {
 public:
  // Submits the choices; the exchange is answered later. A failure to submit becomes an error answer.
  static std::shared_ptr<Answer> start(Services&, Plan, std::shared_ptr<http::Exchange>);

  Answer(Services&, Plan, std::shared_ptr<http::Exchange>);
  ~Answer() override;
  void pull(http::Outgoing&) override;
  void gone() override;
  // Ends with an error, in the API's form. From any thread.
  void end(const ApiError&);

 private:
  struct Line {  // output of one choice's engine, until pull() takes it
    std::vector<TokenEvent> told, prompt;
    std::optional<TokenEvent> stop;
    std::optional<GenerationEnd> end;
    size_t prompt_tokens = 0;
    uint64_t id = 0;
    bool submitted = false;
    bool enough = false;  // the remainder was cancelled
    Moments moments;
    SlotPtr slot;
    int number = -1;                   // of the slot, also when it was given back
    std::optional<LineLimits> limits;  // Plan::limits
    bool cut = false;                  // by these: later text is not part of the answer
    std::optional<Certified> certified;
  };

  GenerationSink sink(size_t choice, uint64_t id, int prompt_tokens, int max_tokens);
  void began(size_t choice, SlotPtr);
  void told(size_t choice, const TokenEvent&);
  void scored(size_t choice, const TokenEvent&);
  void ended(size_t choice, const GenerationEnd&);
  void failed(const ApiError&);
  void cancel();
  void write(size_t choice, std::string text, const TokenEvent*, bool last, std::string& out);
  void end_early(size_t choice);
  void take_lines(std::string& out);
  Usage usage() const;
  void certify();
  void keep_receipt();
  void record(const std::string& end);  // for the log
  Json stored_json() const;             // for the receipt
  std::string finish_words() const;

  Services& services_;
  Plan plan_;
  std::shared_ptr<http::Exchange> exchange_;

  // Guarded by the mutex; written by the engine's thread.
  std::mutex mutex_;
  std::vector<Line> lines_;
  std::optional<ApiError> error_;
  bool gone_ = false, prompt_counted_ = false;
  size_t open_ = 0;  // choices that have not ended
  int prompt_tokens_ = 0, sent_tokens_ = 0;
  double first_token_ = -1;  // now()

  // Used by the connection's thread only.
  std::vector<Choice> choices_;
  std::vector<ReplyParser> parsers_;
  bool begun_ = false, done_ = false;
};

}  // namespace gimbal::api
