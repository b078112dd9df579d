// hot: every token of a constrained answer
#include "grammar/constraint.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

constexpr size_t kSteps = 2'000'000;  // for a token: a tenth of a second
// Costs of other work in steps: visited trie nodes, tokens tested one by one, tidying.
constexpr size_t kNodesOfStep = 16, kTokenSteps = 2, kTidySteps = 500'000;
constexpr size_t kTidyBytes = 16 << 20;  // of states
constexpr size_t kMaskBytes = 8 << 20;   // of masks that are kept
constexpr size_t kMaxPlainStates = 64;
constexpr int kWatched = 512;  // the token budget matters only below this

Error too_ambiguous() {
  return {Code::Usage, "grammar: it is so ambiguous that the next token cannot be found in time",
          "write it so that a text has fewer readings", "", "grammar"};
}

}  // namespace

Constraint::Constraint(States states, std::shared_ptr<const TokenTree> tree)
    : states_(std::move(states)), tree_(std::move(tree)), path_{states_.start()}, tidy_at_(kTidyBytes) {
  walk_.resize(size_t(tree_->longest()) + 1);
}

Result<Constraint> Constraint::create(const Grammar& grammar, std::shared_ptr<const TokenTree> tree) {
  if (tree->ends().empty())
    return Error{Code::Unsupported,
                 "a grammar needs a token that ends the text, and this vocabulary has none", ""};
  auto automaton = Automaton::create(grammar, tree.get());
  if (!automaton) return automaton.error();
  States states(std::move(*automaton));
  if (states.exceeded()) return too_ambiguous();
  return Constraint(std::move(states), std::move(tree));
}

Result<Constraint::Mask> Constraint::allowed(int left) {
  states_.pause_after(SIZE_MAX);
  find(left);
  if (failed_) return *failed_;
  return Mask(in_kept_ ? kept_[kept_at_].mask : mask_);
}

bool Constraint::prepare(int left, size_t& steps) {
  states_.pause_after(steps);
  const bool found = find(left);
  steps = states_.until_pause();
  return found;
}

// Computes the result of allowed(); false: paused. Each kind of work may take kSteps, in pieces.
bool Constraint::find(int left) {
  if (found_all_ && left_ == left) return true;
  found_all_ = false, failed_.reset(), left_ = left;
  if (next_) {
    if (!begin(Following)) return false;
    State s = path_.back();
    if (!tree_->is_end(*next_) || !may_end()) s = behind(s, *next_);
    if (states_.exceeded()) return done(too_ambiguous());
    if (states_.paused()) return false;
    path_.push_back(s);
    next_.reset();
  }
  if (!find_mask()) return false;
  if (failed_) return done(failed_);
  const State s = path_.back();
  const std::vector<uint64_t>& all = kept_[kept_at_].mask;
  in_kept_ = false;
  // In the worst case each byte takes a token of its own.
  if (left < kWatched && states_.shortest(s) < uint32_t(std::max(left, 0))) {
    if (!begin(Limiting)) return false;
    mask_ = all;
    leave_within(path_.back(), left - 2);
    if (states_.exceeded()) return done(too_ambiguous());
    if (states_.paused()) return false;
    add_ends();
    return done();
  }
  const bool others = std::any_of(all.begin(), all.end(), [](uint64_t w) { return w != 0; });
  if (!may_end() || (ends_late_ && others)) in_kept_ = true;
  else mask_ = all, add_ends();
  return done();
}

// Sets kept_[kept_at_]: the mask of the state.
bool Constraint::find_mask() {
  const auto known = [&] {
    return std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) { return k.state == path_.back(); });
  };
  auto kept = known();
  if (kept == kept_.end()) {
    if (!begin(Masking)) return false;
    compute(path_.back(), fresh_);
    if (states_.exceeded()) return failed_ = too_ambiguous(), true;
    if (states_.paused()) return false;
    const size_t most = std::max<size_t>(8, kMaskBytes / (tree_->words() * sizeof(uint64_t)));
    if (kept_.size() < most) kept = kept_.emplace(kept_.end());
    else
      kept = std::min_element(kept_.begin(), kept_.end(),
                              [](const Kept& a, const Kept& b) { return a.used < b.used; });
    kept->state = path_.back();
    kept->mask.swap(fresh_);
  }
  kept->used = ++clock_;
  kept_at_ = size_t(kept - kept_.begin());
  return true;
}

