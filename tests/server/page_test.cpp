// The web page at "/": how it is sent. tests/page drives it in a browser.
#include "server/api_server.h"

namespace gimbal::test {
namespace {

class PageTest : public ApiTest {};

const std::string kBrowser = "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8\r\n";

// What clients of Ollama look for.
TEST_F(PageTest, ProgramsGetTheWordsOfOllama) {
  for (const char* accepts :
       {"", "Accept: */*\r\n", "Accept: application/json\r\nAccept-Encoding: gzip\r\n"}) {
    const HttpAnswer a = ask(get("/", accepts));
    EXPECT_EQ(a.status, 200);
    EXPECT_EQ(a.body, "Ollama is running") << accepts;
    EXPECT_EQ(a.headers.at("content-type"), "text/plain; charset=utf-8");
  }
  const HttpAnswer head = ask("HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.body, "");
}

TEST_F(PageTest, IsCompressedAndStrictAboutWhatItMayDo) {
  const HttpAnswer a = ask(get("/", kBrowser + "Accept-Encoding: br, gzip\r\n"));
  EXPECT_EQ(a.status, 200);
  EXPECT_EQ(a.headers.at("content-type"), "text/html; charset=utf-8");
  EXPECT_EQ(a.headers.at("content-encoding"), "gzip");
  EXPECT_EQ(a.body.substr(0, 2), "\x1f\x8b");
  EXPECT_LT(a.body.size(), 300'000u);
  EXPECT_EQ(a.headers.at("x-content-type-options"), "nosniff");
  EXPECT_EQ(a.headers.at("referrer-policy"), "no-referrer");
  const std::string& policy = a.headers.at("content-security-policy");
  EXPECT_TRUE(policy.starts_with("default-src 'none'; script-src 'sha256-")) << policy;
  for (const char* part :
       {"style-src 'sha256-", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"})
    EXPECT_NE(policy.find(part), policy.npos) << part;
  for (const char* part : {"unsafe", "http:", "https:", " *"})
    EXPECT_EQ(policy.find(part), policy.npos) << part;
}

TEST_F(PageTest, IsNotSentTwice) {
  const std::string tag = ask(get("/", kBrowser + "Accept-Encoding: gzip\r\n")).headers.at("etag");
  const HttpAnswer a = ask(get("/", kBrowser + "Accept-Encoding: gzip\r\nIf-None-Match: " + tag + "\r\n"));
  EXPECT_EQ(a.status, 304);
  EXPECT_EQ(a.headers.at("etag"), tag);
  EXPECT_FALSE(a.headers.contains("content-length"));
  EXPECT_EQ(ask(get("/", kBrowser + "Accept-Encoding: gzip\r\nIf-None-Match: \"other\"\r\n")).status, 200);
}

TEST_F(PageTest, IsAPlainWordForWhoTakesNoGzip) {
  for (const char* encodings : {"", "Accept-Encoding: identity\r\n", "Accept-Encoding: gzip;q=0, br\r\n",
                                "Accept-Encoding: *;q=0.000\r\n"}) {
    const HttpAnswer a = ask(get("/", kBrowser + encodings));
    EXPECT_EQ(a.status, 200);
    EXPECT_EQ(a.headers.at("content-type"), "text/plain; charset=utf-8") << encodings;
    EXPECT_FALSE(a.headers.contains("content-encoding"));
    EXPECT_NE(a.body.find("gimbal 1.2.3"), std::string::npos);
  }
  for (const char* encodings : {"Accept-Encoding: *\r\n", "Accept-Encoding: deflate;q=1, gzip;q=0.5\r\n"})
    EXPECT_TRUE(ask(get("/", kBrowser + encodings)).headers.contains("content-encoding")) << encodings;
}

// The page needs no key: without it no user could enter one.
TEST_F(PageTest, NeedsNoKeyWhileTheApisDo) {
  stop();
  start({.keys = {"secret"}});
  EXPECT_EQ(ask(get("/", kBrowser + "Accept-Encoding: gzip\r\n")).status, 200);
  EXPECT_EQ(ask(get("/v1/models")).status, 401);
  EXPECT_EQ(ask(get("/page")).status, 401);
  EXPECT_EQ(ask(post("/", "{}")).status, 401);
}

// What the page draws; tests/page compares what the program says with its other commands.
TEST_F(PageTest, ExplainsEveryModelThatItKnows) {
  const HttpAnswer a = ask(get("/v1/explain/stories"));
  EXPECT_EQ(a.status, 200);
  EXPECT_EQ(json(a), Json({{"model", "stories"}, {"workers", Json::array()}}));
  EXPECT_EQ(ask(get("/v1/explain/none")).status, 404);
  EXPECT_NE(ask(get("/metrics")).body.find("\ngimbal_kv_pages_shared 0\n"), std::string::npos);
  stop();
  start({.keys = {"secret"}});
  EXPECT_EQ(ask(get("/v1/explain/stories")).status, 401);
}

}  // namespace
}  // namespace gimbal::test
