#include "facade/internal.h"

namespace gimbal::v1 {
namespace {

GenerateSettings own_settings(const TextOptions& s) {
  GenerateSettings g;
  g.sampler = s;
  g.max_tokens = s.max_tokens, g.stops = s.stops, g.ignore_stop_tokens = s.ignore_stop_tokens;
  return g;
}

}  // namespace

Sequence::Sequence(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Sequence::Sequence(Sequence&&) noexcept = default;
Sequence& Sequence::operator=(Sequence&&) noexcept = default;
Sequence::~Sequence() = default;

Result<Generated> Sequence::generate(std::string_view prompt, const TextOptions& s, const TextSink& sink) {
  return generate(impl_->model->tokenizer->own->encode(prompt, {.add_bos = position() == 0}), s, sink);
}

Result<Generated> Sequence::generate(std::span<const Token> prompt, const TextOptions& s,
                                     const TextSink& sink) {
  GenerateSettings settings = own_settings(s);
  settings.drafting = impl_->model->drafts->drafting.get();
  Generated out;
  auto g = gimbal::generate(*impl_->session, *impl_->model->tokenizer->own, prompt, settings,
                            [&](std::string_view text, gimbal::Token) {
                              out.text += text;
                              return !sink || sink(text);
                            });
  if (!g) return to_public(g.error());
  static_assert(int(gimbal::Finish::Cancelled) == int(Finish::Cancelled));
  out.tokens = std::move(g->tokens), out.finish = Finish(int(g->finish));
  out.prompt_tokens = g->prompt_tokens;
  out.drafted = g->drafts.drafted, out.accepted = g->drafts.accepted;
  out.prompt_seconds = g->prompt_seconds, out.generate_seconds = g->generate_seconds;
  return out;
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
