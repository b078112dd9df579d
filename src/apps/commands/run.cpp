// gimbal run: generates text, streaming it as it comes.
#include <unistd.h>

#include <algorithm>

#include "apps/commands/certificate_options.h"
#include "apps/commands/chat.h"
#include "apps/commands/command.h"
#include "apps/commands/continuation.h"
#include "apps/commands/kept_prompt.h"
#include "apps/commands/open_model.h"
#include "apps/options/grammar_options.h"
#include "apps/options/text_options.h"
#include "apps/reports/prompt_progress.h"
#include "apps/reports/run_report.h"
#include "apps/reports/tell.h"
#include "apps/toolkit/input_text.h"
#include "apps/toolkit/interrupt.h"
#include "apps/toolkit/json.h"
#include "apps/toolkit/terminal.h"
#include "base/text.h"
#include "chat/chat_prompt.h"
#include "chat/reasoning.h"
#include "engine/drafts.h"
#include "model/arch.h"

namespace gimbal {
namespace {

class Run final : public Command {
 public:
  void declare(Arguments& a) override {
    a.model(kModelHelp, model_);
    a.positional("PROMPT", "the same as -p PROMPT", prompt_);
    a.section("Text");
    a.text("--tokens", "IDS", "the prompt as token ids; none is added", tokens_);
    text_.declare(a);
    grammar_.declare(a);
    certificate_.declare(a);
    a.whole("--logprobs", "N",
            "with --json: the log-probability of each token, and of the N most likely ones", logprobs_, 0,
            1 << 20);
    a.text("--prompt-cache", "FILE",
           "save the state of the prompt; a later run with the same beginning computes only the rest",
           prompt_cache_);
    a.text("--draft", "auto|off|ngram|mtp|MODEL",
           "guess the next tokens and compute them at once; the text stays the same. ngram: from the text "
           "itself; mtp: by the file's prediction layers; auto: mtp if the file has such layers, else ngram; "
           "MODEL: a smaller one with the same vocabulary (default off)",
           draft_);
    a.section("Chat");
    a.flag("--chat",
           "the prompt is a question, put into the model's chat template; without one: a conversation",
           chat_);
    a.flag("--raw", "no template: the model continues the text", raw_);
    a.text("-s,--system", "TEXT", "the system prompt of a chat", system_);
    a.one_of("--think", "thinking before the answer: show it dimmed, hide it, or turn it off", think_,
             {"show", "hide", "off"});
    a.whole("--reasoning-budget", "N",
            "the most tokens that a model thinks; then it must answer; -1: no limit (default)",
            text_.settings.reasoning.tokens, -1, INT_MAX);
    a.one_of("--ctx-shift", "on: a full context drops the oldest questions; off: it is an error", ctx_shift_,
             {"on", "off"});
    a.one_of("--repeat-guard",
             "on (default): end an answer that repeats itself, in a conversation on a terminal; off",
             repeat_guard_, {"on", "off"});
    a.flag("--no-wrap", "do not break the lines of a chat between words at the terminal's edge", no_wrap_);
    a.flag("--parse-special", "treat control tokens written out in messages as such", parse_special_);
    gimbal::declare(a, engine_, Needs::Model);
    a.example("gimbal run -p \"Once upon a time\"");
    a.example("gimbal run model.gguf \"Once upon a time\"");
    a.example("gimbal run model.gguf -f question.txt --greedy -n 100");
    a.example("gimbal run model.gguf --chat -s \"Be brief.\" -p \"Why is the sky blue?\"");
  }

