// Queues: devices by name, memory and its limit, counts, receipts, errors that were not read, several
// threads.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include <gimbal/tensor.h>

#include "tensors/cpu_queue.h"

namespace gimbal::test {
namespace {

class TensorQueue : public OnCpuQueue {};

TEST_F(TensorQueue, SaysWhatItIs) {
  EXPECT_EQ(queue->location(), "cpu:0");
  EXPECT_TRUE(queue->is_cpu());
  EXPECT_FALSE(queue->name().empty());
  EXPECT_FALSE(queue->reason().empty());
  EXPECT_TRUE(queue->supports(DType::BF16));
  EXPECT_TRUE(queue->supports(DType::Bool));
  EXPECT_FALSE(queue->supports(DType::F8_E5M2)) << "stored only";
  const Queue same = *queue;
  EXPECT_TRUE(same.same_as(*queue));
  const auto other = open_queue("cpu");
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->same_as(*queue));
}

TEST_F(TensorQueue, TransposedCopiesHaveEveryElement) {
  struct Size {
    int64_t batch, rows, columns;
  };
  for (const int threads : {1, 3})
    for (const Size s :
         {Size{1, 64, 64}, {1, 63, 65}, {1, 15, 17}, {1, 1025, 33}, {3, 100, 200}, {1, 300, 700}}) {
      QueueOptions o;
      o.threads = threads;
      const Queue q = *open_queue("cpu", o);
      std::vector<int64_t> values(size_t(s.batch * s.rows * s.columns)), want(values.size());
      for (size_t i = 0; i < values.size(); i++) values[i] = int64_t(i * 7919 % 251);
      for (int64_t b = 0; b < s.batch; b++)
        for (int64_t r = 0; r < s.rows; r++)
          for (int64_t c = 0; c < s.columns; c++)
            want[size_t((b * s.columns + c) * s.rows + r)] = values[size_t((b * s.rows + r) * s.columns + c)];
      const Tensor x = Tensor::from<int64_t>(values, {s.batch, s.rows, s.columns}, q);
      for (const DType type : {DType::U8, DType::F16, DType::F32, DType::I64})
        EXPECT_EQ(*x.to(type).permute({0, 2, 1}).copy().to(DType::I64).values<int64_t>(), want)
            << int(type) << ": " << s.batch << " x " << s.rows << " x " << s.columns;
    }
}

// The numbers of Generator, which golden_tensors_test compares with other people's.
TEST_F(TensorQueue, RandomNumbersFollowItsSeed) {
  const auto numbers = [](const Tensor& x) { return *x.values<float>(); };
  EXPECT_EQ(queue->seed(), 299792458u);
  const Queue same = *queue;
  same.set_seed(7);
  EXPECT_EQ(queue->seed(), 7u) << "copies are the same queue";
  Generator g(7, *queue);
  const auto first = numbers(Tensor::normal({3, 5}, DType::F32, *queue));
  EXPECT_EQ(first, numbers(g.normal({3, 5})));
  EXPECT_EQ(numbers(Tensor::uniform({9}, DType::F32, *queue)), numbers(g.uniform({9})));
  EXPECT_FALSE(Tensor::uniform({-1}, DType::F32, *queue).ok());
  EXPECT_FALSE(Tensor::uniform({2}, DType::I32, *queue).ok());
  queue->set_seed(7);
  EXPECT_EQ(numbers(Tensor::normal({3, 5}, DType::F32, *queue)), first) << "from the beginning";
  const auto other = open_queue("cpu");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->seed(), 299792458u);
  EXPECT_NE(numbers(Tensor::normal({3, 5}, DType::F32, *other)), first);
}

TEST_F(TensorQueue, NamesThatDoNotExistAreErrors) {
  for (const char* where : {"gpu", "cpu:7", "cuda:x", ""}) {
    const auto none = open_queue(where);
    ASSERT_FALSE(none) << where;
    EXPECT_FALSE(none.error().message.empty());
  }
}

// Of more elements than a kernel holds at once.
TEST_F(TensorQueue, ACopyBetweenOverlappingViewsReadsFirst) {
  constexpr int64_t n = 5000;
  const auto rising = [&] { return Tensor::arange(0, n, 1, DType::F32, *queue); };
  const Tensor up = rising(), down = rising(), turned = rising();
  ASSERT_TRUE(up.narrow(0, 1, n - 1).copy_(up.narrow(0, 0, n - 1)));
  ASSERT_TRUE(down.narrow(0, 0, n - 1).copy_(down.narrow(0, 1, n - 1)));
  ASSERT_TRUE(turned.copy_(turned.flip(0)));
  const auto ups = *up.values<float>(), downs = *down.values<float>(), turns = *turned.values<float>();
  for (int64_t i = 0; i < n; i++) {
    ASSERT_EQ(ups[size_t(i)], float(std::max<int64_t>(0, i - 1)));
    ASSERT_EQ(downs[size_t(i)], float(std::min(n - 1, i + 1)));
    ASSERT_EQ(turns[size_t(i)], float(n - 1 - i));
  }
}

