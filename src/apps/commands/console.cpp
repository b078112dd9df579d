// gimbal console: a conversation with a server, over its WebSocket.
#include <climits>

#include "apps/commands/command.h"
#include "apps/commands/socket_answers.h"
#include "apps/toolkit/terminal.h"
#include "base/format.h"
#include "base/json.h"

namespace gimbal {
namespace {

class ServerConsole final : public Command {
 public:
  void declare(Arguments& a) override {
    a.positional("URL", "the server: HOST:PORT, ws://HOST:PORT or wss://HOST (default 127.0.0.1:8080)", url_);
    a.section("Server");
    // A list, because settings of `gimbal serve` have several.
    a.texts("--api-key", "KEY", "the server's key", api_keys_);
    a.text("--model", "NAME", "the model, if the server has several", model_);
    a.section("Conversation");
    a.text("-p,--prompt", "TEXT", "answer this one question and leave", prompt_);
    a.text("-s,--system", "TEXT", "the system prompt", system_);
    a.whole("-n,--max-tokens", "N", "the most tokens of an answer", max_tokens_, 1, INT_MAX);
    a.text("--temp", "T", "the temperature (default: the server's)", temperature_);
    a.whole("--seed", "N", "the seed of the sampling, for the same answers again", seed_, uint64_t(0),
            UINT64_MAX);
    a.flag("--ignore-eos", "continue when the model ends its answer", ignore_eos_);
    a.one_of("--think", "thinking before the answer: show it dimmed, hide it, or turn it off", think_,
             {"show", "hide", "off"});
    a.flag("--stats", "show speed and tokens after each answer", stats_);
    a.flag("--no-wrap", "do not break lines between words at the terminal's edge", no_wrap_);
    a.example("gimbal console");
    a.example("gimbal console wss://models.example --api-key KEY");
    a.example("gimbal console 127.0.0.1:8080 -p \"Why is the sky blue?\"");
  }

  Result<int> run() override {
    if (json && !prompt_)
      return Error{Code::Usage, "--json is for one answer, and this is a conversation", "give -p TEXT"};
    ConsoleSettings settings;
    auto url = socket_url(url_.value_or("127.0.0.1:8080"));
    if (!url) return url.error();
    settings.url = std::move(*url);
    if (!api_keys_.empty()) settings.api_key = api_keys_[0];
    if (settings.api_key.find_first_of("\r\n") != std::string::npos)
      return Error{Code::Usage, "--api-key: a key is one line", "give it without line breaks"};
    if (!model_.empty()) settings.fields["model"] = model_;
    if (max_tokens_) settings.fields["max_tokens"] = *max_tokens_;
    if (seed_) settings.fields["seed"] = *seed_;
    if (ignore_eos_) settings.fields["ignore_eos"] = true;
    if (think_ == "off") settings.fields["reasoning_effort"] = "none";
    if (temperature_) {
      const Json t = parse_json(*temperature_);
      if (!t.is_number())
        return Error{Code::Usage, format("--temp: expected a number, got {}", gimbal::quoted(*temperature_)),
                     "give one from 0 to 2"};
      settings.fields["temperature"] = t;
    }
    const std::string origin = settings.url.origin();
    SocketAnswers answers(std::move(settings));
    if (json) return print_answer(answers);
    ChatLoop loop(answers, {think_ != "hide", stats_, !no_wrap_}, system_);
    if (auto ok = answers.connect(); !ok) return ok.error();
    if (prompt_) return loop.ask(*prompt_) ? kDone : InterruptGuard::interrupted() ? kInterrupted : kFailed;
    if (!quiet && stdout_is_terminal())
      print(format("{}{}. /help for help. Ctrl-C stops an answer, Ctrl-D leaves.\n",
                   model_.empty() ? "" : bold(printable(model_)) + " on ", origin));
    return loop.run();
  }

 private:
  Result<int> print_answer(SocketAnswers& answers) {
    const InterruptGuard guard;
    Conversation conversation;
    conversation.set_system(system_);
    conversation.ask(*prompt_);
    auto reply = answers.answer(conversation, [](auto, auto) { return !InterruptGuard::interrupted(); });
    if (!reply) return reply.error();
    Json j = {{"text", reply->text}, {"reasoning", reply->reasoning}};
    for (const char* name : {"model", "finish_reason", "usage", "timings"})
      if (answers.last().contains(name)) j[name] = answers.last()[name];
    print_json(j);
    return InterruptGuard::interrupted() ? kInterrupted : kDone;
  }

  std::optional<std::string> url_, prompt_, temperature_;
  std::optional<int> max_tokens_;
  std::optional<uint64_t> seed_;
  std::vector<std::string> api_keys_;
  std::string model_, system_, think_;
  bool ignore_eos_ = false, stats_ = false, no_wrap_ = false;
};

}  // namespace

std::unique_ptr<Command> make_console() { return std::make_unique<ServerConsole>(); }

}  // namespace gimbal