// False: states must be discarded first, which takes more time than is left now.
bool Constraint::begin(Work work) {
  if (std::exchange(work_, work) == work) return true;
  if (work != Limiting && states_.bytes() >= tidy_at_) {
    states_.spend_time(kTidySteps);
    if (states_.paused()) return work_ = None, false;
    tidy();
  }
  states_.allow(kSteps);
  return true;
}

bool Constraint::done(std::optional<Error> failed) {
  failed_ = std::move(failed), found_all_ = true, work_ = None;
  return true;
}

void Constraint::forget_work() {
  work_ = None, found_all_ = false;
  next_.reset(), failed_.reset();
}

void Constraint::follow(Token token) {
  forget_work();
  next_ = token;
}

void Constraint::rewind(size_t position) {
  if (next_ && position > this->position()) (void)accept(Token(*next_));
  path_.resize(std::min(path_.size(), position + 1));
  forget_work();
}

void Constraint::add_ends() {
  if (!may_end()) return;
  for (Token id : tree_->ends()) mask_[size_t(id) / 64] |= uint64_t(1) << id % 64;
}

// Keeps only the tokens of mask_ after which so many bytes can complete the text. Plain tokens that lead to
// few states are tested together.
void Constraint::leave_within(State s, int bytes) {
  const auto near = [&](State state) { return int(states_.shortest(state)) <= bytes; };
  plain_.assign(mask_.size(), 0);
  if (!find_plain(s, plain_) || !std::all_of(found_.begin(), found_.end(), near))
    plain_.assign(mask_.size(), 0);
  for (size_t w = 0; w < mask_.size(); w++)
    for (uint64_t rest = mask_[w] & ~plain_[w]; rest; rest &= rest - 1) {
      const auto bit = size_t(__builtin_ctzll(rest));
      states_.spend_time(kTokenSteps);
      if (states_.stopped()) return;
      if (!near(behind(s, Token(w * 64 + bit)))) mask_[w] &= ~(uint64_t(1) << bit);
    }
}

Constraint::State Constraint::behind(State s, Token token) {
  const std::string_view text = tree_->text(token);
  for (char c : text) s = states_.next(s, uint8_t(c));
  if (!text.empty()) return s;
  const Automaton& a = states_.automaton();
  const auto at = std::find(a.tokens().begin(), a.tokens().end(), token);
  if (at == a.tokens().end()) return States::kDead;
  return states_.next_of_class(s, uint32_t(a.classes()) + uint32_t(at - a.tokens().begin()));
}

Status Constraint::accept(Token token) {
  forget_work();
  states_.pause_after(SIZE_MAX);
  if (states_.bytes() >= tidy_at_) tidy();
  State s = path_.back();
  if (tree_->is_end(token) && may_end()) {
    path_.push_back(s);
    return Done{};
  }
  states_.allow(kSteps);
  s = behind(s, token);
  if (states_.exceeded()) return too_ambiguous();
  if (s == States::kDead)
    return Error{Code::Usage,
                 format("token {} ({}) does not fit the grammar here, behind {} tokens", token,
                        gimbal::quoted(tree_->text(token)), position()),
                 ""};
  path_.push_back(s);
  return Done{};
}

void Constraint::compute(State s, std::vector<uint64_t>& mask) {
  mask.assign(tree_->words(), 0);
  if (!find_plain(s, mask)) walk(tree_->plain(), s, mask);
  walk(tree_->others(), s, mask);
  for (const auto& [first, twin] : tree_->twins())
    if (allows(mask, size_t(first))) mask[size_t(twin) / 64] |= uint64_t(1) << twin % 64;
  for (Token t : states_.automaton().tokens())
    if (behind(s, t) != States::kDead) mask[size_t(t) / 64] |= uint64_t(1) << t % 64;
}

