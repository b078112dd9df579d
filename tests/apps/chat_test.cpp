// The chat of `gimbal run`, from outside: on a terminal of its own, and through pipes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "files/gguf.h"
#include "support/gguf_writer.h"
#include "support/on_terminal.h"
#include "support/serving.h"

namespace gimbal::test {
namespace {

const char* const kTemplate =
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt "
    "%}assistant:{% endif %}";

// The story model with a chat template: one more entry of metadata, whose length keeps the alignment of the
// data.
std::string model_with(const std::string& name, std::string text) {
  auto bytes = read_file(story_file("f32"));
  EXPECT_TRUE(bytes);
  const std::string key = "tokenizer.chat_template";
  text += "{#" + std::string(64 - (key.size() + 8 + 4 + 8 + text.size() + 4) % 32, ' ') + "#}";
  const std::string entry = gguf_string(key) + le<uint32_t>(kString) + gguf_string(text);
  EXPECT_EQ(entry.size() % 32, 0u);
  uint64_t entries = 0;
  std::memcpy(&entries, bytes->data() + 16, 8);
  entries++;
  std::memcpy(bytes->data() + 16, &entries, 8);
  bytes->insert(24, entry);
  const std::string path = temporary_path(name + ".gguf");
  EXPECT_TRUE(write_file(path, *bytes));
  return path;
}

std::string chat_model() {
  static const std::string path = model_with("chat", kTemplate);
  return path;
}

Args base() { return {"run", chat_model(), "--greedy", "-n", "12", "-t", "1"}; }

std::string trimmed(std::string text) {
  text.erase(0, std::min(text.find_first_not_of(" \n"), text.size()));
  text.erase(text.find_last_not_of(" \n") + 1);
  return text;
}

std::string continued(const std::string& prompt) {
  const Ran r = gimbal(with(base(), {"-p", prompt}));
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(trimmed(r.out), "");
  return trimmed(r.out);
}

Json messages_of(const std::string& path) {
  const Json saved = read_json(path);
  return saved["messages"];
}

TEST(Chat, TheTemplateIsApplied) {
  const std::string expected = continued("user: Hi\nassistant:");
  const Ran r = gimbal(with(base(), {"--chat", "-p", "Hi"}));
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(trimmed(r.out), expected);
  const Ran system = gimbal(with(base(), {"--chat", "-s", "Be kind.", "-p", "Hi"}));
  EXPECT_EQ(trimmed(system.out), continued("system: Be kind.\nuser: Hi\nassistant:"));
  const Ran json = gimbal(with(base(), {"--chat", "-p", "Hi", "--json"}));
  EXPECT_NE(json_of(json)["text"].get<std::string>().find(expected), std::string::npos);
  EXPECT_NE(gimbal(with(base(), {"-p", "Hi"})).out, r.out) << "without --chat a prompt is a plain text";
}

TEST(Chat, LinesOfAPipeAreQuestionsWithAHistory) {
  const std::string saved = temporary_path("pipe.json");
  const Ran r = gimbal(with(base(), {"--chat"}), {.input = "Hi\nAnd you?\n/save " + saved + "\n"});
  EXPECT_EQ(r.code, 0) << r.err;
  const Json m = messages_of(saved);
  ASSERT_EQ(m.size(), 4u) << m.dump();
  EXPECT_EQ(m[0]["content"], "Hi");
  EXPECT_EQ(trimmed(m[1]["content"]), continued("user: Hi\nassistant:"));
  EXPECT_EQ(m[2]["content"], "And you?");
  EXPECT_EQ(trimmed(m[3]["content"]), continued("user: Hi\nassistant: " + m[1]["content"].get<std::string>() +
                                                "\nuser: And you?\nassistant:"))
      << "what the session kept is what a new one computes";
}

TEST(Chat, OnATerminal) {
  NEEDS_A_TERMINAL();
  const std::string one = temporary_path("one.json"), two = temporary_path("two.json"),
                    three = temporary_path("three.json");
  const Seen s = on_terminal(base(), {{"/help for help. Ctrl-C stops an answer", ""},
                                      {"> ", "/system Be kind.\n"},
                                      {"system prompt: Be kind.", ""},
                                      {"> ", "Hi\n"},
                                      {"> ", "/stats\n"},
                                      {"tokens/s", ""},
                                      {"> ", "/save " + one + "\n"},
                                      {"3 messages written to", ""},
                                      {"> ", "/regen\n"},
                                      {"> ", "first line\\\n"},
                                      {". ", "second line\n"},
                                      {"> ", "\"\"\"\n"},
                                      {". ", "a\n"},
                                      {". ", "b\n"},
                                      {". ", "\"\"\"\n"},
                                      {"> ", "/save " + two + "\n"},
                                      {"7 messages written to", ""},
                                      {"> ", "/undo\n"},
                                      {"forgotten: a", ""},
                                      {"> ", "/explain\n"},
                                      {"gimbal explain", ""},
                                      {"> ", "/clear\n"},
                                      {"cleared", ""},
                                      {"> ", "/regen\n"},
                                      {"there is no answer yet", ""},
                                      {"> ", "/load " + one + "\n"},
                                      {"3 messages read from", ""},
                                      {"> ", "/nonsense\n"},
                                      {"there is no command '/nonsense'", ""},
                                      {"> ", "/load /no/such/file\n"},
                                      {"error:", ""},
                                      {"> ", "/help\n"},
                                      {"/undo", ""},
                                      {"> ", "/save " + three + "\n"},
                                      {"3 messages written", ""},
                                      {"> ", "/quit\n"}});
  EXPECT_EQ(s.code, 0);
  const Json first = messages_of(one), second = messages_of(two);
  EXPECT_EQ(first, messages_of(three));
  EXPECT_EQ(first[0], Json({{"role", "system"}, {"content", "Be kind."}}));
  EXPECT_EQ(trimmed(first[2]["content"]), continued("system: Be kind.\nuser: Hi\nassistant:"));
  EXPECT_EQ(second[2], first[2]) << "/regen of a greedy answer";
  EXPECT_EQ(second[3]["content"], "first line\nsecond line");
  EXPECT_EQ(second[5]["content"], "a\nb");
}

TEST(Chat, PastedLinesAreOneMessage) {
  NEEDS_A_TERMINAL();
  const std::string saved = temporary_path("pasted.json");
  const Seen s = on_terminal(base(), {{"> ", "one\ntwo\nthree\n"},
                                      {"> ", "/save " + saved + "\n"},
                                      {"messages written", ""},
                                      {"> ", "\x04"}});
  EXPECT_EQ(s.code, 0) << s.text;
  EXPECT_EQ(messages_of(saved)[0]["content"], "one\ntwo\nthree") << s.text;
}

TEST(Chat, CtrlCStopsAnAnswerAndNotTheProgram) {
  NEEDS_A_TERMINAL();
  const std::string saved = temporary_path("stopped.json");
  const Args endless = {"run", chat_model(), "--greedy", "--ignore-eos", "--ctx", "100000", "-t", "1"};
  const Seen s = on_terminal(endless, {{"> ", "Hi\n"},
                                       {"the", "\x03"},
                                       {"> ", "/save " + saved + "\n"},
                                       {"2 messages written", ""},
                                       {"> ", "/quit\n"}});
  EXPECT_EQ(s.code, 0) << s.text.substr(0, 2000);
  EXPECT_FALSE(messages_of(saved)[1]["content"].get<std::string>().empty());
}

TEST(Chat, WhatIsTypedDuringAnAnswerIsTheNextQuestion) {
  NEEDS_A_TERMINAL();
  const std::string saved = temporary_path("ahead.json");
  const Args endless = {"run", chat_model(), "--greedy", "--ignore-eos", "--ctx", "100000", "-t", "1"};
  const Seen s = on_terminal(endless, {{"> ", "Hi\n"},
                                       {"the", "zebra"},
                                       {"the", "\x03"},
                                       {"> ", "\n"},
                                       {"the", "\x03"},
                                       {"> ", "/save " + saved + "\n"},
                                       {"4 messages written", ""},
                                       {"> ", "/quit\n"}});
  EXPECT_EQ(s.code, 0);
  const Json m = messages_of(saved);
  EXPECT_EQ(m[2]["content"], "zebra") << "kept, also behind Ctrl-C";
  const size_t answer = s.text.find("Hi"), prompt = s.text.find("> ", answer);
  EXPECT_EQ(s.text.substr(answer, prompt - answer).find("zebra"), std::string::npos)
      << "not in the midst of the answer";
}

TEST(Chat, LinesBreakBetweenWordsAtTheEdge) {
  NEEDS_A_TERMINAL();
  const Args talk = {"run", chat_model(), "--greedy", "--ignore-eos", "-n", "200", "-t", "1"};
  const std::string whole = trimmed(gimbal(with(talk, {"--chat", "-p", "Hi"})).out);
  const Seen s = on_terminal(with(talk, {"--repeat-guard", "off"}), {{"> ", "Hi\n"}, {"> ", "/quit\n"}});
  std::string answer = s.text.substr(s.text.find('\n', s.text.find("Hi")) + 1);
  answer = answer.substr(0, answer.find("> "));
  size_t lines = 0;
  std::string joined;
  for (char c : answer) {
    lines += c == '\n';
    if (c == '\r') continue;
    joined += c == '\n' ? ' ' : c;
  }
  for (size_t at = 0, end; at < answer.size(); at = end + 1) {
    end = std::min(answer.find('\n', at), answer.size());
    EXPECT_LE(end - at, 201u) << "200 columns and \\r";
  }
  EXPECT_GT(lines, 2u) << answer;
  std::string flat = whole;
  std::replace(flat.begin(), flat.end(), '\n', ' ');
  EXPECT_EQ(trimmed(joined).substr(0, 400), flat.substr(0, 400));
}

TEST(Chat, AnAnswerThatRepeatsItselfEnds) {
  NEEDS_A_TERMINAL();
  const Args song = {"run", chat_model(), "--greedy",     "-n",        "300",
                     "-t",  "1",          "--ignore-eos", "--grammar", "root ::= \" la\"+"};
  const Seen s =
      on_terminal(song, {{"--repeat-guard off lets it go on", ""}, {"> ", "Hi\n"}, {"> ", "/quit\n"}});
  EXPECT_SAYS(s.text, "(the answer repeats itself");
  const Seen off = on_terminal(with(song, {"--repeat-guard", "off"}), {{"> ", "Hi\n"}, {"> ", "/quit\n"}});
  EXPECT_FALSE(contains(off.text, "repeats itself"));
  const auto sung = [](const std::string& text) {
    size_t n = 0;
    for (size_t at = 0; (at = text.find("la", at)) != std::string::npos; at++) n++;
    return n;
  };
  EXPECT_LT(sung(s.text), 60u);
  EXPECT_GT(sung(off.text), 90u) << "three tokens each";
  const Ran pipe = gimbal(with(song, {"--chat", "-p", "Hi"}));
  EXPECT_GT(sung(pipe.out), 90u) << "scripts get all that the model writes";
}

TEST(Chat, AModelAloneOnATerminalChats) {
  NEEDS_A_TERMINAL();
  const Seen s = on_terminal({"--model", chat_model()}, {{"/help for help", ""}, {"> ", "/quit\n"}});
  EXPECT_EQ(s.code, 0) << s.text;
}

TEST(Chat, AnOptionTakesThePlaceOfTheFilesTemplate) {
  const std::string file = temporary_path("form.jinja");
  ASSERT_TRUE(write_file(file, kTemplate));
  const Args plain = {"run", story_file("f32"), "--greedy", "-n", "12", "-t", "1", "--chat", "-p", "Hi"};
  EXPECT_EQ(trimmed(gimbal(with(plain, {"--chat-template", file})).out), continued("user: Hi\nassistant:"));
  const Ran wrong = gimbal(with(plain, {"--chat-template", "chatlm"}));
  EXPECT_EQ(wrong.code, 2);
  EXPECT_SAYS(wrong.err, "chatml");
  EXPECT_SAYS(gimbal(with(plain, {"--rope-freq-scale", "-1"})).err, "--rope-freq-scale is -1");
}

TEST(Chat, AFullContextDropsTheOldestTurns) {
  const std::string saved = temporary_path("full.json");
  std::string input;
  for (int i = 0; i < 12; i++)
    input += "Tell me about the big dog and the little cat number " + std::to_string(i) + "\n";
  const Args small = {"run", chat_model(), "--greedy", "-n",     "12", "--ctx",
                      "128", "-t",         "1",        "--chat", "-s", "Be kind."};
  const Ran r = gimbal(small, {.input = input + "/save " + saved + "\n"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_SAYS(r.err, "the context was full: the oldest question and its answer were forgotten");
  const Json m = messages_of(saved);
  EXPECT_EQ(m[0]["role"], "system") << "the system prompt stays";
  EXPECT_LT(m.size(), 20u);
  EXPECT_EQ(m[m.size() - 2]["content"], "Tell me about the big dog and the little cat number 11");
  const Ran off = gimbal(with(small, {"--ctx-shift", "off"}), {.input = input});
  EXPECT_SAYS(off.err, "the context is full");
  EXPECT_EQ(off.code, 0) << "a question that does not fit is an error of the question";
}

TEST(Chat, ReasoningIsDimmedOrHidden) {
  NEEDS_A_TERMINAL();
  const std::string path = model_with("thinks", std::string(kTemplate) + "<think>");
  const Args run = {"run", path, "--greedy", "-n", "8", "-t", "1"};
  EXPECT_SAYS(on_terminal(run, {{"> ", "Hi\n"}, {"\x1b[2m", ""}, {"> ", "/quit\n"}}).text, "\x1b[2m");
  const Ran hidden = gimbal(with(run, {"--chat", "--think", "hide", "-p", "Hi"}));
  EXPECT_EQ(hidden.code, 0) << hidden.err;
  EXPECT_EQ(hidden.out, "") << "all of it is reasoning";
  EXPECT_NE(gimbal(with(run, {"--chat", "--think", "show", "-p", "Hi"})).out, "");
  const std::string off = model_with("off", "{% if enable_thinking is false %}no{% else %}yes{% endif %}");
  EXPECT_EQ(trimmed(gimbal({"run", off, "--greedy", "-n", "8", "--chat", "--think", "off", "-p", "Hi"}).out),
            trimmed(gimbal({"run", off, "--greedy", "-n", "8", "-p", "no"}).out));
}

// A template that does not think unless a variable says so.
TEST(Chat, TemplatesLearnWhatTheUserWantsOfThinking) {
  const std::string path =
      model_with("asked", "{% if thinking %}on{% else %}{{ style or 'off' }}{% endif %}");
  const auto prompt = [&](const Args& more) {
    const Ran r = gimbal(with(Args{"run", path, "--greedy", "-n", "8", "--chat", "-p", "Hi"}, more));
    EXPECT_EQ(r.code, 0) << r.err;
    return trimmed(r.out);
  };
  const auto text = [&](const char* p) {
    return trimmed(gimbal({"run", path, "--raw", "--greedy", "-n", "8", "-p", p}).out);
  };
  ASSERT_NE(text("on"), text("off"));
  EXPECT_EQ(prompt({}), text("off"));
  EXPECT_EQ(prompt({"--think", "show"}), text("on"));
  EXPECT_EQ(prompt({"--chat-template-kwargs", R"({"enable_thinking": true})"}), text("on"));
  EXPECT_EQ(prompt({"--chat-template-kwargs", R"({"thinking": true})", "--think", "off"}), text("off"));
  EXPECT_EQ(prompt({"--chat-template-kwargs", R"({"style": "on"})"}), text("on"));
  const Ran wrong = gimbal({"run", path, "--chat-template-kwargs", "{", "-p", "Hi"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_SAYS(wrong.err, "--chat-template-kwargs");
}

// llama.cpp's words for the same, too.
TEST(Chat, AServersOptionsAreForRequestsThatDoNotSay) {
  const std::string path = model_with("served", "{{ thinking }} {{ style }}<think>");
  const Serving s({path, "--reasoning", "off", "--reasoning-format", "none", "--chat-template-kwargs",
                   R"({"style": "short"})"});
  Json body = {{"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"max_tokens", 4}};
  EXPECT_EQ(s.ask("/apply-template", body)["prompt"], "False short<think>");
  const Json answer = s.ask("/v1/chat/completions", body)["choices"][0]["message"];
  EXPECT_EQ(answer["content"].get<std::string>().find("<think>"), 0u) << answer;
  body["chat_template_kwargs"] = {{"thinking", true}, {"style", "long"}};
  EXPECT_EQ(s.ask("/apply-template", body)["prompt"], "True long<think>");
}

TEST(Chat, ATemplateThatRefusesIsAnErrorOfTheQuestion) {
  const std::string path = model_with("refuses", "{{ raise_exception('only poems') }}");
  const Ran r = gimbal({"run", path, "--chat", "-p", "Hi"});
  EXPECT_EQ(r.code, 1);
  EXPECT_SAYS(r.err, "only poems");
  const Ran broken = gimbal({"run", model_with("broken", "{% if %}"), "--chat", "-p", "Hi"});
  EXPECT_EQ(broken.code, 3);
  EXPECT_SAYS(broken.err, "chat template, line 1");
}

TEST(Chat, RawKeepsPlainTexts) {
  NEEDS_A_TERMINAL();
  EXPECT_SAYS(
      on_terminal(with(base(), {"--raw"}), {{"> ", "/help\n"}, {"/reset", ""}, {"> ", "/quit\n"}}).text,
      "Each line is a text that the model continues");
  const Ran both = gimbal(with(base(), {"--raw", "--chat", "-p", "x"}));
  EXPECT_EQ(both.code, 2);
  EXPECT_SAYS(gimbal({"run", "default", "--greedy", "-n", "4", "--chat", "-p", "Once"}).err,
              "the file has no chat template");
}

}  // namespace
}  // namespace gimbal::test
