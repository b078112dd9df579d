#include "library/batch.h"

#include "base/clock.h"

namespace gimbal::v1 {

Batch Access::batch(std::unique_ptr<Batch::Impl> impl) { return Batch(std::move(impl)); }

Batch::Batch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Batch::Batch(Batch&&) noexcept = default;
Batch& Batch::operator=(Batch&&) noexcept = default;
Batch::~Batch() = default;

Result<uint64_t> Batch::Impl::submit(TextPtr text, const Inputs& prompt, gimbal::TextSettings settings,
                                     const TextOptions& options, std::string grammar) {
  const std::vector<float>& adapters = options.adapters;
  if (options.prompt_logprobs && settings.logprobs < 0)
    return usage("'prompt_logprobs' needs 'logprobs'", "set 'logprobs' to 0 or more", "prompt_logprobs");
  text->on_end = options.on_end;
  text->logprobs = settings.logprobs >= 0, text->prompt_tokens = int(prompt.size());
  text->submitted = text->first_token = now();
  if (settings.certify) {
    if (!prompt.embeddings().empty()) return no_certificate_of_pictures();
    if (!adapters.empty())
      return usage(
          "a 'certificate' has the adapters that the model was loaded with, and this text has scales of its "
          "own",
          "load the model with these scales", "certificate");
    if (auto ok = model->identify(); !ok) return ok.error();
    text->certified = {prompt.tokens(), {}, settings, grammar, {}};
  }
  GenerationRequest request;
  static_cast<gimbal::TextSettings&>(request) = std::move(settings);
  request.prompt = prompt.tokens(), request.embeddings = prompt.embeddings();
  request.grammar = std::move(grammar);
  request.adapters = adapters, request.scores_prompt = options.prompt_logprobs;
  const uint64_t id = text->id = new_request_id();
  GenerationSink to{[this, text](const TokenEvent& t) { token(*text, t); },
                    [this, text](const GenerationEnd& e) { end(*text, e); },
                    [this, text](const own::Error& e) {
                      text->failed = to_public(e);
                      has_ended(*text);
                    }};
  if (options.prompt_logprobs) to.scored = [text](const TokenEvent& t) { scored(*text, t); };
  if (auto ok = scheduler->submit(id, std::move(request), std::move(to)); !ok) return to_public(ok.error());
  const std::lock_guard lock(mutex);
  texts.emplace(id, std::move(text));
  return id;
}

bool Batch::Impl::add(Text& t, std::string_view text, Token token, bool last) {
  t.out.text += text;
  if (!t.reply) return !t.sink || text.empty() || t.sink(text);
  ReplyParser& parser = t.reply->parser;
  const ReplyPiece piece = t.reply->add(last ? parser.finish(text) : parser.push(text, token));
  const bool any = !piece.text.empty() || !piece.reasoning.empty() || !piece.tool_calls.empty();
  return (!t.chat_sink || !any || t.chat_sink(piece)) && !parser.enough();
}

static std::vector<TokenProbability> top_of(const TokenEvent& event) {
  std::vector<TokenProbability> all;
  for (const auto& p : event.top) all.push_back({p.token, p.logprob});
  return all;
}

// The stop token comes here, too, after the prompt's.
void Batch::Impl::scored(Text& t, const TokenEvent& event) {
  if (event.index >= t.prompt_tokens) return;
  t.out.prompt_logprobs.push_back(event.logprob);
  t.out.prompt_top.push_back(top_of(event));
}

void Batch::Impl::token(Text& t, const TokenEvent& event) {
  if (t.certified) t.certified->tokens.push_back(event.token), t.certified->rows.push_back(event.row);
  if (t.stopped) return;
  if (t.out.tokens.empty()) t.first_token = now();
  t.out.tokens.push_back(event.token);
  if (t.logprobs) {
    t.out.logprobs.push_back(event.logprob);
    t.out.top.push_back(top_of(event));
  }
  if (add(t, event.text, event.token, false)) return;
  t.stopped = true;
  scheduler->cancel(t.id);
}

void Batch::Impl::end(Text& t, const GenerationEnd& e) {
  if (!t.stopped) add(t, e.text, -1, true);
  t.out.finish = Finish(int(e.finish));
  if (t.reply && t.reply->parser.enough()) t.out.finish = Finish::StopToken;
  t.out.prompt_tokens = e.prompt_tokens, t.out.stored_tokens = e.stored_tokens;
  t.out.drafted = e.drafted, t.out.accepted = e.accepted;
  if (auto& c = t.certified) {
    if (!e.row.empty()) c->rows.push_back(e.row);
    t.out.certificate =
        model->certificate(*on, c->prompt, c->settings, c->grammar, c->tokens, e.finish, c->rows);
  }
  t.out.prompt_seconds = t.first_token - t.submitted, t.out.generate_seconds = now() - t.first_token;
  has_ended(t);
}

void Batch::Impl::has_ended(Text& t) {
  {
    const std::lock_guard lock(mutex);
    t.ended = true;
  }
  changed.notify_all();
  if (t.on_end) t.on_end();
}

Result<Batch::Impl::TextPtr> Batch::Impl::wait(uint64_t id) {
  std::unique_lock lock(mutex);
  const auto at = texts.find(id);
  if (at == texts.end())
    return Error{Code::NotFound,
                 format("there is no text {}", id),
                 "wait() returns each text once",
                 "",
                 "",
                 "",
                 "",
                 {}};
  TextPtr text = at->second;
  texts.erase(at);
  changed.wait(lock, [&] { return text->ended; });
  if (text->failed) return *text->failed;
  return text;
}

Result<uint64_t> Batch::Impl::submit(const Inputs& prompt, const TextOptions& options, TextSink sink) {
  auto grammar = grammar_of(options);
  if (!grammar) return grammar.error();
  auto text = std::make_shared<Impl::Text>();
  text->sink = std::move(sink);
  return submit(std::move(text), prompt, settings_of(options), options, std::move(*grammar));
}

Result<uint64_t> Batch::submit(std::span<const Token> prompt, const TextOptions& options, TextSink sink) {
  if (!options.images.empty()) return images_of_tokens();
  return impl_->submit(Inputs(std::vector<Token>(prompt.begin(), prompt.end())), options, std::move(sink));
}

Result<uint64_t> Batch::submit(std::string_view prompt, const TextOptions& options, TextSink sink) {
  auto inputs = impl_->model->inputs(prompt, true, options.images);
  if (!inputs) return inputs.error();
  return impl_->submit(*inputs, options, std::move(sink));
}

Result<uint64_t> Batch::submit(std::span<const Message> messages, const ChatOptions& options, ChatSink sink) {
  auto task = impl_->model->chat_task(messages, options);
  if (!task) return task.error();
  auto prompt = impl_->model->inputs(task->tokens, task->pictures);
  if (!prompt) return prompt.error();
  auto text = std::make_shared<Impl::Text>();
  text->chat_sink = std::move(sink);
  text->reply.emplace(*impl_->model->tokenizer->own, *task);
  gimbal::TextSettings settings = settings_of(options);
  settings.completes = settings.completes || task->form.completes;
  settings.reasoning = impl_->model->reasoning_limit(options, *task);
  return impl_->submit(std::move(text), *prompt, std::move(settings), options, std::move(task->form.grammar));
}

Result<Generated> Batch::wait(uint64_t id) {
  auto text = impl_->wait(id);
  if (!text) return text.error();
  return std::move((*text)->out);
}

Result<Reply> Batch::wait_reply(uint64_t id) {
  auto text = impl_->wait(id);
  if (!text) return text.error();
  if (!(*text)->reply)
    return usage(format("text {} was not submitted as messages", id), "use wait()", "messages");
  return Reply{std::move((*text)->reply->message), std::move((*text)->out)};
}

void Batch::cancel(uint64_t id) { impl_->scheduler->cancel(id); }

Result<std::vector<Generated>> Batch::generate(std::span<const std::string> prompts,
                                               const TextOptions& options) {
  std::vector<uint64_t> ids;
  std::optional<Error> first;
  for (const std::string& prompt : prompts) {
    auto id = submit(prompt, options);
    if (!id) {
      first = id.error();
      for (uint64_t other : ids) cancel(other);
      break;
    }
    ids.push_back(*id);
  }
  std::vector<Generated> all;
  for (uint64_t id : ids) {
    auto text = wait(id);
    if (text) all.push_back(std::move(*text));
    else if (!first) first = text.error();
  }
  if (first) return *first;
  return all;
}

BatchNumbers Batch::numbers() const {
  const SchedulerNumbers n = impl_->scheduler->numbers();
  return {n.running, n.waiting, n.tokens_generated, n.prompt_tokens, n.shared_tokens, n.steps};
}

}  // namespace gimbal::v1
