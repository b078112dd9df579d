// The chat of `gimbal run`, from outside: on a terminal of its own, and through pipes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <regex>

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

// --seed is the seed of the first answer, and the one that `--stats` shows with each.
TEST(Chat, EachAnswerHasTheNextSeed) {
  const std::string one = temporary_path("seed-one.json"), two = temporary_path("seed-two.json");
  const Args drawn = {"run", chat_model(), "--temp", "1", "-n", "12", "-t", "1", "--chat"};
  const Ran r =
      gimbal(with(drawn, {"--seed", "7"}), {.input = "Hi\n/save " + one + "\n/regen\n/save " + two + "\n"});
  ASSERT_EQ(r.code, 0) << r.err;
  const auto alone = [&](const char* seed) {
    return trimmed(gimbal(with(drawn, {"--seed", seed, "-p", "Hi"})).out);
  };
  const std::string first = alone("7"), second = alone("8");
  ASSERT_NE(first, second);
  EXPECT_EQ(trimmed(messages_of(one)[1]["content"]), first);
  EXPECT_EQ(trimmed(messages_of(two)[1]["content"]), second);
}

TEST(Chat, APromptIsKeptInAFile) {
  const std::string file = temporary_path("chat-prompt");
  const Args keeping = with(base(), {"--chat", "--prompt-cache", file, "-p", "Tell me of a dog"});
  const Ran first = gimbal(keeping);
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_FALSE(contains(first.err, "read from"));
  const Ran second = gimbal(keeping);
  EXPECT_EQ(second.out, first.out);
  EXPECT_SAYS(second.err, "tokens read from");
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

// The answer with this text on a terminal of 200 columns, up to the next prompt. Carriage returns are
// removed.
std::string shown(const std::string& text) {
  std::string grammar = "root ::= \"";
  for (char c : text) grammar += c == '\n' ? "\\n" : std::string(1, c);
  const Seen s = on_terminal(with({"run", chat_model(), "--greedy", "-t", "1", "-n", "2000", "--ctx", "4096"},
                                  {"--repeat-guard", "off", "--grammar", grammar + "\""}),
                             {{"> ", "Hi\n"}, {"> ", "/quit\n"}});
  EXPECT_EQ(s.code, 0) << s.text;
  std::string all;
  for (char c : s.text.substr(s.text.find("> Hi")))
    if (c != '\r') all += c;
  const size_t begin = all.find('\n') + 1;
  return all.substr(begin, all.find("\n> ", begin) - begin);
}

std::string times(int n, const std::string& text) {
  std::string all;
  for (int i = 0; i < n; i++) all += text;
  return all;
}

// A letter of Chinese takes two columns, one with an accent of its own takes one.
TEST(Chat, WideLettersAndMarksHaveTheirColumns) {
  NEEDS_A_TERMINAL();
  const std::string wide = "\xe4\xb8\xad", accented = "e\xcc\x81";
  EXPECT_EQ(shown("a " + times(105, wide)), "a " + times(99, wide) + "\n" + times(6, wide));
  const std::string word = times(9, accented);  // and a blank: 10 columns
  EXPECT_EQ(shown(times(24, word + " ") + "end"),
            times(19, word + " ") + word + "\n" + times(4, word + " ") + "end");
}

TEST(Chat, LinesOfCodeStayWhole) {
  NEEDS_A_TERMINAL();
  const std::string line = times(30, "ab cd ef ") + "end", text = times(50, "text ") + "end";
  const std::string seen = shown("```\n" + line + "\n```\n" + text);
  EXPECT_EQ(seen.substr(0, line.size() + 9), "```\n" + line + "\n```\n") << seen;
  EXPECT_EQ(seen.substr(seen.rfind("```") + 4), times(39, "text ") + "text\n" + times(10, "text ") + "end");
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

// The context is too small for both answers: the second one continues without the first.
TEST(Chat, AnAnswerThatFillsTheContextKeepsItsLimit) {
  const std::string saved = temporary_path("filled.json");
  const Ran r = gimbal({"run", chat_model(), "--greedy", "--ignore-eos", "-n", "90", "--ctx", "200", "-t",
                        "1", "--chat", "--stats"},
                       {.input = "Hi\nAnd you?\n/save " + saved + "\n"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_SAYS(r.err, "the context was full: the oldest question and its answer were forgotten");
  const Json m = messages_of(saved);
  ASSERT_EQ(m.size(), 2u) << m.dump();
  EXPECT_EQ(m[0]["content"], "And you?");
  const std::string answer = m[1]["content"];
  const Json ids = json_of(gimbal({"tokenize", chat_model(), "--text", answer, "--json"}))["tokens"];
  // A text may have other tokens than those that wrote it, and one more begins it.
  EXPECT_GE(ids.size(), 80u) << "more than the 74 that the first context had room for: " << answer;
  EXPECT_LE(ids.size(), 95u) << answer;
  const std::regex all(R"(generation +90 tokens)");
  EXPECT_EQ(std::distance(std::sregex_iterator(r.err.begin(), r.err.end(), all), std::sregex_iterator()), 2)
      << "each answer is counted whole: " << r.err;
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

TEST(Chat, AnEmptyLineContinuesTheLastText) {
  NEEDS_A_TERMINAL();
  const Args six = {"run", chat_model(), "--raw", "--greedy", "-n", "6", "-t", "1", "--backend", "cpu"};
  const Seen s =
      on_terminal(six, {{"> ", "Once upon a time\n"}, {"> ", "\n"}, {"> ", "\n"}, {"> ", "/quit\n"}});
  EXPECT_EQ(s.code, 0) << s.text;
  std::string joined;  // the lines between the prompts; the first one repeats the text dimmed
  for (size_t at = 0, end; at < s.text.size(); at = end + 1) {
    end = std::min(s.text.find('\n', at), s.text.size());
    std::string line = s.text.substr(at, end - at);
    if (line.starts_with("> ") || contains(line, "Each line")) continue;
    if (const size_t dimmed = line.find("\x1b[0m"); dimmed != line.npos) line.erase(0, dimmed + 4);
    std::erase(line, '\r');
    joined += line;
  }
  const Ran whole =
      gimbal({"run", chat_model(), "--raw", "--greedy", "-n", "18", "-t", "1", "-p", "Once upon a time"});
  ASSERT_GT(trimmed(whole.out).size(), 40u);
  EXPECT_EQ(trimmed(joined), trimmed(whole.out));
}

}  // namespace
}  // namespace gimbal::test
