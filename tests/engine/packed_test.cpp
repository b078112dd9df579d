// Packed weights: the same bits as without, and files that are of no use, damaged, or change while they are
// used.
#include "engine/packed.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "base/hash.h"
#include "discovery/registry.h"
#include "engine/engine.h"
#include "files/gguf.h"
#include "runtime/packed_weights.h"
#include "support/adapters.h"
#include "support/cli.h"
#include "support/fake_plugins.h"
#include "support/placed.h"
#include "workers/memory_reservations.h"

namespace gimbal {
namespace {

using test::contains;
namespace fs = std::filesystem;

template <class T>
std::string_view raw(const T& t) {
  return {reinterpret_cast<const char*>(&t), sizeof t};
}
Bytes bytes_of(std::string_view s) { return {reinterpret_cast<const std::byte*>(s.data()), s.size()}; }

// A model's file that the test may change, and folders of its own.
class PackedTest : public testing::Test {
 protected:
  PackedTest() {
    static int n = 0;
    folder_ = test::temporary_path(format("packed-{}", n++));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    setenv("XDG_CACHE_HOME", (folder_ + "/cache").c_str(), 1);
    options_.backend = "cpu", options_.threads = 2;
    options_.run.context = 128, options_.run.batch = 32, options_.run.logit_rows = 32;
    take("arch/llama-gqa");
  }
  void take(const std::string& golden) { take_file(test::golden_dir() + "/" + golden + ".gguf"); }
  void take_file(const std::string& path) {
    model_ = folder_ + "/model.gguf", packed_ = model_ + ".packed";
    fs::copy_file(path, model_, fs::copy_options::overwrite_existing);
  }

  LoadedModelPtr load(const ModelFileOptions& how = {}) {
    told_.clear();
    engine_ = std::make_unique<Engine>(registry_ ? *registry_ : backend_registry(), options_,
                                       [this](const Event& e) {
                                         if (const auto* f = std::get_if<Fallback>(&e))
                                           told_ += format("{}: {}\n", f->what, f->why.message);
                                         return true;
                                       });
    auto file = open_model_file(model_, how);
    EXPECT_TRUE(file) << file.error().message;
    auto loaded = engine_->load(*file);
    failed_ = loaded ? Error{} : loaded.error();
    return loaded ? *loaded : nullptr;
  }
  static bool is_packed(const LoadedModelPtr& m) { return m && m->model->plan().stages[0].packed != nullptr; }
  static std::vector<float> logits(const LoadedModelPtr& m) {
    const int vocabulary = m->model->config().vocabulary;
    return test::logits_of(*m->model, test::any_tokens(40, vocabulary), 32);
  }
  std::string pack(bool in_cache = false) {
    options_.packed = Packed::Off;
    const auto loaded = load();
    options_.packed = Packed::Auto;
    EXPECT_TRUE(loaded) << failed_.message;
    auto path = pack_weights(loaded->source, loaded->model->plan(), in_cache);
    EXPECT_TRUE(path) << path.error().message;
    return path ? *path : "";
  }
  std::vector<float> unpacked() {
    options_.packed = Packed::Off;
    const auto loaded = load();
    options_.packed = Packed::Auto;
    EXPECT_FALSE(is_packed(loaded));
    return logits(loaded);
  }
  // The file is not used, with this reason, and the model is loaded as without it.
  void refused(const std::string& why) {
    const auto loaded = load();
    ASSERT_TRUE(loaded) << failed_.message;
    EXPECT_FALSE(is_packed(loaded));
    EXPECT_SAYS(told_, why);
    EXPECT_EQ(loaded->fallbacks.size(), 1u);
    if (want_.empty()) want_ = unpacked();
    EXPECT_EQ(test::bits_differ(logits(loaded), want_), "");
  }
  // The file with another header, whose hash is right.
  static std::string with_head(std::string file, const std::function<void(PackedHead&)>& change) {
    PackedHead h;
    std::memcpy(&h, file.data(), sizeof h);
    change(h);
    h.before = hash_of(bytes_of(raw(h)).first(offsetof(PackedHead, before)));
    return file.replace(0, sizeof h, raw(h));
  }

