#include "runtime/session.h"

#include <algorithm>

#include "base/clock.h"
#include "base/format.h"

namespace gimbal {

Result<std::unique_ptr<Session>> Session::create(Model& model) {
  auto sequence = model.new_sequence();
  if (!sequence) return sequence.error();
  return std::unique_ptr<Session>(new Session(model, std::move(*sequence)));
}

Result<std::unique_ptr<Session>> Session::fork() const {
  auto sequence = sequence_->fork();
  if (!sequence) return sequence.error();
  std::unique_ptr<Session> made(new Session(*model_, std::move(*sequence)));
  made->max_rows_ = max_rows_;
  return made;
}

Session::Session(Model& model, std::unique_ptr<Sequence> sequence)
    : model_(&model), sequence_(std::move(sequence)), max_rows_(model.plan().options.batch) {
  batch_.rows.reserve(size_t(max_rows_));
}

void Session::limit_batch(int rows) { max_rows_ = std::clamp(rows, 1, model_->plan().options.batch); }

Status Session::move_to(Model& other) {
  const Config &from = model_->config(), &to = other.config();
  if (from.arch != to.arch || from.layers != to.layers || from.width != to.width ||
      from.vocabulary != to.vocabulary)
    return Error{Code::Usage, "a conversation can only continue on the same model, and this is another one",
                 "load the same model on the other device"};
  if (other.context() < position())
    return Error{Code::Usage,
                 format("the conversation has {} tokens, but the target has a context of {}", position(),
                        other.context()),
                 format("load the model with a 'context' of {} or more there", position()),
                 reason::kContextFull, "context"};
  auto there = create(other);
  if (!there) return there.error();
  Session& s = **there;
  s.watch(watcher_);
  if (auto ok = s.adapt(inputs().adapters()); !ok) return ok;
  if (auto ok = s.advance(inputs(), Wanted::None, {}); !ok) return ok.error();
  if (store_ && !store_->fits(other)) {
    store_->pages().note(
        format("pages are no longer stored: {} keeps them in another form", other.device().id()));
    store_ = nullptr;
  }
  std::swap(model_, s.model_), std::swap(sequence_, s.sequence_);
  std::swap(batch_, s.batch_);
  max_rows_ = s.max_rows_;
  return Done{};  // the old sequence ends with `there`
}

Status Session::recover(const Error& failed) {
  if (failed.code != Code::DeviceLost || !on_device_lost_) return failed;
  bool moved = false;
  auto ok = on_device_lost_(failed, [&](const ModelPtr& next) -> Result<std::string> {
    if (auto there = move_to(*next); !there) return there.error();
    moved = true;
    return format("{} tokens", position());
  });
  return ok && !moved ? Status(failed) : ok;
}

void Session::begin_step() {
  batch_.rows.clear(), batch_.top = 0;
  batch_.states = watcher_ && model_->plan().width(Output::States) > 0;
}

Result<StepOutput> Session::compute() {
  const int first = sequence_->computed();
  if (store_) store_->offer(*model_, *sequence_, stored());
  const double begin = now();
  auto out = model_->forward(batch_);
  if (store_ && out) store_->took(int(batch_.rows.size()), now() - begin);
  if (out && batch_.states) watcher_->computed(tokens(), first, out->states());
  return out;
}

Result<StepOutput> Session::step(TextState& text, int rows, std::span<const int32_t> drafts, TextRows& part) {
  begin_step();
  part = text.add_rows(*model_, *sequence_, rows, drafts, batch_);
  return compute();
}

Result<StepOutput> Session::step(size_t again, const InputView& inputs, Wanted wanted, Wants wants) {
  begin_step();
  batch_.top = top_;
  auto add = [&](const InputItem& input, Wants of_row) {
    batch_.rows.push_back({sequence_.get(), input, sequence_->computed() + int(batch_.rows.size()), of_row});
  };
  for (size_t i = 0; i < again; i++) add(this->inputs()[size_t(sequence_->computed()) + i], {});
  for (size_t i = 0; i < inputs.size(); i++) {
    const bool asked = wanted == Wanted::All || (wanted == Wanted::Last && i + 1 == inputs.size());
    add(inputs[i], asked ? wants : Wants{});
  }
  return compute();
}

// Computes missing tokens, except a rest that fits into a step with new tokens.
Status Session::catch_up() {
  while (missing() >= max_rows_) {
    const int rows = whole_rows(inputs(), size_t(sequence_->computed()), max_rows_);
    if (rows == 0) return too_long_for_a_step(inputs(), size_t(sequence_->computed()), max_rows_);
    if (auto ok = step(size_t(rows), {}, Wanted::None, {}); !ok)
      if (auto moved = recover(ok.error()); !moved) return moved;
  }
  return Done{};
}

// Passes on the output of every step with requested results, and the index of its first token.
template <class Take>
Status Session::run(const InputView& inputs, Wanted wanted, Wants wants, Take take) {
  const ModelPlan& plan = model_->plan();
  if (auto ok = check_inputs(inputs, plan.config.vocabulary, plan.embedding_width()); !ok) return ok;
  if (model_->plan().whole_texts)
    if (auto ok = model_->plan().check_text(inputs.size()); !ok) return ok;
  if (auto ok = catch_up(); !ok) return ok;
  for (size_t at = 0; at < inputs.size();) {
    if (room() == 0)
      return Error{Code::Failed, format("context full: all {} positions are used", model_->context()),
                   format("start with a larger 'context' (the model was trained on {} positions)",
                          model_->config().context),
                   reason::kContextFull, "context"};
    const auto again = size_t(missing());
    size_t n = std::min({inputs.size() - at, size_t(max_rows_) - again, size_t(room())});
    if (wanted == Wanted::All) n = std::min(n, size_t(model_->plan().options.logit_rows));
    if (n = size_t(whole_rows(inputs, at, int(n))); n == 0 && again == 0)
      return too_long_for_a_step(inputs, at, max_rows_);
    const Wanted here = wanted == Wanted::Last && at + n < inputs.size() ? Wanted::None : wanted;
    auto out = step(again, inputs.subview(at, n), here, wants);
    if (!out) {
      if (auto moved = recover(out.error()); !moved) return moved;
      continue;
    }
    if (here == Wanted::Last) take(at + n - 1, *out, 0);
    for (size_t i = 0; i < n && here == Wanted::All; i++) take(at + i, *out, i);
    at += n;
  }
  return Done{};
}

Status Session::advance(const InputView& inputs, Wanted wanted, const Sink& sink, Output output) {
  const bool hidden = output == Output::Hidden;
  return run(inputs, wanted, {.logits = !hidden, .hidden = hidden},
             [&](size_t index, const StepOutput& out, size_t k) {
               sink(index, hidden ? out.hidden(k) : out.logits(k));
             });
}

Result<TopLogits> Session::advance_top(const InputView& inputs, int k) {
  if (inputs.empty() || k < 1 || k > max_top())
    return Error{Code::Usage,
                 format("the first {} logits of {} tokens cannot be requested", k, inputs.size()), ""};
  top_ = k;
  TopLogits found;
  auto ok = run(inputs, Wanted::Last, {.top = true},
                [&](size_t, const StepOutput& out, size_t row) { found = out.top(row); });
  if (!ok) return ok.error();
  return found;
}

StoredText& Session::stored() {
  if (!stored_) stored_ = store_->text(inputs().adapters());
  return *stored_;
}

Result<int> Session::take_stored(const InputView& wanted) {
  if (!store_ || wanted.empty()) return 0;
  const InputView text = wanted.first(wanted.size() - 1).adapted(inputs().adapters());
  const auto same = int(common_prefix(inputs(), text));
  if (int(text.size()) < same + kPagePositions) return 0;
  if (same > 0 && store_->find(stored(), text) < sequence_->keeps(same) + kPagePositions) return 0;
  stored_ = store_->text(inputs().adapters());
  sequence_->truncate(0);
  auto taken = store_->restore(*model_, *sequence_, text, *stored_);
  if (!taken && taken.error().code == Code::OutOfMemory) return 0;  // computing needs less at a time
  return taken;
}

void Session::finish_stored() {
  if (store_) store_->finish(*model_, *sequence_, stored());
}

int Session::rows_of_step(int missing) {
  const int rows = std::min(missing, max_rows_);
  if (!store_ || !store_->has_states()) return rows;
  const int at = sequence_->computed(), end = (at + missing - 1) / kPagePositions * kPagePositions;
  if (end <= at) return rows;
  stored().keep_state_at(end);
  return std::min(rows, end - at);
}

int Session::keep_common(const InputView& wanted) {
  const size_t most = wanted.empty() ? 0 : wanted.size() - 1;
  const auto same = int(common_prefix(inputs(), wanted.first(most).adapted(inputs().adapters())));
  rewind(same);
  return same;
}

}  // namespace gimbal
