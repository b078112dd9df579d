#include "audit/auditor.h"

#include <algorithm>

#include "base/format.h"
#include "runtime/model.h"
#include "runtime/random.h"

namespace gimbal {
namespace {

// `n` of `all` positions, in rising order.
std::vector<size_t> drawn(size_t all, size_t n, uint64_t seed) {
  std::vector<size_t> chosen;
  Random random(seed);
  // Selection sampling (Knuth, The Art of Computer Programming, volume 2, algorithm S).
  for (size_t i = 0; i < all && chosen.size() < n; i++)
    if (random.uniform() * double(all - i) < double(n - chosen.size())) chosen.push_back(i);
  return chosen;
}

// Mirostat and adaptive sampling: each choice depends on all choices before.
bool remembers(const SamplerSettings& s) { return s.mirostat != 0 || s.adaptive_target >= 0; }

// Whether the audit stops before the answer's end.
bool cuts(const Certificate& c, const AuditOptions& o) {
  return o.until && size_t(std::max(0, *o.until)) < c.answer.tokens.size();
}

}  // namespace

Auditor::Auditor(const AuditJob& job, const Tokenizer& tokenizer, int capacity, const AuditOptions& options)
    : certificate_(*job.certificate),
      prompt_(job.certificate->prompt.tokens.empty() ? job.prompt : job.certificate->prompt.tokens),
      tokenizer_(tokenizer),
      capacity_(capacity),
      whole_(!options.sample && !cuts(certificate_, options)),
      text_sink_(options.text),
      comparison_(certificate_) {
  const size_t first = certificate_.first_row();
  if (cuts(certificate_, options)) {
    const auto end = size_t(std::max(0, *options.until));
    ranges_ = {{std::min(first, end), end}};
    return;
  }
  if (whole_) {
    ranges_ = {{first, certificate_.end_row()}};
    return;
  }
  const auto places = drawn(certificate_.rows(), size_t(std::max(0, *options.sample)), options.seed);
  if (remembers(certificate_.text.sampler) && !places.empty()) ranges_ = {{first, first + places.back() + 1}};
  else
    for (size_t at : places) ranges_.push_back({first + at, first + at + 1});
}

Auditor::~Auditor() = default;

Result<std::unique_ptr<Auditor>> Auditor::create(const AuditJob& job, const ModelPlan& plan,
                                                 const Tokenizer& tokenizer,
                                                 const std::shared_ptr<const TokenTree>& tree,
                                                 const AuditOptions& options) {
  const Certificate& c = *job.certificate;
  std::unique_ptr<Auditor> made(new Auditor(job, tokenizer, plan.options.context, options));
  const std::vector<Token> prompt(made->prompt_.begin(), made->prompt_.end());
  if (auto ok = check_text(c.text, prompt, plan.config.vocabulary, 0, plan.options.context); !ok)
    return ok.error();
  for (Token t : c.answer.tokens)
    if (auto ok = check_input({t}, plan.config.vocabulary, 0); !ok) return ok.error();
  if (!c.grammar.empty()) {
    auto grammar = Grammar::gbnf(c.grammar);
    if (!grammar) return grammar.error();
    auto constraint = Constraint::create(*grammar, tree);
    if (!constraint) return constraint.error();
    made->constraint_.emplace(std::move(*constraint));
  }
  return made;
}

Status Auditor::begin(Model& model) {
  sequence_.reset();
  auto sequence = model.new_sequence();
  if (!sequence) return sequence.error();
  sequence_ = std::move(*sequence);
  comparison_ = Comparison(certificate_), chain_ = {};
  range_ = 0, same_ = true, added_ = false;
  if (!done()) begin_range();
  return Done{};
}

void Auditor::begin_range() {
  TextSettings settings = certificate_.text;
  settings.certify = true;
  if (constraint_) constraint_->rewind(0);
  text_.emplace(Inputs({prompt_.begin(), prompt_.end()}), 0, std::move(settings), &tokenizer_, capacity_,
                constraint_ ? &*constraint_ : nullptr);
  next_ = ranges_[range_].first;
  const std::string given = text_->resume(std::span(certificate_.answer.tokens).first(next_), {});
  if (range_ == 0) pass_on(next_, given);
  settle();
}

// Continues with the next range where this one is compared, or ends.
void Auditor::settle() {
  if (same_ && next_ < ranges_[range_].end) {
    if (!text_->ended()) return;
    comparison_.ends_early(next_, text_->answer().finish());
    same_ = false;
  }
  range_ = same_ ? range_ + 1 : ranges_.size();
  if (!done()) return begin_range();
  if (same_ && whole_) comparison_.chain(chain_.chain());
  if (same_ && whole_ && text_->ended()) pass_on(SIZE_MAX, text_->answer().rest());
  sequence_.reset();
}

// Passes on the text of the answer's first `tokens` tokens: once, also when a device was lost in between.
void Auditor::pass_on(size_t tokens, std::string_view text) {
  if (tokens <= emitted_) return;
  emitted_ = tokens;
  if (text_sink_ && !text.empty()) text_sink_(text);
}

void Auditor::add(Model& model, Batch& batch, Room& room) {
  const int missing = text_->missing(*sequence_);
  int rows = std::min(missing, room.rows);
  if (rows == missing && room.results == 0) rows--;  // the last row needs a result
  if (rows <= 0) return;
  const auto& answer = certificate_.answer.tokens;
  const auto left = std::span(answer).subspan(std::min(next_, answer.size()));
  const int most = std::min({room.results - 1, room.rows - rows, text_->most_drafts()});
  const size_t drafts =
      rows < missing || most < 0 ? 0 : std::min({size_t(most), left.size(), ranges_[range_].end - next_ - 1});
  part_ = text_->add_rows(model, *sequence_, rows, left.first(drafts), batch);
  room.rows -= part_.rows, room.results -= part_.results;
  added_ = true;
}

Status Auditor::take(Model& model, const StepOutput& out, size_t& k) {
  if (!std::exchange(added_, false) || part_.results == 0) return gimbal::Done{};
  const auto emit = [&](const TokenEvent& event) {
    chain_.add(event.row);
    same_ = comparison_.row(next_++, event.row, event.token);
    if (same_) pass_on(next_, event.text);
    return same_ && next_ < ranges_[range_].end;
  };
  const int held = sequence_->computed() - part_.drafts;
  const auto picked = text_->pick(model, out, k, part_, emit, [] { return true; });
  k += size_t(part_.results);
  if (!picked.ok) return picked.ok;
  sequence_->truncate(held + picked.right);
  if (same_ && text_->ended() && text_->answer().finish() == Finish::StopToken &&
      next_ < ranges_[range_].end) {
    chain_.add(text_->row());
    same_ = comparison_.row(next_++, text_->row(), -1);
  }
  settle();
  return gimbal::Done{};
}

AuditResult Auditor::result() const { return comparison_.result(); }

}  // namespace gimbal
