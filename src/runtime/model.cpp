#include "runtime/model.h"

#include <algorithm>

#include "base/format.h"
#include "device/reason.h"
#include "runtime/memory_check.h"
#include "runtime/packed_weights.h"

namespace gimbal {
namespace {

// Experts are read from packed weights only.
Status check_packed(const ModelPlan& plan) {
  for (const Stage& stage : plan.stages)
    if (stage.reads_experts() && !stage.packed)
      return Error{Code::Usage,
                   format("{}: experts are read from packed weights, and the plan has none", plan.source),
                   "pack the model", reason::kPackedUnusable, "experts_from_disk"};
  return Done{};
}

// Every weight of the plan is a tensor of the file, under the same name and index.
Status check_made_of(const ModelPlan& plan, const ModelSource& file) {
  for (const Stage& stage : plan.stages) {
    const Program& p = stage.buckets[0].program;
    for (size_t w = 0; w < p.weights.size(); w++) {
      const std::string& name = p.info[p.weights[w]].name;
      const uint32_t index = p.sources[w].tensor;
      if (index < file.tensors().size() && name.starts_with(file.tensors()[index].name)) continue;
      return Error{Code::Failed,
                   format("{}: the plan was made from {}: '{}' is not tensor {} here", file.path(),
                          plan.source, name, index),
                   "load the file that the plan was made from"};
    }
  }
  return Done{};
}

// Packs the same rows again and compares them with those of the packed file.
Status compare_weight(const Stage& stage, const gimbal_value& v, const Shape& shape, const ModelSource& file,
                      const WeightSlice& s, std::vector<std::byte>& room) {
  gimbal_value sample = v;
  sample.offset = 0;
  if (shape.rank > 1) sample.dim[1] = s.end;
  sample.bytes = sample_bytes(v, s.end);
  auto anew = stage.device->allocate(size_t(sample.bytes));
  if (!anew) return anew.error();
  if (auto ok = place_weight(*stage.device, *anew, sample, shape, file, s, room); !ok) return ok;
  std::vector<std::byte> bytes(size_t(sample.bytes));
  if (auto ok = stage.device->read(*anew, 0, bytes.data(), bytes.size()); !ok) return ok;
  const Bytes kept = stage.packed->bytes().subspan(size_t(v.offset), bytes.size());
  if (std::equal(bytes.begin(), bytes.end(), kept.begin())) return Done{};
  if (auto ok = stage.packed->unchanged(); !ok) return ok;
  return Error{
      Code::Failed,
      format("tensor '{}' has another layout in it than {} uses now", s.tensor->name, stage.device->id()),
      "pack the model again, or remove the file",
      reason::kPackedUnusable,
      "",
      stage.packed->path()};
}

}  // namespace

Status Model::take_memory() {
  memory_.resize(plan_.stages.size());
  for (size_t i = 0; i < memory_.size(); i++) {
    const Stage& stage = plan_.stages[i];
    const MemoryPlan& plan = stage.memory;
    const uint64_t sizes[kSlots] = {plan.weights, plan.cache, plan.step, plan.activations, plan.output};
    if (stage.reads_experts()) {
      auto experts = ExpertCache::open(stage);
      if (!experts) return experts.error();
      memory_[i].experts = std::move(*experts);
    }
    for (size_t s = 0; s < kSlots; s++) {
      const bool adopts = stage.packed && s == size_t(Slot::Weights);
      auto buffer = !adopts              ? stage.device->allocate(sizes[s])
                    : memory_[i].experts ? stage.device->adopt(memory_[i].experts->bytes())
                                         : stage.device->adopt(stage.packed->bytes());
      if (!buffer) return buffer.error();
      memory_[i].buffers[s] = std::move(*buffer);
    }
    // The largest first: the first program on a buffer determines where a device may cut it.
    memory_[i].executables.resize(stage.buckets.size());
    const size_t largest = plan_.bucket_for(plan_.options.batch);
    for (size_t b = 0; b < stage.buckets.size(); b++) {
      const size_t which = b == 0 ? largest : b == largest ? 0 : b;
      for (const StagePart& part : stage.buckets[which].parts) {
        auto e = stage.device->compile(part_of(stage.buckets[which].program, part.ops));
        if (!e) return e.error();
        memory_[i].executables[which].push_back(std::move(*e));
      }
    }
    for (const TopLogitsProgram& l : stage.top) {
      auto e = stage.device->compile(l.program.view());
      if (!e) return e.error();
      memory_[i].top.push_back(std::move(*e));
    }
  }
  return Done{};
}

Status Model::read_weights(const ModelSource& file, const WeightProgress& progress) {
  std::vector<WeightSlice> work;
  unsigned threads = 1;
  for (size_t i = 0; i < plan_.stages.size(); i++) {
    const Stage& stage = plan_.stages[i];
    const Program& p = stage.buckets[0].program;
    if (stage.packed) add_samples(work, i, p, file.tensors());
    else
      for (size_t w = 0; w < p.weights.size(); w++) add_slices(work, i, p, w, file.tensors());
    threads = std::max(threads, stage.device->describe().threads);
  }
  return for_slices(work, threads, progress, [&](const WeightSlice& s, std::vector<std::byte>& room) {
    const Stage& stage = plan_.stages[s.stage];
    const Program& p = stage.buckets[0].program;
    const gimbal_value& v = p.values[s.value];
    const Shape& shape = p.info[s.value].shape;
    if (stage.packed) return compare_weight(stage, v, shape, file, s, room);
    return place_weight(*stage.device, memory_[s.stage].buffers[size_t(Slot::Weights)], v, shape, file, s,
                        room);
  });
}

Result<std::unique_ptr<Model>> Model::load(ModelPlan plan, const ModelSource& file,
                                           const WeightProgress& progress) {
  if (auto ok = check_made_of(plan, file); !ok) return ok.error();
  if (auto ok = check_packed(plan); !ok) return ok.error();
  if (auto ok = check_memory(file, plan); !ok) return ok.error();
  std::unique_ptr<Model> m(new Model(std::move(plan)));
  const std::unique_ptr<Prefault> ahead = prefault(m->plan_);  // an error below cancels it
  if (auto ok = m->take_memory(); !ok) return ok.error();
  if (auto ok = m->read_weights(file, progress); !ok) return ok.error();
  if (ahead) {
    m->prefaulted_ = ahead->finish();
    if (auto ok = check_readable(m->plan_, *m->prefaulted_); !ok) return ok.error();
  }
  m->steps_ = std::make_unique<Steps>(m->plan_, m->memory_);
  return m;
}

std::vector<ReceiptLine> Model::receipt() const {
  std::vector<ReceiptLine> all;
  for (size_t i = 0; i < memory_.size(); i++) {
    const Stage& stage = plan_.stages[i];
    for (size_t b = 0; b < stage.buckets.size(); b++) {
      const Bucket& bucket = stage.buckets[b];
      for (size_t p = 0; p < bucket.parts.size(); p++)
        add_to_receipt(all, *stage.device, memory_[i].executables[b][p], bucket.program, bucket.choices,
                       plan_.options.kernels, bucket.parts[p].ops);
    }
    for (size_t l = 0; l < stage.top.size(); l++) {
      const TopLogitsProgram& leading = stage.top[l];
      add_to_receipt(all, *stage.device, memory_[i].top[l], leading.program, leading.choices,
                     plan_.options.kernels);
    }
  }
  return all;
}

Status Model::restore(Sequence& s, const InputView& inputs, std::span<const uint32_t> first,
                      const Page& page) {
  if (auto ok = steps_->sequences().adopt(s, inputs, first); !ok) return ok;
  auto ok = steps_->pass_pages(s, false, page);
  if (!ok) s.truncate(0);
  return ok;
}

}  // namespace gimbal
