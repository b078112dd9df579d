#include "conformance/known_cases.h"

#include <algorithm>

#include "ops/op_def.h"
#include "program/place.h"

namespace gimbal {
namespace {

constexpr size_t kRemembered = 6;  // a kernel may take several formats of caches, or of integers

// The cache after writing the input's rows.
reference::Tensor written_cache(const Case& c, const reference::Tensor& rows,
                                const reference::Tensor& pages) {
  const Written written(c);
  const auto n = int32_t(written.position.size());
  const Shape each(DType::I32, {n});
  reference::Tensor cache{
      Shape(c.cache_type, {rows.shape.dim[0], rows.shape.dim[1], kPagePositions, written.pages}), {}};
  cache.values.assign(size_t(cache.shape.count()), 0);
  const reference::Tensor position = reference::decode(each, written.position.data()),
                          sequence = reference::decode(each, written.sequence.data());
  const reference::Tensor* write[] = {&cache, &rows, &position, &sequence, &pages};
  reference::run(OpKind::CacheWrite, {}, write, cache, n);
  return cache;
}

Expected expected_of(const Case& c, const Shape& out) {
  Expected e;
  const OpDef& op = def(c.kind);
  std::vector<reference::Tensor> in;
  for (const CaseInput& i : c.inputs) in.push_back(reference::decode(i.shape, dense_bytes(i).data()));
  for (size_t i = 0; i < in.size(); i++)
    if (op.inputs[i].role == Role::Cache) in[i] = written_cache(c, in[i], in[size_t(op.first(Role::Pages))]);
  const int written = op.first(Role::Written);
  e.out = written >= 0 ? in[size_t(written)] : reference::empty(out);
  std::vector<const reference::Tensor*> pointers;
  for (const reference::Tensor& t : in) pointers.push_back(&t);
  const int state = op.first(Role::State);
  if (state >= 0) e.state = in[size_t(state)];
  reference::run(c.kind, c.params, pointers, e.out, c.rows, &e.magnitude, &e.state,
                 state >= 0 ? &e.state_magnitude : nullptr);
  return e;
}

}  // namespace

Written::Written(const Case& c) {
  const int table = def(c.kind).first(Role::Pages), cache = def(c.kind).first(Role::Cache);
  if (table < 0 || cache < 0) return;
  const Shape& pages_of = c.inputs[size_t(table)].shape;
  const auto sequences = int32_t(pages_of.dim[1] - 1);
  for (int32_t i = 0; i < c.inputs[size_t(cache)].shape.dim[2]; i++)
    position.push_back(i / sequences), sequence.push_back(1 + i % sequences);
  pages = int32_t(pages_of.dim[0] * sequences);
}

const Expected& KnownCase::expected(const Shape& out) {
  if (!known) known = expected_of(input, out);
  return *known;
}

std::vector<KnownCase>& KnownCases::of(OpKind kind, DType format) {
  auto at = std::find_if(sets_.begin(), sets_.end(),
                         [&](const Set& s) { return s.kind == kind && s.format == format; });
  if (at != sets_.end()) {
    std::rotate(at, at + 1, sets_.end());
    return sets_.back().cases;
  }
  if (sets_.size() == kRemembered) sets_.erase(sets_.begin());
  sets_.push_back({kind, format, {}});
  for (Case& c : cases(kind, format)) sets_.back().cases.push_back({std::move(c), {}});
  return sets_.back().cases;
}

}  // namespace gimbal
