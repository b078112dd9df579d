// A server whose model sees: a trained model says in words what is on drawn pictures, through all APIs, from
// this process and from a worker inside its sandbox, for many clients at once.
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "base/text.h"
#include "support/golden.h"
#include "support/serving.h"

namespace gimbal::test {
namespace {

std::string vision(const std::string& file) { return golden_dir() + "/vision/" + file; }
std::string picture(const std::string& name) {
  auto bytes = read_file(vision("images/" + name));
  EXPECT_TRUE(bytes) << name;
  return base64(*bytes);
}

// The answers that the trained model must give, for pictures that this collection has.
struct Shape {
  std::string image, answer;
};
std::vector<Shape> shapes() {
  std::vector<Shape> all;
  const auto golden = read_json(vision("shapes.json"));
  for (const auto& one : golden["answers"])
    if (std::filesystem::exists(vision("images/" + one["image"].get<std::string>())))
      all.push_back({one["image"], one["answer"]});
  EXPECT_GE(all.size(), 3u);
  return all;
}

constexpr const char* kQuestion = "What is in the picture?";

class SeeingServer {
 public:
  explicit SeeingServer(const char* workers)
      : server_({vision("text-shapes.gguf"), "--mmproj", vision("mmproj-shapes.gguf"), "--chat-template",
                 "{% for m in messages %}{{ m.content }}{% endfor %}", "--workers", workers, "--kv-type",
                 "f32"}) {}

  bool runs() const { return server_.port != 0; }  // else the test has failed
  Json ask(const std::string& path, const Json& body, int status = 200) const {
    const HttpAnswer a = server_.ask(post(path, body.dump()));
    EXPECT_EQ(a.status, status) << a.body;
    return Json::parse(a.body, nullptr, false);
  }
  std::string openai(const std::string& image) const {
    const Json url = {{"url", "data:image/png;base64," + image}};
    const Json parts = {{{"type", "image_url"}, {"image_url", url}}, {{"type", "text"}, {"text", kQuestion}}};
    const Json j =
        ask("/v1/chat/completions",
            {{"messages", {{{"role", "user"}, {"content", parts}}}}, {"temperature", 0}, {"max_tokens", 48}});
    return j["choices"][0]["message"]["content"];
  }
  std::string responses(const std::string& image) const {
    const Json parts = {{{"type", "input_image"}, {"image_url", "data:image/png;base64," + image}},
                        {{"type", "input_text"}, {"text", kQuestion}}};
    const Json j = ask(
        "/v1/responses",
        {{"input", {{{"role", "user"}, {"content", parts}}}}, {"temperature", 0}, {"max_output_tokens", 48}});
    return j["output"][0]["content"][0]["text"];
  }
  std::string anthropic(const std::string& image) const {
    const Json source = {{"type", "base64"}, {"media_type", "image/png"}, {"data", image}};
    const Json parts = {{{"type", "image"}, {"source", source}}, {{"type", "text"}, {"text", kQuestion}}};
    const Json j = ask("/v1/messages", {{"model", "text-shapes"},
                                        {"messages", {{{"role", "user"}, {"content", parts}}}},
                                        {"temperature", 0},
                                        {"max_tokens", 48}});
    return j["content"][0]["text"];
  }
  std::string ollama(const std::string& image) const {
    const Json message = {{"role", "user"}, {"content", kQuestion}, {"images", {image}}};
    const Json options = {{"temperature", 0}, {"num_predict", 48}};
    const Json body = {
        {"model", "text-shapes"}, {"messages", {message}}, {"stream", false}, {"options", options}};
    return ask("/api/chat", body)["message"]["content"];
  }
  std::string generate(const std::string& image) const {
    const Json options = {{"temperature", 0}, {"num_predict", 48}};
    return ask("/api/generate", {{"model", "text-shapes"},
                                 {"prompt", kQuestion},
                                 {"images", {image}},
                                 {"raw", true},
                                 {"stream", false},
                                 {"options", options}})["response"];
  }

 private:
  const Serving server_;
};

std::string without_space(std::string s) { return s.starts_with(' ') ? s.substr(1) : s; }

void expect_words(const char* workers) {
  const std::vector<Shape> all = shapes();
  if (all.size() < 3) return;
  const SeeingServer server(workers);
  if (!server.runs()) return;
  const auto expect = [](const std::string& answer, const Shape& shape) {
    EXPECT_EQ(without_space(answer), without_space(shape.answer)) << shape.image;
  };
  expect(server.openai(picture(all[0].image)), all[0]);
  expect(server.responses(picture(all[1].image)), all[1]);
  expect(server.anthropic(picture(all[2].image)), all[2]);
  expect(server.ollama(picture(all[0].image)), all[0]);
  expect(server.generate(picture(all[1].image)), all[1]);
  // Eight clients at once: each gets what it gets alone.
  std::vector<std::string> got(8);
  std::vector<std::thread> clients;
  for (size_t i = 0; i < got.size(); i++)
    clients.emplace_back([&, i] { got[i] = server.openai(picture(all[i % all.size()].image)); });
  for (std::thread& t : clients) t.join();
  for (size_t i = 0; i < got.size(); i++) expect(got[i], all[i % all.size()]);
  // Damaged pictures are refused; the server continues.
  const Json cut = {{"url", "data:image/png;base64," + picture("bad-cut.png")}};
  const Json bad = {
      {"messages", {{{"role", "user"}, {"content", {{{"type", "image_url"}, {"image_url", cut}}}}}}}};
  const Json refused = server.ask("/v1/chat/completions", bad, 400);
  EXPECT_NE(refused["error"]["message"].get<std::string>().find("damaged"), std::string::npos) << refused;
  expect(server.openai(picture(all[0].image)), all[0]);
}

TEST(ServePictures, InThisProcess) { expect_words("none"); }
TEST(ServePictures, InAWorker) { expect_words("cpu"); }

TEST(ServePictures, ModelsSaySo) {
  const Serving s(
      {vision("text-shapes.gguf"), "--mmproj", vision("mmproj-shapes.gguf"), "--workers", "none"});
  const Json models = Json::parse(s.ask(get("/v1/models")).body);
  EXPECT_EQ(models["data"][0]["input_modalities"], (Json{"text", "image"}));
  const Json show = Json::parse(s.ask(post("/api/show", R"({"model":"text-shapes"})")).body);
  EXPECT_NE(show["capabilities"].dump().find("vision"), std::string::npos);
}

}  // namespace
}  // namespace gimbal::test
