// The head of a request and a chunked body at the edges of RFC 9112, without a connection.
#include "server/http/head.h"

#include <gtest/gtest.h>

#include <string>

namespace gimbal::http {
namespace {

// The status of the refusal; 200: parsed.
int parsed(const std::string& text, Head& to) {
  const auto no = parse_head(text, to);
  return no ? no->status : 200;
}
int parsed(const std::string& text) {
  Head head;
  return parsed(text, head);
}
int with_line(const std::string& line) { return parsed(line + "\r\nHost: a\r\n\r\n"); }
int with_header(const std::string& header) {
  return parsed("GET / HTTP/1.1\r\nHost: a\r\n" + header + "\r\n\r\n");
}

TEST(HttpHead, EndsBehindItsEmptyLine) {
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  for (const char* behind : {"", "x", "\n", "\r\n\r\n"})
    EXPECT_EQ(find_head(head + behind, 4096).end, head.size());
  for (size_t n = 0; n < head.size(); n++) {
    const HeadEnd part = find_head(head.substr(0, n), 4096);
    EXPECT_FALSE(part.end || part.refusal) << n;
  }
  EXPECT_TRUE(find_head(head, head.size()).end) << "just as long as is allowed";
  EXPECT_EQ(find_head(head, head.size() - 1).refusal->status, 431);
  EXPECT_EQ(find_head(std::string(4097, 'x'), 4096).refusal->status, 431) << "without its end";
  for (const char* text : {"\n", "GET / HTTP/1.1\n", "GET / HTTP/1.1\r\nHost: a\n\r\n\r\n"})
    EXPECT_EQ(find_head(text, 4096).refusal->status, 400) << text;
}

TEST(HttpHead, TargetsAreDecodedOnce) {
  const struct {
    const char *target, *path, *query;
  } kTargets[] = {
      {"/", "/", ""},
      {"/a?", "/a", ""},
      {"/a?b?c=%41", "/a", "b?c=%41"},
      {"/%41%4a%4F%09%7f%ff", "/AJO\t\x7f\xff", ""},
      {"/%2541", "/%41", ""},
      {"http://host/a", "/a", ""},
      {"HTTPS://host:1/a?b", "/a", "b"},
      {"http://host", "/", ""},
  };
  for (const auto& t : kTargets) {
    Head head;
    EXPECT_EQ(parsed(std::string("GET ") + t.target + " HTTP/1.1\r\nHost: a\r\n\r\n", head), 200) << t.target;
    EXPECT_EQ(head.request.path, t.path) << t.target;
    EXPECT_EQ(head.request.query, t.query) << t.target;
  }
  for (const char* target : {"a", "*", "/%", "/%4", "/%4g", "/%g4", "/%00", "/%:0", "/%/0", "/%@1", "/\x7f",
                             "/\xc3\xa9", "/\t", "ftp://x/"})
    EXPECT_EQ(with_line(std::string("GET ") + target + " HTTP/1.1"), 400) << target;
  Head head;
  EXPECT_EQ(parsed("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", head), 200);
  EXPECT_EQ(head.request.path, "*");
}

TEST(HttpHead, FirstLines) {
  EXPECT_EQ(with_line("M-S!#$%&'*+.^_`|~09az / HTTP/1.1"), 200) << "every character of a token";
  for (const char* line : {"GET", "GET /", "GET / HTTP/1.1 ", " / HTTP/1.1", "G(T / HTTP/1.1",
                           "GET / HTTP/1.", "GET / HTTP/1.10", "GET / HTTP/1x1", "GET / HTTP/a.1",
                           "GET / HTTP/1.a", "GET / http/1.1", "GET / HTTP11.1"})
    EXPECT_EQ(with_line(line), 400) << line;
  for (const char* line : {"GET / HTTP/0.9", "GET / HTTP/2.0"}) EXPECT_EQ(with_line(line), 505) << line;
  for (const auto& [version, minor] : {std::pair{"0", 0}, {"1", 1}, {"2", 1}, {"9", 1}}) {
    Head head;
    EXPECT_EQ(parsed(std::string("GET / HTTP/1.") + version + "\r\nHost: a\r\n\r\n", head), 200);
    EXPECT_EQ(head.minor, minor) << version;
    EXPECT_EQ(head.keep_alive, minor > 0) << version;
  }
}

TEST(HttpHead, HeadersAreTextWithANameAndWithoutBlanksAround) {
  Head head;
  EXPECT_EQ(parsed("GET / HTTP/1.1\r\nHost: a\r\nX-Y:\t a\tb ~\xc3\xa9 \t\r\nEmpty:\r\nx-y: c\r\n\r\n", head),
            200);
  EXPECT_EQ(*head.request.header("x-y"), "a\tb ~\xc3\xa9") << "the first of a name";
  EXPECT_EQ(*head.request.header("empty"), "");
  EXPECT_EQ(head.request.header("x"), nullptr);
  for (const char* header : {"X", ": a", "X : a", "X(: a", " X: a", "X: \x01",
                             "X: a\x1f"
                             "b",
                             "X: \x7f", "X: a\rb", "Host: a"})
    EXPECT_EQ(with_header(header), 400) << header;
  EXPECT_EQ(with_header(std::string("X: a\0b", 6)), 400);
  const auto many = [](int n) {
    std::string lines = "GET / HTTP/1.1\r\nHost: a\r\n";
    for (int i = 1; i < n; i++) lines += "X: 1\r\n";
    return lines + "\r\n";
  };
  EXPECT_EQ(parsed(many(100)), 200);
  EXPECT_EQ(parsed(many(101)), 431);
}

TEST(HttpHead, AHostIsOne) {
  for (const char* host : {"a", "a:80", "[::1]:80", ""})
    EXPECT_EQ(parsed(std::string("GET / HTTP/1.1\r\nHost: ") + host + "\r\n\r\n"), 200) << host;
  for (const char* host : {"a b", "a,b", "a/b", "u@a", "a\tb"})
    EXPECT_EQ(parsed(std::string("GET / HTTP/1.1\r\nHost: ") + host + "\r\n\r\n"), 400) << host;
  EXPECT_EQ(parsed("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(parsed("GET / HTTP/1.0\r\n\r\n"), 200) << "HTTP/1.0 has none";
}

TEST(HttpHead, TheBodyHasOneLength) {
  Head head;
  EXPECT_EQ(parsed("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999999999999\r\n\r\n", head), 200);
  EXPECT_EQ(head.length, 999999999999999999u) << "18 digits";
  EXPECT_FALSE(head.chunked);
  for (const char* header :
       {"Content-Length: 1000000000000000000", "Content-Length:", "Content-Length: 1/", "Content-Length: :",
        "Content-Length: 0x1", "Content-Length: 1\r\nContent-Length: 1", "Transfer-Encoding: identity",
        "Transfer-Encoding: chunked\r\nContent-Length: 0", "Content-Length: 0\r\nTransfer-Encoding: chunked"})
    EXPECT_EQ(with_header(header), 400) << header;
  Head chunked;
  EXPECT_EQ(parsed("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: CHUNKED\r\n\r\n", chunked), 200);
  EXPECT_TRUE(chunked.chunked);
  EXPECT_FALSE(chunked.length);
  EXPECT_EQ(parsed("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
}

TEST(HttpHead, ConnectionsEndOrStay) {
  const struct {
    const char *minor, *headers;
    bool stays;
  } kCases[] = {
      {"1", "", true},
      {"0", "", false},
      {"1", "Connection: close\r\n", false},
      {"1", "Connection: x,\tClose , y\r\n", false},
      {"1", "Connection: closed\r\n", true},
      {"0", "Connection: Keep-Alive\r\n", true},
      {"0", "Connection: keep-alive, close\r\n", false},
      {"0", "Connection: close\r\nConnection: keep-alive\r\n", false},
      {"1", "Connection: close\r\nConnection: keep-alive\r\n", false},
      {"1", "Connection:\r\n", true},
  };
  for (const auto& c : kCases) {
    Head head;
    EXPECT_EQ(parsed(std::string("GET / HTTP/1.") + c.minor + "\r\nHost: a\r\n" + c.headers + "\r\n", head),
              200);
    EXPECT_EQ(head.keep_alive, c.stays) << c.minor << " " << c.headers;
  }
  for (const int minor : {0, 1}) {
    Head head;
    EXPECT_EQ(parsed("GET / HTTP/1." + std::to_string(minor) +
                         "\r\nHost: a\r\nUpgrade: b\r\nExpect: 100-Continue\r\n\r\n",
                     head),
              200);
    EXPECT_EQ(head.request.header("upgrade") != nullptr, minor == 1);
    EXPECT_EQ(head.expects_continue, minor == 1);
  }
}

struct Decoded {
  int status = 200;
  std::string body, rest;
  bool done = false;
};
// The input comes in pieces of so many bytes.
Decoded decoded(const std::string& text, size_t limit = 1 << 20, size_t piece = SIZE_MAX) {
  ChunkedBody chunks(limit);
  Decoded d;
  for (size_t at = 0; at < text.size() && d.status == 200 && !chunks.done();
       at += std::min(piece, text.size() - at)) {
    d.rest += text.substr(at, piece);
    if (const auto no = chunks.push(d.rest, d.body)) d.status = no->status;
  }
  d.done = chunks.done();
  return d;
}

TEST(HttpChunks, AreTheSameHoweverTheyArrive) {
  const std::string text = "3\r\nabc\r\n00A;x=\"y\"\r\n\r\n34567\r\n9\r\n0\r\nX: 1\r\nY:\r\n\r\n";
  for (size_t piece = 1; piece <= text.size(); piece++) {
    const Decoded d = decoded(text, 13, piece);
    EXPECT_EQ(d.status, 200) << piece;
    EXPECT_EQ(d.body, "abc\r\n34567\r\n9");
    EXPECT_TRUE(d.done) << piece;
    EXPECT_EQ(d.rest, "");
  }
  EXPECT_EQ(decoded("1\r\na\r\n0\r\n\r\nGET").rest, "GET") << "the next request is left";
  EXPECT_FALSE(decoded("1\r\na\r\n0\r\n").done);
}

TEST(HttpChunks, ThatAreWrongAreRefused) {
  for (const char* text : {"\r\n", "g\r\n", "1x\r\n", "1 \r\n", "1\n", "\n", "1\r\naX\r\n", "1\r\na\n",
                           "1\r\nab\r\n", "0\r\n: 1\r\n", "0\r\nX Y: 1\r\n", "0\r\nX: \x01\r\n",
                           "0000000000000001\r\n", "1;\x01\r\n", "@\r\n", "G\r\n", "/\r\n", ":\r\n"})
    EXPECT_EQ(decoded(text).status, 400) << text;
  EXPECT_EQ(decoded("000000000000001\r\na\r\n0\r\n\r\n").body, "a") << "15 digits";
  EXPECT_EQ(decoded(std::string(256, '0')).status, 200) << "may still become a line";
  EXPECT_EQ(decoded(std::string(257, '0')).status, 400);
}

TEST(HttpChunks, HaveABoundForAllTogether) {
  EXPECT_EQ(decoded("4\r\nabcd\r\n0\r\n\r\n", 4).body, "abcd");
  EXPECT_EQ(decoded("5\r\n", 4).status, 413);
  EXPECT_EQ(decoded("3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n", 4).body, "abcd");
  EXPECT_EQ(decoded("3\r\nabc\r\n2\r\n", 4).status, 413);
  EXPECT_EQ(decoded("fffffffffffffff\r\n", 4).status, 413);
  const std::string trailer = "X:" + std::string(4094, 'x');
  EXPECT_TRUE(decoded("0\r\n" + trailer + "\r\n" + trailer + "\r\n\r\n").done) << "8 kB";
  EXPECT_EQ(decoded("0\r\n" + trailer + "\r\n" + trailer + "\r\nX:\r\n\r\n").status, 431);
}

}  // namespace
}  // namespace gimbal::http
