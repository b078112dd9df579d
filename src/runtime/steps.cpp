#include "runtime/steps.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "base/result.h"
#include "device/values.h"
#include "files/packed_file.h"

namespace gimbal {

Steps::Steps(const ModelPlan& plan, std::vector<StageMemory>& memory)
    : plan_(plan),
      memory_(memory),
      sequences_(plan.pools, plan.options.sequences, plan.options.context, plan.options.batch) {
  for (size_t bucket = 0; bucket < plan.stages[0].buckets.size(); bucket++) {
    std::vector<Turn>& turns = turns_.emplace_back();
    for (size_t stage = 0; stage < plan.stages.size(); stage++)
      for (size_t part = 0; part < plan.stages[stage].buckets[bucket].parts.size(); part++)
        turns.push_back({plan.stages[stage].buckets[bucket].parts[part].turn, stage, part});
    std::sort(turns.begin(), turns.end(), [](const Turn& a, const Turn& b) {
      return std::pair(a.turn, a.part) < std::pair(b.turn, b.part);  // divide_at_experts() keeps the turn
    });
  }
  const auto rows = size_t(plan.options.logit_rows);
  for (const Stage& stage : plan.stages) staging_.emplace_back(stage.memory.step);
  rows_.reserve(size_t(plan.options.batch)), inputs_.reserve(size_t(plan.options.batch));
  places_.reserve(size_t(plan.options.sequences));
  page_.resize(plan.page_bytes());
  logits_.resize(rows * size_t(plan.width(Output::Logits)));
  hidden_.resize(rows * size_t(plan.width(Output::Hidden)));
  top_.resize(rows * 2 * size_t(plan.max_top()));
  states_.resize(size_t(plan.options.batch) * size_t(plan.width(Output::States)));
}

Result<StepOutput> Steps::forward(const Batch& batch) {
  if (auto ok = prepare(batch); !ok) {
    sequences_.begin();
    return ok.error();
  }
  gimbal_step step{int32_t(batch.rows.size()), 0};
  for (const Row& row : batch.rows) step.out_rows += row.wants.any();
  const size_t bucket = plan_.bucket_for(step.rows, adapters_);
  if (auto ok = sequences_.take_pages(); !ok) return ok.error();
  if (auto ok = copy_pages(); !ok) {
    sequences_.roll_back(false);
    return ok.error();
  }
  auto ok = compute(batch, bucket, step);
  // Results are invalid if the mapped weights' file was changed meanwhile.
  for (const Stage& stage : plan_.stages)
    if (ok && stage.packed) ok = stage.packed->unchanged();
  if (!ok) {
    sequences_.roll_back(true);
    return ok.error();
  }
  sequences_.commit(inputs_);
  return output_;
}

// Checks the batch and adds its rows to the step.
Status Steps::prepare(const Batch& batch) {
  const RunOptions& o = plan_.options;
  if (batch.rows.empty() || int64_t(batch.rows.size()) > o.batch)
    return Error{Code::Usage,
                 format("a batch must have from 1 to {} rows, not {}", o.batch, batch.rows.size()), ""};
  sequences_.begin();
  rows_.clear(), inputs_.clear(), places_.clear(), adapters_ = 0;
  int wanted = 0;
  for (const Row& row : batch.rows) {
    if (auto ok = check(batch, row); !ok) return ok;
    wanted += row.wants.any();
    const InputItem input = row.input();
    const int sequence = sequences_.add_row(*row.sequence);
    const std::vector<float>& own = row.sequence->inputs().adapters();
    const std::span<const float> scales = own.empty() ? plan_.adapters : own;
    if (size_t(sequence) == places_.size()) {
      places_.emplace_back(InputView(row.sequence->inputs()).first(size_t(row.sequence->computed())));
      adapters_ |= applied(scales);
    }
    rows_.push_back({.token = row.token,
                     .embedding = input.of ? input.values() : row.state,
                     .position = row.position,
                     .sequence = sequence,
                     .sees_to = input.of && (*input.of)->together()
                                    ? row.position + (*input.of)->rows() - 1 - input.row
                                    : -1,
                     .place = places_[size_t(sequence)].add(input),
                     .adapters = scales,
                     .own_state = row.own_state,
                     .patch = row.patch});
    inputs_.push_back(input);
  }
  for (size_t i = 0; i < rows_.size(); i++) {
    rows_[i].last = sequences_.position_of(*batch.rows[i].sequence) - 1;
    if (rows_[i].sees_to > rows_[i].last)
      return Error{Code::Usage, "a batch ends inside a picture whose rows see each other",
                   "put all rows of the picture into one batch"};
  }
  if (batch.states && plan_.width(Output::States) == 0)
    return Error{Code::Usage, "a batch requests states, but the model has none or was loaded without them",
                 ""};
  if (wanted > o.logit_rows)
    return Error{
        Code::Usage,
        format("{} rows of a batch request a result, but the model was loaded for {}", wanted, o.logit_rows),
        ""};
  return Done{};
}

Status Steps::check(const Batch& batch, const Row& row) const {
  if (!row.sequence || !sequences_.owns(*row.sequence))
    return Error{Code::Usage, "a row of the batch belongs to no sequence of this model", ""};
  if (row.position != sequences_.position_of(*row.sequence))
    return Error{Code::Usage,
                 format("a row of the batch has position {}; its sequence's next one is {}", row.position,
                        sequences_.position_of(*row.sequence)),
                 ""};
  if (plan_.whole_texts && row.sequence->computed() > 0)
    return Error{
        Code::Usage,
        format("this model needs a text in one batch, but {} tokens of this one are computed already",
               row.sequence->computed()),
        "put the whole text into one batch"};
  if (row.position >= plan_.options.context)
    return Error{Code::Usage, format("context full: all {} positions are used", plan_.options.context), ""};
  if (plan_.takes_states && !row.state)
    return Error{Code::Usage, "a row of the batch has a token, but no state", ""};
  if (plan_.takes_patches != (row.patch != nullptr))
    return Error{Code::Usage,
                 plan_.takes_patches ? "a row of the batch has no patch, and this is an encoder of pictures"
                                     : "a row of the batch has a patch, and this model takes tokens",
                 ""};
  if (auto ok = check_input(row.input(), plan_.config.vocabulary, plan_.embedding_width()); !ok) return ok;
  if (auto ok = check_adapters(row.sequence->inputs().adapters(), plan_.adapters.size()); !ok) return ok;
  if (row.wants.hidden && plan_.width(Output::Hidden) == 0)
    return Error{Code::Usage, "a row requests its hidden state, but the model was loaded without this output",
                 ""};
  if (row.wants.logits && plan_.width(Output::Logits) == 0)
    return Error{Code::Usage, "a row requests logits, but the model has none or was loaded without them", ""};
  if (row.wants.top && (batch.top < 1 || batch.top > plan_.max_top()))
    return Error{Code::Usage,
                 format("the first {} logits cannot be requested: at most {}", batch.top, plan_.max_top()),
                 ""};
  return Done{};
}

Status Steps::compute(const Batch& batch, size_t bucket, gimbal_step step) {
  write_inputs(batch, plan_.stages[0].buckets[bucket]);
  const std::vector<Turn>& turns = turns_[bucket];
  for (size_t i = 0; i < turns.size(); i++) {
    if (i > 0 && batch.go_on && !batch.go_on(i, turns.size())) return cancelled();
    if (auto ok = run_part(turns[i].stage, turns[i].part, bucket, step); !ok) return ok;
  }
  output_ = {};
  output_.logits_ = logits_, output_.vocabulary_ = size_t(plan_.width(Output::Logits));
  output_.hidden_ = hidden_, output_.width_ = size_t(plan_.width(Output::Hidden));
  const Bucket& last = plan_.last().buckets[bucket];
  if (auto ok = read(batch, last, Output::Logits, &Wants::logits, logits_); !ok) return ok;
  if (auto ok = read(batch, last, Output::Hidden, &Wants::hidden, hidden_); !ok) return ok;
  if (batch.states)
    if (auto ok = read_states(last, batch.rows.size()); !ok) return ok;
  for (const Row& row : batch.rows)
    if (row.wants.top) return find_top(batch.top, step);
  return Done{};
}

// Before a sequence writes to a shared page, it gets a copy. The ABI has no copy inside a device, so the
// bytes pass through the host: this happens once after a fork.
Status Steps::copy_pages() {
  for (const PageCopy& c : sequences_.copies())
    for (size_t s = 0; s < plan_.stages.size(); s++) {
      const Program& p = plan_.stages[s].buckets[0].program;
      const Device& device = *plan_.stages[s].device;
      Buffer& buffer = memory_[s].buffers[size_t(Slot::Cache)];
      for (const StateValue& state : p.states) {
        if (state.pool != c.pool) continue;
        const gimbal_value& v = p.values[state.value];
        const uint64_t bytes = v.bytes / uint64_t(plan_.pools[c.pool].pages);
        if (c.from < 0) std::memset(page_.data(), 0, bytes);
        else if (auto ok = device.read(buffer, v.offset + uint64_t(c.from) * bytes, page_.data(), bytes); !ok)
          return ok;
        if (auto ok = device.write(buffer, v.offset + uint64_t(c.to) * bytes, page_.data(), bytes); !ok)
          return ok;
      }
    }
  return Done{};
}

std::vector<Steps::StateRef> Steps::states() const {
  std::vector<StateRef> all;
  for (size_t s = 0; s < plan_.stages.size(); s++) {
    const Program& p = plan_.stages[s].buckets[0].program;
    for (const StateValue& state : p.states) {
      const gimbal_value& v = p.values[state.value];
      all.push_back({s, state.pool, v.offset, v.bytes / uint64_t(plan_.pools[state.pool].pages)});
    }
  }
  return all;
}

Status Steps::pass(const StateRef& state, int32_t page, bool from_device, std::span<std::byte> bytes) {
  const Device& device = *plan_.stages[state.stage].device;
  Buffer& buffer = memory_[state.stage].buffers[size_t(Slot::Cache)];
  const uint64_t at = state.offset + uint64_t(page) * state.page_bytes;
  return from_device ? device.read(buffer, at, bytes.data(), bytes.size())
                     : device.write(buffer, at, bytes.data(), bytes.size());
}

Status Steps::pass_pages(const Sequence& sequence, bool from_device,
                         const std::function<Status(std::span<std::byte>)>& page) {
  std::vector<std::byte> bytes;
  for (const StateRef& state : states()) {
    bytes.resize(state.page_bytes);
    for (int32_t number : sequence.pages(state.pool)) {
      if (from_device)
        if (auto ok = pass(state, number, true, bytes); !ok) return ok;
      if (auto ok = page(bytes); !ok) return ok;
      if (!from_device)
        if (auto ok = pass(state, number, false, bytes); !ok) return ok;
    }
  }
  return Done{};
}

uint64_t Steps::page_bytes(size_t pool) const {
  uint64_t sum = 0;
  for (const StateRef& state : states()) sum += state.pool == pool ? state.page_bytes : 0;
  return sum;
}

Status Steps::pass_page(size_t pool, int32_t page, bool from_device, std::span<std::byte> bytes) {
  for (const StateRef& state : states()) {
    if (state.pool != pool) continue;
    if (auto ok = pass(state, page, from_device, bytes.first(state.page_bytes)); !ok) return ok;
    bytes = bytes.subspan(state.page_bytes);
  }
  return Done{};
}

// The step's own data, for the first stage; the others get a copy.
void Steps::write_inputs(const Batch& batch, const Bucket& bucket) {
  for (const StepInput& in : bucket.inputs) {
    std::byte* at = staging_[0].data() + bucket.program.values[in.value.id].offset;
    auto put = [&](size_t i, int32_t x) { std::memcpy(at + 4 * i, &x, 4); };
    switch (in.kind) {
      case StepInput::Kind::Rows:
        for (size_t i = 0, k = 0; i < rows_.size(); i++)
          if (in.of == StepRows::All || batch.rows[i].wants.any()) in.fill(rows_[i], at + k++ * in.row_bytes);
        break;
      case StepInput::Kind::Constant: in.fill(StepRow{}, at); break;
      case StepInput::Kind::Wanted:
        for (size_t i = 0, wanted = 0; i < batch.rows.size(); i++)
          if (batch.rows[i].wants.any()) put(wanted++, int32_t(i) + in.offset);
        break;
      case StepInput::Kind::Pages:
        for (int s = 0; s < sequences_.sequences_in_step(); s++) {
          const std::span<const int32_t> pages = sequences_.pages(s, in.pool);
          for (size_t i = 0; i < pages.size(); i++)
            put(size_t(s) * size_t(plan_.pools[in.pool].table) + i, std::max(0, pages[i]));
        }
    }
  }
  for (size_t i = 1; i < staging_.size(); i++)
    std::memcpy(staging_[i].data(), staging_[0].data(), bucket.step_bytes);
}

Status Steps::submit(const Device& device, StageMemory& memory, Executable& program, gimbal_step step) {
  gimbal_buffer* slots[kSlots];
  for (size_t s = 0; s < kSlots; s++) slots[s] = memory.buffers[s].handle();
  if (auto ok = device.submit(program, slots, kSlots, step); !ok) return ok;
  return device.wait();
}

// A download for each value that comes from another stage, one upload, and the computation.
Status Steps::run_part(size_t stage, size_t part, size_t bucket, gimbal_step step) {
  const Stage& here = plan_.stages[stage];
  const Bucket& b = here.buckets[bucket];
  // A stage's first part gets the step's own data, too. What lies between two values is written again: the
  // host has the same bytes as the device.
  uint64_t begin = part == 0 ? 0 : UINT64_MAX, end = part == 0 ? b.step_bytes : 0;
  std::byte* staged = staging_[stage].data();
  for (const Transfer& t : b.parts[part].in) {
    const uint64_t bytes = uint64_t(t.moved(step)) * t.row_bytes;
    if (bytes == 0) continue;
    if (auto ok = plan_.stages[t.from].device->read(memory_[t.from].buffers[size_t(Slot::Output)],
                                                    t.read_offset, staged + t.write_offset, bytes);
        !ok)
      return ok;
    begin = std::min(begin, t.write_offset), end = std::max(end, t.write_offset + bytes);
    if (watcher_) watcher_(stage, t.value, std::span(staging_[stage]).subspan(t.write_offset, bytes));
  }
  StageMemory& memory = memory_[stage];
  if (begin < end)
    if (auto ok = here.device->write(memory.buffers[size_t(Slot::Step)], begin, staged + begin, end - begin);
        !ok)
      return ok;
  if (memory.experts)
    if (auto ok = provide_experts(stage, b, b.experts[part], step); !ok) return ok;
  if (auto ok = submit(*here.device, memory, memory.executables[bucket][part], step); !ok) return ok;
  if (!stage_watcher_ || part + 1 < b.parts.size()) return Done{};
  return stage_watcher_(stage, bucket, step, [&](uint16_t value, std::span<std::byte> bytes) {
    const gimbal_value& v = b.program.values[value];
    return here.device->read(memory.buffers[v.slot], v.offset, bytes.data(), bytes.size());
  });
}

// An earlier part computed the routes.
Status Steps::provide_experts(size_t stage, const Bucket& b, const PartExperts& e, gimbal_step step) {
  if (e.group < 0) return Done{};
  StageMemory& memory = memory_[stage];
  const gimbal_value& v = b.program.values[e.routes];
  const auto rows = size_t(rows_in_step(v, step));
  const std::span<float> to = memory.experts->routes(e.group, rows);
  if (auto ok =
          plan_.stages[stage].device->read(memory.buffers[v.slot], v.offset, to.data(), to.size_bytes());
      !ok)
    return ok;
  return memory.experts->provide(e.group, rows);
}

// Reads one of the outputs, of the rows that request it; adjacent rows together.
Status Steps::read(const Batch& batch, const Bucket& bucket, Output output, bool Wants::*wanted,
                   std::vector<float>& to) {
  const auto& from = bucket.outputs[size_t(output)];
  if (!from) return Done{};
  const gimbal_value& v = bucket.program.values[from->id];
  const auto width = size_t(v.dim[0]);
  size_t first = 0, past = 0, k = 0;
  auto read = [&]() -> Status {
    if (first == past) return Done{};
    return plan_.device().read(memory_.back().buffers[size_t(Slot::Output)],
                               v.offset + first * width * sizeof(float), to.data() + first * width,
                               (past - first) * width * sizeof(float));
  };
  for (const Row& row : batch.rows) {
    if (row.wants.*wanted) {
      if (past != k) {
        if (auto ok = read(); !ok) return ok;
        first = k;
      }
      past = k + 1;
    }
    k += row.wants.any();
  }
  return read();
}

Status Steps::read_states(const Bucket& bucket, size_t rows) {
  const gimbal_value& v = bucket.program.values[bucket.outputs[size_t(Output::States)]->id];
  output_.state_width_ = size_t(v.dim[0]);
  const auto to = std::span(states_).first(rows * output_.state_width_);
  output_.states_ = to;
  return plan_.device().read(memory_.back().buffers[size_t(Slot::Output)], v.offset, to.data(),
                             to.size_bytes());
}

Result<std::span<const float>> Steps::logits_of(size_t k) {
  const Bucket& any =
      plan_.last().buckets[0];  // any bucket will do, because all of them leave the logits at one place
  const auto vocabulary = size_t(plan_.width(Output::Logits));
  const auto row = std::span(logits_).subspan(k * vocabulary, vocabulary);
  if (auto ok = plan_.device().read(
          memory_.back().buffers[size_t(Slot::Output)],
          any.program.values[any.outputs[size_t(Output::Logits)]->id].offset + k * vocabulary * sizeof(float),
          row.data(), row.size_bytes());
      !ok)
    return ok.error();
  return std::span<const float>(row);
}

Status Steps::find_top(int k, gimbal_step step) {
  const std::vector<TopLogitsProgram>& all = plan_.last().top;
  size_t which = 0;
  while (all[which].k < k) which++;
  StageMemory& memory = memory_.back();
  if (auto ok = submit(plan_.device(), memory, memory.top[which], step); !ok) return ok;
  output_.top_ = top_, output_.found_ = size_t(all[which].k), output_.asked_ = size_t(k);
  return plan_.device().read(memory.buffers[size_t(Slot::Output)], all[which].offset, top_.data(),
                             size_t(step.out_rows) * 2 * output_.found_ * sizeof(float));
}

}  // namespace gimbal
