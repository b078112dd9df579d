#include "engine/expert_speed.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/clock.h"
#include "base/format.h"
#include "files/packed_file.h"
#include "runtime/random.h"

namespace gimbal {
namespace {

constexpr uint64_t kSample = 96 << 20;  // bytes
constexpr double kSeconds = 0.5;

// Of the weights that a step of one row reads whole, without the experts.
uint64_t computed_bytes(const Stage& stage) {
  const Program& p = stage.buckets[0].program;
  std::vector<bool> read(p.values.size());
  for (const gimbal_op& op : p.ops)
    if (OpKind(op.kind) != OpKind::Embed && OpKind(op.kind) != OpKind::ExpertMatMul)
      for (int i = 0; i < op.inputs; i++) read[p.info[op.in[i]].root] = true;
  uint64_t n = 0;
  for (uint16_t w : p.weights) n += read[w] ? p.values[w].bytes : 0;
  return n;
}

// The speed at which `threads` threads add up memory that no cache holds.
double memory_speed(unsigned threads) {
  std::vector<uint64_t> room(size_t(kSample) / sizeof(uint64_t), 1);
  std::vector<uint64_t> sums(threads);
  const double begin = now();
  auto add = [&](unsigned t) {
    const size_t first = room.size() * t / threads, past = room.size() * (t + 1) / threads;
    uint64_t sum = 0;
    for (size_t i = first; i < past; i++) sum += room[i];
    sums[t] = sum;
  };
  std::vector<std::thread> helpers;
  for (unsigned t = 1; t < threads; t++) helpers.emplace_back(add, t);
  add(0);
  for (std::thread& t : helpers) t.join();
  uint64_t sum = 0;
  for (uint64_t s : sums) sum += s;
  return double(sum * sizeof(uint64_t)) / std::max(1e-9, now() - begin);
}

Result<double> disk_speed(const Stage& stage, bool& direct) {
  auto pages = FilePages::open(stage.packed->file(), stage.packed->path());
  if (!pages) return pages.error();
  direct = (*pages)->direct();
  const std::vector<ExpertGroup>& groups = stage.experts.groups;
  Random random(1);
  std::vector<FilePages::Range> ranges;
  const double begin = now();
  do {
    const ExpertGroup& g = groups[random.next() % groups.size()];
    const int expert = int(random.next() % uint64_t(g.experts));
    ranges.clear();
    for (const ExpertGroup::Matrix& m : g.matrices) ranges.push_back(range_of(stage, m, expert));
    if (auto ok = (*pages)->hold(ranges); !ok) return ok.error();
    (*pages)->drop(ranges);
  } while ((*pages)->read_bytes() < kSample && now() - begin < kSeconds);
  return double((*pages)->read_bytes()) / std::max(1e-9, now() - begin);
}

}  // namespace

Result<ExpertSpeed> measure_experts(const ModelPlan& plan) {
  ExpertSpeed s;
  uint64_t all = 0, budget = 0;
  for (const Stage& stage : plan.stages) {
    s.computed += computed_bytes(stage);
    if (!stage.reads_experts() || !stage.packed) continue;
    auto disk = disk_speed(stage, s.direct);
    if (!disk) return disk.error();
    s.disk = *disk, s.memory = memory_speed(std::max(1u, stage.device->describe().threads));
    s.of_token += stage.experts.of_token, all += stage.experts.all, budget += stage.experts.budget;
  }
  if (s.disk == 0) return Error{Code::Usage, "no experts of this plan are read from disk", ""};
  s.computed += s.of_token;
  const double computing = double(s.computed) / s.memory, reading = double(s.of_token) / s.disk;
  s.at_least = 1 / (computing + reading);
  s.evenly = 1 / (computing + reading * (1 - double(budget) / double(all)));
  return s;
}

}  // namespace gimbal
