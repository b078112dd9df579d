#include "library/internal.h"

namespace gimbal::v1 {

Sequence::Sequence(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Sequence::Sequence(Sequence&&) noexcept = default;
Sequence& Sequence::operator=(Sequence&&) noexcept = default;
Sequence::~Sequence() = default;

void Sequence::Impl::take(std::unique_ptr<Session> with) {
  session = std::move(with);
  session->on_device_lost(model->engine->on_device_lost(on));
  session->use_store(model->prefixes.get());
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

Result<Generated> Sequence::Impl::generate(const InputView& prompt, Prompt kind, const TextOptions& options,
                                           const std::string& grammar, const gimbal::TextSink& sink,
                                           const gimbal::ReasoningLimit& reasoning) {
  auto constraint = model->constraint(grammar);
  if (!constraint) return constraint.error();
  if (options.prompt_logprobs)
    return usage("a Sequence does not give 'prompt_logprobs'", "use a Batch, or all_logits()",
                 "prompt_logprobs");
  if (!options.adapters.empty()) {
    if (kind == Prompt::Whole && options.adapters != session->inputs().adapters()) session->rewind(0);
    if (auto ok = session->adapt(options.adapters); !ok) return to_public(ok.error());
  }
  if (options.certificate) {
    if (!prompt.embeddings().empty()) return no_certificate_of_pictures();
    if (kind == Prompt::Follows && session->position() > 0)
      return usage("a 'certificate' is of a text from its beginning, and the sequence holds tokens",
                   "use an empty sequence, or chat()", "certificate");
    if (!session->inputs().adapters().empty())
      return usage(
          "a 'certificate' has the adapters that the model was loaded with, and this text has scales of its "
          "own",
          "load the model with these scales", "certificate");
    if (auto ok = model->identify(); !ok) return ok.error();
  }
  GenerateSettings settings;
  static_cast<gimbal::TextSettings&>(settings) = settings_of(options);
  settings.reasoning = reasoning;
  settings.drafting = drafting(), settings.on_prompt = options.on_prompt;
  settings.constraint = *constraint ? &**constraint : nullptr;
  Generated out;
  const gimbal::TextSink both = [&](std::string_view text, gimbal::Token token) {
    out.text += text;
    return sink(text, token);
  };
  const own::Tokenizer& tokenizer = *model->tokenizer->own;
  // A text from its beginning may begin with stored pages.
  const bool whole = kind == Prompt::Whole || session->position() == 0;
  auto g = whole ? generate_from_text(*session, tokenizer, prompt, settings, both)
                 : gimbal::generate(*session, tokenizer, prompt, settings, both);
  if (!g) return to_public(g.error());
  static_assert(int(gimbal::Finish::Cancelled) == int(Finish::Cancelled));
  out.tokens = std::move(g->tokens), out.finish = Finish(int(g->finish));
  out.logprobs = std::move(g->logprobs);
  for (const auto& top : g->top) {
    out.top.emplace_back();
    for (const auto& p : top) out.top.back().push_back({p.token, p.logprob});
  }
  out.prompt_tokens = g->stored_tokens + g->prompt_tokens, out.stored_tokens = g->stored_tokens;
  out.drafted = g->drafts.drafted, out.accepted = g->drafts.accepted;
  out.prompt_seconds = g->prompt_seconds, out.generate_seconds = g->generate_seconds;
  if (options.certificate)
    out.certificate =
        model->certificate(*on, prompt.tokens(), settings, grammar, out.tokens, g->finish, g->rows);
  return out;
}

Result<Generated> Sequence::generate(std::string_view prompt, const TextOptions& options,
                                     const TextSink& sink) {
  auto inputs = impl_->model->inputs(prompt, position() == 0, options.images);
  if (!inputs) return inputs.error();
  return impl_->generate(*inputs, options, sink);
}

Result<Generated> Sequence::generate(std::span<const Token> prompt, const TextOptions& options,
                                     const TextSink& sink) {
  if (!options.images.empty()) return images_of_tokens();
  return impl_->generate(prompt, options, sink);
}

Result<Generated> Sequence::Impl::generate(const InputView& prompt, const TextOptions& options,
                                           const TextSink& sink) {
  auto grammar = grammar_of(options);
  if (!grammar) return grammar.error();
  return generate(prompt, Prompt::Follows, options, *grammar,
                  [&](std::string_view text, gimbal::Token) { return !sink || sink(text); });
}

Status Sequence::save(const std::string& path) {
  if (auto ok = gimbal::save_prompt(path, *impl_->on, impl_->session->sequence()); !ok)
    return to_public(ok.error());
  return Done{};
}

Result<int> Sequence::restore(const std::string& path) {
  if (position() > 0)
    return usage("the sequence holds tokens already", "restore into a new one, or rewind(0)", "");
  auto restored = gimbal::restore_prompt(path, *impl_->on, *impl_->session);
  if (!restored) return to_public(restored.error());
  return restored->tokens;
}

Status Sequence::adapt(std::span<const float> scales) {
  if (auto ok = impl_->session->adapt(scales); !ok) return to_public(ok.error());
  return Done{};
}

static Result<std::vector<float>> logits_of(Session& session, std::span<const Token> tokens,
                                            Session::Wanted wanted) {
  if (tokens.empty())
    return Error{Code::Usage, "there are no tokens to compute", "give at least one", "", "", "", "", {}};
  std::vector<float> all;
  const Session::Sink keep = [&](size_t, std::span<const float> row) {
    all.insert(all.end(), row.begin(), row.end());
  };
  auto ok = session.advance(tokens, wanted, keep);
  if (!ok) return to_public(ok.error());
  return all;
}

Result<std::vector<float>> Sequence::logits(std::span<const Token> tokens) {
  return logits_of(*impl_->session, tokens, Session::Wanted::Last);
}
Result<std::vector<float>> Sequence::all_logits(std::span<const Token> tokens) {
  return logits_of(*impl_->session, tokens, Session::Wanted::All);
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
