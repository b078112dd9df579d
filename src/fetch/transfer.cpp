#include "fetch/transfer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <deque>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

constexpr int kStreamTries = 5;
constexpr double kNoteEvery = 0.25, kLongestWait = 60;  // seconds

// One connection and the gap that it fills.
struct Stream {
  Gap* gap;
  const PartFile* part;
  const TransferFrom* from;
  const Curl* curl;
  Way way;
  CURL* easy = nullptr;
  std::unique_ptr<HeaderList> headers = {};
  std::string url = {};
  HttpAnswer answer = {};
  bool asked_for_range = false, judged = false, accepted = false;
  enum : uint8_t { Fine, NoRanges, TooLong, OtherRange, WriteFailed } trouble = Fine;
  int write_error = 0;
  uint64_t at_begin = 0;  // of this try
  int failures = 0;
  double not_before = 0;
  char error[CURL_ERROR_SIZE] = "";
};

size_t stream_header(char* data, size_t, size_t n, void* to) {
  return static_cast<Stream*>(to)->answer.take_header({data, n}) ? n : 0;
}

// Whether the response body matches the request.
void judge(Stream& s) {
  s.judged = true;
  s.curl->info(s.easy, CURLINFO_RESPONSE_CODE, &s.answer.status);
  if (s.answer.status == 200) {
    if (s.asked_for_range) s.trouble = Stream::NoRanges;
    else s.accepted = true;
  } else if (s.answer.status == 206) {
    const auto range = s.answer.range();
    if (s.asked_for_range && range && range->begin == s.gap->at && range->total == s.part->bytes())
      s.accepted = true;
    else s.trouble = Stream::OtherRange;
  }
}

size_t stream_body(char* data, size_t, size_t n, void* to) {
  Stream& s = *static_cast<Stream*>(to);
  if (!s.judged) judge(s);
  if (s.trouble != Stream::Fine) return 0;
  if (!s.accepted) return 0;  // an error text: the status suffices
  if (n > s.gap->end - s.gap->at) return s.trouble = Stream::TooLong, 0;
  for (size_t done = 0; done < n;) {
    const ssize_t w = ::pwrite(s.part->descriptor(), data + done, n - done, off_t(s.gap->at));
    if (w < 0 && errno == EINTR) continue;
    if (w <= 0) {
      s.write_error = w < 0 ? errno : ENOSPC;
      return s.trouble = Stream::WriteFailed, 0;
    }
    done += size_t(w), s.gap->at += uint64_t(w);
  }
  return n;
}

class Transfer {
 public:
  Transfer(const Curl& c, const TransferFrom& from, PartFile& part, TransferWatch& watch)
      : curl_(c), from_(from), part_(part), watch_(watch), multi_(c.multi_init()) {
    for (Gap& gap : part.gaps) streams_.push_back({&gap, &part, &from, &c, Way(from.url, from.from)});
  }
  ~Transfer() {
    for (Stream& s : streams_) stop(s);
    curl_.multi_cleanup(multi_);
  }

  TransferEnd run() {
    if (!multi_) return {TransferEnd::Failed, {}, {Code::OutOfMemory, "out of memory for connections", ""}};
    for (double noted = now();;) {
      bool busy = false;
      for (Stream& s : streams_) {
        if (!s.easy && s.gap->at < s.gap->end && now() >= s.not_before && !start(s))
          return {TransferEnd::Failed, {}, {Code::OutOfMemory, "out of memory for a connection", ""}};
        busy = busy || s.gap->at < s.gap->end || s.easy;
      }
      if (!busy) return {};
      int running = 0;
      curl_.multi_perform(multi_, &running);
      if (auto end = look_at_ended(); end.how != TransferEnd::Complete) return end;
      if (!watch_.arrived(part_.bytes() - part_.missing(), part_.bytes()))
        return {TransferEnd::Cancelled, {}, {}};
      if (now() - noted > kNoteEvery) {
        if (auto ok = part_.note(); !ok) return {TransferEnd::Failed, {}, ok.error()};
        noted = now();
      }
      curl_.multi_poll(multi_, nullptr, 0, 100, nullptr);
    }
  }

 private:
  bool start(Stream& s) {
    s.easy = curl_.init();
    if (!s.easy) return false;
    s.headers = std::make_unique<HeaderList>(curl_);
    s.answer = {}, s.answer.url = from_.url;
    s.judged = s.accepted = false, s.trouble = Stream::Fine, s.at_begin = s.gap->at;
    s.asked_for_range = from_.ranges;
    if (from_.ranges) {
      s.headers->add(format("Range: bytes={}-{}", s.gap->at, s.gap->end - 1));
      if (!from_.unchanged.empty()) s.headers->add("If-Range: " + from_.unchanged);
    } else {
      s.gap->at = s.at_begin = 0;
    }
    if (from_.credential.for_url(from_.url))
      s.headers->add("Authorization: Bearer " + from_.credential.token);
    s.url = from_.url.whole();
    prepare(curl_, s.easy, s.url, *s.headers, s.error);
    keep_to(curl_, s.easy, s.way);
    curl_.set(s.easy, CURLOPT_HEADERFUNCTION, stream_header);
    curl_.set(s.easy, CURLOPT_HEADERDATA, &s);
    curl_.set(s.easy, CURLOPT_WRITEFUNCTION, stream_body);
    curl_.set(s.easy, CURLOPT_WRITEDATA, &s);
    curl_.set(s.easy, CURLOPT_PRIVATE, &s);
    curl_.set(s.easy, CURLOPT_HTTP_VERSION, long(CURL_HTTP_VERSION_1_1));  // a connection for each stream
    return curl_.multi_add(multi_, s.easy) == CURLM_OK;
  }

