// The parts of attention as tensors, over views of caches that other tensors share: softmax in place, scores,
// and sums of rows, against plain loops in double. The fused op has kernels_test.
#include <cmath>
#include <limits>
#include <random>

#include "tensors/cpu_queue.h"

namespace gimbal::test {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

struct AttentionViews : OnCpuQueue {
  std::vector<float> random(size_t n) {
    std::vector<float> v(n);
    for (float& x : v) x = std::uniform_real_distribution<float>(-2, 2)(random_);
    return v;
  }
  Tensor tensor(const std::vector<float>& v, const Dims& dims) {
    return Tensor::from<float>(std::span(v), dims, *queue);
  }
  static std::vector<float> values(const Tensor& t) {
    const auto v = t.values<float>();
    EXPECT_TRUE(v) << v.error().message;
    return v ? *v : std::vector<float>();
  }
  std::mt19937 random_{28};
};

// All zeros where everything is masked.
std::vector<double> softmax(const std::vector<double>& x) {
  double most = kMasked, sum = 0;
  for (double v : x) most = std::max(most, v);
  std::vector<double> y(x.size());
  if (most == kMasked) return y;
  for (size_t i = 0; i < x.size(); i++) sum += y[i] = std::exp(x[i] - most);
  for (double& v : y) v /= sum;
  return y;
}

TEST_F(AttentionViews, SoftmaxOfAViewInPlace) {
  constexpr int64_t kRows = 6, kWidth = 40, kFirst = 3, kCount = 12, kStep = 3;
  std::vector<float> x = random(kRows * kWidth);
  auto at = [](int64_t row, int64_t i) { return size_t(row * kWidth + kFirst + kStep * i); };
  x[at(2, 5)] = x[at(2, 6)] = kMasked;
  for (int64_t i = 0; i < kCount; i++) x[at(4, i)] = kMasked;
  const Tensor all = tensor(x, {kRows, kWidth});
  const Tensor view = all.narrow(1, kFirst, kCount, kStep);
  ASSERT_TRUE(view.shares_memory_with(all));
  EXPECT_EQ(view.strides(), (Dims{kWidth, kStep}));
  EXPECT_EQ(view.offset(), kFirst);
  const auto moved = queue->counts();
  ASSERT_TRUE(view.copy_(view.softmax(-1)));
  EXPECT_EQ(queue->counts().uploads, moved.uploads);
  EXPECT_EQ(queue->counts().downloads, moved.downloads);
  EXPECT_EQ(queue->counts().operations, moved.operations + 2) << "the softmax, and its place";
  const std::vector<float> got = values(all);
  ASSERT_EQ(got.size(), x.size());
  std::vector<bool> inside(x.size());
  for (int64_t row = 0; row < kRows; row++) {
    std::vector<double> plain;
    for (int64_t i = 0; i < kCount; i++) plain.push_back(x[at(row, i)]), inside[at(row, i)] = true;
    const std::vector<double> want = softmax(plain);
    for (int64_t i = 0; i < kCount; i++) EXPECT_NEAR(got[at(row, i)], want[size_t(i)], 1e-7);
  }
  for (size_t i = 0; i < x.size(); i++)
    if (!inside[i]) { EXPECT_EQ(got[i], x[i]) << i; }
}

// A cache of keys and one of values, [positions, heads, width], of which the first positions are filled. Two
// heads of the query share one of the cache's; the mask leaves a window of positions.
struct Attention : AttentionViews {
  static constexpr int64_t kCapacity = 40, kFilled = 29, kHeads = 3, kShare = 2, kWidth = 24, kWindow = 11;
  const float scale = 1 / std::sqrt(float(kWidth));
  std::vector<float> q = random(kHeads * kShare * kWidth), keys = random(kCapacity * kHeads * kWidth),
                     rows = random(kCapacity * kHeads * kWidth);

  // [heads, filled, width] of a cache, in place.
  Tensor filled(const Tensor& cache) { return cache.narrow(0, 0, kFilled).permute({1, 0, 2}); }
  static bool seen(int64_t position) { return position >= kFilled - kWindow; }
  static double at(const std::vector<float>& cache, int64_t position, int64_t head, int64_t i) {
    return cache[size_t((position * kHeads + head / kShare) * kWidth + i)];
  }
  std::vector<double> scores(int64_t head) {
    std::vector<double> all;
    for (int64_t p = 0; p < kFilled; p++) {
      double sum = 0;
      for (int64_t i = 0; i < kWidth; i++) sum += double(q[size_t(head * kWidth + i)]) * at(keys, p, head, i);
      all.push_back(seen(p) ? sum * double(scale) : double(kMasked));
    }
    return all;
  }
};

TEST_F(Attention, ScoresAndWeightedSumsOverViewsOfCaches) {
  std::vector<float> mask(kFilled);
  for (int64_t p = 0; p < kFilled; p++) mask[size_t(p)] = seen(p) ? 0.f : kMasked;
  const Tensor query = tensor(q, {kHeads, kShare, kWidth}), window = tensor(mask, {kFilled}),
               cache = tensor(keys, {kCapacity, kHeads, kWidth}),
               value_cache = tensor(rows, {kCapacity, kHeads, kWidth});
  const Tensor k = filled(cache), v = filled(value_cache);
  ASSERT_TRUE(k.shares_memory_with(cache));
  ASSERT_FALSE(k.is_contiguous());
  // Into the first places of what has room for more.
  const Tensor room = Tensor::full({kHeads, kShare, kCapacity}, 7.f, DType::F32, *queue);
  const Tensor scores = room.narrow(2, 0, kFilled);
  ASSERT_TRUE(scores.copy_(query.matmul(k.t()) * scale + window.broadcast_to(scores.dims())));
  const std::vector<float> got = values(room);
  ASSERT_TRUE(scores.copy_(scores.softmax(-1)));
  const std::vector<float> sums = values(scores.matmul(v));
  ASSERT_EQ(sums.size(), q.size());
  for (int64_t head = 0; head < kHeads * kShare; head++) {
    const std::vector<double> want = this->scores(head), weights = softmax(want);
    for (int64_t p = 0; p < kCapacity; p++) {
      const float s = got[size_t(head * kCapacity + p)];
      if (p >= kFilled) EXPECT_EQ(s, 7.f);
      else if (!seen(p)) EXPECT_EQ(s, kMasked);
      else EXPECT_NEAR(s, want[size_t(p)], 2e-6);
    }
    for (int64_t i = 0; i < kWidth; i++) {
      double sum = 0;
      for (int64_t p = 0; p < kFilled; p++) sum += weights[size_t(p)] * at(rows, p, head, i);
      EXPECT_NEAR(sums[size_t(head * kWidth + i)], sum, 2e-6);
    }
  }
}

}  // namespace
}  // namespace gimbal::test
