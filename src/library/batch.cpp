#include "library/batch.h"

#include "base/clock.h"

namespace gimbal::v1 {

Batch Access::batch(std::unique_ptr<Batch::Impl> impl) { return Batch(std::move(impl)); }

Batch::Batch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Batch::Batch(Batch&&) noexcept = default;
Batch& Batch::operator=(Batch&&) noexcept = default;
Batch::~Batch() = default;

Result<uint64_t> Batch::Impl::submit(TextPtr text, std::vector<Token> prompt, gimbal::TextSettings settings,
                                     std::string grammar) {
  text->logprobs = settings.logprobs >= 0;
  text->submitted = text->first_token = now();
  GenerationRequest request;
  static_cast<gimbal::TextSettings&>(request) = std::move(settings);
  request.prompt = std::move(prompt), request.grammar = std::move(grammar);
  const uint64_t id = text->id = new_request_id();
  GenerationSink to{[this, text](const TokenTold& t) { token(*text, t); },
                    [this, text](const GenerationEnd& e) { end(*text, e); },
                    [this, text](const own::Error& e) {
                      text->failed = to_public(e);
                      has_ended(*text);
                    }};
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

void Batch::Impl::token(Text& t, const TokenTold& told) {
  if (t.stopped) return;
  if (t.out.tokens.empty()) t.first_token = now();
  t.out.tokens.push_back(told.token);
  if (t.logprobs) {
    t.out.logprobs.push_back(told.logprob);
    t.out.top.emplace_back();
    for (const auto& p : told.top) t.out.top.back().push_back({p.token, p.logprob});
  }
  if (add(t, told.text, told.token, false)) return;
  t.stopped = true;
  scheduler->cancel(t.id);
}

void Batch::Impl::end(Text& t, const GenerationEnd& e) {
  if (!t.stopped) add(t, e.text, -1, true);
  t.out.finish = Finish(int(e.finish));
  if (t.reply && t.reply->parser.enough()) t.out.finish = Finish::StopToken;
  t.out.prompt_tokens = e.prompt_tokens;
  t.out.drafted = e.drafted, t.out.accepted = e.accepted;
  t.out.prompt_seconds = t.first_token - t.submitted, t.out.generate_seconds = now() - t.first_token;
  has_ended(t);
}

void Batch::Impl::has_ended(Text& t) {
  {
    const std::lock_guard lock(mutex);
    t.ended = true;
  }
  changed.notify_all();
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

Result<uint64_t> Batch::submit(std::span<const Token> prompt, const TextOptions& options, TextSink sink) {
  auto grammar = grammar_of(options);
  if (!grammar) return grammar.error();
  auto text = std::make_shared<Impl::Text>();
  text->sink = std::move(sink);
  return impl_->submit(std::move(text), {prompt.begin(), prompt.end()}, settings_of(options),
                       std::move(*grammar));
}

Result<uint64_t> Batch::submit(std::string_view prompt, const TextOptions& options, TextSink sink) {
  return submit(impl_->model->tokenizer->own->encode(prompt), options, std::move(sink));
}

Result<uint64_t> Batch::submit(std::span<const Message> messages, const ChatOptions& options, ChatSink sink) {
  auto task = impl_->model->chat_task(messages, options);
  if (!task) return task.error();
  auto text = std::make_shared<Impl::Text>();
  text->chat_sink = std::move(sink);
  text->reply.emplace(*impl_->model->tokenizer->own, *task);
  gimbal::TextSettings settings = settings_of(options);
  settings.completes = settings.completes || task->form.completes;
  return impl_->submit(std::move(text), std::move(task->tokens), std::move(settings),
                       std::move(task->form.grammar));
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
