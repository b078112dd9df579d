// The table of engine and model settings: complete, checked, and with a public field for all that the engine
// can be told.
#include "engine/settings_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "engine/options.h"
#include "ops/op_def.h"
#include "support/fields.h"
#include "tensor/dtype.h"

namespace {

using namespace gimbal;
using Reasons = std::map<std::string, std::string>;

// Public settings without an option in the table, and why.
const Reasons kNoOption = {
    {"refresh", "`gimbal backends` and `gimbal verify` always do"},
    {"sequences", "commands compute one text; `gimbal serve` has --parallel"},
    {"logit_rows", "commands that score a text choose it"},
    {"draft", "each command that drafts declares --draft with its own default"},
    {"mmproj", "each command that takes pictures declares --mmproj with its own words"},
    {"embed", "that is the command `gimbal embed`"},
};
// The members of EngineOptions: the public setting, or why there is none.
const Reasons kEngineOptions = {
    {"backend", "backend"},
    {"device", "device"},
    {"backend_order", "backend_order"},
    {"gpu_layers", "gpu_layers"},
    {"split", "split"},
    {"overrides", "override_tensor"},
    {"experts_may_move", "n_cpu_moe"},
    {"strict", "strict"},
    {"allow_software_devices", "allow_software_devices"},
    {"refresh", "refresh"},
    {"tensors", "absent: of `gimbal verify`"},
    {"threads", "threads"},
    {"cpu_variant", "cpu_variant"},
    {"limit_megabytes", "absent: of the measurement of `gimbal bench`"},
    {"verify", "verify"},
    {"packed", "packed"},
    {"run", "absent: RunOptions, below"},
    {"cache", "absent: follows from 'sequences' of a Batch"},
    {"before_taking", "absent: how processes of a server share memory"},
};
const Reasons kRunOptions = {
    {"context", "context"},
    {"batch", "batch"},
    {"logit_rows", "logit_rows"},
    {"drafts", "draft"},
    {"sequences", "sequences"},
    {"cache_positions", "absent: a whole context for each sequence"},
    {"cache_type", "cache_type"},
    {"cache_rotation", "cache_rotation"},
    {"experts_from_disk", "experts_from_disk"},
    {"kernels", "prefer_kernel"},
    {"first_layers", "absent: verification tries the first layers"},
    {"embeddings", "absent: engine-internal, of draft models"},
    {"hidden", "embed"},
    {"logits", "embed"},
    {"states", "draft"},
    {"state_layers", "draft"},
    {"keep_inputs", "absent: engine-internal, of importance matrices"},
    {"interruptible", "absent: engine-internal, of picture encoders"},
    {"arch", "draft"},
    {"tensor_rules", "override_tensor"},
    {"beside", "draft"},
    {"promised", "absent: how processes of a server share memory"},
};

std::set<std::string> fields() {
  std::set<std::string> all;
  for (const EngineSetting& s : kEngineSettings) all.insert(s.field);
  return all;
}

TEST(EngineSettings, TheTableHasEveryPublicMemberOnce) {
  EXPECT_EQ(std::size(kEngineSettings),
            test::field_count<DeviceSettings>() + test::field_count<ModelOptions>());
  EXPECT_EQ(fields().size(), std::size(kEngineSettings));
  std::set<std::string> options;
  for (const EngineSetting& s : kEngineSettings) {
    EXPECT_NE(bool(s.option), kNoOption.contains(s.field)) << s.field;
    EXPECT_TRUE(!s.option || options.insert(s.option).second) << s.field;
  }
}

TEST(EngineSettings, WhatTheEngineCanBeToldIsPublic) {
  EXPECT_EQ(kEngineOptions.size(), test::field_count<EngineOptions>());
  EXPECT_EQ(kRunOptions.size(), test::field_count<RunOptions>());
  for (const Reasons* all : {&kEngineOptions, &kRunOptions})
    for (const auto& [field, setting] : *all)
      EXPECT_TRUE(setting.starts_with("absent: ") || fields().contains(setting)) << field;
}

TEST(EngineSettings, EachIsCheckedByTheTable) {
  ASSERT_TRUE(engine_options({}, {}));
  for (const EngineSetting& s : kEngineSettings) {
    const auto refused = [&](const DeviceSettings& d, const ModelOptions& m) {
      auto e = engine_options(d, m);
      ASSERT_FALSE(e) << s.field;
      EXPECT_EQ(e.error().code, Code::Usage);
      EXPECT_STREQ(e.error().field, s.field);
      EXPECT_EQ(e.error().message.find(std::string("'") + s.field + "' is "), 0u) << e.error().message;
    };
    const auto accepted = [&](const DeviceSettings& d, const ModelOptions& m) {
      EXPECT_TRUE(engine_options(d, m)) << s.field;
    };
    DeviceSettings d;
    ModelOptions m;
    if (const auto* whole = std::get_if<std::optional<int> DeviceSettings::*>(&s.member)) {
      for (int wrong : {s.low - 1, s.high + 1}) d.** whole = wrong, refused(d, m);
      for (int right : {s.low, s.high}) d.** whole = right, accepted(d, m);
    } else if (const auto* number = std::get_if<int ModelOptions::*>(&s.member)) {
      for (int wrong : {-1, s.high + 1}) m.** number = wrong, refused(d, m);
      for (int right : {s.low, s.high}) m.** number = right, accepted(d, m);
    } else if (const auto* real = std::get_if<float ModelOptions::*>(&s.member)) {
      for (float wrong : {-1.f, std::numeric_limits<float>::infinity(), std::nanf("")})
        m.** real = wrong, refused(d, m);
      for (float right : {0.f, 0.25f, 1e6f}) m.** real = right, accepted(d, m);
    } else if (const auto* word = std::get_if<std::string ModelOptions::*>(&s.member); word && s.words) {
      for (const char* wrong : {"", "f3", "f32|f16", "Q8_0"}) m.** word = wrong, refused(d, m);
    }
  }
}

TEST(EngineSettings, CacheTypesAreThoseOfTheOps) {
  for (DType t : kAllDTypes) {
    ModelOptions m;
    m.cache_type = info(t).name;
    EXPECT_EQ(bool(engine_options({}, m)), has(kCacheTypes, t)) << m.cache_type;
  }
}

TEST(EngineSettings, BecomeTheOptionsOfTheEngine) {
  DeviceSettings d;
  ModelOptions m;
  d.backend = "vulkan", d.split = {{"cpu", 4}, {"cuda:1", -1}}, d.strict = d.refresh = true;
  d.numerics = Numerics::Fast, d.prefer_kernel = {"cpu.*"}, d.packed = Packed::Off, d.verify = Verify::Never;
  m.context = 77, m.sequences = 3, m.cache_type = "q8_0", m.cache_rotation = "on", m.kernel_config = "preset",
  m.lora = {{"a.gguf", 2}};
  auto e = engine_options(d, m);
  ASSERT_TRUE(e) << e.error().message;
  EXPECT_EQ(e->backend, "vulkan");
  ASSERT_EQ(e->split.size(), 2u);
  EXPECT_EQ(e->split[0].device.id(), "cpu:0");
  EXPECT_EQ(e->split[0].layers, 4);
  EXPECT_EQ(e->split[1].device.id(), "cuda:1");
  EXPECT_EQ(e->split[1].layers, -1);
  EXPECT_TRUE(e->strict && e->refresh && e->run.kernels.allow_fast && e->run.kernels.strict);
  EXPECT_EQ(e->run.kernels.patterns, d.prefer_kernel);
  EXPECT_EQ(e->packed, Packed::Off);
  EXPECT_EQ(e->verify, Verify::Never);
  EXPECT_EQ(e->run.context, 77);
  EXPECT_EQ(e->run.batch, RunOptions().batch);
  EXPECT_EQ(e->run.sequences, 3);
  EXPECT_EQ(e->run.cache_type, DType::Q8_0);
  EXPECT_EQ(e->run.cache_rotation, CacheRotation::On);
  const ModelFileOptions f = file_options(m);
  EXPECT_EQ(f.kernel_config, "preset");
  ASSERT_EQ(f.lora.size(), 1u);
  EXPECT_EQ(f.lora[0].scale, 2);
  d.override_tensor = {"a=CUDA1,b\\d=cpu", "c=rocm:2"}, d.n_cpu_moe = 3;
  e = engine_options(d, m);
  ASSERT_TRUE(e) << e.error().message;
  ASSERT_EQ(e->overrides.size(), 4u);
  EXPECT_EQ(e->overrides[0].device.id(), "cuda:1");
  EXPECT_EQ(e->overrides[1].pattern, "b\\d");
  EXPECT_EQ(e->overrides[2].device.id(), "rocm:2");
  EXPECT_EQ(e->overrides[3].layers, 3);
  EXPECT_TRUE(e->experts_may_move);
  d.cpu_moe = true;
  EXPECT_GT(engine_options(d, m)->overrides[3].layers, 1 << 24) << "all of them, whatever n_cpu_moe is";
  d.cpu_moe = false, d.n_cpu_moe = 0;
  EXPECT_EQ(engine_options(d, m)->overrides.size(), 3u);
  EXPECT_FALSE(engine_options(d, m)->experts_may_move);
  for (const char* wrong : {"", "exps", "=cpu", "exps=", "exps=cpu,", "exps=c pu", "(=cpu"}) {
    d.override_tensor = {wrong};
    EXPECT_STREQ(engine_options(d, m).error().field, "override_tensor") << wrong;
  }
  d.override_tensor = {};
  d.split = {{"cpu", -2}};
  EXPECT_STREQ(engine_options(d, m).error().field, "split");
  d.split = {{"", 1}};
  EXPECT_STREQ(engine_options(d, m).error().field, "split");
}

}  // namespace
