#include "runtime/session.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"

namespace gimbal {

Result<std::unique_ptr<Session>> Session::create(Model& model) {
  for (size_t i = 0; i < model.sequence_taken_.size(); i++)
    if (!model.sequence_taken_[i]) {
      model.sequence_taken_[i] = true;
      return std::unique_ptr<Session>(new Session(model, int(i)));
    }
  return Error{
      Code::OutOfMemory,
      format("all {} conversations that this model was loaded for are in use", model.sequence_taken_.size()),
      ""};
}

Session::Session(Model& model, int sequence)
    : model_(model), sequence_(sequence), batch_(model.blueprint().options.batch) {
  const Blueprint& b = model.blueprint();
  pages_.reserve(size_t(b.pages_per_sequence));
  out_rows_.reserve(size_t(b.options.logit_rows));
  staging_.resize(b.memory.step);
  logits_.resize(size_t(b.options.logit_rows) * size_t(b.config.vocabulary));
}

Session::~Session() {
  rewind(0);
  model_.sequence_taken_[size_t(sequence_)] = false;
}

void Session::rewind(int position) {
  position_ = std::clamp(position, 0, position_);
  const size_t keep = size_t((position_ + kPagePositions - 1) / kPagePositions);
  while (pages_.size() > keep) {
    model_.free_pages_.push_back(pages_.back());
    pages_.pop_back();
  }
}

void Session::limit_batch(int rows) { batch_ = std::clamp(rows, 1, model_.blueprint().options.batch); }

Status Session::advance(std::span<const int32_t> tokens, Wanted wanted, const Sink& sink) {
  const Config& c = model_.config();
  for (int32_t t : tokens)
    if (t < 0 || t >= c.vocabulary)
      return Error{Code::Usage,
                   format("token {} is not in the model's vocabulary (0 to {})", t, c.vocabulary - 1), ""};
  const int logit_rows = model_.blueprint().options.logit_rows;
  std::vector<int32_t>& out_rows = out_rows_;
  for (size_t at = 0; at < tokens.size();) {
    if (room() == 0)
      return Error{Code::Failed, format("context full: all {} positions are used", model_.context()),
                   format("start with a larger --ctx (the model was trained on {} positions)", c.context)};
    size_t n = std::min({tokens.size() - at, size_t(batch_), size_t(room())});
    if (wanted == Wanted::All) n = std::min(n, size_t(logit_rows));
    out_rows.clear();
    if (wanted == Wanted::All)
      for (size_t i = 0; i < n; i++) out_rows.push_back(int32_t(i));
    else if (wanted == Wanted::Last && at + n == tokens.size()) out_rows.push_back(int32_t(n - 1));
    if (auto ok = step(tokens.subspan(at, n), out_rows); !ok) return ok.error();
    for (size_t i = 0; i < out_rows.size(); i++)
      sink(at + size_t(out_rows[i]),
           std::span(logits_).subspan(i * size_t(c.vocabulary), size_t(c.vocabulary)));
    at += n;
  }
  return Done{};
}

Status Session::step(std::span<const int32_t> tokens, std::span<const int32_t> out_rows) {
  const Blueprint& b = model_.blueprint();
  size_t which = 0;
  while (size_t(b.buckets[which].rows) < tokens.size()) which++;
  const Bucket& bucket = b.buckets[which];
  const Program& p = bucket.program;

  const auto rows = int(tokens.size());
  while (int(pages_.size()) * kPagePositions < position_ + rows) {
    pages_.push_back(model_.free_pages_.back());  // sized so that every sequence can have all of its context
    model_.free_pages_.pop_back();
  }
  auto at = [&](Value v) { return staging_.data() + p.values[v.id].offset; };
  auto put = [&](Value v, int i, int32_t x) { std::memcpy(at(v) + 4 * i, &x, 4); };
  const int rotated = b.config.rope.rotated();
  for (int i = 0; i < rows; i++) {
    put(bucket.step.tokens, i, tokens[size_t(i)]);
    put(bucket.step.positions, i, position_ + i);
    put(bucket.step.sequences, i, sequence_);
    b.config.rope.fill(position_ + i, reinterpret_cast<float*>(at(bucket.step.rope)) + i * rotated);
  }
  for (size_t i = 0; i < pages_.size(); i++)
    put(bucket.step.pages, sequence_ * b.pages_per_sequence + int(i), pages_[i]);
  for (size_t i = 0; i < out_rows.size(); i++) put(bucket.step.out_rows, int(i), out_rows[i]);

  const Device& device = model_.device();
  if (auto ok = device.write(model_.buffers_[size_t(Slot::Step)], 0, staging_.data(),
                             p.slot_bytes[size_t(Slot::Step)]);
      !ok)
    return ok.error();
  gimbal_buffer* slots[kSlots];
  for (size_t s = 0; s < kSlots; s++) slots[s] = model_.buffers_[s].handle();
  const gimbal_step step{rows, int32_t(out_rows.size())};
  if (auto ok = device.submit(model_.executables_[which], slots, kSlots, step); !ok) return ok.error();
  if (auto ok = device.wait(); !ok) return ok.error();
  if (!out_rows.empty()) {
    const size_t bytes = out_rows.size() * size_t(b.config.vocabulary) * sizeof(float);
    if (auto ok = device.read(model_.buffers_[size_t(Slot::Output)], p.values[bucket.logits.id].offset,
                              logits_.data(), bytes);
        !ok)
      return ok.error();
  }
  position_ += rows;
  return Done{};
}

}  // namespace gimbal
