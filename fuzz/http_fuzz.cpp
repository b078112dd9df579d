// libFuzzer over the framing of HTTP: whatever bytes come, they are read alike in one piece and byte by byte,
// and an accepted request has no part that another parser could read differently.
#include <algorithm>
#include <cctype>
#include <string>

#include "require.h"
#include "server/http/head.h"

namespace {

using namespace gimbal::http;

constexpr size_t kHeadLimit = 4096, kBodyLimit = 2000;

bool has_control(std::string_view s) {
  return std::any_of(s.begin(), s.end(), [](char c) { return uint8_t(c) < 32 && c != '\t'; });
}

// What became of a request: its status, 200 for one that was taken and 0 for one that is not complete; its
// parts.
struct Read {
  int status = 0;
  std::string parts;
};

Read read(std::string_view bytes, size_t at_once) {
  Read r;
  Head head;
  std::string input, body;
  bool has_head = false;
  ChunkedBody chunks(kBodyLimit);
  for (size_t at = 0; at < bytes.size() && r.status == 0; at += at_once) {
    input += bytes.substr(at, at_once);
    if (!has_head) {
      const HeadEnd found = find_head(input, kHeadLimit);
      if (found.refusal) return r.status = found.refusal->status, r;
      if (!found.end) continue;
      require(*found.end <= input.size() && *found.end <= kHeadLimit);
      if (auto no = parse_head(std::string_view(input).substr(0, *found.end), head))
        return r.status = no->status, r;
      input.erase(0, *found.end);
      has_head = true;
    }
    if (head.chunked) {
      if (auto no = chunks.push(input, body)) return r.status = no->status, r;
      require(body.size() <= kBodyLimit);
      if (chunks.done()) r.status = 200;
    } else {
      const size_t wanted = size_t(std::min<uint64_t>(head.length.value_or(0), kBodyLimit));
      const size_t n = std::min(wanted - body.size(), input.size());
      body.append(input, 0, n);
      input.erase(0, n);
      if (body.size() == wanted) r.status = 200;
    }
  }
  if (r.status != 200) return r;
  r.parts = head.request.method + "\1" + head.request.path + "\1" + head.request.query + "\1" + body;
  const Request& q = head.request;
  require(!q.method.empty() && (q.path == "*" || q.path.starts_with('/')));
  require(q.path.find('\0') == q.path.npos && !has_control(q.query));
  require(!(head.chunked && head.length) && !(head.chunked && head.minor == 0));
  int hosts = 0;
  for (const Header& h : q.headers) {
    require(!h.name.empty() && !has_control(h.name) && !has_control(h.value));
    require(std::none_of(h.name.begin(), h.name.end(),
                         [](char c) { return c == ' ' || std::isupper(uint8_t(c)); }));
    require(h.value.empty() || (h.value.front() != ' ' && h.value.back() != ' '));
    hosts += h.name == "host";
    r.parts += "\1" + h.name + "\2" + h.value;
  }
  require(hosts == 1 || (hosts == 0 && head.minor == 0));
  return r;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), std::min<size_t>(size, 8192));
  const Read whole = read(bytes, bytes.size() + 1), single = read(bytes, 1);
  // In one piece, a head that is too long may be found out before the line that is broken, and the other way.
  const auto refused = [](const Read& r) { return r.status >= 400; };
  require(refused(whole) == refused(single));
  if (refused(whole)) return 0;
  require(whole.status == single.status && whole.parts == single.parts);
  return 0;
}
