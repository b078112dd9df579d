// What the engine of the GPU backends promises besides right numbers: launches recorded once, nothing
// allocated or loaded after the first step of a program, one upload and one download a token, and failures
// with a reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "backends/emulator/runtime.h"
#include "base/format.h"
#include "device/backend_impl.h"
#include "files/gguf.h"
#include "gpu/device.h"
#include "gpu/models_checks.h"
#include "gpu/modules.h"
#include "runtime/generate.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

// Hands everything on to the emulator and keeps what was recorded.
class Watching final : public gpu::Runtime {
 public:
  explicit Watching(std::unique_ptr<gpu::Runtime> real) : real_(std::move(real)) {}
  const gpu::Facts& facts() override { return real_->facts(); }
  gpu::Failure allocate(uint64_t n, gpu::Buffer** out) override {
    largest = std::max(largest, n);
    return allocations++, real_->allocate(n, out);
  }
  void release(gpu::Buffer* b) override { releases++, real_->release(b); }
  gpu::Failure write(gpu::Buffer* b, uint64_t o, const void* p, uint64_t n) override {
    return writes++, real_->write(b, o, p, n);
  }
  gpu::Failure read(gpu::Buffer* b, uint64_t o, void* p, uint64_t n) override {
    return reads++, real_->read(b, o, p, n);
  }
  gpu::Failure load(const gpu::KernelCode& code, gpu::Kernel** out) override {
    return loads++, real_->load(code, out);
  }
  gpu::Failure record(std::span<const gpu::Launch> l, gpu::Recording** out) override {
    launches.assign(l.begin(), l.end());
    return records++, real_->record(l, out);
  }
  void discard(gpu::Recording* r) override { discards++, real_->discard(r); }
  gpu::Failure replay(gpu::Recording* r) override {
    return fail ? gpu::Failure{gpu::Failure::DeviceLost, "it fell off the bus"} : real_->replay(r);
  }
  gpu::Failure wait() override { return real_->wait(); }

  int allocations = 0, releases = 0, writes = 0, reads = 0, loads = 0, records = 0, discards = 0;
  bool fail = false;
  uint64_t largest = 0;  // bytes of one allocation
  std::vector<gpu::Launch> launches;

 private:
  std::unique_ptr<gpu::Runtime> real_;
};

Watching* watching = nullptr;  // of the device opened last
struct Api {
  static constexpr const char* kName = "watched";
  static int count() { return 1; }
  static gpu::Failure open(int, gpu::Options& options, gpu::Opened* out) {
    emulator::Options o;
    if (auto f = options.take_number("memory", &o.memory)) return f;
    auto w = std::make_unique<Watching>(emulator::open(o));
    watching = w.get();
    *out = {std::move(w), gpu::emulator_modules()};
    return {};
  }
};

// The device's own face, caught when it is opened.
gpu::DeviceOf<Api>* engine = nullptr;
gimbal_backend watched_table() {
  static const gimbal_backend real = BackendTable<gpu::DeviceOf<Api>>::make("watched");
  gimbal_backend table = real;
  table.open = [](int i, const char* options, gimbal_device** out) {
    const gimbal_code code = real.open(i, options, out);
    if (code == GIMBAL_OK) engine = reinterpret_cast<gpu::DeviceOf<Api>*>(*out);
    return code;
  };
  return table;
}

struct Loaded {
  std::unique_ptr<ModelSource> file;
  std::unique_ptr<Device> device;
  std::unique_ptr<Model> model;
};
Result<Loaded> load(const std::string& options = "", int context = 200) {
  static const gimbal_backend table = watched_table();
  Loaded l;
  auto file = open_gguf(golden_dir() + "/stories/stories260K-q8_0.gguf");
  if (!file) return file.error();
  l.file = std::make_unique<ModelSource>(std::move(*file));
  auto device = Device::open(table, 0, options);
  if (!device) return device.error();
  l.device = std::move(*device);
  RunOptions o;
  o.context = context, o.batch = 32, o.logit_rows = 4;
  auto b = make_model_plan(*l.file, *l.device, o);
  if (!b) return b.error();
  auto model = Model::load(std::move(*b), *l.file);
  if (!model) return model.error();
  l.model = std::move(*model);
  return l;
}
const Session::Sink kIgnore = [](size_t, std::span<const float>) {};

