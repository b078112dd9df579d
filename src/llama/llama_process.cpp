#include "llama/llama_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "base/json_fields.h"
#include "base/text.h"

namespace gimbal::llama {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kWords = 4096;  // of stderr that are kept
constexpr size_t kLines = 3;     // of them that an error quotes

Error failed(std::string message, std::string remedy = "", const char* reason = "") {
  return {Code::Failed, std::move(message), std::move(remedy), reason};
}

// A field of the last object of an answer. The object comes from a process with foreign code.
template <class... T>
Status read(const Json& answer, const char* what, std::pair<const char*, T*>... to) {
  JsonReader in(answer, what);
  (in(to.first, *to.second), ...);
  if (!in.problem().empty()) return failed(in.problem(), "", "library-answer");
  return Done{};
}

}  // namespace

LlamaProcess::LlamaProcess(LlamaProcess&& o) noexcept
    : process_(std::move(o.process_)),
      errors_(std::exchange(o.errors_, -1)),
      words_(std::move(o.words_)),
      patience_(o.patience_),
      reader_(std::move(o.reader_)),
      library_(std::move(o.library_)),
      model_(std::move(o.model_)) {}

LlamaProcess::~LlamaProcess() {
  process_.kill();
  if (errors_ >= 0) close(errors_);
}

Result<LlamaProcess> LlamaProcess::start(const std::vector<std::string>& command, const std::string& library,
                                         std::chrono::milliseconds patience) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return failed(format("no pipe can be made: {}", std::strerror(errno)));
  auto process = WorkerProcess::start_with_errors(command, ends[1]);
  close(ends[1]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  if (!process) return close(ends[0]), process.error();
  LlamaProcess out(std::move(*process), ends[0], patience);
  out.library_.path = library;
  auto answer = out.ask({{"do", "open"}, {"library", library}}, "opening it");
  if (!answer) return answer.error();
  LibraryFacts& f = out.library_;
  if (auto ok = read(*answer, "its answer", std::pair("release", &f.release), std::pair("system", &f.system),
                     std::pair("model_struct", &f.model_struct),
                     std::pair("context_struct", &f.context_struct), std::pair("layers", &f.layers));
      !ok)
    return ok.error();
  return out;
}

Result<ModelFacts> LlamaProcess::load(const std::string& model) {
  auto answer = ask({{"do", "load"}, {"model", model}}, "loading the model");
  if (!answer) return answer.error();
  ModelFacts& f = model_;
  if (auto ok = read(*answer, "its answer", std::pair("vocabulary", &f.vocabulary),
                     std::pair("layers", &f.layers), std::pair("width", &f.width),
                     std::pair("half_values", &f.half_values), std::pair("description", &f.description),
                     std::pair("sandbox", &f.sandbox), std::pair("not_in_sandbox", &f.not_in_sandbox));
      !ok)
    return ok.error();
  return f;
}

Result<std::vector<int32_t>> LlamaProcess::tokenize(const std::string& text, bool add_special,
                                                    bool parse_special) {
  if (text.size() > kMaxFrame) return Error{Code::Usage, "the text is too long", ""};
  auto answer = ask({{"do", "tokenize"}, {"add_special", add_special}, {"parse_special", parse_special}},
                    "tokenizing a text", {}, &text);
  if (!answer) return answer.error();
  std::vector<int> tokens;
  if (auto ok = read(*answer, "its answer", std::pair("tokens", &tokens)); !ok) return ok.error();
  return tokens;
}

