// POST /v1/audio/transcriptions over a scripted service: forms, their limits, and the forms of answers.
#include "base/file.h"
#include "server/api_server.h"
#include "server/http/form.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

constexpr const char* kPath = "/v1/audio/transcriptions";

struct Field {
  std::string name, value;
  bool file = false;
};

std::string form(const std::vector<Field>& fields, const std::string& boundary = "----xYz0") {
  std::string body;
  for (const Field& f : fields)
    body += "--" + boundary + "\r\nContent-Disposition: form-data; name=\"" + f.name + "\"" +
            (f.file ? "; filename=\"a.wav\"\r\nContent-Type: audio/wav" : "") + "\r\n\r\n" + f.value + "\r\n";
  return body + "--" + boundary + "--\r\n";
}

std::string request(const std::string& body,
                    const std::string& type = "multipart/form-data; boundary=----xYz0") {
  return "POST " + std::string(kPath) + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: " + type +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

class Transcriptions : public ApiTest {
 protected:
  void SetUp() override {
    models.model->can_hear();
    models.model->template_is("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}");
    auto bytes = read_file(golden_dir() + "/vision/images/short.wav");
    ASSERT_TRUE(bytes);
    sound_ = {"file", *bytes, true};
    start();
  }
  HttpAnswer ask_with(std::vector<Field> more) {
    more.insert(more.begin(), sound_);
    return ask(request(form(more)));
  }
  std::string asked_words() {
    const GenerationRequest r = service().asked().back();
    EXPECT_EQ(r.pictures.size(), 1u);
    if (!r.pictures.empty()) { EXPECT_EQ(*r.pictures[0], sound_.value); }
    std::vector<Token> behind(std::find(r.prompt.begin(), r.prompt.end(), kPictureToken) + 1, r.prompt.end());
    return models.model->tokenizer().decode(behind);
  }
  void expect_refused(const HttpAnswer& a, int status, const std::string& part) {
    EXPECT_EQ(a.status, status) << a.body;
    EXPECT_NE(a.body.find(part), std::string::npos) << a.body;
    EXPECT_TRUE(json(a)["error"].is_object()) << a.body;
  }

  Field sound_;
};

TEST_F(Transcriptions, AsJsonTextAndEvents) {
  const HttpAnswer whole = ask_with({{"model", "stories"}});
  ASSERT_EQ(whole.status, 200) << whole.body;
  const Json j = json(whole);
  const std::string text = j["text"];
  EXPECT_FALSE(text.empty());
  EXPECT_FALSE(text.starts_with(' '));
  EXPECT_EQ(j["usage"]["type"], "tokens");
  EXPECT_EQ(j["usage"]["total_tokens"],
            j["usage"]["input_tokens"].get<int>() + j["usage"]["output_tokens"].get<int>());
  EXPECT_NE(asked_words().find("Transcribe the speech. Answer with its words alone."), std::string::npos);
  EXPECT_EQ(service().asked().back().sampler.temperature, 0);

  const HttpAnswer plain = ask_with({{"model", "stories"}, {"response_format", "text"}});
  EXPECT_EQ(plain.status, 200);
  EXPECT_TRUE(plain.headers.at("content-type").starts_with("text/plain"));
  EXPECT_EQ(plain.body, text + "\n");

  const auto sent = events(ask_with({{"stream", "true"}, {"response_format", "json"}}));
  ASSERT_GE(sent.size(), 3u);
  EXPECT_EQ(sent.back(), "[DONE]");
  std::string deltas;
  for (size_t i = 0; i + 2 < sent.size(); i++) {
    const Json event = Json::parse(sent[i]);
    EXPECT_EQ(event["type"], "transcript.text.delta");
    deltas += event["delta"].get<std::string>();
  }
  const Json done = Json::parse(sent[sent.size() - 2]);
  EXPECT_EQ(done["type"], "transcript.text.done");
  EXPECT_EQ(done["text"], text);
  EXPECT_EQ(deltas, text);
}

TEST_F(Transcriptions, FieldsAreObeyedOrRefused) {
  ASSERT_EQ(ask_with({{"language", "de"}, {"prompt", "42"}, {"temperature", "0.5"}}).status, 200);
  EXPECT_NE(asked_words().find("The language is de. Spelling and style are those of this text: 42"),
            std::string::npos);
  EXPECT_EQ(service().asked().back().sampler.temperature, 0.5f);
  ASSERT_EQ(ask_with({{"chunking_strategy", "auto"}, {"stream", "false"}}).status, 200);
  expect_refused(ask_with({{"response_format", "verbose_json"}}), 400, "'response_format'");
  expect_refused(ask_with({{"response_format", "srt"}}), 400, "'response_format'");
  expect_refused(ask_with({{"temperature", "2"}}), 400, "'temperature'");
  expect_refused(ask_with({{"temperature", "warm"}}), 400, "'temperature'");
  expect_refused(ask_with({{"stream", "1"}}), 400, "'stream'");
  expect_refused(ask_with({{"timestamp_granularities[]", "word"}, {"timestamp_granularities[]", "segment"}}),
                 400, "without times");
  expect_refused(ask_with({{"include[]", "logprobs"}}), 400, "'include[]'");
  expect_refused(ask_with({{"loudness", "1"}}), 400, "there is no field 'loudness'");
  expect_refused(ask_with({{"language", "de"}, {"language", "en"}}), 400, "'language' twice");
  expect_refused(ask_with({{"prompt", std::string("a\0b", 3)}}), 400, "'prompt' is no text");
  expect_refused(ask_with({{"prompt", "\xff"}}), 400, "'prompt' is no text");
  expect_refused(ask_with({{"prompt", std::string(70'000, 'x')}}), 400, "more than 65536 bytes");
  expect_refused(ask_with({{"prompt", "x", true}}), 400, "'prompt' is a file");
  expect_refused(ask_with({sound_}), 400, "'file' twice");
}

TEST_F(Transcriptions, FilesThatAreNoSounds) {
  expect_refused(ask(request(form({{"model", "stories"}}))), 400, "'file'");
  expect_refused(ask(request(form({{"file", "RIFF"}}))), 400, "'file' must be a file");
  expect_refused(ask(request(form({{"file", "", true}}))), 400, "'file'");
  expect_refused(ask(request(form({{"file", std::string(1000, '\0'), true}}))), 400, "WAV, FLAC and MP3");
  EXPECT_TRUE(service().asked().empty());
}

TEST_F(Transcriptions, ModelsThatDoNotHearAreNamed) {
  stop();
  models.model = OneModel::shared(new ScriptedModel);
  start();
  expect_refused(ask_with({}), 400, "the model 'stories' cannot hear");
  expect_refused(ask_with({{"model", "stories"}}), 400, "projector file (mmproj) for sounds");
}

TEST_F(Transcriptions, BrokenForms) {
  const std::string whole = form({sound_, {"model", "stories"}});
  expect_refused(ask(request(whole, "application/json")), 415, "multipart/form-data");
  expect_refused(ask(request(whole, "multipart/form-data")), 415, "boundary");
  expect_refused(ask(request(whole, "multipart/form-data; boundary=")), 415, "boundary");
  expect_refused(ask(request(whole, "multipart/form-data; boundary=a; boundary=----xYz0")), 415, "boundary");
  expect_refused(ask(request(whole, "multipart/form-data; boundary=" + std::string(71, 'a'))), 415,
                 "boundary");
  expect_refused(ask(request(whole, "multipart/mixed; boundary=----xYz0")), 415, "multipart/form-data");
  expect_refused(ask(request(whole, "multipart/form-data; boundary=other")), 400, "does not begin with");
  EXPECT_EQ(ask(request(whole, "Multipart/Form-Data; charset=utf-8; boundary=\"----xYz0\"")).status, 200);
  expect_refused(ask(request("")), 400, "does not begin with");
  expect_refused(ask(request("x\r\n" + whole)), 400, "does not begin with");
  expect_refused(ask(request(whole + "x")), 400, "behind the form");
  // A form that ends anywhere before its end is refused, and so is one with a byte in place of another.
  for (size_t n = 0; n + 4 < whole.size(); n += whole.size() / 97 + 1)
    EXPECT_EQ(ask(request(whole.substr(0, n))).status, 400) << n;
  std::string long_head = whole;
  long_head.insert(long_head.find("Content-Type"), "X: " + std::string(5000, 'x') + "\r\n");
  expect_refused(ask(request(long_head)), 400, "have no end within 4096 bytes");
  std::vector<Field> many(65, {"a[]", ""});
  expect_refused(ask_with(many), 400, "more than 64 parts");
  std::string encoded = whole;
  encoded.insert(encoded.find("Content-Type"), "Content-Transfer-Encoding: base64\r\n");
  expect_refused(ask(request(encoded)), 400, "send plain bytes");
  EXPECT_EQ(service().asked().size(), 1u);
}

TEST(Forms, PartsAreThoseOfTheText) {
  EXPECT_EQ(http::form_boundary("multipart/form-data; boundary=abc"), "abc");
  EXPECT_EQ(http::form_boundary("multipart/form-data;boundary=\"a b\" ; x=y"), "a b");
  for (const char* wrong : {"", "multipart/form-data", "multipart/form-data; boundary=\"a",
                            "text/plain; boundary=a", "multipart/form-data; boundary=\"a \"",
                            "multipart/form-data; boundary=a{b", "multipart/form-data boundary=a"})
    EXPECT_EQ(http::form_boundary(wrong), "") << wrong;
  std::vector<http::FormPart> parts;
  const std::string body =
      "--b\r\ncontent-disposition: form-data; name=\"a\\\"b\"; "
      "filename=\"C:\\x.wav\"\r\n\r\n\r\n--c\r\n--b\r\n"
      "X-Other: 1\r\nContent-Disposition:form-data;name=d\r\n\r\n\r\n--b--";
  EXPECT_EQ(http::parse_form(body, "b", parts), "");
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].name, "a\"b");
  EXPECT_EQ(parts[0].file, "C:\\x.wav");
  EXPECT_EQ(parts[0].body, "\r\n--c");
  EXPECT_EQ(parts[1].name, "d");
  EXPECT_FALSE(parts[1].file);
  EXPECT_EQ(parts[1].body, "");
  for (const char* wrong : {"--b", "--b\r\n--b--", "--bx\r\n", "--b\r\n\r\nx\r\n--b--",
                            "--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--",
                            "--b\r\nContent-Disposition: attachment; name=a\r\n\r\nx\r\n--b--",
                            "--b\r\nContent-Disposition: form-data; name=a; name=b\r\n\r\nx\r\n--b--",
                            "--b\r\nContent-Disposition: form-data; name=a\nX: y\r\n\r\nx\r\n--b--",
                            "--b\r\nContent-Disposition: form-data; name=a\r\n\r\nx\n--b--"}) {
    parts.clear();
    EXPECT_NE(http::parse_form(wrong, "b", parts), "") << wrong;
  }
}

}  // namespace
}  // namespace gimbal::test
