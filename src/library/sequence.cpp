#include "library/internal.h"

namespace gimbal::v1 {

Sequence::Sequence(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Sequence::Sequence(Sequence&&) noexcept = default;
Sequence& Sequence::operator=(Sequence&&) noexcept = default;
Sequence::~Sequence() = default;

void Sequence::Impl::take(std::unique_ptr<Session> with) {
  session = std::move(with);
  session->on_device_lost(model->engine->on_device_lost(on));
  const Drafts& drafts = *model->drafts;
  if (drafts.drafting || !drafts.drafter) return;
  if (auto drafter = drafts.drafter())
    own_drafting = std::make_unique<Drafting>(std::move(drafter), Drafting::Length::Adapts, drafts.failed);
}

Result<Sequence> Sequence::fork() const {
  auto made = std::make_unique<Impl>(impl_->model);
  made->on = impl_->on;
  auto session = impl_->session->fork();
  if (!session) return to_public(session.error());
  made->take(std::move(*session));
  return Access::sequence(std::move(made));
}

Result<std::optional<Constraint>> Model::Impl::constraint(const std::string& gbnf) {
  if (gbnf.empty()) return std::optional<Constraint>();
  auto grammar = Grammar::gbnf(gbnf);
  if (!grammar) return to_public(grammar.error());
  if (!tree) tree = TokenTree::create(*tokenizer->own, current()->model->config().vocabulary);
  auto made = Constraint::create(*grammar, tree);
  if (!made) return to_public(made.error());
  return std::optional(std::move(*made));
}

Result<Generated> Sequence::Impl::generate(std::span<const Token> prompt, Prompt kind,
                                           const TextOptions& options, const std::string& grammar,
                                           const gimbal::TextSink& sink) {
  auto constraint = model->constraint(grammar);
  if (!constraint) return constraint.error();
  GenerateSettings settings;
  static_cast<gimbal::TextSettings&>(settings) = settings_of(options);
  settings.drafting = drafting(), settings.on_prompt = options.on_prompt;
  settings.constraint = *constraint ? &**constraint : nullptr;
  Generated out;
  const gimbal::TextSink both = [&](std::string_view text, gimbal::Token token) {
    out.text += text;
    return sink(text, token);
  };
  const own::Tokenizer& tokenizer = *model->tokenizer->own;
  auto g = kind == Prompt::Whole ? generate_from_text(*session, tokenizer, prompt, settings, both)
                                 : gimbal::generate(*session, tokenizer, prompt, settings, both);
  if (!g) return to_public(g.error());
  static_assert(int(gimbal::Finish::Cancelled) == int(Finish::Cancelled));
  out.tokens = std::move(g->tokens), out.finish = Finish(int(g->finish));
  out.logprobs = std::move(g->logprobs);
  for (const auto& top : g->top) {
    out.top.emplace_back();
    for (const auto& p : top) out.top.back().push_back({p.token, p.logprob});
  }
  out.prompt_tokens = g->prompt_tokens;
  out.drafted = g->drafts.drafted, out.accepted = g->drafts.accepted;
  out.prompt_seconds = g->prompt_seconds, out.generate_seconds = g->generate_seconds;
  return out;
}

Result<Generated> Sequence::generate(std::string_view prompt, const TextOptions& options,
                                     const TextSink& sink) {
  return generate(impl_->model->tokenizer->own->encode(prompt, {.add_bos = position() == 0}), options, sink);
}

Result<Generated> Sequence::generate(std::span<const Token> prompt, const TextOptions& options,
                                     const TextSink& sink) {
  auto grammar = grammar_of(options);
  if (!grammar) return grammar.error();
  return impl_->generate(prompt, Impl::Prompt::Follows, options, *grammar,
                         [&](std::string_view text, gimbal::Token) { return !sink || sink(text); });
}

Status Sequence::save(const std::string& path) {
  if (auto ok = gimbal::save_prompt(path, *impl_->on, *impl_->session); !ok) return to_public(ok.error());
  return Done{};
}

Result<int> Sequence::restore(const std::string& path) {
  if (position() > 0)
    return usage("the sequence holds tokens already", "restore into a new one, or rewind(0)", "");
  auto restored = gimbal::restore_prompt(path, *impl_->on, *impl_->session);
  if (!restored) return to_public(restored.error());
  return restored->tokens;
}

Result<std::vector<float>> Sequence::logits(std::span<const Token> tokens) {
  if (tokens.empty())
    return Error{Code::Usage, "there are no tokens to compute", "give at least one", "", "", "", "", {}};
  std::vector<float> last;
  const Session::Sink keep = [&](size_t, std::span<const float> row) { last.assign(row.begin(), row.end()); };
  auto ok = impl_->session->advance(tokens, Session::Wanted::Last, keep);
  if (!ok) return to_public(ok.error());
  return last;
}

int Sequence::position() const { return impl_->session->position(); }
int Sequence::room() const { return impl_->session->room(); }
std::vector<Token> Sequence::tokens() const {
  const auto held = impl_->session->tokens();
  return {held.begin(), held.end()};
}
void Sequence::rewind(int position) { impl_->session->rewind(position); }
std::string Sequence::device() const { return impl_->on->model->device().id(); }

}  // namespace gimbal::v1