TEST(EmulatedEngine, RecordsOnceAndMovesOnlyTheStepAndTheLogits) {
  auto l = load();
  ASSERT_TRUE(l) << l.error().message;
  auto session = *Session::create(*l->model);
  const std::vector<int32_t> prompt(20, 7);
  const int32_t token = 5;
  ASSERT_TRUE(session->advance(prompt, Session::Wanted::Last, kIgnore));
  ASSERT_TRUE(session->advance(std::span(&token, 1), Session::Wanted::Last, kIgnore));
  EXPECT_EQ(watching->records, 2) << "one for each program";
  const int allocations = watching->allocations, loads = watching->loads, writes = watching->writes,
            reads = watching->reads;
  const gpu::Counters counted = engine->counters();
  for (int i = 0; i < 30; i++)
    ASSERT_TRUE(session->advance(std::span(&token, 1), Session::Wanted::Last, kIgnore));
  EXPECT_EQ(watching->records, 2);
  EXPECT_EQ(watching->allocations, allocations);
  EXPECT_EQ(watching->loads, loads);
  EXPECT_EQ(watching->writes - writes, 30) << "the step's data, once a token";
  EXPECT_EQ(watching->reads - reads, 30) << "the logits, once a token";
  EXPECT_EQ(engine->counters().replays - counted.replays, 30u);
  EXPECT_EQ(engine->counters().uploads - counted.uploads, 30u);
  EXPECT_EQ(engine->counters().downloads - counted.downloads, 30u);
  EXPECT_EQ(engine->counters().downloaded_bytes - counted.downloaded_bytes, 30u * 512 * 4);
  EXPECT_EQ(engine->counters().allocations, counted.allocations);
  EXPECT_EQ(engine->counters().launches - counted.launches, 30 * watching->launches.size());
  // Lengths in one bucket share a recording, and each bucket has one of its own.
  for (int n : {17, 25, 32}) {
    session->rewind(0);
    ASSERT_TRUE(session->advance(std::vector<int32_t>(size_t(n), 9), Session::Wanted::Last, kIgnore));
    EXPECT_EQ(watching->records, 2) << n;
  }
  ASSERT_TRUE(session->advance(std::vector<int32_t>(13, 9), Session::Wanted::Last, kIgnore));
  EXPECT_EQ(watching->records, 3);
}

// Sampling that looks at a few logits gets no others, and one download a token; the tokens are those of all
// logits.
TEST(EmulatedEngine, MovesOnlyTheLeadingLogitsWhereSamplingNeedsNoOthers) {
  auto l = load();
  ASSERT_TRUE(l) << l.error().message;
  struct {
    const char* what;
    int leading;  // logits that are asked for; 0: all
    uint64_t bytes;
    SamplerSettings settings;
  } tries[4] = {
      {"greedy", 1, 8, {}}, {"top-k 40", 40, 512, {}}, {"no top-k", 0, 2048, {}}, {"penalties", 0, 2048, {}}};
  tries[0].settings.greedy = true;
  tries[2].settings.top_k = 0;
  tries[3].settings.repeat_penalty = 1.1f;
  auto tokenizer = *Tokenizer::create(l->file->metadata());
  for (const auto& t : tries) {
    EXPECT_EQ(Sampler(t.settings).leading(), t.leading) << t.what;
    auto session = *Session::create(*l->model);
    GenerateSettings settings;
    settings.sampler = t.settings, settings.max_tokens = 12, settings.ignore_stop_tokens = true;
    gpu::Counters before;
    int tokens = 0;
    auto ok = generate(*session, *tokenizer, tokenizer->encode("Once upon"), settings,
                       [&](std::string_view, Token) {
                         if (++tokens == 2)
                           before = engine->counters();  // from here on everything was recorded
                         return true;
                       });
    ASSERT_TRUE(ok) << ok.error().message;
    const gpu::Counters& after = engine->counters();
    EXPECT_EQ(after.downloads - before.downloads, 10u) << t.what;
    EXPECT_EQ(after.downloaded_bytes - before.downloaded_bytes, 10 * t.bytes) << t.what;
    EXPECT_EQ(after.uploads - before.uploads, 10u) << t.what;
    EXPECT_EQ(after.recordings, before.recordings) << t.what;
    EXPECT_EQ(after.allocations, before.allocations) << t.what;
  }
}