void Constraint::walk(const TokenTree::Nodes& nodes, State s, std::vector<uint64_t>& mask) {
  walk_[0] = s;
  for (size_t i = 0, seen = 0; i < nodes.size(); seen++) {
    if (seen % kNodesOfStep == 0) states_.spend_time(1);
    const TokenTree::Node n = nodes[i];
    const State next = states_.next(walk_[n.depth - 1u], n.byte);
    if (next == States::kDead) {
      if (states_.stopped()) return;
      i = n.next;
      continue;
    }
    walk_[n.depth] = next;
    // Branch-free: whether a token ends here is unpredictable.
    mask[size_t(n.token & ~(n.token >> 31)) / 64] |= uint64_t(n.token >= 0) << (n.token & 63);
    i++;
  }
}

// Finds the allowed plain tokens at once if the same characters are allowed at each position after the first
// ones, or up to a number of them. False: not the case, or so few are allowed that walking is as fast.
bool Constraint::find_plain(State s, std::vector<uint64_t>& mask) {
  constexpr size_t kFew = 8;
  found_.assign(1, s);
  found_again_ = false;
  Kinds without;
  int chars = 0;
  for (size_t begin = 0; chars < TokenTree::kPlainChars; chars++) {
    const size_t end = found_.size();
    if (begin == end) {  // no new states: any number of characters
      chars = TokenTree::kPlainChars;
      break;
    }
    const bool again = std::exchange(found_again_, false);
    found_before_ = end;
    size_t nothing = 0;
    for (size_t i = begin; i < end; i++) {
      Kinds refused;
      if (!read_plain(found_[i], refused)) return false;
      if (refused.all()) nothing++;
      else if (i == 0) without = refused;
      else if (refused != without) return false;
    }
    if (nothing && (again || nothing < end - begin)) return false;
    if (nothing) break;
    if (without.size() - without.count() < kFew) return false;
    begin = end;
  }
  const auto plain = tree_->plain_of_length(chars);
  std::copy(plain.begin(), plain.end(), mask.begin());
  for (size_t kind = 0; kind < without.size(); kind++)
    if (without[kind]) {
      const auto with = tree_->plain_with(kind);
      for (size_t w = 0; w < with.size(); w++) mask[w] &= ~with[w];
    }
  return true;
}

// The kinds of characters not allowed; finds the states after the others. False: only some of a kind.
bool Constraint::read_plain(State s, Kinds& refused) {
  for (uint8_t c = 0x20; c < 0x7f; c++) {
    if (TokenTree::plain_next(0, c) < 0) {
      refused.set(TokenTree::plain_kind(c));  // no plain token has it
      continue;
    }
    const State next = states_.next(s, c);
    if (states_.stopped()) return false;
    if (next == States::kDead) refused.set(TokenTree::plain_kind(c));
    else found(next);
  }
  const Automaton& a = states_.automaton();
  bool any = false, all = true;
  for (int c = 0; c < a.classes(); c++) {
    const uint8_t byte = a.byte_of_class(c);
    const int then = TokenTree::plain_next(0, byte);
    if (then <= 0) continue;
    const State next = states_.next(s, byte);
    if (next == States::kDead) all = false;
    else any = true, all = all && read_char(next, then);
  }
  if (!any) refused.set(TokenTree::kPlainKinds - 1);
  return (all || !any) && found_.size() <= kMaxPlainStates;
}

// The rest of a multi-byte character. False: not every one is allowed.
bool Constraint::read_char(State s, int utf8) {
  const Automaton& a = states_.automaton();
  for (int c = 0; c < a.classes(); c++) {
    const int then = TokenTree::plain_next(utf8, a.byte_of_class(c));
    if (then < 0) continue;
    const State next = states_.next_of_class(s, uint8_t(c));
    if (next == States::kDead) return false;
    if (then == 0) found(next);
    else if (!read_char(next, then)) return false;
  }
  return true;
}

void Constraint::found(State s) {
  const auto at = size_t(std::find(found_.begin(), found_.end(), s) - found_.begin());
  if (at == found_.size()) found_.push_back(s);
  else if (at < found_before_) found_again_ = true;
}

// Discards unused states when there are many.
void Constraint::tidy() {
  states_.keep(path_);
  kept_.clear();
  tidy_at_ = std::max(kTidyBytes, states_.bytes() * 2);
}

}  // namespace gimbal
