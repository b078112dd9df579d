// A server whose model hears: a transcription has the words that a chat with the same sound and question has.
#include "base/file.h"
#include "base/text.h"
#include "support/golden.h"
#include "support/serving.h"

namespace gimbal::test {
namespace {

std::string vision(const std::string& file) { return golden_dir() + "/vision/" + file; }

std::string form(const std::string& sound, const std::string& more = "") {
  const std::string body =
      "--b0\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n" + sound + "\r\n" +
      more + "--b0--\r\n";
  return "POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; "
         "boundary=b0\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

void expect_words(const char* workers) {
  const auto sound = read_file(vision("images/short.wav"));
  ASSERT_TRUE(sound);
  const Serving server({vision("text-llama.gguf"), "--mmproj", vision("mmproj-ultravox.gguf"), "--ctx", "320",
                        "--chat-template", "{% for m in messages %}{{ m.content }}{% endfor %}", "--workers",
                        workers, "--kv-type", "f32"});
  if (server.port == 0) return;
  const Json part = {{"type", "input_audio"}, {"input_audio", {{"data", base64(*sound)}, {"format", "wav"}}}};
  const Json question = {{"type", "text"}, {"text", "Transcribe the speech. Answer with its words alone."}};
  const Json chat = {{"messages", {{{"role", "user"}, {"content", {part, question}}}}}, {"temperature", 0}};
  const HttpAnswer chatted = server.ask(post("/v1/chat/completions", chat.dump()));
  ASSERT_EQ(chatted.status, 200) << chatted.body;
  std::string words = Json::parse(chatted.body)["choices"][0]["message"]["content"];
  words.erase(0, std::min(words.find_first_not_of(" \n\t"), words.size()));
  EXPECT_FALSE(words.empty());
  const HttpAnswer written = server.ask(form(*sound));
  ASSERT_EQ(written.status, 200) << written.body;
  const Json j = Json::parse(written.body);
  EXPECT_EQ(j["text"], words);
  EXPECT_EQ(j["usage"]["input_tokens"], Json::parse(chatted.body)["usage"]["prompt_tokens"]);
  EXPECT_EQ(j["finish_reason"], "length") << "a random model ends where its context is full";
  // Damaged sounds are refused, and the server continues.
  EXPECT_EQ(server.ask(form(sound->substr(0, 40))).status, 400);
  EXPECT_EQ(Json::parse(server.ask(form(*sound)).body)["text"], words);
}

TEST(ServeSounds, InThisProcess) { expect_words("none"); }
TEST(ServeSounds, InAWorker) { expect_words("cpu"); }

}  // namespace
}  // namespace gimbal::test