  Result<int> run() override {
    if (auto ok = check_options(); !ok) return ok.error();
    auto options = engine_options(engine_);
    if (!options) return options.error();
    const bool given = text_.prompt || text_.file || tokens_;
    const bool conversation = !given && (chat_ || stdin_is_terminal());
    if (conversation && (json || text_.print_tokens || !(chat_ || stdout_is_terminal())))
      return Error{Code::Usage, "there is no prompt; --json and --print-tokens are not for a conversation",
                   "give -p TEXT, --file FILE or --tokens IDS, or write the prompt to stdin"};
    std::string text;
    std::vector<Token> ids;
    if (tokens_) {
      auto parsed = parse_ids("--tokens", *tokens_);
      if (!parsed) return parsed.error();
      if (parsed->empty())
        return Error{Code::Usage, "the prompt is empty: --tokens needs at least one token id",
                     "for example: --tokens 1,403,407"};
      ids = std::move(*parsed);
    }
    auto source = open_model(model_, engine_, quiet);
    if (!source) return source.error();
    if (auto ok = check_generates(*source->file); !ok) return ok.error();
    auto tokenizer = Tokenizer::create(source->file->metadata());
    if (!tokenizer) return tokenizer.error();
    std::optional<ChatTemplate> chat_template;
    if (chat_ || (conversation && !raw_)) {
      auto t = ChatTemplate::of(source->file->metadata(), **tokenizer);
      if (!t) return t.error();
      if (const std::string n = note_of(*t); !n.empty()) note(n);
      if (t->origin != ChatTemplate::Origin::None || given) chat_template = std::move(*t);
    }
    if (!tokens_ && !conversation) {
      auto read = text_.text([&] { return max_text(*source->file, **tokenizer, options->run); });
      if (!read) return read.error();
      text = std::move(*read);
      if (!chat_template) ids = (*tokenizer)->encode(text);
    }
    if (auto ok = grammar_.apply(*source->file, **tokenizer, text_.settings); !ok) return ok.error();
    const std::string draft = draft_.value_or("off");
    auto drafts = open_drafts(backend_registry(), *options, *source, draft, tell_on_stderr(quiet));
    if (!drafts) return drafts.error();
    text_.settings.drafting = (*drafts)->drafting.get();
    Engine engine(backend_registry(), std::move(*options), tell_on_stderr(quiet));
    auto loaded = engine.load(*source);
    if (!loaded) return loaded.error();
    if (conversation && certificate_.given())
      return Error{Code::Usage, "--certificate is for one answer, and this is a conversation",
                   "give -p TEXT"};
    if (conversation && !chat_template && prompt_cache_)
      return Error{Code::Usage, "--prompt-cache is for a prompt or a chat, not for lines that are continued",
                   "give -p TEXT"};
    if (conversation && !chat_template)
      return continue_texts(engine, *loaded, **tokenizer, {text_.settings, text_.stats, quiet});
    if (chat_template && !json && !text_.print_tokens && !certificate_.given())
      return chat(engine, *loaded, **tokenizer, *chat_template, chat_settings(),
                  conversation ? std::nullopt : std::optional(text));
    if (chat_template) {
      auto prompt = question(*chat_template, **tokenizer, text);
      if (!prompt) return prompt.error();
      ids = std::move(prompt->tokens);
      set_reasoning_marks(text_.settings.reasoning,
                          chat_template->calls.kind == ToolCallFormat::Kind::Harmony,
                          prompt->opens_reasoning);
    }
    const bool echoed = stdout_is_terminal() && !json && !text_.print_tokens;
    if (echoed) text = dim(printable(tokens_ ? (*tokenizer)->decode(ids) : text, true));
    return once(engine, *loaded, **tokenizer, ids, echoed ? text : "");
  }

 private:
  // Bytes that no text has which fits into the context: a token stands for at most those of the longest one.
  static uint64_t max_text(const ModelSource& file, const Tokenizer& tokenizer, const RunOptions& options) {
    const auto config = configure(file);
    const int context = options.context > 0 ? options.context : config ? default_context(*config) : 0;
    size_t longest = 1;
    for (Token t = 0; t < tokenizer.size(); t++) longest = std::max(longest, tokenizer.piece(t, true).size());
    return uint64_t(context) * longest;
  }

  ChatSettings chat_settings() const {
    return {text_.settings,
            system_.value_or(""),
            think_,
            ctx_shift_ == "on",
            parse_special_,
            text_.stats,
            quiet,
            prompt_cache_,
            repeat_guard_ == "on",
            !no_wrap_};
  }

  // For --json and --print-tokens: the answer as the model writes it.
  Result<ChatPrompt> question(const ChatTemplate& chat, const Tokenizer& tokenizer,
                              const std::string& text) const {
    std::vector<ChatMessage> messages;
    if (system_) messages.push_back({"system", *system_});
    messages.push_back({"user", text});
    return chat_prompt(chat, tokenizer, chat_variables(messages, think_ != "off"), local_time(),
                       parse_special_);
  }