Result<double> LlamaProcess::logits(std::span<const int32_t> tokens, int threads, int context,
                                    const RowSink& rows, const TensorSink& tensors) {
  const std::vector<int> ids(tokens.begin(), tokens.end());
  int next = 0;
  const auto part = [&](const Frame& frame) -> Status {
    if (frame.kind == FrameKind::Tensor && tensors) {
      auto tensor = read_tensor(frame.bytes);
      if (!tensor) return tensor.error();
      return tensors(*tensor), Done{};
    }
    if (frame.kind != FrameKind::Row)
      return Error{Code::Malformed, "a message that belongs to no logits", ""};
    auto row = read_row(frame.bytes);
    if (!row) return row.error();
    if (row->position != next++ || row->values.size() != size_t(model_.vocabulary))
      return Error{Code::Malformed,
                   format("{} logits of position {}: expected {} of position {}", row->values.size(),
                          row->position, model_.vocabulary, next - 1),
                   ""};
    return rows(row->position, row->values), Done{};
  };
  auto answer = ask({{"do", "logits"},
                     {"tokens", ids},
                     {"threads", threads},
                     {"context", context},
                     {"layers", bool(tensors)}},
                    format("computing {} tokens", ids.size()), part);
  if (!answer) return answer.error();
  double seconds = 0;
  if (auto ok = read(*answer, "its answer", std::pair("seconds", &seconds)); !ok) return ok.error();
  if (next != int(ids.size()))
    return failed(format("its answer has logits of {} tokens: expected {}", next, ids.size()), "",
                  "library-answer");
  return seconds;
}

Result<GreedyRun> LlamaProcess::greedy(std::span<const int32_t> tokens, int count, int threads, int context) {
  const std::vector<int> ids(tokens.begin(), tokens.end());
  GreedyRun out;
  const auto part = [&](const Frame& frame) -> Status {
    int token = -1;
    if (auto ok = read(parse_json(frame.bytes), "a token", std::pair("token", &token)); !ok) return ok;
    if (token < 0 || token >= model_.vocabulary || int(out.tokens.size()) >= count)
      return Error{Code::Malformed, format("a token {} that cannot follow", token), ""};
    return out.tokens.push_back(token), Done{};
  };
  auto answer =
      ask({{"do", "greedy"}, {"tokens", ids}, {"count", count}, {"threads", threads}, {"context", context}},
          "generating text", part);
  if (!answer) return answer.error();
  if (auto ok = read(*answer, "its answer", std::pair("prompt_seconds", &out.prompt_seconds),
                     std::pair("token_seconds", &out.token_seconds));
      !ok)
    return ok.error();
  return out;
}

Status LlamaProcess::begin(int threads, int context) {
  auto answer = ask({{"do", "begin"}, {"threads", threads}, {"context", context}}, "beginning a text");
  if (!answer) return answer.error();
  return Done{};
}

Result<std::vector<float>> LlamaProcess::advance(std::span<const int32_t> tokens) {
  const std::vector<int> ids(tokens.begin(), tokens.end());
  std::vector<float> logits;
  const auto part = [&](const Frame& frame) -> Status {
    if (frame.kind != FrameKind::Row || !logits.empty())
      return Error{Code::Malformed, "a message that is not the logits of the last token", ""};
    auto row = read_row(frame.bytes);
    if (!row) return row.error();
    if (row->position != int(ids.size()) - 1 || row->values.size() != size_t(model_.vocabulary))
      return Error{Code::Malformed,
                   format("{} logits of position {}: expected {} of position {}", row->values.size(),
                          row->position, model_.vocabulary, ids.size() - 1),
                   ""};
    return logits = std::move(row->values), Done{};
  };
  auto answer = ask({{"do", "advance"}, {"tokens", ids}}, format("computing {} tokens", ids.size()), part);
  if (!answer) return answer.error();
  if (logits.empty()) return failed("its answer has no logits", "", "library-answer");
  return logits;
}

Result<Json> LlamaProcess::ask(const Json& request, const std::string& doing, const Part& part,
                               const std::string* text) {
  if (!process_) return failed("the child process of the library has ended", "start it again");
  std::string out = encoded(request);
  if (text) out += encoded(FrameKind::Text, *text);
  auto answer = exchange(std::move(out), doing, part);
  if (!answer) return answer;
  const auto error = answer->find("error");
  if (error == answer->end()) return answer;
  int code = 0;
  std::string message, remedy, reason;
  if (auto ok = read(*error, "its error", std::pair("code", &code), std::pair("message", &message),
                     std::pair("remedy", &remedy), std::pair("reason", &reason));
      !ok)
    return ok.error();
  read_errors();
  const bool known = code >= int(Code::Failed) && code <= int(Code::DeviceLost);
  Error e{known ? Code(code) : Code::Failed, message, remedy};
  if (reason == "library-refused") e.reason = "library-refused";
  if (e.code != Code::Failed) return e;
  // The library's own words explain failures that it reports as a null pointer.
  return failed(format("the library {}: {}{}", library_.path, message, last_words()), remedy,
                *e.reason ? e.reason : "library-failed");
}

