// What is planned is what is taken: counted through the backend's own table, and in the host's memory by
// replacing operator new, for which this is an executable of its own.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>

#include "device/backends.h"
#include "files/gguf.h"
#include "runtime/generate.h"
#include "runtime/memory_check.h"
#include "support/golden.h"

static std::atomic<long> host_allocations, host_bytes, most_host_bytes;

// Every way to memory is counted: plain and aligned new, the malloc family, mmap. Sanitizers have a malloc of
// their own, which cannot be replaced; there, operator new is what is counted.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static constexpr bool kSeesMalloc = false;
static void note_operator_new() { host_allocations++; }
#else
static constexpr bool kSeesMalloc = true;
static void note_operator_new() {}  // malloc below is what it calls
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void* malloc(size_t n) { return host_allocations++, __libc_malloc(n); }
void* calloc(size_t n, size_t size) { return host_allocations++, __libc_calloc(n, size); }
void* realloc(void* p, size_t n) { return host_allocations++, __libc_realloc(p, n); }
void* memalign(size_t alignment, size_t n) { return host_allocations++, __libc_memalign(alignment, n); }
void* aligned_alloc(size_t alignment, size_t n) { return memalign(alignment, n); }
int posix_memalign(void** out, size_t alignment, size_t n) {
  return (*out = memalign(alignment, n)) ? 0 : ENOMEM;
}
void* mmap(void* at, size_t n, int protection, int flags, int file, off_t offset) {
  host_allocations++;
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, n, protection, flags, file, offset));
}
}
#endif

