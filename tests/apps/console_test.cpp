// gimbal console against gimbal serve: conversations over the WebSocket, from outside.
#include "support/on_terminal.h"
#include "support/serving.h"

namespace gimbal::test {
namespace {

std::string url_of(const Serving& s) { return "ws://127.0.0.1:" + std::to_string(s.port); }

std::string trimmed(std::string text) {
  text.erase(0, std::min(text.find_first_not_of(" \n"), text.size()));
  text.erase(text.find_last_not_of(" \n") + 1);
  return text;
}

// What the chat API answers to these messages.
std::string answered(const Serving& s, const Json& messages) {
  return s.ask(
      "/v1/chat/completions",
      {{"messages", messages}, {"temperature", 0}, {"max_tokens", 10}})["choices"][0]["message"]["content"];
}

TEST(Console, AConversationIsThatOfTheChatApi) {
  const Serving s;
  const std::string saved = temporary_path("console.json");
  const Args args = {"console", url_of(s), "--temp", "0", "-n", "10", "-s", "Tell stories."};
  const Ran r = gimbal(args, {.input = "Hi\nAnd you?\n/save " + saved + "\n"});
  EXPECT_EQ(r.code, 0) << r.err;
  const Json m = read_json(saved)["messages"];
  ASSERT_EQ(m.size(), 5u) << m.dump();
  Json messages = {{{"role", "system"}, {"content", "Tell stories."}}, {{"role", "user"}, {"content", "Hi"}}};
  EXPECT_EQ(m[2]["content"], answered(s, messages));
  messages.push_back({{"role", "assistant"}, {"content", m[2]["content"]}});
  messages.push_back({{"role", "user"}, {"content", "And you?"}});
  EXPECT_EQ(m[4]["content"], answered(s, messages)) << "the server got the whole conversation";
  EXPECT_EQ(trimmed(r.out).substr(0, 5), trimmed(m[2]["content"]).substr(0, 5));

  const Json j = json_of(gimbal({"console", url_of(s), "--temp", "0", "-n", "10", "-p", "Hi", "--json"}));
  EXPECT_EQ(j["text"], answered(s, {{{"role", "user"}, {"content", "Hi"}}}));
  EXPECT_EQ(j["finish_reason"], "length");
  EXPECT_EQ(j["usage"]["completion_tokens"], 10);
}

TEST(Console, OnATerminalCtrlCStopsTheAnswerOnTheServer) {
  NEEDS_A_TERMINAL();
  const std::string saved = temporary_path("stopped.json"), log = temporary_path("console.log");
  const Serving s({"--ctx", "100000", "--parallel", "1"}, {}, log);
  const Seen seen = on_terminal({"console", url_of(s), "--temp", "0", "--ignore-eos", "--stats"},
                                {{"/help for help. Ctrl-C stops an answer", ""},
                                 {"> ", "Once upon a time\n"},
                                 {"the", "\x03"},
                                 {"> ", "/save " + saved + "\n"},
                                 {"2 messages written", ""},
                                 {"> ", "\x04"}});
  EXPECT_EQ(seen.code, 0) << seen.text.substr(0, 2000);
  EXPECT_FALSE(read_json(saved)["messages"][1]["content"].get<std::string>().empty());
  const auto runs = [&] {
    return s.ask(get("/metrics")).body.find("gimbal_requests_running 0\n") == std::string::npos;
  };
  for (int i = 0; i < 600 && runs(); i++) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(runs()) << "the server still writes without a reader";
  EXPECT_SAYS(contents_of(log), " cancelled\n");
}

TEST(Console, KeysAndErrorsWithRemedies) {
  const Serving s({"--api-key", "secret"});
  const Ran no_key = gimbal({"console", url_of(s), "-p", "Hi"});
  EXPECT_EQ(no_key.code, 1);
  EXPECT_SAYS(no_key.err, "status 401");
  EXPECT_SAYS(no_key.err, "--api-key KEY");
  const Ran keyed = gimbal({"console", url_of(s), "-p", "Hi", "-n", "3", "--api-key", "secret"});
  EXPECT_EQ(keyed.code, 0) << keyed.err;
  const Ran by_environment =
      gimbal({"console", url_of(s), "-p", "Hi", "-n", "3"}, {.environment = {{"GIMBAL_API_KEY", "secret"}}});
  EXPECT_EQ(by_environment.code, 0) << by_environment.err;
  const Ran wrong_field =
      gimbal({"console", url_of(s), "-p", "Hi", "--api-key", "secret", "--max-tokens", "3", "--temp", "9"});
  EXPECT_EQ(wrong_field.code, 1);
  EXPECT_SAYS(wrong_field.err, "the server says: --temp must be a number from 0 to 2");

  const Serving two({story_file("f32"), story_file("q8_0")});
  const Ran no_model = gimbal({"console", url_of(two), "-p", "Hi"});
  EXPECT_EQ(no_model.code, 1);
  EXPECT_SAYS(no_model.err, "--model NAME");
  const Ran named =
      gimbal({"console", url_of(two), "-p", "Hi", "-n", "3", "--model", two.start["models"][1]});
  EXPECT_EQ(named.code, 0) << named.err;

  const Ran nowhere = gimbal({"console", "127.0.0.1:1", "-p", "Hi"});
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_SAYS(nowhere.err, "gimbal serve MODEL");
  const Ran other_path = gimbal({"console", url_of(s) + "/nothing", "-p", "Hi", "--api-key", "secret"});
  EXPECT_SAYS(other_path.err, "status 404");
  for (const char* wrong : {"ftp://x", "ws://", "http://user:password@host/"}) {
    const Ran r = gimbal({"console", wrong, "-p", "Hi"});
    EXPECT_EQ(r.code, 2) << wrong << r.err;
  }
  EXPECT_EQ(gimbal({"console", url_of(s), "--json"}).code, 2) << "--json is for one answer";
}

TEST(Console, OverTls) {
  const std::string folder = std::string(GIMBAL_SOURCE_DIR) + "/tests/apps/tls/";
  const Serving s({"--tls-cert", folder + "cert.pem", "--tls-key", folder + "key.pem"});
  const std::string url = "wss://localhost:" + std::to_string(s.port);
  const auto chat = [&](const std::string& at, const std::string& certificates) {
    return gimbal({"console", at, "-p", "Hi", "-n", "3"},
                  {.environment = {{"CURL_CA_BUNDLE", certificates}}});
  };
  const Ran r = chat(url, folder + "cert.pem");
  EXPECT_EQ(r.code, 0) << r.err;
  const Ran unknown = chat(url, folder + "other-cert.pem");
  EXPECT_EQ(unknown.code, 1);
  EXPECT_SAYS(unknown.err, "SSL_CERT_FILE");
  const Ran plain = chat("ws://localhost:" + std::to_string(s.port), "");
  EXPECT_SAYS(plain.err, "this port speaks TLS");
}

}  // namespace
}  // namespace gimbal::test