  Status check_options() {
    if (chat_ && raw_)
      return Error{Code::Usage, "--chat and --raw exclude each other", "give only one of them"};
    if (chat_ && tokens_)
      return Error{Code::Usage, "--chat puts a text into a template, but --tokens are not text",
                   "give -p TEXT"};
    if (prompt_) {
      if (text_.prompt || text_.file || tokens_)
        return Error{Code::Usage,
                     format("unexpected argument {}: there is a prompt already", gimbal::quoted(*prompt_)),
                     "put a text with spaces into quotes"};
      text_.prompt = prompt_;
    } else if (model_.find(' ') != std::string::npos && access(model_.c_str(), F_OK) != 0) {
      return Error{Code::Usage, format("there is no model {}", gimbal::quoted(model_)),
                   format("to use it as the prompt, write -p {}, or name a model before it: default {}",
                          gimbal::quoted(model_), gimbal::quoted(model_))};
    }
    if (tokens_ && (text_.prompt || text_.file))
      return Error{Code::Usage, "-p, --file and --tokens each give a prompt", "give only one of them"};
    if (logprobs_ && !json) return Error{Code::Usage, "--logprobs needs --json", "add --json"};
    if (auto ok = certificate_.check(); !ok) return ok;
    if (auto ok = grammar_.read(); !ok) return ok;
    text_.settings.certify = certificate_.given();
    if (grammar_.given()) think_ = "off";  // it is the answer that must match
    text_.settings.logprobs = logprobs_.value_or(-1);
    return text_.finish();
  }

  // `echo` is printed before the text, once the prompt is computed.
  Result<int> once(Engine& engine, LoadedModelPtr loaded, const Tokenizer& tokenizer,
                   const std::vector<Token>& prompt, const std::string& echo) {
    GenerateSettings settings = text_.settings;
    auto session = Session::create(*loaded->model);
    if (!session) return session.error();
    (*session)->on_device_lost(engine.on_device_lost(loaded));
    KeptPrompt kept(prompt_cache_, quiet);
    if (auto ok = kept.restore(*loaded, **session); !ok) return ok.error();
    InterruptGuard guard;
    PromptProgress progress(!quiet);
    settings.on_prompt = [&](size_t done, size_t total) {
      const bool go_on = progress(done, total);
      if (go_on && done == total) kept.save(*loaded, **session), print(echo);
      return go_on;
    };
    std::string text;
    const bool stream = !json && !text_.print_tokens;
    auto g = generate_from_text(**session, tokenizer, prompt, settings, [&](std::string_view piece, Token) {
      text += piece;
      if (stream) print(stdout_is_terminal() ? printable(piece, true) : piece);
      return (!stream || flush_output()) && !InterruptGuard::interrupted();
    });
    if (stream && !text.empty() && text.back() != '\n') print("\n");
    if (!g) return g.error();
    if (auto ok =
            certificate_.write(*loaded, file_options(engine_).lora, prompt, settings, grammar_.gbnf(), *g);
        !ok)
      return ok.error();
    if (json) print_json(run_json(*loaded, *g, text, settings.sampler.seed));
    else if (text_.print_tokens) print(format("{}\n", fmt::join(g->tokens, ",")));
    flush_output();
    if (text_.stats) note(run_stats(*loaded, *g, settings.sampler.seed, loaded->at_start));
    if (auto why = explain_finish(g->finish, *loaded->model); !why.empty() && !quiet) note(why);
    return InterruptGuard::interrupted() ? kInterrupted : kDone;
  }

  std::string model_;
  std::optional<int> logprobs_;
  std::optional<std::string> tokens_, prompt_, system_, prompt_cache_, draft_;
  bool chat_ = false, raw_ = false, parse_special_ = false, no_wrap_ = false;
  std::string think_ = "show", ctx_shift_ = "on", repeat_guard_ = "on";
  TextOptions text_;
  GrammarOptions grammar_;
  CertificateOptions certificate_;
  CommonOptions engine_;
};

}  // namespace

std::unique_ptr<Command> make_run() { return std::make_unique<Run>(); }

}  // namespace gimbal