TEST_F(TensorQueue, RangesStopBeforeTheirEnd) {
  const auto range = [&](int64_t begin, int64_t end, int64_t step) {
    return *Tensor::arange(begin, end, step, DType::I64, *queue).values<int64_t>();
  };
  using Values = std::vector<int64_t>;
  EXPECT_EQ(range(0, 5, 2), (Values{0, 2, 4}));
  EXPECT_EQ(range(0, 4, 2), (Values{0, 2}));
  EXPECT_EQ(range(5, 0, -2), (Values{5, 3, 1}));
  EXPECT_EQ(range(4, 0, -2), (Values{4, 2}));
  EXPECT_EQ(range(0, -1, -7), Values{0});
  EXPECT_EQ(range(0, 5, -1), Values{});
  EXPECT_EQ(range(5, 0, 1), Values{});
}

TEST_F(TensorQueue, OneUploadAndOneDownload) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, {2, 2}, *queue);
  const Tensor y = ((x.matmul(x) + 1.0) * 0.5).map("gelu").sum({0});
  EXPECT_EQ(queue->counts().downloads, 0u);
  ASSERT_TRUE(y.values<float>());
  const TransferCounts c = queue->counts();
  EXPECT_EQ(c.uploads, 1u);
  EXPECT_EQ(c.downloads, 1u);
  EXPECT_EQ(c.operations, 5u);
  uint64_t runs = 0;
  for (const auto& [kernel, n] : queue->receipt()) {
    EXPECT_EQ(kernel.rfind("cpu.", 0), 0u) << kernel;
    runs += n;
  }
  EXPECT_EQ(runs, 5u);
}

TEST_F(TensorQueue, AnErrorIsCarriedOnAndReadOnce) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3}, *queue);
  const Tensor y = (x.matmul(x) + 1.0).map("exp").sum();
  EXPECT_FALSE(y.ok());
  auto v = y.values<float>();
  ASSERT_FALSE(v);
  EXPECT_EQ(v.error().reason, reason::kShape);
  EXPECT_EQ(v.error().message, "matmul: f32[2, 3] with f32[2, 3]: the inner dimensions differ (3 and 2)");
  EXPECT_TRUE(queue->wait()) << "it was read";
  { const Tensor dropped = x.matmul(x); }
  const Status unread = queue->wait();
  ASSERT_FALSE(unread);
  EXPECT_EQ(unread.error().reason, reason::kShape);
  EXPECT_TRUE(queue->wait());
}

TEST_F(TensorQueue, MemoryIsUsedAgainAndGivenBack) {
  const Dims dims = {1 << 20};
  { const Tensor x = Tensor::zeros(dims, DType::F32, *queue); }
  const MemoryStats first = queue->memory();
  EXPECT_EQ(first.live, 0u);
  EXPECT_GE(first.cached, uint64_t(4) << 20);
  Tensor x = Tensor::zeros(dims, DType::F32, *queue);
  for (int i = 0; i < 100; i++) x = x + 1.0;
  EXPECT_LE(queue->memory().peak, first.peak + (uint64_t(8) << 20))
      << "hundred results take the place of two";
  EXPECT_EQ((*x.narrow(0, 5, 1).values<float>())[0], 100);
  queue->trim();
  EXPECT_EQ(queue->memory().cached, 0u);
}

TEST_F(TensorQueue, ALimitIsAnErrorThatNamesTheNumbers) {
  QueueOptions o;
  o.memory_limit = 1 << 20;
  const auto small = open_queue("cpu", o);
  ASSERT_TRUE(small);
  const Tensor fits = Tensor::zeros({1 << 16}, DType::F32, *small),
               x = Tensor::zeros({1 << 19}, DType::F32, *small);
  EXPECT_TRUE(fits.ok());
  ASSERT_FALSE(x.ok());
  EXPECT_EQ(x.error().code, Code::OutOfMemory);
  EXPECT_NE(x.error().message.find("2097152"), std::string::npos) << x.error().message;
}

