// Compiled once for the tests of all GPU backends.
#include "gpu/models_checks.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <thread>
#include <tuple>

#include "base/format.h"
#include "discovery/summary.h"
#include "runtime/generate.h"

namespace gimbal::test {

std::vector<int32_t> some_tokens(int n) {
  std::vector<int32_t> t;
  uint32_t x = 777;
  for (int i = 0; i < n; i++) t.push_back(int32_t((x = x * 1664525u + 1013904223u) >> 8) % 512);
  return t;
}

Result<Engine> open_model(const std::string& path, const ModelSetting& s) {
  EngineOptions o;
  o.backend = s.backend, o.device = s.options, o.run.cache_type = s.cache;
  o.run.context = 256;  // gpt2's learned positions end there
  o.run.batch = s.batch, o.run.logit_rows = s.batch, o.lora = s.lora;
  return open_engine(path, o);
}
std::vector<float> logits_of(const std::string& path, const ModelSetting& s,
                             const std::vector<int32_t>& tokens) {
  auto e = open_model(path, s);
  if (e) return e->all_logits(tokens, s.split);
  ADD_FAILURE() << path << " on " << s.backend << ": " << e.error().message;
  return {};
}

static ModelSetting on_cpu() { return {"cpu", "threads=2"}; }

// Those that this version computes.
static std::vector<std::string> computable_models(const std::vector<const char*>& folders) {
  std::vector<std::string> all;
  for (const char* folder : folders)
    for (const std::string& path : golden_files(folder, ".gguf")) {
      const auto e = open_model(path, on_cpu());
      if (e) all.push_back(path);
      else EXPECT_EQ(e.error().code, Code::Unsupported) << e.error().message;
    }
  return all;
}

// What a model asks of its kernels: each with its number of inputs and the parameters that are not 0.
static std::set<std::string> uses_of(const Engine& e) {
  std::set<std::string> all;
  for (const Stage& stage : e.model->plan().stages)
    for (const Bucket& b : stage.buckets)
      for (const gimbal_op& op : b.program.ops) {
        std::string use = format("{} {} inputs", stage.device->kernel(op.kernel).name, op.inputs);
        for (double f : op.param.f) use += f != 0 ? " f" : " 0";
        for (int64_t i : op.param.i) use += i != 0 ? " i" : " 0";
        all.insert(std::move(use));
      }
  return all;
}

void check_bits_of_the_cpu(const ModelSetting& gpu, Which which) {
  if (fewer_cases()) which = which == Which::All ? Which::NewUses : Which::FewNewUses;
  const auto tokens = some_tokens(70);  // more than a page of the cache; three steps of a batch
  std::set<std::string> uses;
  const auto run = [&](const std::string& m, bool always) {
    auto e = open_model(m, gpu);
    if (!e) {
      ADD_FAILURE() << m << " on " << gpu.backend << ": " << e.error().message;
      return false;
    }
    const size_t before = uses.size();
    uses.merge(uses_of(*e));
    if (!always && uses.size() == before) return false;
    EXPECT_EQ(bits_differ(logits_of(m, on_cpu(), tokens), e->all_logits(tokens, gpu.split)), "") << m;
    return true;
  };
  const auto compared = [&](const std::vector<const char*>& folders, bool always) {
    const auto models = computable_models(folders);
    size_t n = 0;
    for (const std::string& m : models) n += run(m, always);
    EXPECT_GT(n, 0u);
    std::printf("%zu of %zu models%s\n", n, models.size(),
                always
                    ? ""
                    : ": each that uses some kernel as no model before it does (number of inputs, parameters "
                      "other than 0)");
    return models.size();
  };
  EXPECT_GE(compared({"stories", "quant", "arch"}, which < Which::NewUses), 19u);
  if (which != Which::FewNewUses) compared({"more/arch"}, which == Which::All);
}

void check_lora(ModelSetting gpu) {
  const auto tokens = some_tokens(40);
  for (const char* name : {"arch/llama-gqa", "more/arch/lfm2moe", "more/arch/bloom"}) {
    const std::string m = golden_dir() + "/" + name + ".gguf";
    ModelSetting cpu = on_cpu();
    const auto alone = logits_of(m, cpu, tokens);
    cpu.lora = gpu.lora = {{make_adapter(m).adapter, kAdapterScale}};
    const auto want = logits_of(m, cpu, tokens);
    EXPECT_NE(bits_differ(want, alone), "") << m << ": the adapter does nothing";
    EXPECT_EQ(bits_differ(want, logits_of(m, gpu, tokens)), "") << m;
    gpu.split = 7;
    EXPECT_EQ(bits_differ(want, logits_of(m, gpu, tokens)), "") << m << " in parts";
    gpu.split = 0;
  }
}

void check_every_cache(ModelSetting gpu) {
  const auto tokens = some_tokens(70);
  size_t n = 0;
  for (DType cache :
       {DType::F32, DType::BF16, DType::Q8_0, DType::Q5_0, DType::Q4_1, DType::Q4_0, DType::IQ4_NL})
    for (const char* name : {"quant/q-q8_0", "arch/llama31-ropefreqs"}) {
      if (fewer_cases() && n++ % 4 % 3) continue;  // each cache with one model
      const std::string m = golden_dir() + "/" + name + ".gguf";
      ModelSetting cpu = on_cpu();
      cpu.cache = gpu.cache = cache;
      EXPECT_EQ(bits_differ(logits_of(m, cpu, tokens), logits_of(m, gpu, tokens)), "")
          << m << " " << info(cache).name;
    }
}

void check_batches_and_splits(const ModelSetting& gpu, const std::vector<ModelSetting>& more) {
  const auto tokens = some_tokens(66);
  std::vector<ModelSetting> all = more;
  for (auto [batch, split] : {std::pair(1, 0), {3, 0}, {64, 0}, {16, 1}, {32, 7}, {32, 65}})
    all.push_back({gpu.backend, gpu.options, DType::F16, batch, split});
  // Matrices in parts; and buffers of several allocations, parts of them in turn.
  for (const char* limit : {"part=20000", "max_allocation=70144"})
    all.push_back({gpu.backend, gpu.options.empty() ? limit : gpu.options + "\n" + limit});
  constexpr const char* kModels[] = {"stories/stories260K-f32", "quant/q-q4_0", "quant/q-q6_k"};
  for (size_t n = 0; n < std::size(kModels); n++) {
    const std::string m = golden_dir() + "/" + kModels[n] + ".gguf";
    const auto want = logits_of(m, on_cpu(), tokens);
    for (size_t i = 0; i < all.size(); i++) {
      if (fewer_cases() && i % std::size(kModels) != n) continue;
      const ModelSetting& s = all[i];
      EXPECT_EQ(bits_differ(want, logits_of(m, s, tokens)), "")
          << m << " " << s.options << " batch " << s.batch << " split " << s.split;
    }
  }
}

void check_continuations(ModelSetting gpu, const std::string& only) {
  gpu.cache = DType::F32;
  int tokens = 0;
  for (const std::string& path : golden_files("stories", ".json")) {
    const auto golden = read_json(path);
    const std::string model = golden["model"];
    if (!only.empty() && model != only) continue;
    if (fewer_cases() && model != "stories260K-q8_0.gguf") continue;
    auto e = open_model(golden_dir() + "/stories/" + model, gpu);
    ASSERT_TRUE(e) << e.error().message;
    for (const auto& k : golden["cases"]) {
      if (!k.contains("greedy") || (fewer_cases() && tokens)) continue;
      const std::vector<int32_t> prompt = k["tokens"], greedy = k["greedy"];
      const std::vector<double> margins = k["greedy_margins"];
      auto session = *Session::create(*e->model);
      std::vector<int32_t> next = prompt;
      for (size_t i = 0; i < greedy.size(); i++, tokens++) {
        int32_t best = -1;
        auto ok = session->advance(next, Session::Wanted::Last, [&](size_t, std::span<const float> row) {
          best = int32_t(std::max_element(row.begin(), row.end()) - row.begin());
        });
        ASSERT_TRUE(ok) << ok.error().message;
        if (best != greedy[i]) {  // a tie: quantized activations
          EXPECT_LT(margins[i], 0.2) << path << ", token " << i;
        }
        next = {greedy[i]};
      }
    }
  }
  std::printf("%d tokens\n", tokens);
  EXPECT_GT(tokens, fewer_cases() ? 50 : 100);
}

void check_sampling(const ModelSetting& gpu) {
  auto e = open_model(golden_dir() + "/stories/stories260K-q8_0.gguf", gpu);
  ASSERT_TRUE(e) << e.error().message;
  auto session = *Session::create(*e->model);
  ASSERT_GE(session->max_top(), 40);
  const auto prompt = some_tokens(9);
  int tokens = 0;
  for (auto [top_k, temperature, typical, top_p, min_p] : {std::tuple(40, 0.f, 1.f, 0.95f, 0.05f),
                                                           {1, 0.8f, 1.f, 1.f, 0.f},
                                                           {40, 0.8f, 1.f, 0.95f, 0.05f},
                                                           {64, 2.f, 1.f, 1.f, 0.f},
                                                           {23, 1.3f, 0.7f, 0.9f, 0.f}}) {
    SamplerSettings s;
    s.top_k = top_k, s.temperature = temperature, s.typical_p = typical, s.top_p = top_p, s.min_p = min_p;
    s.seed = uint64_t(tokens + 5);
    Sampler of_all(s), of_few(s);
    ASSERT_EQ(of_few.leading(), temperature == 0 ? 1 : top_k);
    session->rewind(0);
    std::vector<int32_t> next = prompt;
    for (int i = 0; i < 8; i++, tokens++) {
      auto leading = session->advance_top(next, of_few.leading());
      ASSERT_TRUE(leading) << leading.error().message;
      auto few = of_few.pick_top(leading->logits, leading->ids);
      ASSERT_TRUE(few && *few);
      auto all = session->all_logits();
      ASSERT_TRUE(all) << all.error().message;
      auto want = of_all.pick(*all, {});
      ASSERT_TRUE(want) << want.error().message;
      ASSERT_EQ(**few, *want) << "token " << i << " with top-k " << top_k << ", temperature " << temperature;
      next = {*want};
    }
  }
  std::printf("%d tokens\n", tokens);
}

void check_threads(const ModelSetting& gpu) {
  const auto device = open_one(gpu.backend, 0, gpu.options);
  const DeviceReport report = report_of(*device, 0);
  std::printf("%s\n", device_line(report).c_str());
  EXPECT_NE(device_line(report).find(report.name), std::string::npos);
  constexpr const char* kModels[] = {"stories/stories260K-q8_0", "quant/q-q4_0", "quant/q-q6_k",
                                     "arch/qwen2"};
  std::vector<std::string> differ(std::size(kModels), "not run");
  std::vector<std::thread> threads;
  for (size_t i = 0; i < std::size(kModels); i++)
    threads.emplace_back([&, i] {
      const std::string path = golden_dir() + "/" + kModels[i] + ".gguf";
      const auto tokens = some_tokens(40 + int(i));
      const ModelSource file = open_file(path);
      RunOptions o;
      o.context = 128, o.batch = o.logit_rows = 16;
      auto model = load_placed(file, {{device.get(), configure(file)->layers, ""}}, o);
      if (!model) return void(differ[i] = model.error().message);
      differ[i] = bits_differ(logits_of(path, on_cpu(), tokens), logits_of(**model, tokens, 1 + 6 * i));
    });
  for (std::thread& t : threads) t.join();
  for (size_t i = 0; i < std::size(kModels); i++) EXPECT_EQ(differ[i], "") << kModels[i];
}

void check_story(const ModelSetting& gpu) {
  const std::string path = golden_dir() + "/stories/stories260K-q8_0.gguf";
  auto tell = [&](const ModelSetting& s) {
    std::string text;
    auto e = open_model(path, s);
    EXPECT_TRUE(e);
    if (!e) return text;
    auto tokenizer = *Tokenizer::create(e->file->metadata());
    auto session = *Session::create(*e->model);
    GenerateSettings settings;
    settings.max_tokens = 100;
    EXPECT_TRUE(generate(*session, *tokenizer, tokenizer->encode("Once upon a time"), settings,
                         [&](std::string_view part, Token) {
                           text += part;
                           return true;
                         }));
    return text;
  };
  const std::string story = tell(gpu);
  std::printf("%s\n", story.c_str());
  EXPECT_GT(story.size(), 200u);
  EXPECT_EQ(story, tell(on_cpu()));
}

}  // namespace gimbal::test
