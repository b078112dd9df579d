// Who may use the server: names that it is called by, pages of other sites, and what changes it.
#include "server/api_server.h"

namespace gimbal::test {
namespace {

class AccessTest : public ApiTest {
 protected:
  void SetUp() override {
    services.reload_backends = [this]() -> Result<std::string> {
      reloads++;
      return std::string("{}");
    };
    start({.hosts = api::loopback_names()});
  }
  static std::string to(const std::string& method, const std::string& path, const std::string& headers,
                        const std::string& body = "") {
    return method + " " + path + " HTTP/1.1\r\n" + headers +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  std::atomic<int> reloads{0};
  const std::string generate = Json{{"model", "stories"}, {"prompt", "Hi"}, {"stream", false}}.dump();
};

// A name that leads here without being ours (DNS rebinding) reads nothing.
TEST_F(AccessTest, OnlyTheNamesOfTheServerAreServed) {
  for (const char* host : {"localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8080"})
    EXPECT_EQ(ask(to("GET", "/v1/models", std::string("Host: ") + host + "\r\n")).status, 200) << host;
  for (const char* host :
       {"evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "localhost.",
        "127.0.0.2", "[::2]", "::1", "[::1].evil.example", ""})
    for (const char* path : {"/", "/v1/models", "/api/tags", "/metrics", "/health/live", "/nowhere"}) {
      const HttpAnswer a = ask(to("GET", path, std::string("Host: ") + host + "\r\n"));
      EXPECT_EQ(a.status, 403) << host << path;
      EXPECT_NE(a.body.find("allow-host"), std::string::npos) << a.body;
    }
  EXPECT_EQ(HttpClient(server->port()).ask("GET /health/live HTTP/1.0\r\n\r\n").status, 200);
  // Names of the operator's.
  stop();
  start({.hosts = {"chat.example"}});
  EXPECT_EQ(ask(to("GET", "/v1/models", "Host: Chat.Example:443\r\n")).status, 200);
  EXPECT_EQ(ask(to("GET", "/v1/models", "Host: localhost\r\n")).status, 403);
}

TEST_F(AccessTest, PagesOfOtherSitesMayNotAsk) {
  const std::vector<std::string> foreign = {"Origin: https://evil.example\r\n",
                                            "Origin: null\r\n",
                                            "Origin: http://localhost:3000\r\n",
                                            "Origin: http://localhost:80.evil.example\r\n",
                                            "Origin: chrome-extension://localhost:80\r\n",
                                            "Sec-Fetch-Site: cross-site\r\n",
                                            "Sec-Fetch-Site: same-site\r\n",
                                            "Sec-Fetch-Site: none\r\nOrigin: null\r\n",
                                            "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n"};
  for (const std::string& h : foreign) {
    const std::string host = "Host: localhost:80\r\n" + h;
    for (const char* path : {"/", "/v1/models", "/api/tags", "/metrics", "/health/live"}) {
      const HttpAnswer a = ask(to("GET", path, host));
      EXPECT_EQ(a.status, 403) << path << h;
      EXPECT_NE(a.body.find("cors-origin"), std::string::npos) << a.body;
      EXPECT_FALSE(a.headers.contains("access-control-allow-origin"));
    }
    EXPECT_EQ(ask(to("POST", "/api/generate", host + "Content-Type: text/plain\r\n", generate)).status, 403);
    EXPECT_EQ(ask(to("POST", "/v1/backends/reload", host + "Content-Type: application/json\r\n")).status,
              403);
    EXPECT_EQ(ask(to("OPTIONS", "/v1/models", host)).status, 403);
  }
  EXPECT_TRUE(service().asked().empty());
  EXPECT_EQ(reloads, 0);
}

TEST_F(AccessTest, TheServersOwnPageAndProgramsMay) {
  const std::string host = "Host: localhost:8080\r\n";
  // The page; a proxy that speaks TLS; one that gives another Host, with a browser that says it is the same.
  for (const char* h : {"Origin: http://localhost:8080\r\n", "Origin: https://LOCALHOST:8080\r\n",
                        "Origin: https://chat.example\r\nSec-Fetch-Site: same-origin\r\n",
                        "Sec-Fetch-Site: same-origin\r\n", "Sec-Fetch-Site: none\r\n", ""}) {
    EXPECT_EQ(ask(to("GET", "/v1/models", host + h)).status, 200) << h;
    // As `curl -d` sends it.
    const std::string form = "Content-Type: application/x-www-form-urlencoded\r\n";
    EXPECT_EQ(ask(to("POST", "/api/generate", host + h + form, generate)).status, 200) << h;
  }
  // A link to the page, from anywhere; not one to an API, and no frame.
  const std::string link = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: ";
  EXPECT_EQ(ask(to("GET", "/", host + link + "document\r\n")).status, 200);
  EXPECT_EQ(ask(to("GET", "/", host + link + "iframe\r\n")).status, 403);
  EXPECT_EQ(ask(to("POST", "/", host + link + "document\r\n")).status, 403);
  EXPECT_EQ(ask(to("GET", "/v1/models", host + link + "document\r\n")).status, 403);
}

TEST_F(AccessTest, SitesThatAreNamedMay) {
  stop();
  start({.sites = {"https://a.example", "https://b.example:8"}});
  for (const std::string site : {"https://a.example", "https://b.example:8"}) {
    const std::string page = "Sec-Fetch-Site: cross-site\r\nOrigin: " + site + "\r\n";
    const HttpAnswer a = ask(get("/v1/models", page));
    EXPECT_EQ(a.status, 200);
    EXPECT_EQ(a.headers.at("access-control-allow-origin"), site);
    EXPECT_NE(a.headers.at("access-control-expose-headers").find("x-request-id"), std::string::npos);
    // Official clients send headers of their own.
    const HttpAnswer before =
        ask(to("OPTIONS", "/v1/models",
               "Host: x\r\n" + page + "Access-Control-Request-Headers: authorization,x-stainless-os\r\n"));
    EXPECT_EQ(before.status, 204);
    EXPECT_EQ(before.headers.at("access-control-allow-headers"), "authorization,x-stainless-os");
    EXPECT_EQ(before.headers.at("access-control-allow-origin"), site);
    EXPECT_TRUE(before.headers.contains("x-request-id")) << "as every answer has it";
  }
  for (const char* other : {"https://c.example", "http://a.example", "https://a.example:443", "null"})
    EXPECT_EQ(ask(get("/v1/models", std::string("Origin: ") + other + "\r\n")).status, 403) << other;
  stop();
  start({.sites = {"*"}});
  const HttpAnswer any = ask(get("/v1/models", "Origin: null\r\n"));
  EXPECT_EQ(any.headers.at("access-control-allow-origin"), "*");
}

// Forms of web pages cannot say that they are JSON, whatever else is not checked.
TEST_F(AccessTest, WhatChangesTheServerIsJson) {
  const std::string host = "Host: localhost\r\n";
  for (const char* type : {"", "Content-Type: text/plain\r\n", "Content-Type: multipart/form-data\r\n"})
    EXPECT_EQ(ask(to("POST", "/v1/backends/reload", host + type)).status, 415) << type;
  EXPECT_EQ(reloads, 0);
  EXPECT_EQ(ask(to("POST", "/v1/backends/reload", host + "Content-Type: application/json\r\n")).status, 200);
  EXPECT_EQ(reloads, 1);
}

TEST_F(AccessTest, AZeroByteIsNoEndOfABody) {
  for (const char* path : {"/v1/completions", "/v1/messages", "/api/generate"}) {
    const HttpAnswer a = ask(post(path, generate + std::string("\0garbage{", 9)));
    EXPECT_EQ(a.status, 400) << path;
    EXPECT_NE(a.body.find("zero byte"), std::string::npos) << a.body;
  }
}

TEST(AccessOptions, NamesAndOriginsThatAreNone) {
  EXPECT_FALSE(api::wrong_host({"chat.example", "10.0.0.1", "[::1]", "my_host"}));
  for (const char* wrong : {"http://chat.example", "chat.example:80", "::1", "", "[]", "a b"})
    EXPECT_EQ(api::wrong_host({"x", wrong}), wrong);
  EXPECT_FALSE(api::wrong_site({"https://chat.example", "http://localhost:3000", "*", "app://x"}));
  for (const char* wrong : {"localhost", "https://a/", "https://", "://a", "null", ""})
    EXPECT_EQ(api::wrong_site({wrong}), wrong);
}

}  // namespace
}  // namespace gimbal::test
