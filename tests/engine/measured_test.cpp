// Kernels chosen by measuring: when that happens, that it is kept, and that whatever is chosen computes the
// same bits. What the times are is no business of a test: it writes those that it wants into the cache.
#include "engine/measured.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "engine/engine.h"
#include "engine/machine_cache.h"
#include "support/cli.h"
#include "support/placed.h"
#include "support/tiny_llama.h"

namespace gimbal {
namespace {

using test::contains;
namespace fs = std::filesystem;

// A llama of one layer, 1024 wide, in bf16: the smallest whose products are worth measuring.
class MeasuredTest : public testing::Test {
 protected:
  MeasuredTest() {
    static int n = 0;
    folder_ = test::temporary_path(format("measured-{}", n++));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
    test::TinyLlama m;
    m.u32("embedding_length", 1024), m.u32("feed_forward_length", 1024);
    m.u32("attention.head_count", 8), m.u32("attention.head_count_kv", 8);
    uint32_t bits = 1;
    m.weight = [bits](uint64_t) mutable {
      return float(int32_t(bits = bits * 1664525u + 1013904223u) >> 16) / 1e6f;
    };
    for (auto& [name, t] : m.tensors) {
      for (uint64_t& d : t.dims) d = d == 5 ? 5 : 1024;
      if (t.dims.size() == 2) t.type = 30;
    }
    EXPECT_TRUE(write_file(folder_ + "/model.gguf", m.build()));
    options_.backend = "cpu", options_.threads = 2;
    options_.run.context = 128, options_.run.batch = options_.run.logit_rows = 64;
  }

  LoadedModelPtr load() {
    measuring_ = false;
    const auto loaded = try_to_load([this](const event::Progress&) { return measuring_ = true; });
    EXPECT_TRUE(loaded) << loaded.error().message;
    return loaded ? *loaded : nullptr;
  }
  Result<LoadedModelPtr> try_to_load(const std::function<bool(const event::Progress&)>& measuring) {
    engine_ = std::make_unique<Engine>(backend_registry(), options_, [measuring](const Event& e) {
      const auto* p = std::get_if<event::Progress>(&e);
      return !p || p->stage != event::Progress::Measuring || measuring(*p);
    });
    auto file = open_model_file(folder_ + "/model.gguf");
    EXPECT_TRUE(file) << file.error().message;
    return engine_->load(*file);
  }
  // The kernel of the first product of bf16 in the program for so many rows, and why.
  static std::string choice(const LoadedModelPtr& m, int rows) {
    const ModelPlan& plan = m->model->plan();
    const Bucket& b = plan.stages[0].buckets[plan.bucket_for(rows)];
    for (size_t i = 0; i < b.program.ops.size(); i++)
      if (measured_as(b.program, b.program.ops[i], plan.device()))
        return format("{}: {}", plan.device().kernel(b.choices[i].kernel).name,
                      why_chosen(b.choices[i], plan.options.kernels));
    return "no product";
  }
  static std::vector<float> logits(const LoadedModelPtr& m, size_t split = 0) {
    return test::logits_of(*m->model, test::any_tokens(50, 5), split);
  }
  static Json cache() { return parse_json(*read_file(MachineCache("limits").path())); }
  static Json& products(Json& j) { return j["limits"][0]["products"]; }
  // From now on kernels whose names have this take half the time of each of the others.
  static void let_win(const std::string& part) {
    Json j = cache();
    for (Json& product : products(j))
      for (auto& [kernel, seconds] : product["seconds"].items())
        seconds = kernel.find(part) != std::string::npos ? 1. : 2.;
    EXPECT_TRUE(replace_file(MachineCache("limits").path(), j.dump()));
  }

