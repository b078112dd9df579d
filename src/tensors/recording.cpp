#include "tensors/recording.h"

#include <utility>

namespace gimbal::v1 {

RecordedProgram::~RecordedProgram() {
  if (!executable) return;
  const std::lock_guard lock(queue->mutex);
  executable = {};
}

namespace {

thread_local Recording* recording_now = nullptr;

}  // namespace

Recorder::Recorder(Recording& r) : before_(std::exchange(recording_now, &r)) {}
Recorder::~Recorder() { recording_now = before_; }
Unrecorded::Unrecorded() : before_(std::exchange(recording_now, nullptr)) {}
Unrecorded::~Unrecorded() { recording_now = before_; }

Argument argument_of(const Tensor& t) { return {state_of(t).type, state_of(t).layout}; }

Recording* Recording::active(const std::shared_ptr<Queue::State>& queue) {
  return recording_now && recording_now->queue_ == queue ? recording_now : nullptr;
}

Error Recording::without_values(const Tensor& t) {
  return {Code::Usage,
          format("{} belongs to a function that is recorded, so it has no values yet", describe(t)),
          "return it from the function, and read the result of run()",
          "recorded",
          "",
          "",
          "",
          {}};
}

Tensor Recording::argument(const Argument& a) {
  auto s = std::make_shared<Tensor::State>();
  s->queue = queue_, s->type = a.type, s->layout = a.layout;
  if (a.layout.count() > 0) {
    s->recording = shared_from_this(), s->memory = uint32_t(memories_.size());
    const auto& f = gimbal::info(a.type);
    const auto end = uint64_t(gimbal::reach(a.layout).end);
    memories_.push_back({{BoundMemory::Given, (end + f.block - 1) / f.block * f.bytes, 0, nullptr}, 0});
  }
  return TensorAccess::tensor(std::move(s));
}

Tensor Recording::place(gimbal::DType type, std::span<const int64_t> dims) {
  const auto& f = gimbal::info(type);
  if (auto why = gimbal::check_dims(dims))
    return failed(queue_, shape_error(format("a tensor of {}: {}", gimbal::to_string(dims), *why)));
  if (f.block > 1 && (dims.empty() || dims.back() % f.block))
    return failed(queue_, shape_error(format("{} of {}: the last dimension must be a multiple of {}", f.name,
                                             gimbal::to_string(dims), f.block)));
  auto s = std::make_shared<Tensor::State>();
  s->queue = queue_, s->type = type, s->layout = gimbal::dense_layout(dims);
  if (s->layout.count() == 0) return TensorAccess::tensor(std::move(s));
  const gimbal::Shape shape = gimbal::shape_of(value_of(type, s->layout, 0));
  std::optional<gimbal::Error> failure;
  const gimbal::Value root = program_.add(gimbal::to_string(shape), shape, gimbal::Slot::Work,
                                          uint64_t(shape.bytes()), GIMBAL_DENSE, GIMBAL_ALL_ROWS, failure);
  if (failure) return failed(queue_, to_public(*failure));
  places_.push_back({memories_.size(), 0});
  s->recording = shared_from_this(), s->memory = uint32_t(memories_.size());
  memories_.push_back({{BoundMemory::Own, uint64_t(shape.bytes()), 0, nullptr}, root.id});
  return TensorAccess::tensor(std::move(s));
}

std::optional<size_t> Recording::memory_of(const Tensor& t) {
  const Tensor::State& s = state_of(t);
  if (s.recording) return s.memory;
  if (!s.block) return std::nullopt;
  const auto [it, fresh] = outside_.try_emplace(s.block.get(), memories_.size());
  if (fresh) memories_.push_back({{BoundMemory::Outside, s.block->buffer().size(), 0, s.block}, 0});
  return it->second;
}

bool Recording::owns(const Tensor& t) const {
  const Tensor::State& s = state_of(t);
  return s.recording.get() == this && memories_[s.memory].bound.kind == BoundMemory::Own;
}

// A tensor of another recording.
std::optional<Tensor> Recording::misplaced(const Tensor& t) const {
  const auto& of = state_of(t).recording;
  return of && of.get() != this ? std::optional(refuse(t, without_values(t))) : std::nullopt;
}

// The value of these elements; that of own memory's own dims is its root.
gimbal::Result<uint16_t> Recording::value(const Tensor& t) {
  const Tensor::State& s = state_of(t);
  const auto memory = memory_of(t);
  gimbal_value v = value_of(s.type, s.layout, 0);
  const Memory& m = memories_[*memory];
  const bool own = m.bound.kind == BoundMemory::Own;
  if (own && v.offset == 0 && v.layout == GIMBAL_DENSE && gimbal::shape_of(v) == program_.info[m.root].shape)
    return m.root;
  std::string key(reinterpret_cast<const char*>(&v), sizeof v);
  key += std::to_string(*memory);
  const auto [it, fresh] = known_.try_emplace(key, uint16_t(0));
  if (!fresh) return it->second;
  if (program_.values.size() >= UINT16_MAX)
    return gimbal::Error{gimbal::Code::Unsupported, "a recorded function of more than 65,535 values", ""};
  it->second = uint16_t(program_.values.size());
  places_.push_back({*memory, v.offset});
  program_.values.push_back(v);
  const gimbal::Shape shape = gimbal::shape_of(v);
  program_.info.push_back({gimbal::to_string(shape), shape, own ? m.root : it->second});
  return it->second;
}

Tensor Recording::apply(gimbal::OpKind kind, const gimbal::OpParams& params, std::span<const Tensor> in) {
  for (const Tensor& t : in)
    if (auto bad = misplaced(t)) return *bad;
  auto form = result_form(kind, params, in);
  if (!form) return failed(queue_, form.error());
  // Whether a kernel takes these strides.
  std::vector<gimbal_value> values;
  for (const Tensor& t : in) values.push_back(value_of(state_of(t).type, state_of(t).layout, 0));
  if (!form->writes) values.push_back(value_of(form->type, gimbal::dense_layout(form->dims), 0));
  gimbal::Program alone = program_of(kind, params, values);
  auto choice = gimbal::assign_kernels(alone, queue_->device(), queue_->kernels);
  if (!choice && std::string_view(choice.error().reason) == gimbal::kNoKernel)
    if (auto dense = dense_inputs(in, form->writes)) {
      for (const Tensor& t : *dense)
        if (!t.ok()) return t;
      return apply(kind, params, *dense);
    }
  if (!choice) return failed(queue_, to_public(choice.error()));
  Tensor out = form->writes ? in[0] : place(form->type, form->dims);
  if (!out.ok()) return out;
  gimbal_op op = alone.ops[0];
  for (size_t i = 0; i < in.size(); i++) {
    auto v = value(in[i]);
    if (!v) return failed(queue_, to_public(v.error()));
    op.in[i] = *v;
  }
  auto to = value(out);
  if (!to) return failed(queue_, to_public(to.error()));
  op.out[0] = *to;
  program_.ops.push_back(op), program_.layer.push_back(0);
  return out;
}

std::optional<Tensor> Recording::check(const Tensor& found, Judge judge) {
  if (auto bad = misplaced(found)) return bad;
  found_.push_back({state_of(found).memory, state_of(found).layout.count(), std::move(judge)});
  return std::nullopt;
}

// The slot of a memory that outlives the run: an argument, one from outside, a result.
size_t Recording::bind(RecordedProgram& to, size_t memory) {
  Memory& m = memories_[memory];
  if (m.slot == SIZE_MAX) {
    m.slot = to.bound.size();
    to.bound.push_back(m.bound);
  }
  return m.slot;
}

gimbal::Result<std::shared_ptr<RecordedProgram>> Recording::finish(std::vector<Argument> arguments,
                                                                   std::span<const Tensor> results) {
  auto done = std::make_shared<RecordedProgram>();
  done->queue = queue_;
  size_t argument = 0;
  for (size_t i = 0; i < arguments.size(); i++)
    if (arguments[i].layout.count() > 0) memories_[argument].bound.argument = i, bind(*done, argument++);
  done->arguments = std::move(arguments);
  for (const Tensor& t : results) {
    const Tensor::State& s = state_of(t);
    RecordedProgram::Output out{SIZE_MAX, s.type, s.layout, std::nullopt};
    if (!s.recording) out.whole = t;
    else out.bound = bind(*done, s.memory);
    done->outputs.push_back(std::move(out));
  }
  for (Found& f : found_) done->checks.push_back({bind(*done, f.memory), f.numbers, std::move(f.judge)});
  for (size_t i = 0; i < memories_.size(); i++)
    if (memories_[i].bound.kind == BoundMemory::Outside) bind(*done, i);
  for (const Memory& m : memories_)
    if (m.slot == SIZE_MAX) done->apart += m.bound.bytes;
  // Values of bound memories have their slots, the others are planned.
  for (size_t v = 0; v < program_.values.size(); v++) {
    const size_t slot = memories_[places_[v].memory].slot;
    program_.values[v].slot = uint32_t(slot == SIZE_MAX ? size_t(gimbal::Slot::Work) : gimbal::kSlots + slot);
  }
  auto choices = gimbal::assign_kernels(program_, queue_->device(), queue_->kernels);
  if (!choices) return choices.error();
  done->choices = std::move(*choices);
  gimbal::Joined joined = gimbal::join_by_element(program_, queue_->device());
  if (auto ok = gimbal::plan_work(program_, gimbal::kAlignment, joined); !ok) return ok.error();
  done->joined = std::move(joined.why);
  for (size_t v = 0; v < program_.values.size(); v++) {
    const uint16_t root = program_.info[v].root;
    if (root != v) program_.values[v].offset = program_.values[root].offset + places_[v].offset;
  }
  if (!program_.ops.empty()) {
    auto executable = queue_->device().compile(program_.view());
    if (!executable) return executable.error();
    done->executable = std::move(*executable);
  }
  for (const gimbal_op& op : program_.ops)
    done->runs.push_back(&queue_->runs[queue_->device().kernel(op.kernel).name]);
  done->program = std::move(program_);
  return done;
}

}  // namespace gimbal::v1