  std::string folder_, model_, packed_, told_;
  EngineOptions options_;
  Error failed_;
  std::vector<float> want_;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(PackedTest, TheSameBitsOfEveryModelAndFormat) {
  int models = 0, files = 0;
  for (const char* folder : {"arch", "more/arch", "quant", "stories"})
    for (const std::string& path : test::golden_files(folder, ".gguf")) {
      SCOPED_TRACE(path);
      if (test::fewer_cases() && files++ % 6) continue;
      auto file = open_gguf(path);
      if (!file || !configure(*file)) continue;  // formats that cannot be run have tests of their own
      take_file(path);
      fs::remove(packed_);
      options_.run.logits = !find_arch(configure(*file)->arch)->encoder;
      options_.run.hidden = !options_.run.logits;
      if (!options_.run.logits) continue;
      const auto want = unpacked();
      EXPECT_EQ(pack(), packed_);
      const auto loaded = load();
      ASSERT_TRUE(is_packed(loaded)) << told_;
      EXPECT_EQ(told_, "");
      EXPECT_EQ(test::bits_differ(logits(loaded), want), "");
      models++;
    }
  std::printf("%d models\n", models);
  EXPECT_GE(models, test::fewer_cases() ? 3 : 15);
}

TEST_F(PackedTest, ServesOtherSettingsAndPartsOfTheModel) {
  pack();
  for (auto change : std::vector<std::function<void(EngineOptions&)>>{
           [](EngineOptions& o) { o.threads = 1; }, [](EngineOptions& o) { o.cpu_variant = "baseline"; },
           [](EngineOptions& o) { o.run.batch = 1, o.run.logit_rows = 1, o.run.context = 64; },
           [](EngineOptions& o) { o.run.embeddings = true; },
           [](EngineOptions& o) { o.run.logits = false, o.run.hidden = true; }}) {
    const EngineOptions plain = options_;
    change(options_);
    const auto loaded = load();
    EXPECT_TRUE(is_packed(loaded)) << failed_.message << told_;
    if (loaded && options_.run.logits) { EXPECT_EQ(test::bits_differ(logits(loaded), unpacked()), ""); }
    options_ = plain;
  }
}

TEST_F(PackedTest, NothingIsWrittenUnasked) {
  options_.verify = Verify::Never;
  load();
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1) << "the model alone";
  options_.packed = Packed::On;
  ASSERT_TRUE(load());
  EXPECT_SAYS(told_, "there are none");
  EXPECT_FALSE(fs::exists(packed_));
}

TEST_F(PackedTest, InTheCacheFolder) {
  const std::string path = pack(true);
  EXPECT_TRUE(path.starts_with(folder_ + "/cache/gimbal/packed/")) << path;
  EXPECT_FALSE(fs::exists(packed_));
  EXPECT_TRUE(is_packed(load())) << told_;
  // The file beside the model comes first; where it does not fit, the other one serves.
  ASSERT_TRUE(write_file(packed_, "a letter to somebody"));
  const auto loaded = load();
  EXPECT_TRUE(is_packed(loaded));
  EXPECT_SAYS(told_, "not a file of packed weights");
}

TEST_F(PackedTest, OfAnotherStateOfTheModel) {
  pack();
  const auto time = fs::last_write_time(model_);
  fs::last_write_time(model_, time + std::chrono::seconds(1));
  refused("was modified since");
  fs::last_write_time(model_, time);
  EXPECT_TRUE(is_packed(load())) << told_;
  std::string bytes = *read_file(model_);
  ASSERT_TRUE(write_file(model_, bytes + std::string(64, '\0')));
  fs::last_write_time(model_, time);
  refused(format("of {} bytes, which now has {}", bytes.size(), bytes.size() + 64));
  // Somebody gave other weights the old size and time: the first rows of the weights are compared.
  bytes[bytes.size() - 64] = char(bytes[bytes.size() - 64] ^ 1);
  auto file = open_gguf(model_);
  for (const StoredTensor& t : file->tensors()) bytes[t.offset + 1] = char(bytes[t.offset + 1] ^ 16);
  ASSERT_TRUE(write_file(model_, bytes));
  fs::last_write_time(model_, time);
  want_.clear();
  const std::string old = *read_file(packed_);
  const FileIdentity now = open_gguf(model_)->reader().identity();
  ASSERT_TRUE(write_file(packed_, with_head(old, [&](PackedHead& h) { h.source = now; })));
  refused("than cpu:0 uses now");
}

TEST_F(PackedTest, DamageOfTheHeaderIsFoundBytewise) {
  options_.verify = Verify::Never;
  pack();
  const std::string good = *read_file(packed_);
  auto file = open_gguf(model_);
  for (size_t at = 0; at < sizeof(PackedHead) + 3 * sizeof(PackedWeight); at++)
    for (int bit : {1, 128}) {
      std::string bad = good;
      bad[at] = char(bad[at] ^ bit);
      ASSERT_TRUE(write_file(packed_, bad));
      auto opened = PackedFile::open(packed_, file->reader().identity());
      ASSERT_FALSE(opened) << "byte " << at;
      EXPECT_STREQ(opened.error().reason, reason::kPackedUnusable);
      EXPECT_EQ(opened.error().value, packed_);
      EXPECT_FALSE(opened.error().message.empty());
    }
  refused("its table is damaged");
  // Fields that say something else, with a hash that fits.
  const std::vector<std::pair<std::function<void(PackedHead&)>, const char*>> changes = {
      {[](PackedHead& h) { h.version = 2; },
       "it has version 2 of the format, and this program reads version 1"},
      {[](PackedHead& h) { h.weights++; }, "table is damaged"},
      {[](PackedHead& h) { h.weights = UINT32_MAX; }, "table is incomplete"},
      {[](PackedHead& h) { h.bytes++; }, "it is incomplete"},
      {[](PackedHead& h) { std::strcpy(h.layout, "cuda"); }, "it has the layout of cuda, not of cpu"},
      {[](PackedHead& h) { h.source.bytes--; }, "model file of"},
      {[](PackedHead& h) { h.source.headers ^= 1; }, "model file has another header"},
      {[](PackedHead& h) { h.source.modified--; }, "was modified since"},
      {[](PackedHead& h) { h.table ^= 1; }, "table is damaged"}};
  for (const auto& [change, why] : changes) {
    ASSERT_TRUE(write_file(packed_, with_head(good, change)));
    refused(why);
  }
  // Entries that reach outside, with a table whose hash fits.
  for (uint64_t offset : {uint64_t(0), uint64_t(32), good.size() - 64, ~uint64_t(63)}) {
    std::string bad = good;
    bad.replace(sizeof(PackedHead) + offsetof(PackedWeight, offset), 8, raw(offset));
    const uint32_t weights = read_le<uint32_t>(bad.data() + offsetof(PackedHead, weights));
    const Bytes table = bytes_of(bad).subspan(sizeof(PackedHead), weights * sizeof(PackedWeight));
    ASSERT_TRUE(write_file(packed_, with_head(bad, [&](PackedHead& h) { h.table = hash_of(table); })));
    const bool inside = offset == good.size() - 64;  // then the entry may be small enough to fit
    if (!inside) refused("entry 0 of its table is damaged");
  }
  ASSERT_TRUE(write_file(packed_, good));
  EXPECT_TRUE(is_packed(load())) << told_;
}

TEST_F(PackedTest, CutShortOrNotThatFile) {
  options_.verify = Verify::Never;
  pack();
  const std::string good = *read_file(packed_);
  for (size_t n : {size_t(0), size_t(1), size_t(15), size_t(16), sizeof(PackedHead) - 1, sizeof(PackedHead),
                   sizeof(PackedHead) + 33, size_t(kPackedPage), good.size() / 2, good.size() - 1}) {
    ASSERT_TRUE(write_file(packed_, good.substr(0, n)));
    refused(n < 16                   ? "not a file of packed weights"
            : n < sizeof(PackedHead) ? "within its header"
                                     : "it is incomplete");
  }
  ASSERT_TRUE(write_file(packed_, good + "x"));
  refused("it is incomplete");
  ASSERT_TRUE(write_file(packed_, *read_file(model_)));
  refused("not a file of packed weights");
  fs::remove(packed_);
  fs::create_directory(packed_);
  refused("is a folder");
}

TEST_F(PackedTest, DamagedWeightsAreFoundAtTheFirstUse) {
  pack();
  const std::string good = *read_file(packed_);
  for (size_t at : {size_t(kPackedPage), good.size() / 2, good.size() - 70}) {
    std::string bad = good;
    bad[at] = char(bad[at] ^ 4);
    ASSERT_TRUE(write_file(packed_, bad));
    refused("differ from those written");
  }
  // What was found whole is not read again: its inode, size and times say that it is the same.
  ASSERT_TRUE(write_file(packed_, good));
  EXPECT_TRUE(is_packed(load())) << told_;
  auto file = PackedFile::open(packed_, open_gguf(model_)->reader().identity());
  ASSERT_TRUE(file);
  EXPECT_TRUE(check_once(**file, false));
  EXPECT_TRUE(fs::exists(folder_ + "/cache/gimbal/packed.json"));
  // Also where the time of the last change is set back: the file's state has a time of its own.
  const auto time = fs::last_write_time(packed_);
  std::ofstream(packed_, std::ios::in).seekp(kPackedPage).put(char(good[kPackedPage] ^ 4));
  fs::last_write_time(packed_, time);
  refused("differ from those written");
}

TEST_F(PackedTest, AFileThatOthersMayWriteToIsNotBelieved) {
  pack();
  ASSERT_EQ(chmod(packed_.c_str(), 0666), 0);
  refused("other users may write to it");
  ASSERT_EQ(chmod(packed_.c_str(), 0644), 0);
  EXPECT_TRUE(is_packed(load())) << told_;
}

// Neither ends the program nor gives numbers: the step fails and says why.
TEST_F(PackedTest, AFileThatChangesWhileItIsUsed) {
  pack();
  const std::string good = *read_file(packed_);
  struct Change {
    const char* why;
    std::function<void()> apply;
  };
  for (const Change& change :
       {Change{"truncated or unreadable", [&] { fs::resize_file(packed_, 0); }},
        Change{"truncated or unreadable", [&] { fs::resize_file(packed_, kPackedPage + 64); }},
        Change{"modified while in use",
               [&] { fs::last_write_time(packed_, fs::last_write_time(packed_) + std::chrono::seconds(1)); }},
        Change{"has", [&] { fs::resize_file(packed_, good.size() + 1); }}}) {
    ASSERT_TRUE(write_file(packed_, good));
    const auto loaded = load();
    ASSERT_TRUE(is_packed(loaded)) << told_;
    auto session = std::move(*Session::create(*loaded->model));
    const auto tokens = test::any_tokens(20, 500);
    auto none = [](size_t, std::span<const float>) {};
    ASSERT_TRUE(session->advance(tokens, Session::Wanted::Last, none));
    change.apply();
    bool given = false;
    auto ok = session->advance(tokens, Session::Wanted::Last,
                               [&](size_t, std::span<const float>) { given = true; });
    ASSERT_FALSE(ok);
    EXPECT_FALSE(given);
    EXPECT_STREQ(ok.error().reason, reason::kPackedUnusable);
    EXPECT_SAYS(ok.error().message, change.why);
  }
  // A file that takes its place, and one whose name goes, are other files: what is mapped stays.
  ASSERT_TRUE(write_file(packed_, good));
  const auto loaded = load();
  ASSERT_TRUE(is_packed(loaded)) << told_;
  const auto want = logits(loaded);
  pack();
  EXPECT_EQ(test::bits_differ(logits(loaded), want), "");
  fs::remove(packed_);
  EXPECT_EQ(test::bits_differ(logits(loaded), want), "");
}

TEST_F(PackedTest, WritersAtOnceAndReadersMeanwhile) {
  const auto want = unpacked();
  std::vector<std::thread> writers;
  std::vector<test::Ran> ran(3);
  for (test::Ran& r : ran)
    writers.emplace_back([&r, this] { r = test::gimbal({"pack", model_, "-t", "1", "--quiet"}); });
  options_.verify = Verify::Never;
  int packed = 0;
  for (int i = 0; i < 20; i++) {
    const auto loaded = load();
    ASSERT_TRUE(loaded) << failed_.message;
    EXPECT_EQ(told_, "");
    packed += is_packed(loaded);
    EXPECT_EQ(test::bits_differ(logits(loaded), want), "");
  }
  for (std::thread& t : writers) t.join();
  for (const test::Ran& r : ran) EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(is_packed(load())) << told_;
  std::printf("%d of 20 loads used packed weights\n", packed);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 3)
      << "model, packed, cache";
}

TEST_F(PackedTest, NoSpace) {
  pack();
  const std::string before = *read_file(packed_);
  options_.packed = Packed::Off;
  const auto loaded = load();
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit little{8192, limit.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  auto path = pack_weights(loaded->source, loaded->model->plan(), false);
  setrlimit(RLIMIT_FSIZE, &limit);
  signal(SIGXFSZ, handler);
  ASSERT_FALSE(path);
  EXPECT_SAYS(path.error().message, packed_);
  EXPECT_EQ(*read_file(packed_), before) << "what was there stays";
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 3);
}

TEST_F(PackedTest, UnderStrictWhatWasAskedForMustBeUsable) {
  options_.packed = Packed::On, options_.strict = true;
  EXPECT_FALSE(load());
  EXPECT_EQ(failed_.code, Code::NoBackend);
  EXPECT_SAYS(failed_.message, "there are none");
  pack();
  options_.packed = Packed::On;
  EXPECT_TRUE(is_packed(load()));
  const auto time = fs::last_write_time(model_);
  fs::last_write_time(model_, time + std::chrono::seconds(1));
  EXPECT_FALSE(load());
  EXPECT_SAYS(failed_.message, "was modified since");
  options_.packed = Packed::Auto;
  refused("was modified since");
  fs::last_write_time(model_, time);
  std::string bad = *read_file(packed_);
  bad[bad.size() - 70] ^= 1;
  ASSERT_TRUE(write_file(packed_, bad));
  options_.packed = Packed::On;
  EXPECT_FALSE(load());
  EXPECT_SAYS(failed_.message, "differ from those written");
}

TEST_F(PackedTest, AdaptersAreNoPartOfThem) {
  take("arch/llama-gqa");
  pack();
  ModelFileOptions how;
  how.lora = {{test::make_adapter(model_).adapter, 1}};
  const auto loaded = load(how);
  ASSERT_TRUE(loaded) << failed_.message;
  EXPECT_FALSE(is_packed(loaded));
  EXPECT_SAYS(told_, "packed weights cannot include adapters");
  EXPECT_FALSE(pack_weights(loaded->source, loaded->model->plan(), false));
}

// A card has memory of its own; the layers beside it on the CPU are mapped.
TEST_F(PackedTest, LayersOnADeviceThatHasMemoryOfItsOwn) {
  take("stories/stories260K-f32");
  pack();
  test::PluginFolder plugins;
  plugins.put("metal", "hardware");
  BackendPlaces places;
  places.folders = {plugins.path()};
  registry_ = std::make_unique<Registry>(places);
  options_.backend = "metal", options_.run.kernels.allow_fast = true;
  options_.verify = Verify::Never, options_.gpu_layers = 2;
  const auto loaded = load();
  ASSERT_TRUE(loaded) << failed_.message;
  const auto& stages = loaded->model->plan().stages;
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_TRUE(stages[0].packed);
  EXPECT_FALSE(stages[1].packed);
  EXPECT_SAYS(told_, "metal:0 cannot compute from host memory");
  const auto packed = logits(loaded);
  options_.packed = Packed::Off;
  EXPECT_EQ(test::bits_differ(packed, logits(load())), "");
  options_.packed = Packed::Auto, options_.gpu_layers.reset();
  ASSERT_TRUE(load());
  EXPECT_SAYS(told_, "metal:0 cannot compute from host memory");
}

TEST_F(PackedTest, SeveralProcessesNeedThemOnce) {
  const auto needs = [&] {
    const auto loaded = load();
    EXPECT_TRUE(loaded) << failed_.message;
    return planned_needs(loaded->model->plan());
  };
  // As much is free as two need whose weights are shared.
  const auto both = [](wire::Planned one) {
    for (wire::MemoryNeed& n : one.needs) n.free = 2 * n.total - n.weights;
    return fit_together(std::vector{one, one});
  };
  const wire::Planned read = needs();
  ASSERT_EQ(read.needs.size(), 2u);  // of the CPU, and of the host
  for (const wire::MemoryNeed& n : read.needs) EXPECT_TRUE(n.weights > 0 && n.shared == 0);
  EXPECT_FALSE(both(read));
  pack();
  const wire::Planned mapped = needs();
  for (const wire::MemoryNeed& n : mapped.needs) EXPECT_TRUE(n.weights > 0 && n.shared == n.weights);
  EXPECT_TRUE(both(mapped));
}

TEST_F(PackedTest, TheCommand) {
  const test::Args run = {"run",   model_,     "--backend", "cpu", "--tokens",
                          "1,5,9", "--greedy", "-n",        "10",  "--json"};
  const auto before = test::json_of(test::gimbal(run));
  EXPECT_TRUE(before["placement"][0]["packed"].is_null());
  const auto packed = test::json_of(test::gimbal({"pack", model_, "--json"}));
  EXPECT_EQ(packed["path"], packed_);
  const auto after = test::json_of(test::gimbal(run));
  EXPECT_EQ(after["tokens"], before["tokens"]);
  EXPECT_EQ(after["placement"][0]["packed"], packed_);
  for (const char* command : {"plan", "explain"}) {
    const auto shown = test::gimbal({command, model_, "--backend", "cpu"});
    EXPECT_EQ(shown.code, 0) << shown.err;
    EXPECT_SAYS(shown.out, "mapped from");
    EXPECT_FALSE(
        contains(test::gimbal({command, model_, "--backend", "cpu", "--packed", "off"}).out, "mapped from"));
  }
  test::Args stats(run.begin(), run.end() - 1);
  stats.push_back("--stats");
  EXPECT_SAYS(test::gimbal(stats).err, "mapped from");
  fs::last_write_time(model_, fs::last_write_time(model_) + std::chrono::seconds(1));
  const auto stale = test::gimbal(stats);
  EXPECT_EQ(stale.code, 0);
  EXPECT_SAYS(stale.err, "was modified since");
  EXPECT_SAYS(stale.err, "gimbal pack");
  stats.insert(stats.end(), {"--packed", "on", "--strict"});
  EXPECT_EQ(test::gimbal(stats).code, 4);
  EXPECT_EQ(test::gimbal({"pack"}).code, 2);
}

}  // namespace
}  // namespace gimbal
