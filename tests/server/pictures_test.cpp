// Pictures in requests of all APIs, over a scripted service.
#include "base/file.h"
#include "base/text.h"
#include "chat/chat_prompt.h"
#include "server/api_server.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

class PictureRequests : public ApiTest {
 protected:
  void SetUp() override {
    models.model->can_see();
    start();
  }
  static std::string file(const std::string& name) {
    auto bytes = read_file(golden_dir() + "/vision/images/" + name);
    EXPECT_TRUE(bytes) << name;
    return *bytes;
  }
  static std::string encoded(const std::string& name) { return base64(file(name)); }
  static std::string url(const std::string& name) { return "data:image/png;base64," + encoded(name); }
  static Json content(const Json& parts) {
    return {{"model", "stories"}, {"messages", {{{"role", "user"}, {"content", parts}}}}, {"max_tokens", 4}};
  }
  // A list of one; the library makes something else of {part}.
  static Json one(Json part) {
    Json list = Json::array();
    list.push_back(std::move(part));
    return list;
  }
  static Json text(const char* words) { return {{"type", "text"}, {"text", words}}; }
  static Json openai(const std::string& address) {
    return {{"type", "image_url"}, {"image_url", {{"url", address}, {"detail", "auto"}}}};
  }
  static Json anthropic(const std::string& data) {
    return {{"type", "image"}, {"source", {{"type", "base64"}, {"media_type", "image/png"}, {"data", data}}}};
  }
  // The prompt's tokens with the word [i] for picture i, and the pictures themselves.
  std::string prompt_of(const GenerationRequest& r) {
    std::string words;
    size_t pictures = 0;
    std::vector<Token> run;
    for (const Token t : r.prompt) {
      if (t != kPictureToken) {
        run.push_back(t);
        continue;
      }
      words += models.model->tokenizer().decode(run) + "[" + std::to_string(pictures++) + "]";
      run.clear();
    }
    EXPECT_EQ(pictures, r.pictures.size());
    return words + models.model->tokenizer().decode(run);
  }
  void expect_asked(const HttpAnswer& a, const std::string& part, const std::vector<std::string>& pictures) {
    ASSERT_EQ(a.status, 200) << a.body;
    const GenerationRequest asked = service().asked().back();
    EXPECT_NE(prompt_of(asked).find(part), std::string::npos) << prompt_of(asked);
    ASSERT_EQ(asked.pictures.size(), pictures.size());
    for (size_t i = 0; i < pictures.size(); i++) EXPECT_EQ(*asked.pictures[i], file(pictures[i])) << i;
  }
  void expect_wrong(const char* path, const Json& body, const char* part) {
    const HttpAnswer a = ask(path, body);
    EXPECT_EQ(a.status, 400) << a.body;
    EXPECT_NE(a.body.find(part), std::string::npos) << a.body;
  }
};

TEST_F(PictureRequests, OpenAi) {
  models.model->template_is("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}");
  const Json parts = {text("Look: "), openai(url("dot.png")), text(" and "), openai(url("grey.jpg")),
                      text("?")};
  expect_asked(ask("/v1/chat/completions", content(parts)), "Look: [0] and [1]?", {"dot.png", "grey.jpg"});
  const Json input = {{{"role", "user"},
                       {"content",
                        {{{"type", "input_text"}, {"text", "Look: "}},
                         {{"type", "input_image"}, {"image_url", url("dot.png")}, {"detail", "low"}}}}}};
  expect_asked(ask("/v1/responses", {{"model", "stories"}, {"input", input}}), "Look: [0]", {"dot.png"});
}

TEST_F(PictureRequests, Anthropic) {
  models.model->template_is("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}");
  const Json parts = {anthropic(encoded("dot.png")), text(" Look!")};
  expect_asked(ask("/v1/messages", content(parts)), "[0] Look!", {"dot.png"});
  const Json result =
      one({{"type", "tool_result"}, {"tool_use_id", "t"}, {"content", one(anthropic(encoded("grey.png")))}});
  expect_asked(ask("/v1/messages", content(result)), "<tool>[0]", {"grey.png"});
}

TEST_F(PictureRequests, Ollama) {
  models.model->template_is("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}");
  const Json images = {encoded("dot.png"), encoded("palette.png")};
  const Json message = {{"role", "user"}, {"content", "Look!"}, {"images", images}};
  expect_asked(ask("/api/chat", {{"model", "stories"}, {"messages", {message}}, {"stream", false}}),
               "[0][1]Look!", {"dot.png", "palette.png"});
  expect_asked(ask("/api/generate",
                   {{"model", "stories"}, {"prompt", "Look!"}, {"images", images}, {"stream", false}}),
               "[0][1]Look!", {"dot.png", "palette.png"});
  expect_asked(
      ask("/api/generate",
          {{"model", "stories"}, {"prompt", "Look!"}, {"images", images}, {"raw", true}, {"stream", false}}),
      "[0][1]Look!", {"dot.png", "palette.png"});
}