// A device that gives little memory at once: weights and cache are made of pieces, none larger, and together
// no larger than what was planned, but for their alignment.
TEST(EmulatedEngine, CutsBuffersThatAreLargerThanAnAllocation) {
  auto logits = [&](Loaded& l) {
    auto session = *Session::create(*l.model);
    std::vector<float> all;
    for (int n : {40, 1, 2, 3, 7, 15, 31}) {  // a step in every bucket
      session->rewind(0);
      EXPECT_TRUE(session->advance(
          some_tokens(n), Session::Wanted::Last,
          [&](size_t, std::span<const float> row) { all.insert(all.end(), row.begin(), row.end()); }));
    }
    return all;
  };
  auto whole = load("", 512);
  ASSERT_TRUE(whole) << whole.error().message;
  const std::vector<float> want = logits(*whole);
  const int few = watching->allocations;
  const uint64_t used = whole->device->describe().memory_total - whole->device->describe().memory_free;
  for (uint64_t most : {150016, 70144}) {
    auto l = load(format("max_allocation={}", most), 512);
    ASSERT_TRUE(l) << l.error().message;
    EXPECT_GT(watching->allocations, few + 3) << most;
    EXPECT_LE(watching->largest, most);
    EXPECT_GT(watching->largest, most / 2);
    const gimbal_device_info now = l->device->describe();
    EXPECT_LE(now.memory_total - now.memory_free, used + 512 * uint64_t(watching->allocations)) << most;
    EXPECT_EQ(bits_differ(want, logits(*l)), "") << most;
  }
  // Less than a value that cannot be cut needs.
  auto none = load("max_allocation=4096", 512);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::Unsupported);
  EXPECT_NE(none.error().message.find("4096"), std::string::npos) << none.error().message;
  EXPECT_FALSE(load("max_allocation=4095"));
}

TEST(EmulatedEngine, LaunchesThatDoNotMeetNeedNotWait) {
  auto l = load();
  ASSERT_TRUE(l) << l.error().message;
  auto session = *Session::create(*l->model);
  const int32_t token = 5;
  ASSERT_TRUE(session->advance(std::span(&token, 1), Session::Wanted::Last, kIgnore));
  ASSERT_FALSE(watching->launches.empty());
  EXPECT_TRUE(watching->launches[0].after_all) << "what was replayed before may still run";
  size_t waits = 0;
  for (const gpu::Launch& launch : watching->launches) waits += launch.after_all;
  std::printf("%zu launches a token, %zu waits\n", watching->launches.size(), waits);
  const auto layers = size_t(l->model->config().layers);
  EXPECT_GE(watching->launches.size() - waits, 4 * layers)
      << "k and v behind q, their cache writes, up behind gate";
}

TEST(EmulatedEngine, ReleasesWhatItTookAndForgetsRecordingsOfBuffersThatAreGone) {
  {
    auto l = load();
    ASSERT_TRUE(l) << l.error().message;
    auto session = *Session::create(*l->model);
    const int32_t token = 5;
    ASSERT_TRUE(session->advance(std::span(&token, 1), Session::Wanted::Last, kIgnore));
    session.reset();
    l->model.reset();
    EXPECT_EQ(watching->discards, watching->records);
    EXPECT_EQ(watching->allocations - watching->releases, 2)
        << "the step's numbers and the buffer for nothing stay";
  }
}

TEST(EmulatedEngine, NamesItsDriver) {
  auto l = load();
  ASSERT_TRUE(l) << l.error().message;
  const gimbal_device_info i = l->device->describe();
  EXPECT_STREQ(i.driver, "fibers");
  EXPECT_EQ(i.pci_id, nullptr);
  EXPECT_EQ(i.compute_capability, nullptr);
}

TEST(EmulatedEngine, SaysWhatIsTooLargeToBind) {
  auto l = load("max_binding=100000", 20000);
  ASSERT_FALSE(l);
  EXPECT_EQ(l.error().code, Code::Unsupported) << l.error().message;
  EXPECT_NE(l.error().message.find("the device allows 100000"), std::string::npos) << l.error().message;
  EXPECT_NE(l.error().message.find("'context'"), std::string::npos) << l.error().message;
}

TEST(EmulatedEngine, LacksMemoryInWords) {
  auto l = load("memory=300000");
  ASSERT_FALSE(l);
  EXPECT_EQ(l.error().code, Code::OutOfMemory) << l.error().message;
}

TEST(EmulatedEngine, PassesOnThatADeviceIsLost) {
  auto l = load();
  ASSERT_TRUE(l) << l.error().message;
  auto session = *Session::create(*l->model);
  watching->fail = true;
  const int32_t token = 5;
  auto ok = session->advance(std::span(&token, 1), Session::Wanted::Last, kIgnore);
  ASSERT_FALSE(ok);
  EXPECT_EQ(ok.error().code, Code::DeviceLost);
  EXPECT_NE(ok.error().message.find("it fell off the bus"), std::string::npos) << ok.error().message;
}

}  // namespace
}  // namespace gimbal::test
