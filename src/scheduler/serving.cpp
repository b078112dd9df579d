#include "scheduler/serving.h"

#include <algorithm>

#include "base/clock.h"
#include "base/format.h"

namespace gimbal {
namespace {

bool whole_context(const StatePool& p) { return p.kind == StateKind::Paged && p.window == 0; }

}  // namespace

int Serving::places(const ModelPlan& p) {
  return std::min({p.options.sequences, p.options.logit_rows, p.options.batch});
}

int Serving::capacity(const ModelPlan& p) {
  int64_t most = p.options.context;
  for (const StatePool& pool : p.pools)
    if (whole_context(pool)) most = std::min(most, int64_t(pool.pages) * kPagePositions);
  return int(most);
}

Serving::Serving(Engine& engine, LoadedModelPtr on, const SchedulerOptions& options)
    : engine_(engine),
      on_(std::move(on)),
      options_(options),
      prompt_rows_(options.prompt_rows ? options.prompt_rows : 64) {
  const RunOptions& o = plan().options;
  batch_.rows.reserve(size_t(o.batch));
  const auto places = size_t(Serving::places(plan()));
  running_.reserve(places), parts_.reserve(places), asked_.reserve(places), prompts_.reserve(places);
  count();
}

void Serving::add(std::unique_ptr<Generation> g) {
  if (!g->over()) return waiting_.add(std::move(g));
  numbers_.prompt_tokens += uint64_t(g->prompt_tokens());  // nothing was asked for, or all was told already
  numbers_.requests++;
  g->tell_end();
}

// ---- what a step computes

void Serving::add_rows(Generation& g, int rows) {
  Sequence& s = *g.sequence;
  const auto at = size_t(s.computed());
  const bool whole = at + size_t(rows) == g.text().size();
  for (size_t i = at; i < at + size_t(rows); i++) batch_.rows.push_back({&s, g.text()[i], int32_t(i), {}});
  if (whole) {
    batch_.rows.back().wants = g.wants(model(), &batch_.top);
    asked_.push_back(&g);
  }
  parts_.push_back({&g, rows});
}

// Next tokens first: a long prompt makes a step longer by a bounded piece. With drafts (runtime/drafting.h),
// those of a request would be rows behind its next token.
void Serving::assemble() {
  batch_.rows.clear(), batch_.top = 0;
  parts_.clear(), asked_.clear(), prompts_.clear();
  for (const auto& g : running_) {
    if (g->missing() == 1) add_rows(*g, 1);
    else prompts_.push_back(g.get());
  }
  std::sort(prompts_.begin(), prompts_.end(), [](const Generation* a, const Generation* b) {
    return a->client->served != b->client->served ? a->client->served < b->client->served
                                                  : a->admitted < b->admitted;
  });
  int left = plan().options.batch - int(batch_.rows.size());
  mixed_ = !batch_.rows.empty();
  if (mixed_) left = std::min(left, prompt_rows_);
  for (Generation* g : prompts_) {
    int rows = std::min(left, g->missing());
    if (const int until = g->checkpoint_at - g->sequence->computed(); until > 0) rows = std::min(rows, until);
    if (rows > 0) add_rows(*g, rows), left -= rows;
  }
  mixed_ = mixed_ && left == 0;
}

// A row takes a GPU a hundredth of what it takes a small CPU.
void Serving::adapt(double seconds) {
  if (options_.prompt_rows || !mixed_) return;
  if (seconds > kMixedStep) prompt_rows_ = std::max(32, prompt_rows_ / 2);
  else if (seconds < kMixedStep / 2) prompt_rows_ = std::min(plan().options.batch, prompt_rows_ * 2);
}

// Of the pool that lacks the most.
int Serving::pages_missing() const {
  const SequencePool& all = on_->model->sequences();
  int most = 0;
  for (size_t p = 0; p < all.pools().size(); p++) {
    if (!whole_context(all.pools()[p])) continue;  // there are enough for as many sequences as there can be
    int wanted = 0;
    for (const Part& part : parts_) wanted += all.pages_wanted(*part.generation->sequence, part.rows, p);
    most = std::max(most, wanted - all.free_pages(p));
  }
  return most;
}

// What was kept goes first; then who came last gives up its place, of the client that has most of them.
void Serving::make_room() {
  for (;;) {
    assemble();
    while (pages_missing() > 0)
      if (!kept_.shrink()) break;
    if (pages_missing() <= 0 || running_.size() == 1) return;
    preempt(*waiting_.most_running());
  }
}

Status Serving::step() {
  admit();
  if (!running_.empty()) {
    make_room();
    const double begin = now();
    auto out = model().forward(batch_);
    adapt(now() - begin);
    Status ok = out ? told(*out) : Status(out.error());
    if (!ok && ok.error().code == Code::DeviceLost) ok = go_on_elsewhere(ok.error());
    else if (!ok) ok = fail_step(ok.error());
    if (!ok) return ok;
  }
  count();
  return Done{};
}

// Every one whose text is whole gets its next token. Errors: the device's; the others get theirs later.
Status Serving::told(const StepOutput& out) {
  numbers_.steps++, numbers_.rows += batch_.rows.size();
  for (const Part& part : parts_) {
    part.generation->client->served += uint64_t(part.rows);
    Sequence& s = *part.generation->sequence;
    if (s.computed() == part.generation->checkpoint_at) s.checkpoint();
  }
  const double at = now();
  for (size_t k = 0; k < asked_.size(); k++) {
    Generation& g = *asked_[k];
    const double before = g.last_told;
    auto told = g.take(model(), out, k, at);
    if (!told && told.error().code == Code::DeviceLost) return told.error();
    if (!told) g.tell_failed(told.error());
    if (!told || !*told) continue;
    numbers_.tokens_generated++;
    if (before > 0) numbers_.between_tokens.add(at - before);
    else numbers_.first_token.add(at - g.submitted);
  }
  for (size_t i = running_.size(); i-- > 0;) {
    Generation& g = *running_[i];
    if (!g.over()) continue;
    if (!g.failed()) g.tell_end();
    leave(i);
  }
  return Done{};
}

// A step that could not be: nothing has changed, and those that had no part in it go on.
Status Serving::fail_step(const Error& why) {
  for (size_t i = running_.size(); i-- > 0;)
    if (std::any_of(parts_.begin(), parts_.end(),
                    [&](const Part& part) { return part.generation == running_[i].get(); })) {
      running_[i]->tell_failed(why);
      leave(i);
    }
  return Done{};
}

// What was told stays told: all texts are computed anew from their tokens, in the order in which they came.
Status Serving::go_on_elsewhere(const Error& lost) {
  numbers_.devices_lost++;
  kept_.clear();
  const size_t texts = running_.size();
  while (!running_.empty()) put_back(running_.size() - 1);
  const Status moved = engine_.recover(on_, lost, format("{} text{}", texts, texts == 1 ? "" : "s"));
  if (!moved) end_all(&moved.error());
  return moved;
}

// ---- who leaves

void Serving::leave(size_t i) {
  auto g = std::move(running_[i]);
  running_.erase(running_.begin() + ptrdiff_t(i));
  if (!g->failed()) kept_.keep(std::move(g->sequence));
  waiting_.ended(*g->client);
  numbers_.requests++;
}

void Serving::cancel(uint64_t id) {
  for (size_t i = 0; i < running_.size(); i++) {
    if (running_[i]->id != id) continue;
    running_[i]->tell_cancelled();
    return leave(i);
  }
  if (auto g = waiting_.remove(id)) {
    g->tell_cancelled();
    numbers_.requests++;
  }
}

void Serving::end_all(const Error* why) {
  auto tell = [&](Generation& g) { why ? g.tell_failed(*why) : g.tell_cancelled(); };
  while (!running_.empty()) tell(*running_.back()), leave(running_.size() - 1);
  while (auto g = waiting_.remove_any()) tell(*g), numbers_.requests++;
  count();
}

}  // namespace gimbal
