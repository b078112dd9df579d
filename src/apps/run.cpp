// gimbal run: generates text, streaming it as it comes.
#include <algorithm>

#include "apps/chat.h"
#include "apps/command.h"
#include "apps/input_text.h"
#include "apps/interrupt.h"
#include "apps/recovery.h"
#include "apps/run_report.h"
#include "apps/sampling_options.h"
#include "apps/terminal.h"

namespace gimbal {
namespace {

class Run final : public Command {
 public:
  void declare(Arguments& a) override {
    a.positional("MODEL", kModelHelp, model_);
    a.section("Text");
    a.text("-p,--prompt", "TEXT", "the beginning of the text", prompt_);
    a.text("-f,--file", "FILE", "a file with the prompt, without a newline at its end; - is stdin", file_);
    a.text("--tokens", "IDS", "the prompt as token ids, taken as they are", tokens_);
    a.whole("-n,--max-tokens", "N",
            "tokens to generate; -1: until the model stops or the context is full (default)", most_tokens_,
            -1, 1 << 30);
    a.texts("--stop", "TEXT", "end before this text; repeatable", settings_.stops);
    a.flag("--print-tokens", "print the ids of the generated tokens in place of their text", print_tokens_);
    a.flag("--stats", "speed, memory, kernels and seed, on stderr", stats_);
    sampling_.declare(a);
    gimbal::declare(a, engine_, Needs::Model);
    a.example("gimbal run -p \"Once upon a time\"");
    a.example("gimbal run model.gguf -f question.txt --greedy -n 100");
  }

  Result<int> run() override {
    if (auto ok = check_options(); !ok) return ok.error();
    auto options = run_options(engine_);
    if (!options) return options.error();
    const bool conversation = !prompt_ && !file_ && !tokens_ && stdin_is_terminal();
    if (conversation && (json || print_tokens_ || !stdout_is_terminal()))
      return Error{Code::Usage, "there is no prompt",
                   "give -p TEXT, --file FILE or --tokens IDS, or write the prompt to stdin"};
    std::string text;
    std::vector<Token> ids;
    if (tokens_) {
      auto parsed = parse_ids("--tokens", *tokens_);
      if (!parsed) return parsed.error();
      ids = std::move(*parsed);
    } else if (!conversation) {
      auto read = prompt_ ? *prompt_ : read_text(file_.value_or("-"));
      if (!read) return read.error();
      text = prompt_ ? *read : without_last_newline(std::move(*read));
    }

    auto source = open_model_file(model_);
    if (!source) return source.error();
    auto tokenizer = Tokenizer::create(*source->file);
    if (!tokenizer) return tokenizer.error();
    if (!tokens_ && !conversation) ids = (*tokenizer)->encode(text);
    auto loaded = load_model(std::move(*source), engine_, *options, quiet);
    if (!loaded) return loaded.error();
    if (conversation) return chat(*loaded, **tokenizer, {settings_, stats_, quiet});
    if (stdout_is_terminal() && !json && !print_tokens_)
      print(dim(printable(tokens_ ? (*tokenizer)->decode(ids) : text, true)));
    return once(*loaded, *options, **tokenizer, ids);
  }

 private:
  Status check_options() {
    if (int(bool(prompt_)) + bool(file_) + bool(tokens_) > 1)
      return Error{Code::Usage, "-p, --file and --tokens each give a prompt", "give only one of them"};
    settings_.most_tokens = most_tokens_.value_or(-1);
    if (auto ok = sampling_.finish(); !ok) return ok;
    settings_.sampler = sampling_.settings;
    return validate_stops(settings_.stops);
  }

  Result<int> once(const LoadedModel& first, const RunOptions& options, const Tokenizer& tokenizer,
                   const std::vector<Token>& prompt) {
    Recovery recovery(model_, engine_, options, quiet);
    settings_.recover = [&](Session& s, const Error& lost) { return recovery(s, lost); };
    auto session = Session::create(*first.model);
    if (!session) return session.error();
    InterruptGuard guard;
    std::string text;
    const bool stream = !json && !print_tokens_;
    auto g = generate(**session, tokenizer, prompt, settings_, [&](std::string_view piece, Token) {
      text += piece;
      if (stream) print(stdout_is_terminal() ? printable(piece, true) : piece);
      return (!stream || flush_output()) && !InterruptGuard::interrupted();
    });
    if (stream && !text.empty() && text.back() != '\n') print("\n");
    settings_.recover = nullptr;
    if (!g) return g.error();
    const LoadedModel& loaded = recovery.current(first);
    if (json) print_json(run_json(loaded, *g, text, settings_.sampler.seed));
    else if (print_tokens_) print(format("{}\n", fmt::join(g->tokens, ",")));
    flush_output();
    if (stats_) note(run_stats(loaded, *g, settings_.sampler.seed));
    if (auto why = explain_finish(g->finish, *loaded.model); !why.empty() && !quiet) note(why);
    return InterruptGuard::interrupted() ? kInterrupted : kDone;
  }

  std::string model_;
  std::optional<std::string> prompt_, file_, tokens_;
  std::optional<int> most_tokens_;
  bool print_tokens_ = false, stats_ = false;
  SamplingOptions sampling_;
  GenerateSettings settings_;
  EngineOptions engine_;
};

}  // namespace

std::unique_ptr<Command> make_run() { return std::make_unique<Run>(); }

}  // namespace gimbal
