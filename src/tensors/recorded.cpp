// Recorded functions: a program for each signature of their arguments.
#include "tensors/recording.h"

namespace gimbal::v1 {
namespace {

constexpr size_t kMostPrograms = 64;

using ProgramPtr = std::shared_ptr<RecordedProgram>;

uint64_t bytes_of(const Argument& a) {
  const auto& f = gimbal::info(a.type);
  return uint64_t(a.layout.count() / f.block) * f.bytes;
}

std::string form_of(const gimbal_value& v) {
  gimbal::Layout l;
  l.rank = v.rank;
  for (int i = 0; i < v.rank; i++) l.dim[i] = v.dim[v.rank - 1 - i];
  return gimbal::info(gimbal::DType(v.dtype)).name + gimbal::to_string(l.dims());
}

// Of the numbers that the program's checks found.
std::optional<Error> judged(const RecordedProgram& p,
                            const std::vector<std::shared_ptr<gimbal::Block>>& own) {
  Queue::State& q = *p.queue;
  if (p.checks.empty()) return std::nullopt;
  if (auto ok = q.device().wait(); !ok) return to_public(ok.error());
  for (const RecordedProgram::Check& c : p.checks) {
    std::vector<int64_t> v(size_t(c.numbers));
    if (auto ok = q.device().read(own[c.bound]->buffer(), 0, v.data(), v.size() * sizeof(int64_t)); !ok)
      return to_public(ok.error());
    q.count(&TransferCounts::downloads);
    if (auto e = c.judge(v)) return e;
  }
  return std::nullopt;
}

Result<std::vector<Tensor>> computed(const RecordedProgram& p, std::span<const Tensor> in) {
  Queue::State& q = *p.queue;
  std::vector<std::shared_ptr<gimbal::Block>> blocks(p.bound.size());
  const std::lock_guard lock(q.mutex);
  std::vector<gimbal_buffer*> slots(gimbal::kSlots + p.bound.size());
  std::shared_ptr<gimbal::Block> work;  // free again at the end: the queue works in order
  if (const uint64_t bytes = p.program.slot_bytes[size_t(gimbal::Slot::Work)]) {
    auto block = q.pool->allocate(bytes);
    if (!block) return to_public(block.error());
    work = std::move(*block);
    slots[size_t(gimbal::Slot::Work)] = work->buffer().handle();
  }
  for (size_t i = 0; i < p.bound.size(); i++) {
    const BoundMemory& m = p.bound[i];
    if (m.kind == BoundMemory::Given) blocks[i] = state_of(in[m.argument]).block;
    if (m.kind == BoundMemory::Outside) blocks[i] = m.block;
    if (m.kind == BoundMemory::Own) {
      auto block = q.pool->allocate(m.bytes);
      if (!block) return to_public(block.error());
      blocks[i] = std::move(*block);
    }
    slots[gimbal::kSlots + i] = blocks[i]->buffer().handle();
  }
  if (p.executable)
    if (auto ok = q.submit(p.executable, slots.data(), slots.size()); !ok) return to_public(ok.error());
  q.count(&TransferCounts::operations, p.program.ops.size());
  for (uint64_t* runs : p.runs) ++*runs;
  if (auto e = judged(p, blocks)) return *e;
  std::vector<Tensor> results;
  for (const RecordedProgram::Output& out : p.outputs) {
    if (out.whole) {
      results.push_back(*out.whole);
      continue;
    }
    auto s = std::make_shared<Tensor::State>();
    s->queue = p.queue, s->type = out.type, s->layout = out.layout, s->block = blocks[out.bound];
    results.push_back(TensorAccess::tensor(std::move(s)));
  }
  return results;
}

Result<std::vector<Tensor>> called(const TensorFunction& f, std::span<const Tensor> in) {
  auto results = f(in);
  for (size_t i = 0; results && i < results->size(); i++)
    if (!(*results)[i].ok()) return (*results)[i].error();
  return results;
}

}  // namespace

struct Recorded::State {
  std::shared_ptr<Queue::State> queue;
  TensorFunction function;
  std::vector<Argument> first;  // those of record()
  bool has_first = false;
  mutable std::mutex mutex;        // of the programs; never wanted by one who holds the queue's
  std::list<ProgramPtr> programs;  // last used first
  std::vector<ReceiptLine> past;   // of programs that were dropped

  Result<ProgramPtr> program(const std::vector<Argument>& arguments) {
    const std::lock_guard lock(mutex);
    for (auto it = programs.begin(); it != programs.end(); ++it)
      if ((*it)->arguments == arguments) {
        programs.splice(programs.begin(), programs, it);
        return programs.front();
      }
    const auto recording = std::make_shared<Recording>(queue);
    std::vector<Tensor> in;
    for (const Argument& a : arguments) in.push_back(recording->argument(a));
    Result<std::vector<Tensor>> results = std::vector<Tensor>();
    {
      const Recorder now(*recording);
      results = called(function, in);
    }
    if (!results) return results.error();
    for (const Tensor& t : *results)
      if (state_of(t).queue != queue || (state_of(t).recording && state_of(t).recording != recording))
        return Recording::without_values(t);
    auto made = [&] {
      const std::lock_guard queue_lock(queue->mutex);
      return recording->finish(arguments, *results);
    }();
    if (!made) return to_public(made.error());
    programs.push_front(std::move(*made));
    if (programs.size() > kMostPrograms) {
      add_receipt(*programs.back(), past);
      programs.pop_back();
    }
    return programs.front();
  }

