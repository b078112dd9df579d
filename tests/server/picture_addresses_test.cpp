// Pictures by their addresses, from a site in this test: only of allowed hosts, within limits, and without
// holding up other requests.
#include <future>

#include "base/file.h"
#include "server/api_server.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

// A web site.
class Site final : public http::Handler {
 public:
  explicit Site(std::string picture) : picture_(std::move(picture)) {
    auto made = http::Server::listen({}, *this);
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    server_ = std::move(*made);
    thread_ = std::thread([this] { server_->run(); });
  }
  ~Site() override {
    server_->stop();
    thread_.join();
  }
  std::string host() const { return "127.0.0.1:" + std::to_string(server_->port()); }
  std::string url(const std::string& path) const { return "http://" + host() + path; }
  void leads_to(std::string url) { leads_to_ = std::move(url); }
  // Of /waits: when it was requested, and its answer.
  std::future<std::shared_ptr<http::Exchange>> waiting() { return waiting_.get_future(); }
  http::Response picture() const { return {200, picture_, "image/png"}; }
  int requests() const { return requests_; }

  void handle(http::Request r, std::shared_ptr<http::Exchange> to) override {
    requests_++;
    if (r.path == "/dot.png") return to->answer(picture());
    if (r.path == "/words") return to->answer({200, "Once upon a time", "image/png"});
    if (r.path == "/large") return to->answer({200, picture_ + std::string(21 << 20, 'x'), "image/png"});
    if (r.path == "/leads") return to->answer({302, "", "text/html", {{"Location", leads_to_}}});
    if (r.path == "/waits") return waiting_.set_value(std::move(to));
    to->answer({404, "", "text/html"});
  }
  http::Response refusal(int status, std::string_view, const std::string& why) override {
    return {status, why};
  }

 private:
  const std::string picture_;
  std::string leads_to_;
  std::atomic<int> requests_ = 0;
  std::promise<std::shared_ptr<http::Exchange>> waiting_;
  std::unique_ptr<http::Server> server_;
  std::thread thread_;
};

std::string dot() {
  auto bytes = read_file(golden_dir() + "/vision/images/dot.png");
  EXPECT_TRUE(bytes);
  return bytes ? *bytes : "";
}

class PictureAddresses : public ApiTest {
 protected:
  void SetUp() override {
    models.model->can_see();
    models.model->template_is("{% for m in messages %}{{ m.content }}{% endfor %}");
    services.picture_fetches.allow({site_.host(), "Images.Example"});
    start();
  }
  static Json content(const Json& part) {
    Json parts = Json::array();
    parts.push_back(part);
    return {{"model", "stories"}, {"messages", {{{"role", "user"}, {"content", parts}}}}, {"max_tokens", 4}};
  }
  static Json openai(const std::string& url) {
    return content({{"type", "image_url"}, {"image_url", {{"url", url}}}});
  }
  HttpAnswer chat(const std::string& url) { return ask("/v1/chat/completions", openai(url)); }
  void expect_picture(const HttpAnswer& a) {
    ASSERT_EQ(a.status, 200) << a.body;
    const GenerationRequest asked = service().asked().back();
    ASSERT_EQ(asked.pictures.size(), 1u);
    EXPECT_EQ(*asked.pictures[0], dot());
  }
  void expect_refused(const HttpAnswer& a, const std::string& part) {
    EXPECT_EQ(a.status, 400) << a.body;
    EXPECT_NE(a.body.find(part), std::string::npos) << a.body;
    EXPECT_NE(a.body.find("messages[0].content[0].image_url.url"), std::string::npos) << a.body;
  }

  Site site_{dot()};
};

TEST_F(PictureAddresses, OfAllApis) {
  expect_picture(chat(site_.url("/dot.png?size=1#part")));
  Json input = Json::array();
  input.push_back({{"type", "input_image"}, {"image_url", site_.url("/dot.png")}});
  expect_picture(
      ask("/v1/responses", {{"model", "stories"}, {"input", {{{"role", "user"}, {"content", input}}}}}));
  expect_picture(
      ask("/v1/messages",
          content({{"type", "image"}, {"source", {{"type", "url"}, {"url", site_.url("/dot.png")}}}})));
  EXPECT_EQ(site_.requests(), 3);
}

