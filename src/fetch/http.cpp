#include "fetch/http.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/folders.h"
#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

constexpr int kRedirections = 10;
constexpr size_t kMaxHeaders = 200;

struct Receiver {
  HttpAnswer& answer;
  const Http::Question& question;
  bool too_long = false;
};

size_t answer_header(char* data, size_t, size_t n, void* to) {
  return static_cast<Receiver*>(to)->answer.take_header({data, n}) ? n : 0;
}

size_t answer_body(char* data, size_t, size_t n, void* to) {
  auto& r = *static_cast<Receiver*>(to);
  if (r.question.headers_only) return 0;
  if (r.answer.body.size() + n > r.question.max_body) return r.too_long = true, 0;
  r.answer.body.append(data, n);
  return n;
}

int ask(void* patience, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Patience*>(patience)->go_on() ? 0 : 1;
}

}  // namespace

std::string HttpAnswer::header(const char* name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

bool HttpAnswer::take_header(std::string_view line) {
  if (line.starts_with("HTTP/")) headers.clear();  // another answer follows, as after 100
  const size_t colon = line.find(':');
  if (colon == line.npos) return true;
  std::string name;
  for (char c : line.substr(0, colon)) name += char(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
  line.remove_prefix(colon + 1);
  while (!line.empty() && uint8_t(line.front()) <= ' ') line.remove_prefix(1);
  while (!line.empty() && uint8_t(line.back()) <= ' ') line.remove_suffix(1);
  headers[name] = line;
  return headers.size() <= kMaxHeaders;
}

static std::optional<HttpAnswer::Range> parse_content_range(std::string_view text) {
  uint64_t n[3];
  for (const auto& [i, before] : {std::pair(0, "bytes "), {1, "-"}, {2, "/"}}) {
    if (!text.starts_with(before)) return std::nullopt;
    text.remove_prefix(std::string_view(before).size());
    const auto [end, e] = std::from_chars(text.data(), text.data() + text.size(), n[i]);
    if (e != std::errc()) return std::nullopt;
    text.remove_prefix(size_t(end - text.data()));
  }
  if (!text.empty() || n[0] > n[1] || n[1] >= n[2]) return std::nullopt;
  return HttpAnswer::Range{n[0], n[1] + 1, n[2]};
}

std::optional<HttpAnswer::Range> HttpAnswer::range() const {
  return status == 206 ? parse_content_range(header("content-range")) : std::nullopt;
}

void prepare(const Curl& c, CURL* easy, const std::string& url, HeaderList& headers, char* error) {
  error[0] = 0;
  headers.add("User-Agent: gimbal");
  c.set(easy, CURLOPT_URL, url.c_str());
  c.set(easy, CURLOPT_HTTPHEADER, headers.get());
  c.set(easy, CURLOPT_ERRORBUFFER, error);
  c.set(easy, CURLOPT_NOSIGNAL, 1L);
  c.set(easy, CURLOPT_FOLLOWLOCATION, 0L);
  c.set(easy, CURLOPT_PROTOCOLS, long(CURLPROTO_HTTP | CURLPROTO_HTTPS));
  c.set(easy, CURLOPT_CONNECTTIMEOUT, 30L);
  c.set(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);  // nothing at all for so long
  c.set(easy, CURLOPT_LOW_SPEED_TIME, 60L);
  // Certificates of a company's own, as other programs take them.
  for (const char* name : {"CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"})
    if (const std::string file = environment_variable(name); !file.empty()) {
      c.set(easy, CURLOPT_CAINFO, file.c_str());
      break;
    }
}

void deliver_to(const Curl& c, CURL* easy, const AnswerCallbacks& a) {
  c.set(easy, CURLOPT_HEADERFUNCTION, a.header);
  c.set(easy, CURLOPT_HEADERDATA, a.to);
  c.set(easy, CURLOPT_WRITEFUNCTION, a.body);
  c.set(easy, CURLOPT_WRITEDATA, a.to);
  c.set(easy, CURLOPT_XFERINFOFUNCTION, a.go_on);
  c.set(easy, CURLOPT_XFERINFODATA, a.asked);
  c.set(easy, CURLOPT_NOPROGRESS, 0L);
}

bool is_passing(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM: return true;
    default: return false;
  }
}

Error connection_error(const Curl& c, CURLcode code, const Url& url, const char* detail) {
  const char* remedy = "try again later; the partial download is kept";
  if (code == CURLE_COULDNT_RESOLVE_HOST)
    remedy = "is this machine online? For a proxy set https_proxy, for another site HF_ENDPOINT";
  if (code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_COULDNT_CONNECT)
    remedy = "is the machine online, and does it need a proxy (https_proxy, http_proxy, no_proxy)?";
  if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
    remedy = "install ca-certificates, or name the certificates of your network in SSL_CERT_FILE";
  return {Code::Failed,
          format("no answer from {}: {}", url.origin(), escaped(detail[0] ? detail : c.error_text(code))),
          remedy};
}

Result<std::unique_ptr<Http>> Http::create(Patience& patience) {
  auto curl = Curl::open();
  if (!curl) return curl.error();
  CURL* easy = (*curl)->init();
  if (!easy) return Error{Code::OutOfMemory, "out of memory for a connection", ""};
  return std::unique_ptr<Http>(new Http(**curl, easy, patience));
}

Http::~Http() { curl_.cleanup(easy_); }

Result<HttpAnswer> Http::once(const Url& url, std::optional<Reach> from, const Question& q) {
  char error[CURL_ERROR_SIZE];
  for (int failures = 0;;) {
    Way way(url, from);
    if (way.refused) return leads_inside(url);
    HttpAnswer a;
    a.url = url, a.from = from;
    Receiver to{a, q};
    HeaderList headers(curl_);
    if (q.credential.for_url(url)) headers.add("Authorization: Bearer " + q.credential.token);
    if (q.end) headers.add(format("Range: bytes={}-{}", q.begin, q.end - 1));
    curl_.reset(easy_);
    const std::string whole = url.whole();
    prepare(curl_, easy_, whole, headers, error);
    deliver_to(curl_, easy_, {answer_header, answer_body, &to, ask, &patience_});
    keep_to(curl_, easy_, way);
    if (q.until > 0) {
      curl_.set(easy_, CURLOPT_TIMEOUT_MS, std::max(1L, long((q.until - now()) * 1000)));
#if LIBCURL_VERSION_NUM >= 0x075700
      curl_.set(easy_, CURLOPT_QUICK_EXIT, 1L);  // a name server that does not answer is not waited for
#endif
    }
    const CURLcode code = curl_.perform(easy_);
    a.reached = way.reached;
    if (way.refused && code != CURLE_OK && code != CURLE_WRITE_ERROR) return leads_inside(url);
    curl_.info(easy_, CURLINFO_RESPONSE_CODE, &a.status);
    if (code == CURLE_ABORTED_BY_CALLBACK) return cancelled();
    if (to.too_long)
      return Error{Code::Failed, format("{} answers with more than {} bytes", url.shown(), q.max_body), ""};
    const bool whole_answer = code == CURLE_OK || (q.headers_only && code == CURLE_WRITE_ERROR && a.status);
    if (whole_answer && a.status < 500) return a;
    if (++failures >= q.tries || (!whole_answer && !is_passing(code)))
      return whole_answer ? Result<HttpAnswer>(std::move(a)) : connection_error(curl_, code, url, error);
    for (int i = 0; i < (5 << failures); i++) {
      if (!patience_.go_on()) return cancelled();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

Result<HttpAnswer> Http::get(const Question& q) {
  auto url = Url::parse(q.url);
  if (!url) return url.error();
  std::map<std::string, std::string> first;
  std::optional<Reach> from = q.from;
  for (int i = 0; i <= kRedirections; i++) {
    auto a = once(*url, from, q);
    if (!a) return a;
    const bool leads_on = a->status >= 301 && a->status <= 308 && a->status != 304;
    if (!leads_on) {
      a->first = std::move(first);
      return a;
    }
    if (i == 0) first = a->headers;
    char* to = nullptr;
    curl_.info(easy_, CURLINFO_REDIRECT_URL, &to);
    auto next = Url::parse(to ? to : "");
    if (!next) return Error{Code::Failed, format("{} redirects to no address", url->shown()), ""};
    if (url->scheme == "https" && next->scheme != "https")
      return Error{Code::Failed,
                   format("{} redirects from https to {}, whose data could be changed on the way",
                          url->shown(), next->origin()),
                   ""};
    if (q.may_lead_to && !q.may_lead_to(*next))
      return Error{Code::Failed,
                   format("{} redirects to {}, which is not allowed", url->shown(), next->origin()), ""};
    url = std::move(next);
    from = a->reached;
  }
  return Error{Code::Failed, format("{} redirects more than {} times", url->shown(), kRedirections), ""};
}

}  // namespace gimbal