  std::string folder_;
  EngineOptions options_;
  bool measuring_ = false;
  std::unique_ptr<Engine> engine_;
};

TEST_F(MeasuredTest, AtTheFirstUseAndThenItIsKept) {
  const auto first = load();
  ASSERT_TRUE(first);
  EXPECT_TRUE(measuring_);
  Json j = cache();
  ASSERT_EQ(j["limits"].size(), 1u);
  std::vector<int> rows;
  for (const Json& p : products(j)) {
    EXPECT_EQ(p["format"], "bf16");
    EXPECT_EQ(p["columns"], 1024);
    EXPECT_GE(p["seconds"].size(), 2u);
    rows.push_back(p["rows"]);
  }
  std::sort(rows.begin(), rows.end());
  EXPECT_EQ(rows, (std::vector<int>{1, 4, 16, 64})) << "each once, for all products of the model";
  for (int n : {1, 8, 32, 64}) EXPECT_SAYS(choice(first, n), ": measured: ");
  const auto again = load();
  EXPECT_FALSE(measuring_);
  for (int n : {1, 8, 32, 64}) EXPECT_EQ(choice(again, n), choice(first, n));
}

// The limits that `gimbal bench` measured are in the same entry of the same file.
TEST_F(MeasuredTest, LimitsOfTheDeviceStayWhenTimesAreKept) {
  ASSERT_TRUE(load());
  Json j = cache();
  ASSERT_EQ(j["limits"].size(), 1u);
  Json& entry = j["limits"][0];
  entry["memory"] = 46.5;
  entry.erase("products");
  ASSERT_TRUE(replace_file(MachineCache("limits").path(), j.dump()));
  ASSERT_TRUE(load());
  EXPECT_TRUE(measuring_);
  j = cache();
  ASSERT_EQ(j["limits"].size(), 1u);
  EXPECT_EQ(j["limits"][0]["memory"], 46.5);
  EXPECT_EQ(products(j).size(), 4u);
}

TEST_F(MeasuredTest, NotWhereNothingIsVerifiedNorWhenOnlyPlanned) {
  options_.verify = Verify::Never;
  EXPECT_SAYS(choice(load(), 64), "the highest rank that fits");
  EXPECT_FALSE(measuring_);
  EXPECT_FALSE(fs::exists(MachineCache("limits").path()));
  options_.verify = Verify::Auto;
  auto planned = engine_->plan_verified(*open_model_file(folder_ + "/model.gguf"));
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_FALSE(measuring_) << "what is only explained is not timed";
  options_.run.kernels.patterns = {"*"};
  EXPECT_SAYS(choice(load(), 64), "matches the preference '*'");
  EXPECT_FALSE(measuring_) << "a pattern decides";
}

TEST_F(MeasuredTest, AllChoicesHaveTheSameBits) {
  options_.verify = Verify::Never;
  const std::vector<float> expected = logits(load());
  options_.verify = Verify::Auto;
  ASSERT_TRUE(load());
  Json before = cache();
  std::set<std::string> kernels, chosen;
  for (const Json& p : products(before))
    for (const auto& [kernel, seconds] : p["seconds"].items()) kernels.insert(kernel);
  ASSERT_GE(kernels.size(), 2u);
  options_.verify = Verify::Never;
  for (const std::string& kernel : kernels) {
    let_win(kernel);
    const auto model = load();
    ASSERT_TRUE(model);
    for (int n : {1, 8, 32, 64}) {
      const std::string one = choice(model, n);
      if (contains(one, kernel + ": ")) {
        EXPECT_SAYS(one, ": measured: 2.00x of ");
        chosen.insert(kernel);
      }
    }
    for (size_t split : {0, 1, 7}) EXPECT_EQ(logits(model, split), expected) << kernel << " split " << split;
  }
  EXPECT_EQ(chosen, kernels) << "each has won somewhere";
}

TEST_F(MeasuredTest, FastRowsOnlyWhenAskedForAndFaster) {
  const auto exact = load();
  ASSERT_TRUE(exact);
  const std::vector<float> expected = logits(exact);
  options_.run.kernels.allow_fast = true;
  const auto fast = load();
  ASSERT_TRUE(fast);
  const Device& d = fast->model->device();
  bool any = false;
  for (size_t i = 0; i < d.kernel_count(); i++)
    any |= d.kernel(i).numerics == GIMBAL_FAST && !(d.kernel(i).needs & ~d.describe().features);
  if (!any) GTEST_SKIP() << "this CPU has no instructions for fast rows";
  EXPECT_TRUE(measuring_) << "prompts, whose fast row was not among those before";

  let_win("avx512bf16");
  const auto wins = load();
  EXPECT_EQ(choice(wins, 64), "cpu.avx512bf16.mat_mul.bf16: measured: 2.00x of cpu.avx512vnni.mat_mul.bf16");
  EXPECT_FALSE(contains(choice(wins, 32), "avx512bf16")) << "few rows are exact";
  const std::vector<float> rounded = logits(wins);
  EXPECT_NE(rounded, expected);
  double worst = 0, largest = 0;
  for (size_t i = 0; i < expected.size(); i++) {
    worst = std::max(worst, std::fabs(double(rounded[i]) - expected[i]));
    largest = std::max(largest, std::fabs(double(expected[i])));
  }
  EXPECT_LT(worst, 0.05 * largest);
  EXPECT_EQ(logits(wins, 32), expected) << "steps of 32 rows";

  options_.run.kernels.allow_fast = false;
  EXPECT_EQ(logits(load()), expected) << "the same measurements, not asked for";
  options_.run.kernels.allow_fast = true;
  let_win("vnni");
  EXPECT_EQ(logits(load()), expected) << "measured slower";
}

TEST_F(MeasuredTest, ADamagedCacheIsMeasuredAnew) {
  ASSERT_TRUE(load());
  Json j = cache();
  products(j) =
      Json::array({1,
                   "x",
                   {{"format", "bf16"}, {"columns", 1024}, {"rows", 64}, {"seconds", 3}},
                   {{"format", "no"}, {"seconds", Json::object()}},
                   {{"format", "bf16"}, {"columns", "many"}, {"rows", 1}, {"seconds", {{"k", -1}}}}});
  ASSERT_TRUE(replace_file(MachineCache("limits").path(), j.dump()));
  ASSERT_TRUE(load());
  EXPECT_TRUE(measuring_);
  Json anew = cache();
  EXPECT_GE(products(anew).size(), 4u);
}

// Each product is announced before it is timed, and so is the end of all. Cancelling is an error; the times
// are kept if all products have theirs.
TEST_F(MeasuredTest, ProgressAndItsEnd) {
  const auto cancelled = [&](uint64_t at) {
    const auto loaded = try_to_load([&](const event::Progress& p) { return p.done < at; });
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, Code::Failed);
    EXPECT_EQ(loaded.error().message, "measuring was cancelled");
  };
  cancelled(0);
  cancelled(1);
  EXPECT_FALSE(fs::exists(MachineCache("limits").path()));
  cancelled(4);
  std::vector<uint64_t> done;
  EXPECT_TRUE(try_to_load([&](const event::Progress&) { return done.push_back(1), true; }));
  EXPECT_EQ(done.size(), 0u) << "all were measured, and kept";
  ASSERT_TRUE(fs::remove(MachineCache("limits").path()));
  EXPECT_TRUE(try_to_load([&](const event::Progress& p) {
    EXPECT_EQ(p.device, "cpu:0");
    EXPECT_EQ(p.total, 4u);
    return done.push_back(p.done), true;
  }));
  EXPECT_EQ(done, (std::vector<uint64_t>{0, 1, 2, 3, 4}));
}

// Only kernels without a time are timed, and the file of a device holds the times of that device alone.
TEST_F(MeasuredTest, WhatIsKnownIsNotTimedAgain) {
  const auto loaded = load();
  ASSERT_TRUE(loaded);
  const ModelPlan& plan = loaded->model->plan();
  ASSERT_TRUE(fs::remove(MachineCache("limits").path()));
  uint64_t told = 0;
  const MeasuringProgress count = [&](const Device&, size_t, size_t total) { return told = total, true; };
  const auto measured = [&](std::vector<MeasuredProduct>& known) {
    told = 0;
    const auto added = measure_products(plan, known, count);
    EXPECT_TRUE(added) << added.error().message;
    return added && *added;
  };
  MeasuredProduct other;
  other.device = "cuda:0", other.format = DType::BF16, other.columns = 1024, other.rows = 1;
  other.times = {{"cuda.mat_mul", 1e-3}};
  std::vector<MeasuredProduct> known = {other};
  EXPECT_TRUE(measured(known));
  EXPECT_EQ(told, 4u);
  EXPECT_EQ(known.size(), 5u) << "and that of another device";
  EXPECT_EQ(known[0].device, "cuda:0");
  Json kept = cache();
  EXPECT_EQ(products(kept).size(), 4u);
  EXPECT_EQ(products(kept).dump().find("cuda"), std::string::npos);
  for (const MeasuredProduct& m : kept_measurements(loaded->model->device()))
    for (const auto& t : m.times) EXPECT_GT(t.seconds, 0) << t.kernel;
  EXPECT_FALSE(measured(known)) << "all is known";
  EXPECT_EQ(told, 0u);
  known[2].times.pop_back();  // a kernel that a new build has
  EXPECT_TRUE(measured(known));
  EXPECT_EQ(told, 1u);
  EXPECT_EQ(known.size(), 5u) << "in place of the old times";
  EXPECT_GE(known.back().times.size(), 2u);
}

// Of the entry of a device, whatever another program or an older one wrote there.
TEST_F(MeasuredTest, WhatIsKeptIsReadEntryByEntry) {
  const auto device = test::open_one("cpu");
  const auto read = [&](const Json& products) {  // a list, or what is none
    MachineCache kept("limits");
    EXPECT_TRUE(kept.put(key_of(*device), Json{{"products", products}}));
    std::string out;
    for (const MeasuredProduct& m : kept_measurements(*device)) {
      EXPECT_EQ(m.device, device->id());
      out += format("{} {}x{}", info(m.format).name, m.columns, m.rows);
      for (const auto& t : m.times) out += format(" {}={}", t.kernel, t.seconds);
      out += "; ";
    }
    return out;
  };
  EXPECT_EQ(kept_measurements(*device).size(), 0u) << "no file";
  const Json right = {{"format", "q4_k"}, {"columns", 256}, {"rows", 4}, {"seconds", {{"a", 0.5}, {"b", 2}}}};
  const std::string as_text = "q4_k 256x4 a=0.5 b=2; ";
  EXPECT_EQ(read({right, right}), as_text + as_text);
  EXPECT_EQ(read(Json::object()), "");
  EXPECT_EQ(read(nullptr), "");
  EXPECT_EQ(read(Json{{"a", right}}), "") << "no list";
  const auto with = [&](const char* key, const Json& value) {
    Json j = right;
    j[key] = value;
    return j;
  };
  for (const Json& wrong : {with("format", "q4_kk"), with("format", 3), with("seconds", 3),
                            with("seconds", nullptr), Json(), Json("x"), Json::array({right})})
    EXPECT_EQ(read({wrong, right}), as_text) << wrong << ": the others are read";
  EXPECT_EQ(read(Json::array({with("columns", "256")})), "q4_k 0x4 a=0.5 b=2; ");
  EXPECT_EQ(read(Json::array({with("rows", 2.5)})), "q4_k 256x0 a=0.5 b=2; ");
  EXPECT_EQ(read(Json::array({with("seconds", {{"a", 0}, {"b", -1}, {"c", "1"}, {"d", 1e-9}})})),
            "q4_k 256x4 d=1e-09; ");
  Json many = Json::object();
  for (int i = 0; i < 150; i++) many[format("k{}", i)] = 1;
  read(Json::array({with("seconds", many)}));
  EXPECT_EQ(kept_measurements(*device)[0].times.size(), 100u) << "a file cannot take any memory it likes";
}

}  // namespace
}  // namespace gimbal
