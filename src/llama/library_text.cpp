#include "llama/library_text.h"

#include <algorithm>

#include "base/clock.h"

namespace gimbal::llama {
namespace {

constexpr size_t kTokensBetweenLooks = 256;  // of a prompt, between two chances to cancel it

}  // namespace

// Those behind the last token of the text.
Result<std::vector<float>> LibraryWriter::logits(const TextState& text, const GenerateSettings& settings,
                                                 bool& cancelled) {
  const std::vector<Token>& all = text.tokens();
  const auto same =
      size_t(std::mismatch(held_.begin(), held_.end(), all.begin(), all.end()).first - held_.begin());
  if (held_.empty() || same < held_.size() || same == all.size()) {
    held_.clear();
    if (auto ok = process_.begin(texts_.threads, texts_.context); !ok) return ok.error();
  }
  const size_t first = held_.size();
  std::vector<float> row;
  while (held_.size() < all.size()) {
    const auto next =
        std::span(all).subspan(held_.size()).first(std::min(all.size() - held_.size(), kTokensBetweenLooks));
    auto computed = process_.advance(next);
    if (!computed) return held_.clear(), computed.error();
    held_.insert(held_.end(), next.begin(), next.end());
    row = std::move(*computed);
    if (settings.on_prompt && !settings.on_prompt(held_.size() - first, all.size() - first))
      return cancelled = true, row;
  }
  return row;
}

Result<Generated> LibraryWriter::write(const std::vector<Token>& prompt, const GenerateSettings& settings,
                                       const Emit& emit, std::string* rest) {
  if (settings.certify)
    return Error{Code::Unsupported, "a certificate is of an answer by gimbal's own engine",
                 "leave out --backend llama.cpp, or the certificate"};
  if (auto ok = check_text(settings, Inputs(prompt), process_.model().vocabulary, 0, texts_.context); !ok)
    return ok.error();
  TextState text(Inputs(prompt), 0, settings, &tokenizer_, texts_.context, settings.constraint);
  text.resume(settings.written, {});
  Generated out;
  out.prompt_tokens = int(prompt.size());
  const double begin = now();
  GenerateSettings progress;
  progress.on_prompt = settings.on_prompt;
  bool cancelled = false;
  while (!cancelled && !text.ended()) {
    auto row = logits(text, progress, cancelled);
    if (!row) return row.error();
    if (out.tokens.empty()) out.prompt_seconds = now() - begin, progress.on_prompt = {};
    if (cancelled) break;
    auto picked = text.take(*row);
    if (!picked) return picked.error();
    if (!*picked) break;
    const TokenEvent& t = text.event();
    if (out.tokens.empty()) out.first_token_seconds = now() - begin;
    out.tokens.push_back(t.token);
    if (settings.logprobs >= 0) out.logprobs.push_back(t.logprob), out.top.push_back(t.top);
    cancelled = !emit(t);
  }
  out.generate_seconds = now() - begin - out.prompt_seconds;
  out.finish = text.ended() ? text.answer().finish() : Finish::Cancelled;
  if (text.ended() && rest) *rest = text.answer().rest();
  return out;
}

}  // namespace gimbal::llama
