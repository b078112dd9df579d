#include "runtime/answer.h"

#include <climits>

#include "base/format.h"

namespace gimbal {

const char* name_of(Finish f) {
  static constexpr const char* kNames[] = {"stop-token", "stop-string", "length", "context-full",
                                           "cancelled"};
  return kNames[int(f)];
}

Status check_prompt(std::span<const Token> prompt, int room) {
  if (prompt.empty())
    return Error{Code::Usage, "empty prompt (this model adds no BOS token)", "give at least one token"};
  if (int64_t(prompt.size()) > room)
    return Error{Code::Usage,
                 format("the prompt has {} tokens, but the context has room for {}", prompt.size(), room),
                 "start with a larger 'context', or shorten the prompt", reason::kContextFull, "context"};
  return Done{};
}

Answer::Answer(const Tokenizer* tokenizer, std::span<const Token> prompt, std::vector<std::string> stops,
               int max_tokens, bool ignore_stop_tokens)
    : tokenizer_(tokenizer),
      stops_(std::move(stops)),
      max_tokens_(max_tokens),
      ignore_stop_tokens_(ignore_stop_tokens) {
  // The answer's text continues the prompt's: only the first token of a text loses the space that encoding
  // added.
  if (tokenizer_) decoder_.emplace(*tokenizer_);
  for (Token t : tokenizer_ ? prompt : std::span<const Token>())
    if (t >= 0) decoder_->push(t);
  if (max_tokens_ == 0) end(Finish::Length);
}

int Answer::left() const { return max_tokens_ < 0 ? INT_MAX : max_tokens_ - tokens_; }

std::string Answer::take(Token token, int room) {
  // A token that begins a text ends this one: models trained on concatenated texts (stories260K) have no
  // other end token.
  const bool ends = tokenizer_ && (tokenizer_->is_stop(token) || token == tokenizer_->bos());
  if (ends && !ignore_stop_tokens_) {
    end(Finish::StopToken);
    return "";
  }
  tokens_++;
  StopMatcher::Output out = stops_.push(decoder_ ? decoder_->push(token) : "");
  if (out.stopped) end(Finish::StopString), stop_ = std::move(out.which);
  else if (left() == 0) end(Finish::Length);
  else if (room <= 0) end(Finish::ContextFull);
  return std::move(out.text);
}

std::string Answer::rest() { return stops_.push(decoder_ ? decoder_->finish() : "").text + stops_.finish(); }

}  // namespace gimbal
