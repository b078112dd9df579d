#include "fetch/remote_file.h"

#include <charconv>
#include <cstring>

#include "base/format.h"
#include "base/text.h"
#include "fetch/hub.h"

namespace gimbal {
namespace {

class Ranges final : public RemoteFile {
 public:
  Ranges(Http& http, const Credential& c, Located at) : http_(http), credential_(c), at_(std::move(at)) {}

  uint64_t size() const override { return at_.bytes; }

  Status read(uint64_t offset, void* to, size_t bytes) const override {
    if (!bytes) return Done{};
    const std::string url = at_.url.whole();
    auto a = http_.get({.url = url,
                        .credential = credential_,
                        .begin = offset,
                        .end = offset + bytes,
                        .max_body = bytes,
                        .from = at_.from});
    if (!a) return a.error();
    const auto range = a->range();
    if (!range || range->begin != offset || range->total != at_.bytes || a->body.size() != bytes)
      return a->status == 206 || a->status == 200
                 ? Error{Code::Failed,
                         format("{} does not send the requested bytes {} to {} of {}", at_.url.shown(),
                                offset, offset + bytes, at_.bytes),
                         "the file may have changed just now: run the same command again"}
                 : refused(*a, at_.url.shown(), credential_.for_url(at_.url));
    std::memcpy(to, a->body.data(), bytes);
    return Done{};
  }

 private:
  Http& http_;
  const Credential& credential_;
  const Located at_;
};

// An ETag that means the same bytes, or a date.
std::string validator(const HttpAnswer& a) {
  const std::string etag = a.header("etag");
  return etag.starts_with('"') ? etag : etag.empty() ? a.header("last-modified") : "";
}

std::string without_quotes(std::string text) {
  if (text.size() > 1 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  return text;
}

}  // namespace

Result<Located> locate(Http& http, const Credential& credential, const std::string& url,
                       const std::string& what, std::optional<Reach> from) {
  auto a = http.get(
      {.url = url, .credential = credential, .begin = 0, .end = 1, .headers_only = true, .from = from});
  if (!a) return a.error();
  if (a->status != 200 && a->status != 206) return refused(*a, what, credential.for_url(a->url));
  Located at{a->url, 0, validator(*a), "", a->status == 206, a->from};
  if (const auto range = a->range()) {
    at.bytes = range->total;
  } else {
    const std::string length = a->header("content-length");
    const auto [end, e] = std::from_chars(length.data(), length.data() + length.size(), at.bytes);
    if (at.ranges || e != std::errc() || end != length.data() + length.size() || !at.bytes)
      return Error{
          Code::Failed, format("{} does not report the size of {}", a->url.origin(), gimbal::quoted(what)),
          "without it gimbal cannot check that the file is complete; download it with another program"};
  }
  for (const auto* headers : {&a->headers, &a->first})
    if (const auto linked = headers->find("x-linked-etag"); linked != headers->end()) {
      const std::string hash = without_quotes(linked->second);
      if (hash.size() == 64 && hash.find_first_not_of("0123456789abcdef") == hash.npos) at.sha256 = hash;
    }
  return at;
}

Result<std::unique_ptr<RemoteFile>> open_remote(Http& http, const Credential& credential, Located at) {
  if (!at.ranges)
    return Error{Code::Unsupported,
                 format("{} does not support range requests, so the header of {} cannot be read alone",
                        at.url.origin(), at.url.shown()),
                 "fetch the whole file first"};
  return std::unique_ptr<RemoteFile>(std::make_unique<Ranges>(http, credential, std::move(at)));
}

}  // namespace gimbal
