#include "runtime/expert_cache.h"

#include <algorithm>

#include "device/values.h"
#include "files/packed_file.h"

namespace gimbal {
namespace {

// As the kernels read a route: a number that no expert has means the first expert.
int32_t expert_of(float route, int experts) {
  return route > 0 && route < float(experts) ? int32_t(route) : 0;
}

}  // namespace

ExpertCache::ExpertCache(const Stage& stage) : stage_(stage) {
  int32_t units = 0;
  size_t matrices = 0, most = 0, routes = 0;
  for (const ExpertGroup& g : stage.experts.groups) {
    first_unit_.push_back(units), units += g.experts;
    group_.insert(group_.end(), size_t(g.experts), int32_t(first_unit_.size()) - 1);
    matrices = std::max(matrices, g.matrices.size()), most = std::max(most, size_t(g.experts));
  }
  for (const Bucket& b : stage.buckets)
    for (const PartExperts& e : b.experts)
      if (e.group >= 0) {
        const gimbal_value& v = b.program.values[e.routes];
        routes = std::max(routes, size_t(v.dim[0] * rows_of(v)));
      }
  links_.resize(size_t(units) + 1), links_.back() = {units, units};
  in_memory_.resize(size_t(units)), wanted_at_.resize(size_t(units));
  missing_.reserve(most), ranges_.reserve(matrices), routes_.resize(routes);
}

Result<std::unique_ptr<ExpertCache>> ExpertCache::open(const Stage& stage) {
  std::unique_ptr<ExpertCache> c(new ExpertCache(stage));
  auto pages = FilePages::open(stage.packed->file(), stage.packed->path());
  if (!pages) return pages.error();
  c->pages_ = std::move(*pages);
  if (auto ok = c->pages_->hold(pages_in_memory(stage)); !ok) return ok.error();
  return c;
}

std::span<float> ExpertCache::routes(int group, size_t rows) {
  return std::span(routes_).first(rows * 2 * size_t(stage_.experts.groups[size_t(group)].chosen));
}

void ExpertCache::append(int32_t unit) {
  const auto end = int32_t(links_.size()) - 1;
  Links& l = links_[size_t(unit)];
  l = {links_[size_t(end)].before, end};
  links_[size_t(l.before)].after = unit, links_[size_t(end)].before = unit;
}

void ExpertCache::remove(int32_t unit) {
  const Links l = links_[size_t(unit)];
  links_[size_t(l.before)].after = l.after, links_[size_t(l.after)].before = l.before;
}

void ExpertCache::ranges_of(int32_t unit) {
  const auto g = size_t(group_[size_t(unit)]);
  ranges_.clear();
  for (const ExpertGroup::Matrix& m : stage_.experts.groups[g].matrices)
    ranges_.push_back(range_of(stage_, m, unit - first_unit_[g]));
}

static uint64_t bytes_of(std::span<const FilePages::Range> ranges) {
  uint64_t n = 0;
  for (const FilePages::Range& r : ranges) n += FilePages::bytes_of(r);
  return n;
}

void ExpertCache::drop(int32_t unit) {
  ranges_of(unit);
  pages_->drop(ranges_);
  remove(unit);
  in_memory_[size_t(unit)] = false, bytes_ -= bytes_of(ranges_);
}

Status ExpertCache::read(int32_t unit) {
  ranges_of(unit);
  const uint64_t bytes = bytes_of(ranges_);
  // The plan's `least` is in the budget: experts of this call are never dropped for others of it.
  while (bytes_ + bytes > stage_.experts.budget) drop(links_.back().after), counts_.dropped++;
  ranges_of(unit);
  if (auto ok = pages_->hold(ranges_); !ok) return ok;
  in_memory_[size_t(unit)] = true, bytes_ += bytes;
  append(unit);
  counts_.read++;
  return Done{};
}

Status ExpertCache::provide(int group, size_t rows) {
  const ExpertGroup& g = stage_.experts.groups[size_t(group)];
  const auto chosen = size_t(g.chosen);
  calls_++;
  missing_.clear();
  for (size_t row = 0; row < rows; row++)
    for (size_t k = 0; k < chosen; k++) {
      const int32_t unit =
          first_unit_[size_t(group)] + expert_of(routes_[row * 2 * chosen + chosen + k], g.experts);
      if (std::exchange(wanted_at_[size_t(unit)], calls_) == calls_) continue;
      counts_.wanted++;
      if (!in_memory_[size_t(unit)]) missing_.push_back(unit);
      else remove(unit), append(unit);
    }
  std::sort(missing_.begin(), missing_.end());  // in the order of the file
  for (size_t i = 0; i < missing_.size(); i++)
    if (auto ok = read(missing_[i]); !ok) {
      for (size_t k = 0; k < i; k++) drop(missing_[k]);
      return ok;
    }
  return Done{};
}

ExpertCache::Counts ExpertCache::counts() const {
  Counts c = counts_;
  c.bytes_read = pages_->read_bytes();
  c.bytes_in_memory = pages_->held_bytes(), c.bytes_at_most = pages_->most_bytes();
  return c;
}

}  // namespace gimbal
