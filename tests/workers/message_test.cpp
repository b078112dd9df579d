// The messages between a front and its workers: every field arrives, and what is damaged is refused.
#include "workers/message.h"

#include <gtest/gtest.h>

#include <functional>

#include <limits>

#include "base/json.h"

namespace gimbal {
namespace {

wire::Hello full_hello() {
  wire::Hello m{
      5, 6, true, {{"cpu:0", true, 7}, {"metal:0", false, 8}}, {{"add", "f32", "cpu:0", "k", "w", 3}}};
  Explanation& e = m.explanation;
  e.architecture = "llama", e.layers = 2, e.context = 64, e.sequences = 3, e.cache_tokens = 1 << 20;
  e.max_context_length = 96, e.batch = 16, e.kv_type = "q5_0", e.kv_rotation = {true, "so many bits"};
  e.devices = {{{"cpu:0", {1, 2, 3, 4, 5, 6, 0, 7, 8}, 9}, "a CPU", 1e9},
               {{"metal:0", {}, 0}, "", std::nullopt}};
  e.host = {1, 2, 3}, e.placement = {{"cpu:0", "all layers", "why"}}, e.weight_bytes_per_token = 0.5;
  e.programs = {{"generation", 1, {{"x", "f32 [8]", 0}}}};
  e.choices = {{"add", "f32", "cpu:0", "k", "w", {{"too slow", {"a", "b"}}}}};
  return m;
}

TEST(WorkerMessages, KeepEveryFieldOfAReport) {
  const std::string line = encode(wire::FromWorker(full_hello()));
  auto back = wire::decode_from_worker(line);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(encode(*back), line);
  const wire::Hello& m = std::get<wire::Hello>(*back);
  EXPECT_EQ(m.devices.at(1).device, "metal:0");
  EXPECT_TRUE(m.devices[0].host);
  EXPECT_FALSE(m.devices[1].host);
  EXPECT_EQ(m.kernels.at(0).why, "w");
  EXPECT_EQ(m.explanation.devices.at(0).plan.total(), 21u);
  EXPECT_EQ(m.explanation.devices[0].read_bytes_per_second, 1e9);
  EXPECT_EQ(m.explanation.devices[1].read_bytes_per_second, std::nullopt);
  EXPECT_TRUE(m.explanation.kv_rotation.rotated);
  EXPECT_EQ(m.explanation.kv_rotation.why, "so many bits");
  EXPECT_EQ(m.explanation.choices.at(0).rejected.at(0).kernels.at(1), "b");
}

// A reader would look up a choice that is not there.
TEST(WorkerMessages, RefuseAnExplanationWithoutTheChoiceOfAnOp) {
  wire::Hello m = full_hello();
  m.explanation.programs[0].ops[0].choice = 1;
  EXPECT_FALSE(wire::decode_from_worker(encode(wire::FromWorker(m))));
}

TEST(WorkerMessages, KeepEveryFieldOfARequest) {
  wire::Submit m{7, {}};
  GenerationRequest& r = m.request;
  r.prompt = {1, 2, 300000}, r.written = {5}, r.stops = {"a\nb", "\xc3\xa9"}, r.max_tokens = 3,
  r.ignore_stop_tokens = true;
  r.memory = 0.1, r.sampler.mirostat = 2, r.sampler.adaptive_target = 0.3f;
  r.sampler.dry_sequence_breakers = {"\n", "x"};
  r.reasoning = {7, true, "<think>", "</think>", "</think>\n"};
  r.adapters = {0, 0.1f, -2.5f};
  r.logprobs = 4, r.grammar = "root ::= \"x\"", r.client = "k", r.owner = "o";
  r.scores_prompt = true, r.scored = 2;
  r.sampler.temperature = 0.1f, r.sampler.top_k = 3, r.sampler.top_p = 0.3f, r.sampler.min_p = 0.7f,
  r.sampler.typical_p = 0.9f;
  r.sampler.repeat_penalty = 1.1f, r.sampler.frequency_penalty = -0.5f, r.sampler.presence_penalty = 0.25f;
  r.sampler.penalty_window = -1, r.sampler.seed = UINT64_MAX, r.sampler.greedy = true;
  r.sampler.logit_bias = {{3, -std::numeric_limits<float>::infinity()}, {4, 1e-30f}};
  r.prompt.insert(r.prompt.end(), {kNoToken, kNoToken});
  r.embeddings = {{3, *Embeddings::create({0.1f, -0.0f, 1e-30f, 3, 5, 6}, 2), 1, 2}};
  const std::string line = encode(wire::ToWorker(m));
  EXPECT_EQ(line.find('\n'), std::string::npos);
  auto back = wire::decode_to_worker(line);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(encode(*back), line);
  const GenerationRequest& q = std::get<wire::Submit>(*back).request;
  EXPECT_EQ(q.prompt, r.prompt);
  ASSERT_EQ(q.embeddings.size(), 1u);
  EXPECT_EQ(q.embeddings[0].of->digest(), r.embeddings[0].of->digest()) << "every bit";
  EXPECT_EQ(common_prefix({q.prompt, q.embeddings}, {r.prompt, r.embeddings}), r.prompt.size());
  EXPECT_EQ(q.sampler.seed, UINT64_MAX);
  EXPECT_EQ(q.sampler.temperature, 0.1f);
  EXPECT_EQ(q.memory, 0.1);
  EXPECT_EQ(q.reasoning.tokens, 7);
  EXPECT_TRUE(q.reasoning.inside);
  EXPECT_EQ(q.reasoning.finish, "</think>\n");
  EXPECT_EQ(q.sampler.mirostat, 2);
  EXPECT_EQ(q.sampler.dry_sequence_breakers, r.sampler.dry_sequence_breakers);
  EXPECT_EQ(q.sampler.logit_bias, r.sampler.logit_bias);
  EXPECT_EQ(q.stops, r.stops);
  EXPECT_EQ(q.adapters, r.adapters);
  EXPECT_TRUE(q.scores_prompt);
  EXPECT_EQ(q.scored, 2);
  EXPECT_EQ(q.owner, "o");
}

TEST(WorkerMessages, KeepEveryFieldOfASavedState) {
  for (const wire::ToWorker& m :
       {wire::ToWorker(wire::Save{5, {1, 2, 3}}), wire::ToWorker(wire::Save{6, {}, false}),
        wire::ToWorker(wire::Restore{7}), wire::ToWorker(wire::Erase{8, {4}})}) {
    const std::string line = encode(m);
    auto back = wire::decode_to_worker(line);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->index(), m.index());
    EXPECT_EQ(encode(*back), line);
  }
  auto back = wire::decode_from_worker(encode(wire::FromWorker(wire::State{9, 2, {1, 2}})));
  ASSERT_TRUE(back);
  EXPECT_EQ(std::get<wire::State>(*back).text, (std::vector<Token>{1, 2}));
  EXPECT_FALSE(wire::decode_to_worker(R"({"restore": -1})"));
  EXPECT_FALSE(wire::decode_to_worker(R"({"save": {"id": 1}})"));
}

wire::Load full_load() {
  wire::Load m{"m.gguf", {}, UINT64_MAX, true, true, true, "secret"};
  LoadSettings& s = m.settings;
  DeviceSettings& d = s.devices;
  d.backend = "vulkan", d.device = 1, d.gpu_layers = -1, d.split = {{"cpu", 4}, {"cuda:1", -1}};
  d.strict = d.allow_software_devices = d.refresh = true, d.prefer_kernel = {"cpu.*"};
  d.backend_order = {"cuda", "cpu"}, d.numerics = Numerics::Fast, d.threads = 3, d.cpu_variant = "avx2";
  d.verify = Verify::Never, d.packed = Packed::Off;
  s.model.context = 64, s.model.batch = 16, s.model.cache_type = "q8_0", s.model.kernel_config = "preset";
  s.model.lora = {{"a.gguf", 0.5f}}, s.model.draft = "ngram", s.model.embed = true;
  s.parallel = 5, s.cache_tokens = 6, s.queue = 7, s.models = 8, s.together = 9;
  return m;
}

TEST(WorkerMessages, KeepEveryFieldOfALoad) {
  const std::string line = encode(wire::ToWorker(full_load()));
  auto back = wire::decode_to_worker(line);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(encode(*back), line);
  const wire::Load& m = std::get<wire::Load>(*back);
  EXPECT_EQ(m.settings.devices.split.at(1).device, "cuda:1");
  EXPECT_EQ(m.settings.devices.numerics, Numerics::Fast);
  EXPECT_EQ(m.settings.model.lora.at(0).scale, 0.5f);
  EXPECT_EQ(m.settings.model.cache_type, "q8_0");
  EXPECT_EQ(m.settings.model.draft, "ngram");
  EXPECT_EQ(m.promised, UINT64_MAX);
  // What is not set stays so.
  auto none = wire::decode_to_worker(encode(wire::ToWorker(wire::Load{})));
  ASSERT_TRUE(none);
  EXPECT_EQ(std::get<wire::Load>(*none).settings.devices.threads, std::nullopt);
}

TEST(WorkerMessages, RefuseALoadThatIsDamaged) {
  const Json whole = Json::parse(encode(wire::ToWorker(full_load())));
  const auto refused = [](const Json& j) { return !wire::decode_to_worker(j.dump()); };
  ASSERT_FALSE(refused(whole));
  // Every field at every depth: gone, of no type, of another type.
  const std::function<void(const std::string&)> damage = [&](const std::string& at) {
    const Json::json_pointer pointer(at);
    if (!whole[pointer].is_object()) return;
    for (const auto& field : whole[pointer].items()) {
      Json j = whole;
      j[pointer].erase(field.key());
      EXPECT_TRUE(refused(j)) << j.dump();
      for (const Json& other : {Json{{"a", 1}}, Json(1e300), Json(Json::array({Json::array()}))}) {
        j = whole, j[pointer][field.key()] = other;
        EXPECT_TRUE(refused(j)) << j.dump();
      }
      damage(at + "/" + field.key());
    }
  };
  damage("/load");
  for (const auto& [at, value] : std::initializer_list<std::pair<const char*, Json>>{
           {"/load/protocol", wire::kProtocol - 1},
           {"/load/settings/parallel", 0},
           {"/load/settings/queue", -1},
           {"/load/settings/cache_tokens", -1},
           {"/load/settings/threads", 0},
           {"/load/settings/verify", 3},
           {"/load/settings/numerics", -1},
           {"/load/settings/split", Json::parse("[[\"cpu\", -2]]")},
           {"/load/settings/split", Json::parse("[[\"no device:\", 2]]")},
           {"/load/settings/context", 1 << 30},
           {"/load/settings/batch", -1},
           {"/load/settings/cache_type", "q2_k"}}) {
    Json j = whole;
    j[Json::json_pointer(at)] = value;
    EXPECT_TRUE(refused(j)) << j.dump();
  }
}

// Every message with one field gone, of another type, or out of range: refused, with its name.
TEST(WorkerMessages, RefuseWhatIsDamaged) {
  TokenEvent told{3, 4, "x", -1.5f, {{1, -2.f}}, "ab", 0.5};
  for (const wire::FromWorker& m :
       {wire::FromWorker(wire::NextToken{1, told}), wire::FromWorker(wire::Scored{1, told}),
        wire::FromWorker(wire::Ended{1, {}}), wire::FromWorker(wire::Pong{1, {}}),
        wire::FromWorker(wire::Planned{{{"cpu:0", 5, 4, 3, 2}}}), wire::FromWorker(full_hello()),
        wire::FromWorker(wire::Embedding{1, 2, {0.5f}}),
        wire::FromWorker(wire::Failed{1, {Code::Usage, "m"}})}) {
    const Json whole = Json::parse(encode(m));
    ASSERT_TRUE(wire::decode_from_worker(whole.dump()));
    const std::string name = whole.begin().key();
    for (const auto& field : whole.begin().value().items()) {
      for (int change = 0; change < 4; change++) {
        auto j = whole;
        if (change == 0) j[name].erase(field.key());
        if (change == 1) j[name][field.key()] = nullptr;
        if (change == 2) j[name][field.key()] = {{"a", 1}};
        if (change == 3) {
          if (!field.value().is_number_integer()) continue;
          j[name][field.key()] = 1e300;
        }
        EXPECT_FALSE(wire::decode_from_worker(j.dump())) << j.dump();
      }
    }
  }
  for (const char* line : {"", "{}", "[]", "7", "{\"cancel\": -1}", "{\"cancel\": \"1\"}",
                           "{\"ping\": 1, \"cancel\": 2}", "{\"nothing\": 1}"})
    EXPECT_FALSE(wire::decode_to_worker(line)) << line;
  wire::Submit embedded{1, {}};
  embedded.request.embeddings = {{0, *Embeddings::create({1, 2, 3, 4}, 2), 0, 2}};
  const auto whole = nlohmann::ordered_json::parse(encode(wire::ToWorker(embedded)));
  ASSERT_TRUE(wire::decode_to_worker(whole.dump()));
  ASSERT_EQ(whole["submit"]["embeddings"][0].dump(), "[0,0,2,2,0,[1.0,2.0,3.0,4.0]]");
  for (const char* damage :
       {"[0, 0, 3, 2, 0, [1, 2, 3, 4]]", "[0, 1, 2, 2, 0, [1, 2, 3, 4]]", "[-1, 0, 2, 2, 0, [1, 2, 3, 4]]",
        "[0, -1, 2, 2, 0, [1, 2, 3, 4]]", "[0, 0, 0, 2, 0, [1, 2, 3, 4]]", "[0, 0, 2, 0, 0, [1, 2, 3, 4]]",
        "[0, 0, 2, 2, 0, [1, 2, 3]]", "[0, 0, 2, 2, 0, [1, 2, 3, \"nan\"]]", "[0, 0, 2, 2, 0]", "7",
        "[0, 0, 2, 2, -1, [1, 2, 3, 4]]", "[0, 0, 2, 2, [1, 2, 3, 4]]",
        "[2147483646, 0, 2, 2, 0, [1, 2, 3, 4]]", "[0, 2147483647, 2, 2, 0, [1, 2, 3, 4]]"}) {
    auto j = whole;
    j["submit"]["embeddings"][0] = nlohmann::ordered_json::parse(damage);
    EXPECT_FALSE(wire::decode_to_worker(j.dump())) << damage;
  }
  for (const char* line : {"{\"go\": false}", "{\"go\": 1}", "{\"go\": {}}"})
    EXPECT_FALSE(wire::decode_to_worker(line)) << line;
  for (const char* line :
       {"{\"planned\": {\"needs\": [[\"cpu:0\", 1, 2, 3]]}}", "{\"planned\": {\"needs\": [[1, 1, 2, 3, 4]]}}",
        "{\"planned\": {\"needs\": [[\"cpu:0\", 1, 2, -3, 4]]}}"})
    EXPECT_FALSE(wire::decode_from_worker(line)) << line;
  for (const char* line : {"{\"begun\": -1}", "{\"begun\": {}}", "{\"begun\": 1.5}", "{\"began\": 1}"})
    EXPECT_FALSE(wire::decode_from_worker(line)) << line;
  EXPECT_EQ(std::get<wire::Begun>(*wire::decode_from_worker(encode(wire::FromWorker(wire::Begun{8})))).id,
            8u);
}

// Lines with bytes changed, left out and doubled: refused, or a message that says the same when it is sent
// on.
TEST(WorkerMessages, SurviveAnyDamage) {
  const TokenEvent told{3,    4,  "x\xc3\xa9\n", -1.5f, {{1, -std::numeric_limits<float>::infinity()}},
                        "ab", 0.5};
  std::vector<std::string> lines = {encode(wire::FromWorker(wire::NextToken{1, told})),
                                    encode(wire::FromWorker(wire::Scored{1, told})),
                                    encode(wire::FromWorker(wire::Ended{1, {}})),
                                    encode(wire::FromWorker(wire::Pong{1, {}})),
                                    encode(wire::FromWorker(full_hello())),
                                    encode(wire::FromWorker(wire::Embedding{1, 2, {0.5f}})),
                                    encode(wire::FromWorker(wire::Failed{1, {Code::Usage, "m"}})),
                                    encode(wire::FromWorker(wire::Loading{1, 2})),
                                    encode(wire::FromWorker(wire::Begun{8})),
                                    encode(wire::FromWorker(wire::Planned{{{"cpu:0", 5, 4, 3, 2}, {}}})),
                                    encode(wire::ToWorker(wire::Go{})),
                                    encode(wire::ToWorker(full_load())),
                                    encode(wire::ToWorker(wire::Submit{1, {}})),
                                    encode(wire::ToWorker(wire::Cancel{1}))};
  uint64_t state = 1;
  const auto random = [&](size_t below) {
    return size_t((state = state * 6364136223846793005u + 1442695040888963407u) >> 33) % below;
  };
  int understood = 0;
  for (int round = 0; round < 20'000; round++) {
    std::string line = lines[random(lines.size())];
    for (size_t changes = 1 + random(3); changes > 0 && !line.empty(); changes--) {
      const size_t at = random(line.size());
      if (random(3) == 0) line.erase(at, 1 + random(4));
      else if (random(2) == 0) line.insert(at, line, random(line.size()), random(8));
      else line[at] = char(random(2) ? "0123456789-e.\"{}[],:"[random(20)] : random(256));
    }
    if (auto m = wire::decode_from_worker(line)) {
      const std::string again = encode(*m);
      auto same = wire::decode_from_worker(again);
      ASSERT_TRUE(same && encode(*same) == again) << line;
      understood++;
    }
    if (auto m = wire::decode_to_worker(line)) {
      const std::string again = encode(*m);
      auto same = wire::decode_to_worker(again);
      ASSERT_TRUE(same && encode(*same) == again) << line;
      understood++;
    }
  }
  EXPECT_GT(understood, 100);  // or the loop above tests nothing
}

}  // namespace
}  // namespace gimbal