// What a user writes is never a picture.
TEST_F(PictureRequests, MarksInTextsAreTexts) {
  models.model->template_is("{{ messages[0].content }}");
  const Json parts = {text("<__media__> <__media_0__> "), openai(url("dot.png"))};
  const HttpAnswer a = ask("/v1/chat/completions", content(parts));
  ASSERT_EQ(a.status, 200) << a.body;
  EXPECT_NE(prompt_of(service().asked().back()).find("<__media__> <__media_0__> [0]"), std::string::npos);
}

TEST_F(PictureRequests, TemplatesThatLoseOrRepeatPictures) {
  const Json parts = {openai(url("dot.png")), text("x")};
  models.model->template_is("{{ messages[0].role }}");
  expect_wrong("/v1/chat/completions", content(parts), "leaves out 1 of 1 pictures");
  models.model->template_is("{{ messages[0].content }}{{ messages[0].content }}");
  expect_wrong("/v1/chat/completions", content(parts), "chat template changes the places");
}

TEST_F(PictureRequests, Refusals) {
  const char* chat = "/v1/chat/completions";
  expect_wrong(chat, content(one(openai("https://example.org/cat.png"))), "fetches no pictures");
  expect_wrong(chat, content(one(openai("file:///etc/passwd"))), "fetches no pictures");
  expect_wrong(chat, content(one(openai("data:image/png,xyz"))), "base64");
  expect_wrong(chat, content(one(openai("data:image/png;base64,###"))),
               "messages[0].content[0].image_url.url");
  expect_wrong(chat, content(one(openai("data:image/png;base64,"))), "is empty");
  expect_wrong(chat, content(one(openai("data:image/png;base64," + base64("Once upon a time")))),
               "PNG, JPEG");
  expect_wrong(chat, content(one(openai(url("plain.bmp")))), "BMP");
  expect_wrong(chat, content(one(Json::object({{"type", "image_url"}}))), "image_url");
  expect_wrong(chat, content(one({{"type", "image_url"}, {"image_url", 5}})), "image_url");
  expect_wrong(chat, content(one({{"type", "input_audio"}, {"input_audio", Json::object({{"data", "x"}})}})),
               "input_audio.data");
  Json assistant = content(one(openai(url("dot.png"))));
  assistant["messages"][0]["role"] = "assistant";
  expect_wrong(chat, assistant, "in this message");
  Json many = Json::array();
  for (int i = 0; i < 17; i++) many.push_back(openai(url("dot.png")));
  expect_wrong(chat, content(many), "at most 16 pictures");
  expect_wrong("/v1/messages", content(one(Json::object({{"type", "image"}}))), "source");
  expect_wrong("/v1/messages", content(one(anthropic("x"))), "base64");
  expect_wrong("/api/chat", {{"model", "stories"}, {"messages", {{{"role", "user"}, {"images", {5}}}}}},
               "images[0]");
}

TEST_F(PictureRequests, Sounds) {
  models.model->template_is("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}");
  const Json part = {{"type", "input_audio"},
                     {"input_audio", {{"data", encoded("short.wav")}, {"format", "wav"}}}};
  const char* chat = "/v1/chat/completions";
  expect_wrong(chat, content(one(part)), "the model 'stories' cannot hear");
  models.model->can_hear();
  const Json parts = {text("Listen: "), part, text("!")};
  expect_asked(ask(chat, content(parts)), "Listen: [0]!", {"short.wav"});
  Json broken = part;
  broken["input_audio"]["data"] = encoded("dot.png");
  expect_wrong(chat, content(one(broken)), "WAV, FLAC and MP3");
}

class TextsOnly : public ApiTest {};

TEST_F(TextsOnly, AModelThatCannotSeeIsNamed) {
  const std::string dot = base64(*read_file(golden_dir() + "/vision/images/dot.png"));
  const Json part = {{"type", "image_url"}, {"image_url", {{"url", "data:image/png;base64," + dot}}}};
  for (const auto& [path, body] : std::vector<std::pair<const char*, Json>>{
           {"/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", {part}}}}}}},
           {"/api/chat", {{"model", "stories"}, {"messages", {{{"role", "user"}, {"images", {dot}}}}}}},
           {"/api/generate", {{"model", "stories"}, {"prompt", "x"}, {"images", {dot}}}}}) {
    const HttpAnswer a = ask(path, body);
    EXPECT_EQ(a.status, 400) << a.body;
    EXPECT_NE(a.body.find("the model 'stories' cannot see"), std::string::npos) << a.body;
  }
  EXPECT_TRUE(service().asked().empty());
}

}  // namespace
}  // namespace gimbal::test
