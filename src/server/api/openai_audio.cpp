// POST /v1/audio/transcriptions: a model that hears writes down the words of a sound.
#include "server/api/call.h"
#include "server/api/openai.h"
#include "server/api/pictures.h"
#include "server/api/prompt.h"
#include "server/api/settings.h"

namespace gimbal::api {
namespace {

// The question behind the sound. docs/serving.md has it.
std::string instruction(const std::string& language, const std::string& prompt) {
  std::string words = "Transcribe the speech. Answer with its words alone.";
  if (!language.empty()) words += " The language is " + language + ".";
  if (!prompt.empty()) words += " Spelling and style are those of this text: " + prompt;
  return words;
}

Json token_usage(const Usage& u) {
  return {{"type", "tokens"},
          {"input_tokens", u.prompt_tokens},
          {"output_tokens", u.completion_tokens},
          {"total_tokens", u.prompt_tokens + u.completion_tokens}};
}

class TranscriptionWriter final : public Writer {
 public:
  explicit TranscriptionWriter(bool as_text) : as_text_(as_text) {}

  const char* whole_type() const override {
    return as_text_ ? "text/plain; charset=utf-8" : "application/json";
  }
  std::string whole(const std::vector<Choice>& all, const Usage& u) override {
    const Choice& c = all[0];
    if (as_text_) return without_space(c.text) + "\n";
    Json j = {{"text", without_space(c.text)}, {"usage", token_usage(u)}};
    // OpenAI's form has no word for it.
    if (finish_word(c) == std::string_view("length")) j["finish_reason"] = "length";
    return dump(j);
  }
  void piece(std::string& out, const Piece& p) override {
    const std::string text = sent_ ? p.text : without_space(p.text);
    if (text.empty()) return;
    sent_ = true;
    add_event(out, "", dump({{"type", "transcript.text.delta"}, {"delta", text}}));
  }
  void end(std::string&, const Choice&, int) override {}
  void finish(std::string& out, const std::vector<Choice>& all, const Usage& u) override {
    add_event(out, "",
              dump({{"type", "transcript.text.done"},
                    {"text", without_space(all[0].text)},
                    {"usage", token_usage(u)}}));
    out += "data: [DONE]\n\n";
  }
  void error(std::string& out, const ApiError& e) override { add_openai_error(out, e); }

 private:
  static std::string without_space(const std::string& text) {
    return text.substr(std::min(text.find_first_not_of(" \n\t"), text.size()));
  }

  const bool as_text_;
  bool sent_ = false;  // of a stream: a part of the text
};

}  // namespace

Refused transcriptions(Call& call) {
  read_as_json(call.body, {"temperature", "stream"});
  Fields f(call.body);
  ServedModelPtr model;
  if (auto no = find_model(call, f, true, model)) return no;
  f.need("file");
  f.text("file");
  const std::string language = f.text("language").value_or(""), prompt = f.text("prompt").value_or("");
  const bool as_text = f.word("response_format", {"json", "text"}) == "text";
  Settings settings;
  settings.request.sampler = plain_sampler();
  settings.request.sampler.temperature = float(f.number("temperature", 0, 1).value_or(0));
  Plan plan;
  plan.stream = f.flag("stream").value_or(false);
  f.harmless({"chunking_strategy"});  // a piece of a sound has 30 s in any case
  f.refuse("timestamp_granularities[]", "models with a projector write words without times");
  f.refuse("include[]", "a transcription has no log-probabilities");
  for (const char* speakers : {"known_speaker_names[]", "known_speaker_references[]"})
    f.refuse(speakers, "speakers are not told apart");
  if (auto no = f.finish()) return no;
  if (!model->hears())
    return wrong_field("model", format("the model '{}' cannot hear: it has no projector file (mmproj) for "
                                       "sounds; ask another model",
                                       model->id()));
  ChatInput input;
  input.thinks = false;
  std::string words;
  if (auto no = add_sound(std::move(call.file), "file", input, words)) return no;
  input.messages.push_back({{"role", "user"}, {"content", words + instruction(language, prompt)}});
  Prompt made;
  if (auto no = chat_prompt(call, *model, input, settings, made)) return no;
  std::vector<std::vector<Token>> prompts;
  prompts.push_back(std::move(made.tokens));
  if (auto no = requests_of(*model, settings, std::move(prompts), plan.choices)) return no;
  plan.id = new_id("transcription-");
  plan.model = std::move(model);
  made.fill(plan, input);
  plan.writer = std::make_unique<TranscriptionWriter>(as_text);
  call.fill(plan);
  Answer::start(call.services, std::move(plan), call.exchange);
  return {};
}

}  // namespace gimbal::api