  void stop(Stream& s) {
    if (!s.easy) return;
    curl_.multi_remove(multi_, s.easy);
    curl_.cleanup(s.easy);
    s.easy = nullptr, s.headers.reset();
  }

  // `how` is Complete while there is nothing to end for.
  TransferEnd look_at_ended() {
    int left = 0;
    while (CURLMsg* m = curl_.multi_read(multi_, &left)) {
      if (m->msg != CURLMSG_DONE) continue;
      char* mine = nullptr;
      const CURLcode code = m->data.result;
      curl_.info(m->easy_handle, CURLINFO_PRIVATE, &mine);
      Stream& s = *reinterpret_cast<Stream*>(mine);
      if (!s.judged && code == CURLE_OK) judge(s);
      stop(s);
      if (auto end = judged(s, code); end.how != TransferEnd::Complete) return end;
    }
    return {};
  }

  TransferEnd judged(Stream& s, CURLcode code) {
    const auto failed = [](Error e) { return TransferEnd{TransferEnd::Failed, {}, std::move(e)}; };
    switch (s.trouble) {
      case Stream::NoRanges: return {TransferEnd::NoRanges, std::move(s.answer), {}};
      case Stream::TooLong:
        return failed(
            {Code::Failed,
             format("{} sends more than the {} bytes that it announced", from_.url.shown(), part_.bytes()),
             "the file on the server is changing, or the server is faulty"});
      case Stream::OtherRange:
        return failed(
            {Code::Failed,
             format(
                 "{} sends another part of the file than requested: expected bytes {} to {} of {}, found {}",
                 from_.url.shown(), s.gap->at, s.gap->end, part_.bytes(),
                 gimbal::quoted(s.answer.header("content-range"))),
             "the file on the server has changed, or the server is faulty"});
      case Stream::WriteFailed:
        return failed({Code::Failed,
                       format("cannot write '{}': {}", escaped(part_.path()), strerror(s.write_error)),
                       s.write_error == ENOSPC || s.write_error == EDQUOT || s.write_error == EFBIG
                           ? format("free disk space ({} are missing) and run the same command again: the "
                                    "partial download is kept",
                                    human_bytes(part_.missing()))
                           : ""});
      case Stream::Fine: break;
    }
    if (s.gap->at == s.gap->end) return {};
    if (s.way.refused) return failed(leads_inside(from_.url));
    if (from_.ranges && s.gap->at > s.at_begin) s.failures = 0;
    const bool passing = s.judged && !s.accepted ? s.answer.status >= 500 || s.answer.status == 429
                         : code == CURLE_OK      ? true  // an answer that ended early
                                                 : is_passing(code);
    const double wait = std::max(0.25 * double(1 << s.failures), retry_after(s));
    if (passing && ++s.failures < kStreamTries && wait <= kLongestWait) {
      s.not_before = now() + wait;
      watch_.retried(s.judged && !s.accepted ? format("HTTP status {}", s.answer.status)
                     : code == CURLE_OK      ? "the answer ended early"
                     : s.error[0]            ? s.error
                                             : curl_.error_text(code));
      return {};
    }
    if (s.judged && !s.accepted) return {TransferEnd::Refused, std::move(s.answer), {}};
    if (code != CURLE_OK) return failed(connection_error(curl_, code, from_.url, s.error));
    return failed(
        {Code::Failed,
         format("{} ends its answer at byte {} of {} announced", from_.url.shown(), s.gap->at, part_.bytes()),
         "run the same command again: the partial download is kept"});
  }

  static double retry_after(const Stream& s) {
    const std::string text = s.answer.header("retry-after");
    int seconds = 0;
    std::from_chars(text.data(), text.data() + text.size(), seconds);
    return s.judged && !s.accepted ? double(std::max(seconds, 0)) : 0;
  }

  const Curl& curl_;
  const TransferFrom& from_;
  PartFile& part_;
  TransferWatch& watch_;
  CURLM* multi_;
  std::deque<Stream> streams_;  // which stay where they are
};

}  // namespace

TransferEnd transfer(const Curl& curl, const TransferFrom& from, PartFile& part, TransferWatch& watch) {
  TransferEnd end = Transfer(curl, from, part, watch).run();
  if (auto ok = part.note(); !ok && end.how != TransferEnd::Failed)
    return {TransferEnd::Failed, {}, ok.error()};
  return end;
}

}  // namespace gimbal