static void* counted(void* p) {
  note_operator_new();
  if (!p) throw std::bad_alloc();
  const long now = host_bytes += long(malloc_usable_size(p));
  if (now > most_host_bytes) most_host_bytes = now;
  return p;
}
[[gnu::noinline]] void* operator new(size_t n) { return counted(std::malloc(n ? n : 1)); }
[[gnu::noinline]] void* operator new(size_t n, std::align_val_t a) {
  return counted(memalign(size_t(a), n ? n : 1));
}
[[gnu::noinline]] void* operator new(size_t n, const std::nothrow_t&) noexcept { return operator new(n); }
[[gnu::noinline]] void operator delete(void* p) noexcept {
  if (p) host_bytes -= long(malloc_usable_size(p));
  std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { operator delete(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { operator delete(p); }
[[gnu::noinline]] void operator delete(void* p, size_t, std::align_val_t) noexcept { operator delete(p); }

namespace gimbal {
namespace {

// The CPU backend with its alloc watched and its free memory invented.
struct Watched {
  const gimbal_backend* real = nullptr;
  gimbal_backend table{};
  std::vector<uint64_t> taken;
  uint64_t free = 0;  // 0: as it is
};
Watched& watched() {
  static Watched w = [] {
    Watched w;
    for (LinkedBackends e = linked_backends(); *e; ++e)
      if (std::string((*e)()->name) == "cpu") w.real = (*e)();
    w.table = *w.real;
    w.table.alloc = [](gimbal_device* d, size_t n, gimbal_buffer** out) {
      watched().taken.push_back(n);
      return watched().real->alloc(d, n, out);
    };
    w.table.describe = [](gimbal_device* d, gimbal_device_info* i) {
      watched().real->describe(d, i);
      if (watched().free) i->memory_free = watched().free;
    };
    return w;
  }();
  return w;
}

struct Planned {
  std::unique_ptr<ModelSource> file;
  std::unique_ptr<Device> device;
  std::unique_ptr<ModelPlan> plan;
};

Planned plan(const RunOptions& options, uint64_t free = 0, const char* device = "threads=1") {
  watched().free = free;
  watched().taken.clear();
  Planned p;
  const std::string path = test::golden_dir() + "/stories/stories260K-q8_0.gguf";
  auto file = open_gguf(path);
  EXPECT_TRUE(file) << file.error().message;
  p.file = std::make_unique<ModelSource>(std::move(*file));
  p.device = *Device::open(watched().table, 0, device);
  auto b = make_model_plan(*p.file, *p.device, options);
  EXPECT_TRUE(b) << b.error().message;
  p.plan = std::make_unique<ModelPlan>(std::move(*b));
  return p;
}

Status memory_of(const Planned& p) { return check_memory(*p.file, *p.plan); }

RunOptions options(int context, DType cache = DType::F16, int sequences = 2) {
  RunOptions o;
  o.context = context, o.cache_type = cache, o.sequences = sequences, o.batch = 32, o.logit_rows = 4;
  return o;
}

// The value of a setting that an error says would help; empty when it says nothing of it.
std::string suggestion(const Error& e, const std::string& field) {
  for (const Change& c : e.changes)
    if (c.field == field) return c.value;
  return "";
}

// Without it, "0 allocations" below could mean that the counter is broken.
TEST(MemoryPlan, EveryWayToMemoryIsCounted) {
  struct alignas(256) Wide {
    char bytes[256];
  };
  static void* volatile kept;
  auto counts = [](auto take) {
    const long before = host_allocations;
    take();
    return host_allocations - before;
  };
  EXPECT_EQ(counts([] { kept = new int; }), 1);
  delete static_cast<int*>(kept);
  EXPECT_EQ(counts([] { kept = new Wide; }), 1);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(kept) % 256, 0u);
  delete static_cast<Wide*>(kept);
  if (!kSeesMalloc) GTEST_SKIP() << "a sanitizer's malloc cannot be counted";
  EXPECT_EQ(counts([] { kept = std::malloc(10); }), 1);
  EXPECT_EQ(counts([] { kept = std::realloc(kept, 100000); }), 1);
  std::free(kept);
  EXPECT_EQ(counts([] { kept = std::calloc(10, 10); }), 1);
  std::free(kept);
  EXPECT_EQ(counts([] { kept = std::aligned_alloc(64, 640); }), 1);
  std::free(kept);
  void* p = nullptr;
  EXPECT_EQ(counts([&] { EXPECT_EQ(posix_memalign(&p, 4096, 10), 0); }), 1);
  std::free(p);
  EXPECT_EQ(counts([&] { p = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }), 1);
  ASSERT_NE(p, MAP_FAILED);
  munmap(p, 4096);
}

TEST(MemoryPlan, IsWhatIsTakenAndNothingIsTakenAfterLoading) {
  for (DType cache : {DType::F16, DType::F32}) {
    Planned p = plan(options(200, cache));
    EXPECT_TRUE(watched().taken.empty()) << "planning takes nothing";
    const MemoryPlan m = p.plan->stages[0].memory;
    const Config c = p.plan->config;
    auto model = Model::load(std::move(*p.plan), *p.file);
    ASSERT_TRUE(model) << model.error().message;
    std::vector<uint64_t> want = {m.weights, m.cache, m.step, m.activations, m.output}, got = watched().taken;
    EXPECT_EQ(got.size(), want.size());
    std::sort(want.begin(), want.end()), std::sort(got.begin(), got.end());
    EXPECT_EQ(got, want);

    // The cache by its own arithmetic: four pages of 64 positions for each of two sequences.
    uint64_t layer = 0;
    for (bool key : {true, false})
      layer += p.device->cache_bytes(cache, key, c.head_dim, c.kv_heads, kPagePositions, 8);
    EXPECT_EQ(m.cache, layer * uint64_t(c.layers));

    auto a = Session::create(**model), b = Session::create(**model);
    ASSERT_TRUE(a && b);
    std::vector<int32_t> tokens(200, 5);
    for (auto* s : {a->get(), b->get()})
      ASSERT_TRUE(s->advance(tokens, Session::Wanted::All, [](size_t, std::span<const float>) {}));
    EXPECT_EQ(watched().taken.size(), want.size()) << "nothing is allocated after load()";
  }
}

// Everything that loading and two conversations take of this machine, at its peak: the plan is within 2 %.
TEST(MemoryPlan, OfTheWholeMachineIsWhatIsTakenOfIt) {
  RunOptions o = options(4000, DType::F32);
  o.logit_rows = 32;
  Planned p = plan(o);
  const MemoryUse host = memory_uses(*p.plan).back();
  ASSERT_EQ(host.device, nullptr);
  EXPECT_EQ(host.sum.sessions, p.plan->steps_bytes() + 2 * p.plan->session_bytes());
  EXPECT_EQ(host.sum.total(), p.plan->stages[0].memory.total() + host.sum.sessions);
  const long before = host_bytes;
  most_host_bytes = before;
  auto model = Model::load(std::move(*p.plan), *p.file);
  ASSERT_TRUE(model) << model.error().message;
  auto a = Session::create(**model), b = Session::create(**model);
  ASSERT_TRUE(a && b);
  const std::vector<int32_t> tokens(100, 5);
  SamplerSettings whole;  // looks at every logit
  whole.repeat_penalty = 1.5, whole.top_k = 0;
  Sampler samplers[] = {Sampler(whole), Sampler(whole)};
  for (int i = 0; i < 2; i++) {
    const Session::Sink pick = [&](size_t, std::span<const float> logits) {
      EXPECT_TRUE(samplers[i].pick(logits, tokens));
    };
    ASSERT_TRUE((i ? *b : *a)->advance(tokens, Session::Wanted::All, pick));
  }
  double taken = double(most_host_bytes - before);
  for (uint64_t n : watched().taken) taken += double(n);
  const double planned = double(host.sum.total());
  std::printf("planned %.0f bytes, taken %.0f at the peak: %+.2f %%\n", planned, taken,
              100 * (taken / planned - 1));
  EXPECT_NEAR(taken, planned, 0.02 * planned);
  EXPECT_GT(double(host.sum.sessions), 0.01 * planned) << "too little to be seen in this comparison";
}

TEST(MemoryPlan, ASamplerTakesWhatIsPlannedForIt) {
  const std::vector<float> logits(32000, 1.5f);
  const std::vector<int32_t> history(100, 7);
  const uint64_t planned = Sampler::max_bytes(logits.size());
  SamplerSettings greedy, whole;
  greedy.greedy = true;
  whole.repeat_penalty = 1.5, whole.top_k = 0, whole.typical_p = 0.5f;
  whole.logit_bias = {{3, 1.0f}};
  for (const SamplerSettings& s : {SamplerSettings(), greedy, whole}) {
    Sampler sampler(s);
    const long before = host_bytes;
    most_host_bytes = before;
    ASSERT_TRUE(sampler.pick(logits, history));
    ASSERT_TRUE(sampler.pick(logits, history));
    const long taken = most_host_bytes - before;
    EXPECT_LE(taken, long(planned) + 3 * 4096) << "three vectors, each rounded up by malloc";
    if (s.top_k == 0) { EXPECT_GE(taken, long(planned)) << "more is planned than is ever taken"; }
  }
}

TEST(MemoryPlan, WhatTheMachineDoesNotHaveIsRefusedThoughADeviceClaimsIt) {
  RunOptions o = options(2000, DType::F32, 65536);
  Planned p = plan(o, uint64_t(1) << 62);
  auto no = check_memory(*p.file, *p.plan);
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, Code::OutOfMemory);
  EXPECT_NE(no.error().message.find("on this machine for all that uses its memory"), std::string::npos)
      << no.error().message;
  EXPECT_FALSE(fits(*p.plan));
}

TEST(MemoryPlan, WhatOthersPromisedThemselvesIsNotFreeAndSaid) {
  RunOptions o = options(200);
  EXPECT_TRUE(memory_of(plan(o)));
  o.promised = uint64_t(1) << 50;
  const Planned p = plan(o);
  EXPECT_EQ(memory_uses(*p.plan).back().sum.free, 0u);
  auto no = check_memory(*p.file, *p.plan);
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, Code::OutOfMemory);
  EXPECT_NE(no.error().message.find("reserved by other models"), std::string::npos) << no.error().message;
}

TEST(MemoryPlan, ATokenTakesNoHostMemory) {
  for (const char* device : {"threads=1", "threads=2"}) {
    Planned p = plan(options(200), 0, device);
    auto model = Model::load(std::move(*p.plan), *p.file);
    ASSERT_TRUE(model);
    auto session = Session::create(**model);
    ASSERT_TRUE(session);
    float sum = 0;
    const Session::Sink sink = [&](size_t, std::span<const float> logits) { sum += logits[0]; };
    std::vector<int32_t> batch(32, 7);
    ASSERT_TRUE((*session)->advance(batch, Session::Wanted::All, sink));
    bool ok = true;
    long before = host_allocations;
    for (int32_t t = 3; t < 103; t++)
      ok = (*session)->advance(std::span(&t, 1), Session::Wanted::Last, sink) && ok;
    EXPECT_EQ(host_allocations - before, 0) << "for 100 tokens, " << device;
    before = host_allocations;
    ok = (*session)->advance(batch, Session::Wanted::All, sink) && ok;
    EXPECT_EQ(host_allocations - before, 0) << "for a batch of 32, " << device;
    EXPECT_TRUE(ok);
  }
}

// Also where pages are shared, copied and given back, and with any number of rows.
TEST(MemoryPlan, ABatchOfSequencesTakesNoMemory) {
  Planned p = plan(options(200), 0, "threads=2");
  auto model = Model::load(std::move(*p.plan), *p.file);
  ASSERT_TRUE(model);
  auto a = *(*model)->new_sequence();
  Batch batch;
  batch.top = 3;
  batch.rows.reserve(32);
  auto compute = [&](std::initializer_list<Sequence*> sequences, int rows) {
    batch.rows.clear();
    for (Sequence* s : sequences)
      for (int i = 0; i < rows; i++)
        batch.rows.push_back({s, 7, s->computed() + i, {.logits = i == 0, .top = i == 0}});
    return bool((*model)->forward(batch));
  };
  bool ok = compute({a.get()}, 20);
  auto b = *a->fork();
  const size_t taken = watched().taken.size();
  const long before = host_allocations;
  for (int rows : {1, 2, 3, 7, 16}) ok = compute({a.get(), b.get()}, rows) && ok;  // the first copies a page
  a->truncate(30);
  for (int rows : {1, 5, 16}) ok = compute({b.get(), a.get()}, rows) && ok;
  EXPECT_EQ(host_allocations - before, 0);
  EXPECT_EQ(watched().taken.size(), taken);
  EXPECT_TRUE(ok);
}

TEST(MemoryPlan, GeneratingTakesLittleHostMemory) {
  Planned p = plan(options(200));
  auto tokenizer = *Tokenizer::create(p.file->metadata());
  auto model = Model::load(std::move(*p.plan), *p.file);
  ASSERT_TRUE(model);
  auto session = *Session::create(**model);
  GenerateSettings s;
  s.max_tokens = 10, s.ignore_stop_tokens = true;
  const auto prompt = tokenizer->encode("Once upon a time");
  auto run = [&](int n) {
    s.max_tokens = n;
    session->rewind(0);
    const long before = host_allocations;
    EXPECT_TRUE(generate(*session, *tokenizer, prompt, s, [](std::string_view, Token) { return true; }));
    return host_allocations - before;
  };
  run(10);
  const double per_token = double(run(150) - run(50)) / 100;
  std::printf("generate(): %.2f host allocations per token\n", per_token);
  EXPECT_LE(per_token, 0.1) << "only what holds the history and the text may grow";
}

TEST(MemoryPlan, WhatDoesNotFitIsRefusedWithNumbersAndAWayOut) {
  const MemoryPlan m = plan(options(200, DType::F32)).plan->stages[0].memory;
  EXPECT_TRUE(memory_of(plan(options(200, DType::F32), m.total()))) << "it just fits";

  Planned p = plan(options(200, DType::F32), m.total() - 1);
  auto no = check_memory(*p.file, *p.plan);
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, Code::OutOfMemory);
  for (const std::string& word :
       {std::string("cpu:0"), human_bytes(m.total()) + " needed", "weights " + human_bytes(m.weights),
        "KV cache " + human_bytes(m.cache) + " for 200 positions", human_bytes(m.total() - 1) + " free"})
    EXPECT_NE(no.error().message.find(word), std::string::npos) << word << " in: " << no.error().message;
  EXPECT_EQ(suggestion(no.error(), "cache_type"), "f16");
  auto load = Model::load(std::move(*p.plan), *p.file);
  ASSERT_FALSE(load);
  EXPECT_EQ(load.error().message, no.error().message);
  EXPECT_TRUE(watched().taken.empty()) << "refused before anything is taken";
}

TEST(MemoryPlan, TheContextThatIsSuggestedFits) {
  const int context = 2000;
  const MemoryPlan m = plan(options(context)).plan->stages[0].memory;
  for (int percent : {10, 35, 60, 99}) {
    const uint64_t free = m.total() - m.cache + m.cache * uint64_t(percent) / 100;
    auto no = memory_of(plan(options(context), free));
    ASSERT_FALSE(no);
    int suggested = 0;
    ASSERT_EQ(std::sscanf(suggestion(no.error(), "context").c_str(), "%d", &suggested), 1)
        << no.error().remedy;
    EXPECT_TRUE(memory_of(plan(options(suggested), free))) << suggested;
    EXPECT_FALSE(memory_of(plan(options(suggested + 2 * kPagePositions), free)))
        << suggested << " is far below what would fit";
  }
  // Not even without a cache: another context would not help, and is not suggested.
  auto no = memory_of(plan(options(context), m.weights));
  ASSERT_FALSE(no);
  EXPECT_EQ(suggestion(no.error(), "context"), "");
  EXPECT_NE(no.error().remedy.find("smaller"), std::string::npos) << no.error().remedy;
}

// stories260K was trained on 512 positions.
TEST(MemoryPlan, TheLargestContextIsWhatFitsOrWhatItWasTrainedOn) {
  struct Row {
    int sequences;
    int64_t positions;  // of cache that have room beside all else, and a byte
    int64_t largest;
  };
  for (DType cache : {DType::F32, DType::F16, DType::BF16})
    for (const Row& r : {Row{1, 512, 512},
                         {1, 5120, 512},
                         {1, 511, 512 - kPagePositions},
                         {1, 256, 256},
                         {1, kPagePositions, kPagePositions},
                         {1, kPagePositions - 1, 0},
                         {1, 0, 0},
                         {2, 512, 256},
                         {2, 1024, 512},
                         {4, 512, 128},
                         {4, 4096, 512}}) {
      const RunOptions whole = options(512, cache, r.sequences);
      const MemoryPlan m = plan(whole).plan->stages[0].memory;
      ASSERT_EQ(m.cache % (512 * uint64_t(r.sequences)), 0u);
      const uint64_t position = m.cache / (512 * uint64_t(r.sequences)),
                     free = m.total() - m.cache + uint64_t(r.positions) * position + 1;
      EXPECT_EQ(largest_context(*plan(whole, free).plan), r.largest)
          << info(cache).name << ", " << r.sequences << " sequences, " << r.positions << " positions";
      if (r.largest == 0) continue;
      EXPECT_TRUE(memory_of(plan(options(int(r.largest), cache, r.sequences), free))) << "it fits";
    }
  const MemoryPlan m = plan(options(512)).plan->stages[0].memory;
  EXPECT_EQ(largest_context(*plan(options(512), m.weights).plan), 0) << "not even without a cache";
}

TEST(MemoryPlan, LoadingCanBeCancelledAndReportsItsProgress) {
  Planned p = plan(options(64));
  uint64_t done = 0, total = 0;
  auto model = Model::load(*p.plan, *p.file, [&](uint64_t d, uint64_t t) {
    EXPECT_GE(d, done);
    EXPECT_LE(d, t);
    done = d, total = t;
    return true;
  });
  ASSERT_TRUE(model);
  EXPECT_EQ(done, total);
  EXPECT_GT(total, 0u);
  auto cancelled = Model::load(*p.plan, *p.file, [](uint64_t, uint64_t) { return false; });
  ASSERT_FALSE(cancelled);
  EXPECT_NE(cancelled.error().message.find("cancelled"), std::string::npos);
}

}  // namespace
}  // namespace gimbal