// Memory that is kept for later tensors counts, too, and gives way.
TEST_F(TensorQueue, KeptMemoryIsWithinTheLimit) {
  QueueOptions o;
  o.memory_limit = 1 << 20;
  const auto small = open_queue("cpu", o);
  ASSERT_TRUE(small);
  { const Tensor kept = Tensor::zeros({150'000}, DType::F32, *small); }
  EXPECT_GE(small->memory().cached, 600'000u);
  const Tensor x = Tensor::zeros({120'000}, DType::F32, *small);
  EXPECT_TRUE(x.ok());
  const MemoryStats now = small->memory();
  EXPECT_LE(now.live + now.cached, o.memory_limit);
}

TEST_F(TensorQueue, TensorsOfTwoQueuesDoNotMeet) {
  const auto other = open_queue("cpu");
  ASSERT_TRUE(other);
  const Tensor a = Tensor::full({2}, 1.5, DType::F32, *queue), b = Tensor::full({2}, 2, DType::F32, *other);
  EXPECT_FALSE((a + b).ok());
  EXPECT_EQ(*(a + b.to(*queue)).values<float>(), (std::vector<float>{3.5, 3.5}));
}

TEST_F(TensorQueue, ThreadsShareOneAndEachHasItsOwn) {
  std::vector<std::thread> threads;
  std::vector<double> sums(4);
  for (size_t i = 0; i < sums.size(); i++)
    threads.emplace_back([&, i] {
      const Queue q = i % 2 ? *queue : *open_queue("cpu");
      Tensor x = Tensor::full({100, 7}, double(i), DType::F64, q);
      for (int k = 0; k < 50; k++) x = (x.t() + x.t()).t() * 0.5 + 1;
      sums[i] = (*x.sum().values<double>())[0];
    });
  for (std::thread& t : threads) t.join();
  for (size_t i = 0; i < sums.size(); i++) EXPECT_EQ(sums[i], 700 * (double(i) + 50));
}

TEST_F(TensorQueue, TensorsOutliveTheirQueue) {
  std::optional<Tensor> x;
  {
    const auto q = open_queue("cpu");
    ASSERT_TRUE(q);
    x = Tensor::arange(0, 6, 1, DType::I32, *q).reshape({2, 3});
  }
  EXPECT_EQ(*(*x + 1).values<int32_t>(), (std::vector<int32_t>{1, 2, 3, 4, 5, 6}));
}

TEST_F(TensorQueue, TheCallersMemoryIsReadInPlace) {
  auto values = std::make_shared<std::vector<float>>(4096);
  for (size_t i = 0; i < values->size(); i++) (*values)[i] = float(i % 97);
  std::weak_ptr<std::vector<float>> alive = values;
  const float* p = values->data() + 7;
  const uint64_t before = queue->memory().live;
  {
    // Rows of four, backwards, and columns with gaps.
    const Tensor x = Tensor::wrap(p + 400, {100, 4}, {-4, 1}, DType::F32, *queue, values);
    const Tensor y = Tensor::wrap(p, {3, 100}, {1, 5}, DType::F32, *queue, values);
    ASSERT_TRUE(x.ok() && y.ok()) << x.error().message << y.error().message;
    values.reset();
    EXPECT_EQ(queue->memory().live, before);
    EXPECT_EQ(x.host(), p + 400);
    EXPECT_TRUE(x.is_read_only() && x.t().is_read_only());
    EXPECT_FALSE(x.copy().is_read_only());
    const auto sums = *x.sum({1}).values<float>(), some = *(y * 2.0).values<float>();
    for (int64_t i = 0; i < 100; i++) {
      float want = 0;
      for (int64_t k = 0; k < 4; k++) want += p[400 - 4 * i + k];
      EXPECT_EQ(sums[size_t(i)], want);
      EXPECT_EQ(some[size_t(100 + i)], 2 * p[1 + 5 * i]);
    }
    EXPECT_EQ(x.fill_(1).error().code, Code::Usage);
    EXPECT_EQ(x.narrow(0, 1, 2).copy_(x.narrow(0, 0, 2)).error().code, Code::Usage);
    EXPECT_FALSE(alive.expired());
  }
  EXPECT_TRUE(alive.expired());
  const float odd[2] = {};
  const auto owner = std::make_shared<int>(1);
  EXPECT_FALSE(
      Tensor::wrap(reinterpret_cast<const char*>(odd) + 1, {1}, {1}, DType::F32, *queue, owner).ok());
  EXPECT_FALSE(Tensor::wrap(odd, {1}, {1, 1}, DType::F32, *queue, owner).ok());
  EXPECT_FALSE(Tensor::wrap(odd, {-1}, {1}, DType::F32, *queue, owner).ok());
  EXPECT_FALSE(Tensor::wrap(odd, {32}, {1}, DType::Q4_0, *queue, owner).ok());
  EXPECT_EQ(Tensor::wrap(nullptr, {0, 3}, {3, 1}, DType::F32, *queue, owner).count(), 0);
}

// The same bits for any number of threads and any instruction set.
TEST_F(TensorQueue, SameBitsForThreadsAndInstructionSets) {
  std::vector<std::byte> first;
  for (const char* variant : {"", "baseline", "avx2", "avx512", "neon"})
    for (int threads : {1, 2, 3}) {
      QueueOptions o;
      o.threads = threads, o.cpu_variant = variant;
      const auto q = open_queue("cpu", o);
      if (!q) continue;  // not of this processor
      Generator g(7, *q);
      const Tensor a = g.normal({67, 131}), b = g.normal({131, 259});
      const Tensor y = a.matmul(b).map("gelu").softmax(-1).map("log1p") + g.uniform({259});
      const Tensor all[] = {y.reshape({-1}), y.sum({0}), y.var({1}), y.cumsum(0).reshape({-1}),
                            y.t().sum({1, 0}).reshape({1})};
      const auto bytes = cat(all, 0).bytes();
      ASSERT_TRUE(bytes) << bytes.error().message;
      if (first.empty()) first = *bytes;
      EXPECT_EQ(*bytes == first, true) << variant << " with " << threads << " threads";
    }
}

}  // namespace
}  // namespace gimbal::test