  // The arguments, or those of record().
  Result<ProgramPtr> like(std::span<const Tensor> in) {
    if (in.empty() && has_first) return program(first);
    std::vector<Argument> arguments;
    for (const Tensor& t : in) {
      if (!t.ok()) return t.error();
      if (state_of(t).queue != queue)
        return Error{Code::Usage,
                     format("{} is of another queue than the recorded function", describe(t)),
                     "copy it with to()",
                     "",
                     "",
                     "",
                     "",
                     {}};
      arguments.push_back(argument_of(t));
    }
    return program(arguments);
  }

  void add_receipt(const RecordedProgram& p, std::vector<ReceiptLine>& to) const {
    std::vector<gimbal::ReceiptLine> lines;
    if (p.executable) {
      const std::lock_guard lock(queue->mutex);
      gimbal::add_to_receipt(lines, queue->device(), p.executable, p.program, p.choices, queue->kernels);
    }
    for (const gimbal::ReceiptLine& l : lines) {
      auto same = std::find_if(to.begin(), to.end(), [&](const ReceiptLine& o) {
        return o.kernel == l.kernel && o.format == l.format && o.why == l.why;
      });
      if (same == to.end())
        to.push_back({l.op, l.format, l.device, l.kernel, l.why, l.ops, l.runs, l.not_counted});
      else same->ops += l.ops, same->runs += l.runs;
    }
  }
};

struct RecordedAccess {
  static Recorded recorded(std::shared_ptr<Recorded::State> s) { return Recorded(std::move(s)); }
};

Result<std::vector<Tensor>> Recorded::run(std::span<const Tensor> in) const {
  if (computes_custom(*state_->queue)) return inside_custom();
  if (Recording::active(state_->queue)) return called(state_->function, in);  // a part of another function
  for (const Tensor& t : in)
    if (t.ok() && state_of(t).recording) return Recording::without_values(t);
  auto p = in.empty() ? state_->program({}) : state_->like(in);
  if (!p) return p.error();
  const auto by_op = [&]() -> Status {
    if (auto ok = called(state_->function, in); !ok) return ok.error();
    return Done{};
  };
  if (auto wrong = first_uses_of(**p, by_op)) return *wrong;
  return computed(**p, in);
}

Result<RecordedPlan> Recorded::plan(std::span<const Tensor> like) const {
  auto p = state_->like(like);
  if (!p) return p.error();
  RecordedPlan plan;
  for (const Argument& a : (*p)->arguments) plan.arguments += bytes_of(a);
  for (const BoundMemory& m : (*p)->bound) {
    if (m.kind == BoundMemory::Own) plan.results += m.bytes;
    if (m.kind == BoundMemory::Outside) plan.outside += m.bytes;
  }
  plan.work = (*p)->program.slot_bytes[size_t(gimbal::Slot::Work)];
  plan.apart = (*p)->apart, plan.operations = (*p)->program.ops.size();
  return plan;
}

Result<std::vector<RecordedOperation>> Recorded::explain(std::span<const Tensor> like) const {
  auto found = state_->like(like);
  if (!found) return found.error();
  const RecordedProgram& p = **found;
  const Queue::State& q = *p.queue;
  std::vector<RecordedOperation> all;
  const std::lock_guard lock(state_->queue->mutex);
  for (size_t i = 0; i < p.program.ops.size(); i++) {
    const gimbal_op& op = p.program.ops[i];
    RecordedOperation o{gimbal::info(gimbal::OpKind(op.kind)).name,  q.device().kernel(op.kernel).name,
                        gimbal::why_chosen(p.choices[i], q.kernels), {},
                        form_of(p.program.values[op.out[0]]),        {}};
    if (!p.joined[i].empty()) o.why += "; " + p.joined[i];
    for (uint16_t in : gimbal::inputs_of(op)) o.inputs.push_back(form_of(p.program.values[in]));
    for (const gimbal::Rejected& r : gimbal::rejections(p.program, op, q.device(), q.kernels)) {
      auto same = std::find_if(o.rejected.begin(), o.rejected.end(),
                               [&](const RejectedKernels& k) { return k.why == r.why; });
      if (same == o.rejected.end()) same = o.rejected.insert(o.rejected.end(), {r.why, {}});
      same->kernels.push_back(q.device().kernel(r.kernel).name);
    }
    all.push_back(std::move(o));
  }
  return all;
}

std::vector<ReceiptLine> Recorded::receipt() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<ReceiptLine> all = state_->past;
  for (const ProgramPtr& p : state_->programs) state_->add_receipt(*p, all);
  return all;
}

size_t Recorded::signatures() const {
  const std::lock_guard lock(state_->mutex);
  return state_->programs.size();
}

Recorded record(const Queue& q, TensorFunction f) {
  auto s = std::make_shared<Recorded::State>();
  s->queue = TensorAccess::state(q), s->function = std::move(f);
  return RecordedAccess::recorded(std::move(s));
}

Result<Recorded> record(const Queue& q, const std::vector<Spec>& arguments, TensorFunction f) {
  auto s = std::make_shared<Recorded::State>();
  s->queue = TensorAccess::state(q), s->function = std::move(f), s->has_first = true;
  for (const Spec& a : arguments) {
    const auto& info = gimbal::info(own(a.dtype));
    if (auto why = gimbal::check_dims(a.dims))
      return shape_error(format("record: an argument of {}: {}", gimbal::to_string(a.dims), *why));
    if (info.block > 1 && (a.dims.empty() || a.dims.back() % info.block))
      return shape_error(format("record: {} of {}: the last dimension must be a multiple of {}", info.name,
                                gimbal::to_string(a.dims), info.block));
    s->first.push_back({own(a.dtype), gimbal::dense_layout(a.dims)});
  }
  auto p = s->program(s->first);
  if (!p) return p.error();
  return RecordedAccess::recorded(std::move(s));
}

}  // namespace gimbal::v1
