// Whole characters out of a stream of tokens: a token may end in the middle of one.
#include "base/text.h"
#include "tokenizer/tokenizer.h"

namespace gimbal {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

}  // namespace

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool special)
    : tokenizer_(tokenizer), special_(special) {}

std::string StreamDecoder::push(Token id) {
  // decode() of the first token takes off the space that encode() put before the text.
  held_ += at_start_ ? tokenizer_.decode({&id, 1}, special_) : tokenizer_.piece(id, special_);
  at_start_ = false;
  std::string out;
  size_t at = 0;
  while (at < held_.size()) {
    const Utf8Step step = utf8_step(held_, at);
    if (step.kind == Utf8Step::Cut) break;
    if (step.kind == Utf8Step::Whole) out.append(held_, at, step.bytes);
    else out += kReplacement;
    at += step.bytes;
  }
  held_.erase(0, at);
  return out;
}

std::string StreamDecoder::finish() {
  std::string out;
  if (!held_.empty()) out = kReplacement;
  held_.clear();
  at_start_ = true;
  return out;
}

}  // namespace gimbal