// Writes and reads at once: neither side may wait for the other with a full socket.
Result<Json> LlamaProcess::exchange(std::string out, const std::string& doing, const Part& part) {
  const int fd = process_.channel.fd();
  auto deadline = Clock::now() + patience_;
  size_t sent = 0;
  std::vector<char> piece(1 << 16);
  for (;;) {
    for (;;) {
      auto frame = reader_.next();
      if (!frame) return lost("library-answer", format("sent {}", frame.error().message), doing);
      if (!*frame) break;
      deadline = Clock::now() + patience_;
      if ((*frame)->kind == FrameKind::Json) {
        Json j = parse_json((*frame)->bytes);
        if (!j.is_object()) return lost("library-answer", "sent something that is no JSON object", doing);
        if (!(part && j.contains("token"))) return j;
      }
      const Status ok =
          part ? part(**frame) : Status(Error{Code::Malformed, "a message without a request", ""});
      if (!ok) return lost("library-answer", format("sent {}", ok.error().message), doing);
    }
    pollfd wait[] = {{fd, short(POLLIN | (sent < out.size() ? POLLOUT : 0)), 0}, {errors_, POLLIN, 0}};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0)
      return lost("library-silent", format("did not answer within {} s", double(patience_.count()) / 1000),
                  doing);
    if (poll(wait, errors_ < 0 ? 1 : 2, int(std::min<long long>(left + 1, 1000))) < 0 && errno != EINTR)
      return failed(format("waiting for the library failed: {}", std::strerror(errno)));
    if (errors_ >= 0 && wait[1].revents) read_errors();
    if (wait[0].revents & POLLOUT) {
      const ssize_t n = ::send(fd, out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
      if (n > 0) sent += size_t(n);
    }
    if (wait[0].revents & (POLLIN | POLLHUP | POLLERR)) {
      const ssize_t n = recv(fd, piece.data(), piece.size(), 0);
      if (n > 0) reader_.feed({piece.data(), size_t(n)});
      else if (n == 0 || (errno != EINTR && errno != EAGAIN)) return lost("library-crashed", "", doing);
    }
  }
}

// Keeps the end of the library's output: lines are bounded in number and length.
void LlamaProcess::read_errors() {
  char piece[1 << 14];
  for (ssize_t n; errors_ >= 0 && (n = ::read(errors_, piece, sizeof piece)) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return;
    words_.append(piece, size_t(n));
    if (words_.size() > 2 * kWords) words_.erase(0, words_.size() - kWords);
  }
  if (errors_ >= 0) close(std::exchange(errors_, -1));
}

std::string LlamaProcess::last_words() const {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < words_.size();) {
    const size_t end = std::min(words_.find('\n', begin), words_.size());
    const std::string line = words_.substr(begin, std::min<size_t>(end - begin, 300));
    if (line.find_first_not_of(" \t\r.") != std::string::npos) lines.push_back(escaped(line));
    begin = end + 1;
  }
  if (lines.size() > kLines) lines.erase(lines.begin(), lines.end() - ptrdiff_t(kLines));
  return lines.empty() ? "" : format("; its last lines on stderr: {}", fmt::join(lines, " | "));
}

// `what`: empty if the process ended by itself.
Error LlamaProcess::lost(const char* reason, std::string what, const std::string& doing) {
  const std::string ending = process_.kill();
  read_errors();
  if (what.empty()) what = format("ended its process ({})", ending.empty() ? "no exit code" : ending);
  return failed(format("the library {} {}, {}{}", library_.path, what, doing, last_words()),
                reason == std::string_view("library-silent")
                    ? "give more time, or another library"
                    : "give another library, or another release of it",
                reason);
}

}  // namespace gimbal::llama
