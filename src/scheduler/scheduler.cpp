#include "scheduler/scheduler.h"

#include <algorithm>

#include "base/clock.h"
#include "base/format.h"
#include "runtime/session.h"

namespace gimbal {
namespace {

bool whole_context(const StatePool& p) { return p.kind == StateKind::Paged && p.window == 0; }

}  // namespace

int Scheduler::places(const ModelPlan& p) {
  return std::min({p.options.sequences, p.options.logit_rows, p.options.batch});
}

int Scheduler::capacity(const ModelPlan& p) {
  int64_t most = p.options.context;
  for (const StatePool& pool : p.pools)
    if (whole_context(pool)) most = std::min(most, int64_t(pool.pages) * kPagePositions);
  return int(most);
}

Scheduler::Scheduler(ModelPtr model, OnDeviceLost on_device_lost, const SchedulerOptions& options,
                     std::function<void()> mask_found)
    : model_(std::move(model)),
      on_device_lost_(std::move(on_device_lost)),
      options_(options),
      speculation_(options.drafts),
      masks_(std::move(mask_found)),
      prefixes_(options.prefixes) {
  const RunOptions& o = plan().options;
  batch_.rows.reserve(size_t(o.batch));
  const auto places = size_t(Scheduler::places(plan()));
  running_.reserve(places), parts_.reserve(places), next_.reserve(places), prompts_.reserve(places);
  count();
}

void Scheduler::add(std::unique_ptr<ScheduledRequest> g) {
  if (!g->over()) return waiting_.add(std::move(g));
  numbers_.prompt_tokens +=
      uint64_t(g->text.prompt_tokens());  // no token was requested, or all of them were sent already
  numbers_.requests++;
  g->emit_end();
}

// ---- the contents of a step

void Scheduler::add_rows(ScheduledRequest& g, int rows, std::span<const Token> drafts) {
  parts_.push_back({&g, g.text.add_rows(*model_, *g.sequence, rows, drafts, batch_)});
  if (g.drafting && g.drafting->watcher()) batch_.states = plan().width(Output::States) > 0;
}

// The rows that give a text its next tokens. False: its drafter failed, and it must end.
bool Scheduler::add_drafted(ScheduledRequest& g, int most) {
  const auto drafts = speculation_.propose(g, std::min(most, g.text.most_drafts()));
  if (!drafts) return g.emit_failed(drafts.error()), false;
  if (!drafts->empty()) g.sequence->mark();
  return add_rows(g, g.missing(), *drafts), true;
}

// The next rows of a prompt, at most `most`. Each running text has one row with logits in a step; a prompt
// that is scored takes more while there are some to spare.
int Scheduler::rows_of_prompt(const ScheduledRequest& g, int most, int& spare_logits) {
  int rows = std::min(most, g.missing());
  if (const int until = g.checkpoint_at - g.sequence->computed(); until > 0) rows = std::min(rows, until);
  if (rows == g.missing() && (g.text.ended() || !g.may_choose(masks_))) rows--;
  if (g.text.scored()) return rows;
  const int unscored = int(g.text.reusable()) - g.sequence->computed();
  rows = std::min(rows, std::max(0, unscored) + 1 + spare_logits);
  spare_logits -= std::max(0, rows - std::max(0, unscored) - 1);
  return rows;
}

// The same without a part of a picture whose rows must be in one step; all of it if the step has room.
static int without_parts(const ScheduledRequest& g, int rows, int room) {
  const auto at = size_t(g.sequence->computed());
  const int whole = whole_rows(g.text.inputs(), at, rows);
  if (whole > 0 || rows <= 0) return whole;
  const InputItem first = g.text.inputs()[at];
  const int picture = (*first.of)->rows() - first.row;
  return picture <= room ? picture : 0;
}

// Next tokens first: a long prompt makes a step longer by a bounded piece. Only steps without prompts have
// drafts, which take the remaining rows.
void Scheduler::assemble(bool drafts) {
  batch_.rows.clear(), batch_.top = 0, batch_.states = false;
  parts_.clear(), next_.clear(), prompts_.clear();
  int left = plan().options.batch - int(running_.size()), rows = 0;
  for (const auto& g : running_) {
    if (g->over()) continue;
    if (g->goes_on() && !g->may_choose(masks_)) continue;
    if (g->goes_on() && g->again <= left) left -= g->again, rows += g->missing(), next_.push_back(g.get());
    else prompts_.push_back(g.get());
  }
  speculation_.begin(int(next_.size()), rows);
  const int most = drafts && prompts_.empty() ? plan().options.drafts : 0;
  const int room = std::min(plan().options.logit_rows - int(next_.size()), left);
  for (ScheduledRequest* g : next_) add_drafted(*g, std::min(most, room - speculation_.drafts()));
  std::sort(prompts_.begin(), prompts_.end(), [](const ScheduledRequest* a, const ScheduledRequest* b) {
    return a->client->served != b->client->served ? a->client->served < b->client->served
                                                  : a->admitted < b->admitted;
  });
  rows = int(batch_.rows.size()), left = plan().options.batch - rows;
  mixed_ = rows > 0;
  const int of_prompts =
      options_.prompt_rows ? options_.prompt_rows : std::max(kMixedPromptRows, mixed_rows_ - rows);
  if (mixed_) left = std::min(left, of_prompts);
  int spare_logits = plan().options.logit_rows - int(running_.size());
  for (ScheduledRequest* g : prompts_)
    if (const int rows = without_parts(*g, rows_of_prompt(*g, left, spare_logits),
                                       plan().options.batch - int(batch_.rows.size()));
        rows > 0)
      add_rows(*g, rows, {}), left -= rows;
  mixed_ = mixed_ && left == 0;
}

// A row takes a GPU a hundredth of a small CPU's time.
void Scheduler::adapt(double seconds) {
  if (options_.prompt_rows || !mixed_) return;
  if (seconds > kMixedStep) mixed_rows_ = std::max(kMixedRows, mixed_rows_ / 2);
  else if (seconds < kMixedStep / 2) mixed_rows_ = std::min(plan().options.batch, mixed_rows_ * 2);
}

// Of the pool that lacks the most.
int Scheduler::pages_missing() const {
  const SequencePool& all = model_->sequences();
  int most = 0;
  for (size_t p = 0; p < all.pools().size(); p++) {
    if (!whole_context(all.pools()[p])) continue;  // enough for the most sequences possible
    int wanted = 0;
    for (const Part& part : parts_) wanted += all.pages_wanted(*part.generation->sequence, part.rows.rows, p);
    most = std::max(most, wanted - all.free_pages(p));
  }
  return most;
}

// Drops kept prefixes first, then drafts; then the youngest request of the client with the most places
// gives up its place.
void Scheduler::make_room() {
  for (bool drafts = true;;) {
    assemble(drafts);
    while (pages_missing() > 0)
      if (!kept_.shrink()) break;
    if (pages_missing() <= 0) return;
    if (speculation_.drafts() > 0) {
      drafts = false;
      continue;
    }
    if (running_.size() == 1) return;
    preempt(*waiting_.most_running());
  }
}

Status Scheduler::step() {
  admit();
  masks_.begin_step();
  stalled_ = false;
  if (!running_.empty()) {
    make_room();
    if (batch_.rows.empty()) {
      const size_t before = running_.size();
      leave_who_is_over();
      stalled_ = before == running_.size();
      return Done{};
    }
    for (const Part& part : parts_) part.generation->emit_begun();
    offer_stored();
    const double begin = now();
    auto out = model_->forward(batch_);
    const double seconds = now() - begin;
    if (prefixes_ && out) prefixes_->took(int(batch_.rows.size()), seconds);
    adapt(seconds);
    Status ok = out ? deliver(*out, seconds) : Status(out.error());
    if (!ok && ok.error().code == Code::DeviceLost) ok = go_on_elsewhere(ok.error());
    else if (!ok) ok = fail_step(ok.error());
    if (!ok) return ok;
  }
  count();
  return Done{};
}

// Picks tokens of one text from the results of its rows, the k-th and later ones. Returns their number.
// Errors: the device's.
Result<int> Scheduler::emit(const Part& part, const StepOutput& out, size_t k, double at) {
  ScheduledRequest& g = *part.generation;
  const int held = g.sequence->computed() - part.rows.drafts;  // without drafts
  const auto picked = g.text.pick(
      *model_, out, k, part.rows,
      [&](const TokenEvent& event) {
        numbers_.tokens_generated++;
        if (g.last_token_at > 0) numbers_.between_tokens.add(at - g.last_token_at);
        else numbers_.first_token.add(at - g.submitted);
        return g.emit(event, at), true;
      },
      [&] { return g.may_choose(masks_); });
  if (!picked.ok && picked.ok.error().code == Code::DeviceLost) return picked.ok.error();
  if (!picked.ok) g.emit_failed(picked.ok.error());
  if (picked.stop) g.emit_scored(*picked.stop);
  g.drafted += uint64_t(part.rows.drafts), g.accepted += uint64_t(picked.right);
  if (g.drafting) g.drafting->emitted(1 + picked.right);
  g.sequence->truncate(held + picked.right);
  g.again = std::max(0, g.missing() - 1);
  return 1 + picked.right;
}

// Each request with its whole text gets its next tokens. Errors: the device's; the others get theirs later.
Status Scheduler::deliver(const StepOutput& out, double seconds) {
  numbers_.steps++, numbers_.rows += batch_.rows.size();
  for (const Part& part : parts_) {
    ScheduledRequest& g = *part.generation;
    Sequence& s = *g.sequence;
    g.client->served += uint64_t(part.rows.rows);
    if (s.computed() == g.checkpoint_at) s.checkpoint();
    if (StepWatcher* w = g.drafting ? g.drafting->watcher() : nullptr; w && batch_.states)
      w->computed(s.tokens(), batch_.rows[part.rows.first].position,
                  out.states(part.rows.first, size_t(part.rows.rows)));
  }
  const double at = now();
  int tokens = 0;
  size_t k = 0;
  for (const Part& part : parts_) {
    ScheduledRequest& g = *part.generation;
    const Status scored =
        g.text.score(out, k, part.rows, [&](const TokenEvent& event) { g.emit_scored(event); });
    if (!scored) g.emit_failed(scored.error());
    k += size_t(part.rows.scored);
    if (part.rows.results == 0) continue;
    if (scored) {
      const auto picked = emit(part, out, k, at);
      if (!picked) return picked.error();
      tokens += *picked;
    }
    k += size_t(part.rows.results);
  }
  if (prompts_.empty()) speculation_.took(tokens, seconds);
  leave_who_is_over();
  return Done{};
}

// A step that failed to start: nothing has changed, and requests outside it continue.
Status Scheduler::fail_step(const Error& why) {
  for (size_t i = running_.size(); i-- > 0;)
    if (std::any_of(parts_.begin(), parts_.end(),
                    [&](const Part& part) { return part.generation == running_[i].get(); })) {
      running_[i]->emit_failed(why);
      leave(i);
    }
  return Done{};
}

// Tokens already sent stay valid: computes all texts again from their tokens, in the order of admission.
Status Scheduler::go_on_elsewhere(const Error& lost) {
  numbers_.devices_lost++;
  kept_.clear();
  const size_t texts = running_.size();
  while (!running_.empty()) put_back(running_.size() - 1);
  const Status moved = on_device_lost_(lost, [&](const ModelPtr& next) -> Result<std::string> {
    model_ = next;
    if (prefixes_ && !prefixes_->fits(*next)) {
      prefixes_->pages().note(
          format("texts are no longer stored: {} keeps pages in another form", next->device().id()));
      prefixes_ = nullptr;
    }
    return format("{} text{}", texts, texts == 1 ? "" : "s");
  });
  if (!moved) end_all(&moved.error());
  return moved;
}

// ---- requests that leave

void Scheduler::leave_who_is_over() {
  for (size_t i = running_.size(); i-- > 0;) {
    ScheduledRequest& g = *running_[i];
    if (!g.over()) continue;
    if (!g.failed()) g.emit_end();
    leave(i);
  }
}

void Scheduler::leave(size_t i) {
  auto g = std::move(running_[i]);
  running_.erase(running_.begin() + ptrdiff_t(i));
  if (!g->failed() && g->stored && prefixes_) prefixes_->finish(*model_, *g->sequence, *g->stored);
  if (!g->failed()) kept_.keep(std::move(g->sequence));
  waiting_.ended(*g->client);
  numbers_.requests++;
}

void Scheduler::cancel(uint64_t id) {
  for (size_t i = 0; i < running_.size(); i++) {
    if (running_[i]->id != id) continue;
    running_[i]->emit_cancelled();
    return leave(i);
  }
  if (auto g = waiting_.remove(id)) {
    g->emit_cancelled();
    numbers_.requests++;
  }
}

void Scheduler::end_all(const Error* why) {
  auto emit = [&](ScheduledRequest& g) { why ? g.emit_failed(*why) : g.emit_cancelled(); };
  while (!running_.empty()) emit(*running_.back()), leave(running_.size() - 1);
  while (auto g = waiting_.remove_any()) emit(*g), numbers_.requests++;
  count();
}

}  // namespace gimbal
