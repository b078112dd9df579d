#include "fetch/http.h"

namespace gimbal {
namespace {

constexpr size_t kMostOfAnAnswer = 64 << 10;  // bytes, of its headers and of its body

// Counts the received bytes and discards them.
struct Reader {
  size_t headers = 0, body = 0;
};

size_t read_header(char*, size_t, size_t n, void* to) {
  auto& r = *static_cast<Reader*>(to);
  return (r.headers += n) <= kMostOfAnAnswer ? n : 0;
}

size_t read_body(char*, size_t, size_t n, void* to) {
  auto& r = *static_cast<Reader*>(to);
  return (r.body += n) <= kMostOfAnAnswer ? n : 0;
}

int ask_whether_to_go_on(void* go_on, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return (*static_cast<std::function<bool()>*>(go_on))() ? 0 : 1;
}

}  // namespace

Result<long> post_json(const Url& url, const std::string& json, double seconds,
                       const std::function<bool()>& go_on) {
  auto curl = Curl::open();
  if (!curl) return curl.error();
  const Curl& c = **curl;
  CURL* easy = c.init();
  if (!easy) return Error{Code::OutOfMemory, "out of memory for a connection", ""};
  char error[CURL_ERROR_SIZE];
  HeaderList headers(c);
  headers.add("Content-Type: application/json");
  Reader reader;
  const std::string whole = url.whole();
  prepare(c, easy, whole, headers, error);
  c.set(easy, CURLOPT_POSTFIELDS, json.c_str());
  c.set(easy, CURLOPT_POSTFIELDSIZE, long(json.size()));
  c.set(easy, CURLOPT_TIMEOUT_MS, long(seconds * 1000));
#if LIBCURL_VERSION_NUM >= 0x075700
  c.set(easy, CURLOPT_QUICK_EXIT, 1L);  // a name server that does not answer is not waited for
#endif
  if (url.is_loopback()) c.set(easy, CURLOPT_NOPROXY, "*");
  auto asked = go_on;
  deliver_to(c, easy, {read_header, read_body, &reader, ask_whether_to_go_on, &asked});
  const CURLcode code = c.perform(easy);
  long status = 0;
  c.info(easy, CURLINFO_RESPONSE_CODE, &status);
  c.cleanup(easy);
  if (code == CURLE_ABORTED_BY_CALLBACK) return cancelled();
  // The status arrived before the excess data.
  if (code == CURLE_OK || reader.body > kMostOfAnAnswer) return status;
  return connection_error(c, code, url, error);
}

}  // namespace gimbal
