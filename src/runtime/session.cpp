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
    : model_(&model), sequence_(sequence), batch_(model.blueprint().options.batch) {
  const Blueprint& b = model.blueprint();
  tokens_.reserve(size_t(b.options.context));
  pages_.reserve(size_t(b.pages_per_sequence));
  out_rows_.reserve(size_t(b.options.logit_rows));
  for (const Part& part : b.parts) staging_.emplace_back(part.memory.step);
  logits_.resize(
      std::max(size_t(b.options.logit_rows) * size_t(b.config.vocabulary), size_t(2 * most_leading())));
}

Session::~Session() { leave(); }

void Session::leave() {
  rewind(0);
  model_->sequence_taken_[size_t(sequence_)] = false;
}

void Session::rewind(int position) {
  tokens_.resize(size_t(std::clamp(position, 0, this->position())));
  const size_t keep = (tokens_.size() + kPagePositions - 1) / kPagePositions;
  while (pages_.size() > keep) {
    model_->free_pages_.push_back(pages_.back());
    pages_.pop_back();
  }
}

void Session::limit_batch(int rows) { batch_ = std::clamp(rows, 1, model_->blueprint().options.batch); }

Status Session::move_to(Model& other) {
  const Config &from = model_->config(), &to = other.config();
  if (from.arch != to.arch || from.layers != to.layers || from.width != to.width ||
      from.vocabulary != to.vocabulary)
    return Error{Code::Usage, "a conversation can only go on on the same model, and this is another one",
                 "load the same model on the other device"};
  if (other.context() < position())
    return Error{Code::Usage,
                 format("the conversation has {} tokens, and there is a context of {} where it should go on",
                        position(), other.context()),
                 format("load the model with a 'context' of {} or more there", position()),
                 reason::kContextFull, "context"};
  auto there = create(other);
  if (!there) return there.error();
  Session& s = **there;
  if (auto ok = s.advance(tokens_, Wanted::None, {}); !ok) return ok.error();
  std::swap(model_, s.model_), std::swap(sequence_, s.sequence_);
  std::swap(tokens_, s.tokens_), std::swap(pages_, s.pages_);
  std::swap(staging_, s.staging_), std::swap(logits_, s.logits_), std::swap(out_rows_, s.out_rows_);
  batch_ = s.batch_;
  return Done{};  // what was held before goes with `there`
}

Status Session::advance(std::span<const int32_t> tokens, Wanted wanted, const Sink& sink) {
  const Config& c = model_->config();
  for (int32_t t : tokens)
    if (t < 0 || t >= c.vocabulary)
      return Error{Code::Usage,
                   format("token {} is not in the model's vocabulary (0 to {})", t, c.vocabulary - 1), ""};
  const int logit_rows = model_->blueprint().options.logit_rows;
  std::vector<int32_t>& out_rows = out_rows_;
  for (size_t at = 0; at < tokens.size();) {
    if (room() == 0)
      return Error{Code::Failed, format("context full: all {} positions are used", model_->context()),
                   format("start with a larger 'context' (the model was trained on {} positions)", c.context),
                   reason::kContextFull, "context"};
    size_t n = std::min({tokens.size() - at, size_t(batch_), size_t(room())});
    if (wanted == Wanted::All) n = std::min(n, size_t(logit_rows));
    out_rows.clear();
    if (wanted == Wanted::All)
      for (size_t i = 0; i < n; i++) out_rows.push_back(int32_t(i));
    else if (wanted == Wanted::Last && at + n == tokens.size()) out_rows.push_back(int32_t(n - 1));
    if (auto ok = step(tokens.subspan(at, n), out_rows); !ok) return ok.error();
    for (size_t i = 0; i < out_rows.size() && leading_ < 0; i++)
      sink(at + size_t(out_rows[i]),
           std::span(logits_).subspan(i * size_t(c.vocabulary), size_t(c.vocabulary)));
    at += n;
  }
  return Done{};
}

int Session::most_leading() const {
  const auto& all = model_->blueprint().last().leading;
  return all.empty() ? 0 : all.back().k;
}

Result<Leading> Session::advance_leading(std::span<const int32_t> tokens, int k) {
  if (tokens.empty() || k < 1 || k > most_leading())
    return Error{Code::Usage,
                 format("the first {} logits of {} tokens cannot be asked for", k, tokens.size()), ""};
  const auto& all = model_->blueprint().last().leading;
  leading_ = 0;
  while (all[size_t(leading_)].k < k) leading_++;
  const auto found = std::span(logits_).first(size_t(2 * all[size_t(leading_)].k));
  auto ok = advance(tokens, Wanted::Last, {});
  leading_ = -1;
  if (!ok) return ok.error();
  return Leading{found.first(size_t(k)), found.subspan(found.size() / 2, size_t(k))};
}

Result<std::span<const float>> Session::all_logits() {
  const Bucket& bucket = model_->blueprint().last().buckets[0];
  const auto n = size_t(model_->config().vocabulary);
  if (auto ok = read_output(bucket.program.values[bucket.logits.id].offset, n); !ok) return ok.error();
  return std::span<const float>(logits_).first(n);
}

