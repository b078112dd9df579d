#include "chat/reasoning.h"

#include <algorithm>
#include <cstdint>

namespace gimbal {
namespace {

constexpr std::string_view kOpen = "<think>", kClose = "</think>", kSpace = " \t\r\n";

}  // namespace

void ReasoningSplitter::give(std::string_view text, Part& to) {
  std::string& all = inside() ? reasoning_ : answer_;
  if (all.empty() && (inside() || !continues_))
    text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  all += text;
  (inside() ? to.reasoning : to.answer) += text;
}

ReasoningSplitter::Part ReasoningSplitter::control(std::string_view name) {
  if (name == kOpen || name == kClose) return push(name);
  if (name != "<|channel|>" && name != "<|message|>" && name != "<|start|>" && name != "<|end|>") return {};
  Part out;
  if (state_ != State::Role && state_ != State::Channel) out = finish();
  channels_ = true;
  if (name == "<|message|>") {
    const bool final = channel_.empty() || channel_.starts_with("final");
    state_ = final ? State::After : State::Inside;
    const std::string& before = final ? answer_ : reasoning_;
    if (!before.empty()) give("\n\n", out);
  } else {
    state_ = name == "<|channel|>" ? State::Channel : State::Role;
  }
  channel_.clear();
  return out;
}

ReasoningSplitter::Part ReasoningSplitter::push(std::string_view piece) {
  Part out;
  if (state_ == State::Channel) channel_ += piece;
  if (state_ == State::Channel || state_ == State::Role) return out;
  if (channels_) return give(piece, out), out;
  held_ += piece;
  if (state_ == State::Before) {  // a tag counts at the very beginning only
    const size_t begin = std::min(held_.find_first_not_of(kSpace), held_.size());
    const std::string_view text = std::string_view(held_).substr(begin);
    if (text.size() < kOpen.size() && kOpen.starts_with(text)) return out;
    state_ = text.starts_with(kOpen) ? State::Inside : State::After;
    if (inside()) held_.erase(0, begin + kOpen.size());
  }
  if (inside()) {
    if (const size_t close = held_.find(kClose); close != held_.npos) {
      give(std::string_view(held_).substr(0, close), out);
      held_.erase(0, close + kClose.size());
      state_ = State::After;
    } else {
      size_t keep = std::min(held_.size(), kClose.size() - 1);
      while (!kClose.starts_with(std::string_view(held_).substr(held_.size() - keep))) keep--;
      give(std::string_view(held_).substr(0, held_.size() - keep), out);
      held_.erase(0, held_.size() - keep);
    }
  }
  if (state_ == State::After) {
    give(held_, out);
    held_.clear();
  }
  return out;
}

ReasoningSplitter::Part ReasoningSplitter::finish() {
  Part out;
  if (state_ == State::Before) state_ = State::After;
  give(held_, out);
  held_.clear();
  return out;
}

}  // namespace gimbal
