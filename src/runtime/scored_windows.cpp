#include "runtime/scored_windows.h"

#include <algorithm>

#include "base/format.h"

namespace gimbal {

Result<ScoredWindows> ScoredWindows::of(const Tokenizer& tokenizer, std::string_view text, int window) {
  constexpr int kFewest = 4;
  ScoredWindows w;
  w.tokens_ = tokenizer.encode(text, {.parse_special = false});
  w.window_ = int(std::min<size_t>(size_t(std::max(window, 0)), w.tokens_.size()));
  if (w.window_ < kFewest)
    return Error{Code::Usage, format("there are {} tokens; {} or more are needed", w.window_, kFewest),
                 window < kFewest ? "give a larger 'context'" : "give a longer text"};
  w.windows_ = int(w.tokens_.size() / size_t(w.window_));
  if (tokenizer.adds_bos()) w.begin_ = tokenizer.bos();
  return w;
}

Status ScoredWindows::limit(int first, int most) {
  if (first >= windows_)
    return Error{
        Code::Usage,
        format("the text has {} windows of {} tokens, and {} of them are skipped", windows_, window_, first),
        "give a longer text"};
  tokens_.erase(tokens_.begin(), tokens_.begin() + ptrdiff_t(first) * window_);
  windows_ = std::min(windows_ - first, most);
  first_ += first;
  return Done{};
}

std::vector<Token> ScoredWindows::tokens(int number) const {
  const auto begin = tokens_.begin() + ptrdiff_t(number) * window_;
  std::vector<Token> all(begin, begin + window_);
  if (begin_ >= 0) all[0] = begin_;
  return all;
}

Status ScoredWindows::score(Session& session, std::span<const Token> window, Rows rows,
                            const Sink& sink) const {
  const size_t first = window.size() - 1 - size_t(scored()), last = window.size() - 1;
  Status taken = Done{};
  const auto take = [&](size_t i, std::span<const float> logits) {
    if (taken && i >= first && i < last) taken = sink(logits, window[i + 1]);
  };
  session.rewind(0);
  if (rows == Rows::All) {
    auto ok = session.advance(window, Session::Wanted::All, take);
    return ok ? taken : ok;
  }
  if (auto ok = session.advance(window.first(first), Session::Wanted::None, {}); !ok) return ok;
  auto ok = session.advance(window.subspan(first, size_t(scored())), Session::Wanted::All,
                            [&](size_t i, std::span<const float> logits) { take(first + i, logits); });
  return ok ? taken : ok;
}

}  // namespace gimbal
