// gimbal run: generates text, streaming it as it comes.
#include <unistd.h>

#include <algorithm>

#include "apps/commands/certificate_options.h"
#include "apps/commands/chat.h"
#include "apps/commands/command.h"
#include "apps/commands/kept_prompt.h"
#include "apps/commands/open_model.h"
#include "apps/commands/run.h"
#include "apps/options/generation_options.h"
#include "apps/options/picture_options.h"
#include "apps/options/prefix_store_options.h"
#include "apps/reports/prompt_progress.h"
#include "apps/reports/run_report.h"
#include "apps/reports/stderr_sink.h"
#include "apps/toolkit/input_output.h"
#include "apps/toolkit/keyboard.h"
#include "apps/toolkit/terminal.h"
#include "audit/model_identity.h"
#include "base/json.h"
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
    pictures_.declare(a);
    text_.declare(a);
    grammar_.declare(a);
    certificate_.declare(a);
    a.whole("--logprobs", "N",
            "with --json: the log-probability of each token, and of the N most likely ones", logprobs_, 0,
            1 << 20);
    a.text("--prompt-cache", "FILE",
           "save the state of the prompt; a later run with the same beginning computes only the rest",
           prompt_cache_);
    prefixes_.declare(a);
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
    reasoning_.declare_for_chat(a);
    a.one_of("--ctx-shift", "on: a full context drops the oldest questions; off: it is an error", ctx_shift_,
             {"on", "off"});
    a.one_of("--repeat-guard",
             "on (default): end an answer that repeats itself, in a conversation on a terminal; off",
             repeat_guard_, {"on", "off"});
    a.flag("--no-wrap", "do not break the lines of a chat between words at the terminal's edge", no_wrap_);
    a.flag("--parse-special", "treat control tokens written out in messages as such", parse_special_);
    gimbal::declare(a, engine_, Needs::Texts);
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
    const bool foreign = in_library(engine_);  // it may know architectures that gimbal does not
    if (auto ok = foreign ? check_foreign(conversation) : Done{}; !ok) return ok.error();
    auto source = open_model(model_, engine_, quiet);
    if (!source) return source.error();
    if (auto ok = foreign ? Done{} : check_generates(*source->file); !ok) return ok.error();
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
      if (!chat_template && !pictures_.given()) ids = (*tokenizer)->encode(text);
    }
    Inputs prompt;
    const bool chats = chat_template && !json && !text_.print_tokens && !certificate_.given();
    if (pictures_.given() && !chats) {
      if (chat_template || tokens_ || conversation)
        return Error{Code::Usage,
                     "--image needs a prompt or a chat, without --tokens, --json or --print-tokens",
                     "give -p TEXT, or --chat"};
      auto inputs = pictures_.inputs(*source, **tokenizer, text, *options, quiet);
      if (!inputs) return inputs.error();
      prompt = std::move(*inputs);
    }
    if (auto ok = grammar_.apply(*source->file, **tokenizer, text_.settings); !ok) return ok.error();
    ChatSettings chatting = chat_settings();
    std::unique_ptr<ChatPictures> seen;
    if (chats && (pictures_.given() || pictures_.has_projector())) {
      auto encoder = pictures_.open_chat(*source, *options, quiet);
      if (!encoder) return encoder.error();
      seen = std::make_unique<ChatPictures>(std::move(*encoder), **tokenizer, quiet);
      auto marks = with_marks(*seen, text);
      if (!marks) return marks.error();
      chatting.pictures = seen.get(), chatting.marks = std::move(*marks);
    }
    if (foreign)
      return answer_in_library(*source, **tokenizer, chat_template, std::move(ids), std::move(text));
    const std::string draft = draft_.value_or("off");
    auto drafts = open_drafts(backend_registry(), *options, *source, draft, stderr_sink(quiet));
    if (!drafts) return drafts.error();
    text_.settings.drafting = (*drafts)->drafting.get();
    auto pages = prefixes_.open();
    if (!pages) return pages.error();
    Engine engine(backend_registry(), std::move(*options), stderr_sink(quiet));
    auto loaded = engine.load(*source);
    if (!loaded) return loaded.error();
    if (*pages) {
      auto store = prefix_store_of((*loaded)->source, file_options(engine_).lora, *(*loaded)->model, *pages,
                                   prefixes_.salt());
      if (!store) return store.error();
      prefix_store_ = std::move(*store);
    }
    if (conversation && certificate_.given())
      return Error{Code::Usage, "--certificate is for one answer, and this is a conversation",
                   "give -p TEXT"};
    if (conversation && !chat_template && (prompt_cache_ || prefix_store_))
      return Error{Code::Usage,
                   format("{} is for a prompt or a chat, not for lines that are continued",
                          prompt_cache_ ? "--prompt-cache" : "--prefix-store"),
                   "give -p TEXT"};
    if (conversation && !chat_template)
      return continue_texts(engine, *loaded, **tokenizer, {text_.settings, text_.stats, quiet});
    if (chats) {
      chatting.prefix_store = prefix_store_.get();
      return chat(engine, *loaded, **tokenizer, *chat_template, chatting,
                  conversation ? std::nullopt : std::optional(chatting.marks + text));
    }
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
    if (!pictures_.given()) prompt = Inputs(std::move(ids));
    return once(engine, *loaded, **tokenizer, prompt, echoed ? text : "");
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

  // Puts the pictures of the command line where the text has marks for them. Returns the marks of the others.
  Result<std::string> with_marks(ChatPictures& pictures, std::string& text) const {
    InterruptGuard guard;
    std::string others;
    for (size_t at = 0; const std::string& image : pictures_.images()) {
      auto mark = pictures.add(image);
      if (!mark) return mark.error();
      if (const size_t found = text.find(kPictureMark, at); found != text.npos)
        text.replace(found, kPictureMark.size(), *mark), at = found + mark->size();
      else others += *mark;
    }
    return others;
  }

  ChatSettings chat_settings() const {
    return {text_.settings,     system_.value_or(""), of_template_,          reasoning_.shown(),
            ctx_shift_ == "on", parse_special_,       text_.stats,           quiet,
            prompt_cache_,      prefix_store_.get(),  repeat_guard_ == "on", !no_wrap_};
  }

  // For --json and --print-tokens: the answer as the model writes it.
  Result<ChatPrompt> question(const ChatTemplate& chat, const Tokenizer& tokenizer,
                              const std::string& text) const {
    std::vector<ChatMessage> messages;
    if (system_) messages.push_back({"system", *system_});
    messages.push_back({"user", text});
    return chat_prompt(chat, tokenizer, chat_variables(messages, of_template_), local_time(), parse_special_);
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
    if (pictures_.given() && certificate_.given())
      return Error{Code::Usage, "--certificate is for texts without pictures", "leave out --image"};
    if (logprobs_ && !json) return Error{Code::Usage, "--logprobs needs --json", "add --json"};
    if (auto ok = certificate_.check(); !ok) return ok;
    if (auto ok = grammar_.read(); !ok) return ok;
    text_.settings.certify = certificate_.given();
    if (grammar_.given()) reasoning_.refuse();  // it is the answer that must match
    text_.settings.reasoning.tokens = reasoning_.budget();
    auto of_template = reasoning_.of_template();
    if (!of_template) return of_template.error();
    of_template_ = std::move(*of_template);
    text_.settings.logprobs = logprobs_.value_or(-1);
    return text_.finish();
  }

  Status check_foreign(bool conversation) const {
    if (conversation)
      return Error{Code::Usage,
                   "a conversation needs gimbal's own engine, and --backend llama.cpp runs a library",
                   "give -p TEXT, or chat with `gimbal serve --backend llama.cpp`"};
    return check_library_options(engine_, {{"--image", pictures_.given()},
                                           {"--prompt-cache", prompt_cache_.has_value()},
                                           {"--prefix-store", prefixes_.given()},
                                           {"--certificate", certificate_.given()},
                                           {"--draft", draft_.value_or("off") != "off"}});
  }

  Result<int> answer_in_library(const ModelFile& source, const Tokenizer& tokenizer,
                                const std::optional<ChatTemplate>& chat, std::vector<Token> ids,
                                std::string text) {
    if (chat) {
      auto prompt = question(*chat, tokenizer, text);
      if (!prompt) return prompt.error();
      ids = std::move(prompt->tokens);
    }
    LibraryRun run{std::move(ids), text_.settings, "", text_.print_tokens, text_.stats, json, quiet};
    if (stdout_is_terminal() && !json && !text_.print_tokens && !chat) run.echo = dim(printable(text, true));
    return run_in_library(engine_, source, tokenizer, run);
  }

  // `echo` is printed before the text, once the prompt is computed.
  Result<int> once(Engine& engine, LoadedModelPtr loaded, const Tokenizer& tokenizer, const Inputs& prompt,
                   const std::string& echo) {
    GenerateSettings settings = text_.settings;
    auto session = Session::create(*loaded->model);
    if (!session) return session.error();
    (*session)->on_device_lost(engine.on_device_lost(loaded));
    (*session)->use_store(prefix_store_.get());
    KeptPrompt kept(prompt_cache_, quiet);
    if (auto ok = kept.restore(*loaded, **session); !ok) return ok.error();
    InterruptGuard guard;
    PromptProgress progress(!quiet);
    settings.on_prompt = [&](size_t done, size_t total) {
      const bool go_on = progress(done, total);
      if (go_on && done == total) kept.save(*loaded, **session), print(echo);
      return go_on;
    };
    auto answer = write_answer(**session, tokenizer, prompt, settings, !json && !text_.print_tokens);
    if (!answer) return answer.error();
    const Generated& g = answer->generated;
    if (auto ok = certificate_.write(*loaded, file_options(engine_).lora, prompt.tokens(), settings,
                                     grammar_.gbnf(), g);
        !ok)
      return ok.error();
    if (json) print_json(run_json(*loaded, g, answer->text, settings.sampler.seed));
    else if (text_.print_tokens) print(format("{}\n", fmt::join(g.tokens, ",")));
    flush_output();
    if (text_.stats) note(run_stats(*loaded, g, settings.sampler.seed, loaded->at_start));
    if (auto why = explain_finish(g.finish, *loaded->model); !why.empty() && !quiet) note(why);
    return InterruptGuard::interrupted() ? kInterrupted : kDone;
  }

  std::string model_;
  std::optional<int> logprobs_;
  std::optional<std::string> tokens_, prompt_, system_, prompt_cache_, draft_;
  bool chat_ = false, raw_ = false, parse_special_ = false, no_wrap_ = false;
  ReasoningOptions reasoning_;
  TemplateSettings of_template_;
  std::string ctx_shift_ = "on", repeat_guard_ = "on";
  TextOptions text_;
  PictureOptions pictures_;
  GrammarOptions grammar_;
  CertificateOptions certificate_;
  PrefixStoreOptions prefixes_;
  std::unique_ptr<PrefixStore> prefix_store_;
  CommonOptions engine_;
};

}  // namespace

std::unique_ptr<Command> make_run() { return std::make_unique<Run>(); }

}  // namespace gimbal