Status Session::take_leading(gimbal_step step) {
  const Blueprint& b = model_->blueprint();
  Model::Held& held = model_->held_.back();
  gimbal_buffer* slots[kSlots];
  for (size_t s = 0; s < kSlots; s++) slots[s] = held.buffers[s].handle();
  const LeadingProgram& l = b.last().leading[size_t(leading_)];
  if (auto ok = b.device().submit(held.leading[size_t(leading_)], slots, kSlots, step); !ok)
    return ok.error();
  if (auto ok = b.device().wait(); !ok) return ok.error();
  return read_output(l.offset, size_t(2 * l.k));
}

Status Session::read_output(uint64_t offset, size_t values) {
  return model_->blueprint().device().read(model_->held_.back().buffers[size_t(Slot::Output)], offset,
                                           logits_.data(), values * sizeof(float));
}

// The step's own data, for the first part; the others get a copy.
void Session::write_step(const Bucket& bucket, std::span<const int32_t> tokens,
                         std::span<const int32_t> out_rows) {
  const Blueprint& b = model_->blueprint();
  const Program& p = bucket.program;
  auto at = [&](Value v) { return staging_[0].data() + p.values[v.id].offset; };
  auto put = [&](Value v, int i, int32_t x) { std::memcpy(at(v) + 4 * i, &x, 4); };
  const int rotated = b.config.rope.rotated(), begin = position();
  for (int i = 0; i < int(tokens.size()); i++) {
    put(bucket.step.tokens, i, tokens[size_t(i)]);
    put(bucket.step.positions, i, begin + i);
    put(bucket.step.sequences, i, sequence_);
    b.config.rope.fill(begin + i, reinterpret_cast<float*>(at(bucket.step.rope)) + i * rotated);
  }
  for (size_t i = 0; i < pages_.size(); i++)
    put(bucket.step.pages, sequence_ * b.pages_per_sequence + int(i), pages_[i]);
  for (size_t i = 0; i < out_rows.size(); i++) put(bucket.step.out_rows, int(i), out_rows[i]);
  for (size_t i = 1; i < staging_.size(); i++)
    std::memcpy(staging_[i].data(), staging_[0].data(), bucket.step_bytes);
}

// One upload, the computation, and a download for each later part that is given something.
Status Session::run_part(size_t i, size_t which, gimbal_step step) {
  const Blueprint& b = model_->blueprint();
  const Bucket& bucket = b.parts[i].buckets[which];
  const Device& device = *b.parts[i].device;
  Model::Held& held = model_->held_[i];
  uint64_t bytes = bucket.step_bytes;
  for (const HandOver& h : bucket.in)
    bytes = std::max(bytes, h.write_offset + uint64_t(h.moved(step)) * h.row_bytes);
  if (auto ok = device.write(held.buffers[size_t(Slot::Step)], 0, staging_[i].data(), bytes); !ok)
    return ok.error();
  gimbal_buffer* slots[kSlots];
  for (size_t s = 0; s < kSlots; s++) slots[s] = held.buffers[s].handle();
  if (auto ok = device.submit(held.executables[which], slots, kSlots, step); !ok) return ok.error();
  if (auto ok = device.wait(); !ok) return ok.error();
  for (size_t to = i + 1; to < b.parts.size(); to++)
    for (const HandOver& h : b.parts[to].buckets[which].in)
      if (const int32_t rows = h.moved(step); h.from == i && rows > 0)
        if (auto ok = device.read(held.buffers[size_t(Slot::Output)], h.read_offset,
                                  staging_[to].data() + h.write_offset, uint64_t(rows) * h.row_bytes);
            !ok)
          return ok.error();
  return Done{};
}

Status Session::step(std::span<const int32_t> tokens, std::span<const int32_t> out_rows) {
  const Blueprint& b = model_->blueprint();
  const std::vector<Bucket>& buckets = b.parts[0].buckets;
  size_t which = 0;
  while (size_t(buckets[which].rows) < tokens.size()) which++;

  const auto rows = int(tokens.size());
  while (int(pages_.size()) * kPagePositions < position() + rows) {
    pages_.push_back(model_->free_pages_.back());  // sized so that every sequence can have all of its context
    model_->free_pages_.pop_back();
  }
  write_step(buckets[which], tokens, out_rows);
  const gimbal_step step{rows, int32_t(out_rows.size())};
  for (size_t i = 0; i < b.parts.size(); i++)
    if (auto ok = run_part(i, which, step); !ok) return ok.error();
  if (!out_rows.empty()) {
    const Bucket& bucket = b.last().buckets[which];
    auto ok = leading_ >= 0 ? take_leading(step)
                            : read_output(bucket.program.values[bucket.logits.id].offset,
                                          out_rows.size() * size_t(b.config.vocabulary));
    if (!ok) return ok.error();
  }
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  return Done{};
}

}  // namespace gimbal