TEST_F(PictureAddresses, OfOtherHostsAreRefused) {
  const std::string port = site_.host().substr(site_.host().find(':'));
  const std::vector<std::string> others = {"https://example.org/dot.png",
                                           "http://localhost" + port + "/dot.png",
                                           "http://127.0.0.1/dot.png",
                                           "http://user:word@" + site_.host() + "/dot.png",
                                           "http://" + site_.host() + "@example.org/dot.png",
                                           "http://images.example:81/x",
                                           "http://images.example./x",
                                           "http://x.images.example/x"};
  for (const std::string& url : others) expect_refused(chat(url), "fetches no pictures from");
  expect_refused(chat("http://"), "no URL of http");
  expect_refused(chat("HTTP://" + site_.host() + "\\@example.org/"), "no URL of http");
  expect_refused(chat("file:///etc/passwd"), "fetches no pictures from there");
  services.picture_fetches.allow({});
  expect_refused(chat(site_.url("/dot.png")), "fetches no pictures;");
  EXPECT_EQ(site_.requests(), 0);
}

TEST_F(PictureAddresses, RedirectsToOtherHostsAreRefused) {
  Site other(dot());
  site_.leads_to(other.url("/dot.png"));
  expect_refused(chat(site_.url("/leads")), "which is not allowed");
  EXPECT_EQ(other.requests(), 0);
  site_.leads_to("/dot.png");
  expect_picture(chat(site_.url("/leads")));
  services.picture_fetches.allow({site_.host(), other.host()});
  site_.leads_to(other.url("/dot.png"));
  expect_picture(chat(site_.url("/leads")));
  EXPECT_EQ(other.requests(), 1);
  site_.leads_to("file:///etc/passwd");
  expect_refused(chat(site_.url("/leads")), "redirects to no address");
}

TEST_F(PictureAddresses, WhatIsNoPictureIsRefused) {
  expect_refused(chat(site_.url("/words")), "not those of a picture");
  expect_refused(chat(site_.url("/nothing")), "status 404");
  expect_refused(chat(site_.url("/large")), "more than 20971520 bytes");
  EXPECT_TRUE(service().asked().empty());
}

// A model that does not see sends no request anywhere.
TEST_F(PictureAddresses, AreForModelsThatSee) {
  stop();
  models.model = OneModel::shared(new ScriptedModel);
  start();
  const HttpAnswer a = chat(site_.url("/dot.png"));
  EXPECT_EQ(a.status, 400);
  EXPECT_NE(a.body.find("cannot see"), std::string::npos) << a.body;
  EXPECT_EQ(site_.requests(), 0);
}

// While one request waits for its picture, others are answered.
TEST_F(PictureAddresses, HoldUpNoOthers) {
  services.picture_fetches.seconds = 600;
  auto waiting = site_.waiting();
  auto slow = std::async(std::launch::async, [&] { return chat(site_.url("/waits")); });
  const auto exchange = waiting.get();
  expect_picture(chat(site_.url("/dot.png")));
  exchange->answer(site_.picture());
  expect_picture(slow.get());
}

TEST_F(PictureAddresses, ThatDoNotComeAreRefused) {
  services.picture_fetches.seconds = 0.2;
  auto waiting = site_.waiting();
  expect_refused(chat(site_.url("/waits")), "no answer from http://127.0.0.1");
  waiting.get()->answer(site_.picture());
  EXPECT_TRUE(service().asked().empty());
}

TEST(PictureHosts, AreNamesAndAddresses) {
  using api::PictureFetches;
  EXPECT_FALSE(PictureFetches::wrong_host(
      {"images.example", "Images.Example:8443", "127.0.0.1", "127.0.0.1:80", "[::1]", "[::1]:8000"}));
  for (const char* wrong : {"", "http://images.example", "images.example/x", "*.example", "images.example:",
                            "images.example:x", "::1", "[::1", "a b", "user@images.example", "[]"})
    EXPECT_EQ(PictureFetches::wrong_host({wrong}), wrong);
}

}  // namespace
}  // namespace gimbal::test
