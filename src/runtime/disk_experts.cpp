#include "runtime/disk_experts.h"

#include <algorithm>

#include "base/format.h"
#include "device/reason.h"
#include "device/values.h"
#include "runtime/model_plan.h"

namespace gimbal {
namespace {

constexpr int kTileRows = 16;  // of packed weights: packing/layout.h, and abi.h at pack()

// Whether an op multiplies with experts that routes choose.
bool is_routed(const Program& p, const gimbal_op& op) {
  return OpKind(op.kind) == OpKind::ExpertMatMul && op.inputs > 2 && p.info[op.in[0]].root == op.in[0] &&
         p.values[op.in[0]].slot == uint32_t(Slot::Weights) && p.values[op.in[0]].layout == GIMBAL_PACKED;
}

// By value: read by such ops only.
std::vector<bool> routed_weights(const Program& p) {
  std::vector<bool> routed(p.values.size()), others(p.values.size());
  for (const gimbal_op& op : p.ops)
    for (int i = 0; i < op.inputs; i++)
      (i == 0 && is_routed(p, op) ? routed : others)[p.info[op.in[i]].root] = true;
  for (size_t v = 0; v < routed.size(); v++) routed[v] = routed[v] && !others[v];
  return routed;
}

int group_of(std::vector<ExpertGroup>& groups, ExpertGroup&& found) {
  for (size_t g = 0; g < groups.size(); g++)
    if (groups[g].matrices[0].weight == found.matrices[0].weight) return int(g);
  groups.push_back(std::move(found));
  return int(groups.size()) - 1;
}

}  // namespace

void divide_at_experts(Bucket& bucket, std::vector<ExpertGroup>& groups) {
  const Program& p = bucket.program;
  const std::vector<bool> routed = routed_weights(p);
  std::vector<StagePart> parts;
  bucket.experts.clear();
  for (StagePart& whole : bucket.parts) {
    const OpRange ops = whole.ops;
    parts.push_back(std::move(whole));
    ExpertGroup group;
    std::optional<uint16_t> routes;
    auto finish = [&](size_t end) {
      parts.back().ops.end = end;
      PartExperts& e = bucket.experts.emplace_back();
      if (routes) e = {group_of(groups, std::move(group)), *routes};
      group = {}, routes.reset();
    };
    for (size_t i = ops.begin; i < ops.end; i++) {
      const gimbal_op& op = p.ops[i];
      if (!is_routed(p, op) || !routed[op.in[0]]) continue;
      if (!routes || *routes != op.in[2]) {
        if (i > parts.back().ops.begin) {
          finish(i);
          parts.push_back({{i, ops.end}, parts.back().turn});
        }
        routes = op.in[2];
        group.experts = int(p.values[op.in[0]].dim[1] / p.values[op.out[0]].dim[0]);
        group.chosen = int(p.values[op.in[2]].dim[0] / 2);
      }
      const auto at = std::find(p.weights.begin(), p.weights.end(), op.in[0]);
      group.matrices.push_back({size_t(at - p.weights.begin()), p.values[op.out[0]].dim[0]});
    }
    finish(ops.end);
  }
  bucket.parts = std::move(parts);
}

FilePages::Range range_of(const Stage& stage, const ExpertGroup::Matrix& m, int expert) {
  const Program& p = stage.buckets[0].program;
  const gimbal_value& v = p.values[p.weights[m.weight]];
  const auto tile = v.bytes / uint64_t((v.dim[1] + kTileRows - 1) / kTileRows);
  const int64_t first = expert * m.rows, past = first + m.rows;
  return {v.offset + uint64_t(first / kTileRows) * tile,
          v.offset + uint64_t((past + kTileRows - 1) / kTileRows) * tile};
}

std::vector<FilePages::Range> pages_of(const Stage& stage, const std::vector<bool>& left_out) {
  const Program& p = stage.buckets[0].program;
  const uint64_t page = FilePages::page_bytes();
  std::vector<FilePages::Range> all;
  for (size_t w = 0; w < p.weights.size(); w++) {
    const gimbal_value& v = p.values[p.weights[w]];
    if (!left_out[w]) all.push_back({v.offset / page * page, align_up(v.offset + v.bytes, page)});
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  size_t n = 0;
  for (const FilePages::Range& r : all)
    if (n > 0 && r.begin <= all[n - 1].end) all[n - 1].end = std::max(all[n - 1].end, r.end);
    else all[n++] = r;
  all.resize(n);
  return all;
}

std::vector<FilePages::Range> pages_in_memory(const Stage& stage) {
  std::vector<bool> on_disk(stage.buckets[0].program.weights.size());
  for (const ExpertGroup& g : stage.experts.groups)
    for (const ExpertGroup::Matrix& m : g.matrices) on_disk[m.weight] = true;
  return pages_of(stage, on_disk);
}

Status plan_disk_experts(Stage& stage, uint64_t wish) {
  DiskExperts& d = stage.experts;
  if (d.groups.empty()) return Done{};
  d.in_memory = d.all = d.least = d.of_token = 0;
  uint64_t end = 0, units = 0;
  for (const FilePages::Range& r : pages_in_memory(stage)) d.in_memory += r.end - r.begin, end = r.end;
  std::vector<uint64_t> largest;  // expert of each group
  for (const ExpertGroup& g : d.groups) {
    uint64_t most = 0;
    for (int e = 0; e < g.experts; e++) {
      uint64_t bytes = 0;
      for (const ExpertGroup::Matrix& m : g.matrices) {
        const FilePages::Range r = range_of(stage, m, e);
        bytes += FilePages::bytes_of(r), end = std::max(end, r.end);
      }
      d.all += bytes, most = std::max(most, bytes);
    }
    units += uint64_t(g.experts);
    largest.push_back(most), d.of_token += uint64_t(g.chosen) * most;
  }
  int rows = 0;
  for (const Bucket& b : stage.buckets)
    for (const PartExperts& e : b.experts) {
      if (e.group < 0) continue;
      const ExpertGroup& g = d.groups[size_t(e.group)];
      const int64_t most = std::min<int64_t>(g.experts, rows_of(b.program.values[e.routes]) * g.chosen);
      if (const uint64_t bytes = uint64_t(most) * largest[size_t(e.group)]; bytes > d.least)
        d.least = bytes, rows = b.rows;
    }
  const uint64_t page = FilePages::page_bytes();
  d.budget = std::min(wish, d.all) / page * page;
  d.tables = (end + page - 1) / page * sizeof(uint16_t) + units * 3 * sizeof(int32_t);
  if (d.budget < d.least)
    return Error{
        Code::Usage,
        format("'experts_from_disk' {} is too small: a step of {} tokens can choose experts of {} in "
               "one layer",
               wish, rows, d.least),
        format("use {} or more, or a smaller 'batch'", d.least),
        reason::kOutOfRange,
        "experts_from_disk",
        format("{}", wish),
        format("{} or more", d.least)};
  stage.memory.weights = d.in_memory + d.budget;
  return Done{};
}

}  // namespace gimbal
