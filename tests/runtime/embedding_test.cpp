// Embeddings: those of the reference data, the same bits whatever the batch and the other texts are, and what
// is refused. README of ../shared/golden/more: 1 - cosine <= 1e-5 with f32.
#include "runtime/embedding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "files/gguf.h"
#include "support/engine.h"
#include "support/golden.h"
#include "support/tiny_llama.h"

namespace gimbal::test {
namespace {

using Texts = std::vector<std::vector<int32_t>>;

Result<Engine> open(const std::string& path, size_t texts, int batch, int context = 128,
                    const std::string& device = "threads=1") {
  EngineOptions o;
  o.device = device;
  o.run.context = context, o.run.batch = batch, o.run.cache_type = DType::F32;
  o.run = embedding_options(o.run, {}, texts);
  return open_engine(path, o);
}

Result<std::vector<std::vector<float>>> embeddings(Engine& e, const Texts& texts, const EmbedSettings& s) {
  std::vector<std::vector<float>> all(texts.size());
  size_t next = 0;
  auto ok = embed(*e.model, texts, s, [&](size_t i, std::span<const float> x) -> Status {
    EXPECT_EQ(i, next++) << "in order";
    all[i].assign(x.begin(), x.end());
    return Done{};
  });
  if (!ok) return ok.error();
  EXPECT_EQ(next, texts.size());
  return all;
}

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); i++)
    ab += double(a[i]) * b[i], aa += double(a[i]) * a[i], bb += double(b[i]) * b[i];
  return ab / std::sqrt(aa * bb);
}

std::string model_of(const std::string& json) { return json.substr(0, json.size() - 4) + "gguf"; }

TEST(Embedding, IsThatOfTheReferenceData) {
  for (const std::string& path : golden_files("more/embed", ".json")) {
    const auto golden = read_json(path);
    auto engine = open(model_of(path), 1, 128);
    ASSERT_TRUE(engine) << engine.error().message;
    auto says = pooling_of(engine->file->metadata());
    ASSERT_TRUE(says) << says.error().message;
    ASSERT_TRUE(*says);
    EXPECT_EQ(name_of(**says), golden["pooling"].get<std::string>()) << path;
    double worst = 0;
    for (const auto& c : golden["cases"]) {
      const auto pooling = pooling_named(c["pooling"].get<std::string>());
      ASSERT_TRUE(pooling);
      const std::vector<float> want = base64_floats(c["embedding_ref64"]);
      auto got = embeddings(*engine, {c["tokens"].get<std::vector<int32_t>>()}, {*pooling, true});
      ASSERT_TRUE(got) << got.error().message;
      ASSERT_EQ((*got)[0].size(), want.size());
      double length = 0;
      for (float x : (*got)[0]) length += double(x) * x;
      EXPECT_NEAR(length, 1, 1e-6);
      worst = std::max(worst, 1 - cosine((*got)[0], want));
    }
    std::printf("%-28s 1 - cosine %.1e\n", golden["model"].get<std::string>().c_str(), worst);
    EXPECT_LE(worst, 1e-5) << path;
  }
}

TEST(Embedding, HasTheSameBitsBesideAnyOthers) {
  const Texts texts = {
      {1, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120}, {7}, {1, 2, 3}, {9, 8, 7, 6, 5, 4}, {1, 20, 30}};
  for (const std::string& path : golden_files("more/embed", ".json"))
    for (Pooling pooling : {Pooling::Mean, Pooling::Last, Pooling::None}) {
      const EmbedSettings settings{pooling, pooling != Pooling::Mean};
      std::vector<std::vector<float>> alone;
      auto one = open(model_of(path), 1, 64);
      ASSERT_TRUE(one) << one.error().message;
      for (const auto& t : texts) {
        auto e = embeddings(*one, {t}, settings);
        ASSERT_TRUE(e) << e.error().message;
        alone.push_back((*e)[0]);
      }
      // Decoders may have batches that cut texts.
      const int least = one->model->plan().whole_texts ? 12 : 1;
      for (auto [batch, device] :
           {std::pair(64, "threads=1"), {std::max(least, 5), "threads=3"}, {13, "threads=2"}}) {
        auto many = open(model_of(path), texts.size(), batch, 128, device);
        ASSERT_TRUE(many) << many.error().message;
        auto e = embeddings(*many, texts, settings);
        ASSERT_TRUE(e) << e.error().message;
        for (size_t i = 0; i < texts.size(); i++) {
          ASSERT_EQ((*e)[i].size(), alone[i].size());
          EXPECT_EQ(std::memcmp((*e)[i].data(), alone[i].data(), alone[i].size() * sizeof(float)), 0)
              << path << ", " << name_of(pooling) << ", batch " << batch << ", text " << i;
        }
      }
    }
}

TEST(Embedding, ATextThatDoesNotFitIsRefusedWithTheRemedy) {
  auto e = open(golden_dir() + "/more/embed/bert.gguf", 3, 8, 32);
  ASSERT_TRUE(e) << e.error().message;
  EXPECT_TRUE(e->model->plan().whole_texts);
  auto refused = [&](const Texts& texts) {
    auto r = embeddings(*e, texts, {});
    return r ? Error{} : r.error();
  };
  const std::vector<int32_t> nine(9, 5), many(33, 5);
  Error error = refused({{1, 2}, nine});
  EXPECT_EQ(error.code, Code::Usage);
  EXPECT_STREQ(error.field, "batch");
  EXPECT_NE(error.message.find("text 2 of 2"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("9 tokens"), std::string::npos) << error.message;
  EXPECT_STREQ(refused({many}).field, "context");
  EXPECT_NE(refused({{}}).message.find("no tokens"), std::string::npos);
  EXPECT_NE(refused({{512}}).message.find("vocabulary"), std::string::npos);

  // A caller that makes its own batches cannot cut a text either.
  auto session = Session::create(*e->model);
  ASSERT_TRUE(session);
  auto ignore = [](size_t, std::span<const float>) {};
  EXPECT_FALSE((*session)->advance(nine, Session::Wanted::Last, ignore, Output::Hidden));
  ASSERT_TRUE((*session)->advance(std::span(nine).first(4), Session::Wanted::Last, ignore, Output::Hidden));
  auto more = (*session)->advance(std::span(nine).first(4), Session::Wanted::Last, ignore, Output::Hidden);
  ASSERT_FALSE(more);
  EXPECT_NE(more.error().message.find("one batch"), std::string::npos) << more.error().message;
  (*session)->rewind(0);
  EXPECT_FALSE((*session)->advance(std::span(nine).first(4), Session::Wanted::Last, ignore)) << "no logits";
}

TEST(Embedding, ModelsThatGenerateEmbedToo) {
  auto e = open(golden_dir() + "/stories/stories260K-f32.gguf", 1, 64);
  ASSERT_TRUE(e) << e.error().message;
  EXPECT_EQ(e->model->plan().width(Output::Logits), 0) << "no output head is computed";
  EXPECT_FALSE(e->model->plan().whole_texts);
  auto says = pooling_of(e->file->metadata());
  ASSERT_TRUE(says);
  EXPECT_FALSE(*says);
  auto all = embeddings(*e, {{1, 403, 407}}, {Pooling::None, false});
  auto last = embeddings(*e, {{1, 403, 407}}, {Pooling::Last, false});
  auto mean = embeddings(*e, {{1, 403, 407}}, {Pooling::Mean, false});
  ASSERT_TRUE(all && last && mean);
  const size_t width = (*last)[0].size();
  ASSERT_EQ((*all)[0].size(), 3 * width);
  for (size_t i = 0; i < width; i++) {
    EXPECT_EQ((*all)[0][2 * width + i], (*last)[0][i]);
    const double sum = double((*all)[0][i]) + (*all)[0][width + i] + (*all)[0][2 * width + i];
    EXPECT_EQ((*mean)[0][i], float(sum / 3));
  }
}

// A BERT of one layer, 8 wide.
struct TinyBert : TinyLlama {
  TinyBert() {
    const auto old = keys;
    keys.clear();
    for (auto& [key, value] : old) keys[key.rfind("llama.", 0) == 0 ? "bert" + key.substr(5) : key] = value;
    text("general.architecture", "bert");
    keys["bert.attention.head_count_kv"] = keys["bert.attention.head_count"];
    for (const char* name : {"output_norm.weight", "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight",
                             "blk.0.ffn_gate.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight"})
      tensors.erase(name);
    tensors["blk.0.attn_k.weight"].dims = tensors["blk.0.attn_v.weight"].dims = {8, 8};
    tensors["position_embd.weight"].dims = {8, 64};
    tensors["token_types.weight"].dims = {8, 2};
    for (const char* name : {"token_embd_norm", "blk.0.attn_output_norm", "blk.0.layer_output_norm"})
      for (const char* part : {".weight", ".bias"}) tensors[name + std::string(part)].dims = {8};
  }
  void number(const std::string& key, uint32_t n) { keys["bert." + key] = {kU32, le(n)}; }
  // A head that makes one number of what the first token gives.
  void rank(uint64_t width) {
    number("pooling_type", 4);
    tensors["token_types.weight"].dims = {width, 1};
    tensors["cls.weight"].dims = {width, width};
    tensors["cls.bias"].dims = {width};
    tensors["cls.output.weight"].dims = {width, 1};
    tensors["cls.output.bias"].dims = {1};
  }
};

std::optional<Error> plan(const TinyLlama& spec, int context = 0) {
  const std::string bytes = spec.build();
  auto file = parse_gguf(std::as_bytes(std::span(bytes)), "small.gguf");
  if (!file) return file.error();
  if (auto p = pooling_of(file->metadata()); !p) return p.error();
  auto device = open_device({"cpu", 0, true, "threads=1"});
  if (!device) return device.error();
  RunOptions o;
  o.context = context;
  auto b = make_model_plan(*file, *device->device, o);
  if (!b) return b.error();
  return std::nullopt;
}

TEST(Encoder, RefusesWhatIsNoSuchModel) {
  EXPECT_FALSE(plan(TinyBert())) << plan(TinyBert())->message;
  TinyBert one_type, none;
  one_type.tensors["token_types.weight"].dims = {8, 1};
  none.tensors.erase("token_types.weight");
  EXPECT_FALSE(plan(one_type));
  EXPECT_FALSE(plan(none)) << "distilled models have none";
  struct Refused {
    const char* about;
    std::function<void(TinyBert&)> change;
    const char* words;
    int context = 0;
  };
  const std::vector<Refused> all = {
      {"token types of another width",
       [](TinyBert& s) {
         s.tensors["token_types.weight"].dims = {7, 2};
       },
       "token_types.weight"},
      {"a key that promises token types",
       [](TinyBert& s) {
         s.tensors.erase("token_types.weight");
         s.keys["tokenizer.ggml.token_type_count"] = {kU32, le(uint32_t(2))};
       },
       "token_type_count"},
      {"no positions", [](TinyBert& s) { s.tensors.erase("position_embd.weight"); }, "position_embd.weight"},
      {"fewer positions than the context",
       [](TinyBert& s) {
         s.tensors["position_embd.weight"].dims = {8, 63};
       },
       "63"},
      {"a context behind the positions", [](TinyBert&) {}, "64", 65},
      {"a pooling without a meaning", [](TinyBert& s) { s.number("pooling_type", 99); }, "99"},
      {"a reranker whose parts have types",
       [](TinyBert& s) {
         s.rank(8);
         s.tensors["token_types.weight"].dims = {8, 2};
       },
       "token types"},
      {"a reranker with several numbers",
       [](TinyBert& s) {
         s.rank(8);
         s.tensors["cls.output.weight"].dims = {8, 2};
       },
       "2 rows"},
      {"a reranker without a head", [](TinyBert& s) { s.number("pooling_type", 4); }, "reranker"},
      {"a head that nothing asks for",
       [](TinyBert& s) {
         s.rank(8);
         s.number("pooling_type", 2);
       },
       "cls"},
      {"a pooling that is no number", [](TinyBert& s) { s.text("bert.pooling_type", "mean"); },
       "pooling_type"},
      {"no heads", [](TinyBert& s) { s.number("attention.head_count", 0); }, "head_count"},
      {"a causal encoder",
       [](TinyBert& s) {
         s.keys["bert.attention.causal"] = {kBool, std::string(1, char(1))};
       },
       "attention.causal"},
      {"no norm of the embedding", [](TinyBert& s) { s.tensors.erase("token_embd_norm.weight"); },
       "token_embd_norm.weight"},
      {"a gate",
       [](TinyBert& s) {
         s.tensors["blk.0.ffn_gate.weight"].dims = {8, 12};
       },
       "ffn_gate"},
  };
  for (const Refused& r : all) {
    TinyBert spec;
    r.change(spec);
    const auto e = plan(spec, r.context);
    ASSERT_TRUE(e) << r.about << ": taken for a model";
    EXPECT_NE(e->message.find(r.words), std::string::npos) << r.about << ": " << e->message;
  }
}

TEST(Reranker, GivesOneNumberByTheFirstToken) {
  TinyBert plain, ranker;
  for (TinyBert* spec : {&plain, &ranker}) {
    spec->weight = [](uint64_t i) { return float(std::sin(double(i) * 0.7 + 0.3)) / 2; };
    spec->tensors["token_types.weight"].dims = {8, 1};
  }
  plain.number("pooling_type", 2);
  ranker.rank(8);
  const Texts texts = {{1, 2, 3, 4}, {4, 3}, {0}};
  std::vector<std::vector<std::vector<float>>> found;
  for (const TinyBert* spec : {&plain, &ranker}) {
    const std::string path = temporary_path("ranker.gguf");
    std::ofstream(path, std::ios::binary) << spec->build();
    auto e = open(path, 3, 32, 32);
    ASSERT_TRUE(e) << e.error().message;
    const auto pooling = pooling_of(e->file->metadata());
    ASSERT_TRUE(pooling && *pooling);
    EXPECT_EQ(name_of(**pooling), spec == &plain ? "cls" : "rank");
    auto all = embeddings(*e, texts, {**pooling, spec == &ranker});  // a rank is not normalised
    ASSERT_TRUE(all) << all.error().message;
    found.push_back(*all);
    if (spec == &ranker) { EXPECT_FALSE(embeddings(*e, texts, {Pooling::Mean, true})); }
  }
  for (size_t t = 0; t < texts.size(); t++) {
    double score = plain.weight(0);
    for (uint64_t r = 0; r < 8; r++) {
      double sum = plain.weight(r);
      for (uint64_t c = 0; c < 8; c++) sum += double(plain.weight(r * 8 + c)) * double(found[0][t][c]);
      score += double(plain.weight(r)) * std::tanh(sum);
    }
    ASSERT_EQ(found[1][t].size(), 1u);
    EXPECT_NEAR(found[1][t][0], score, 1e-5) << t;
  }
}

// A decoder whose file says that rows see later ones is computed so, not as one that generates.
TEST(Encoder, ADecoderMaySeeLaterRows) {
  TinyLlama spec;
  spec.keys["llama.attention.causal"] = {kBool, std::string(1, char(0))};
  const std::string bytes = spec.build();
  auto file = parse_gguf(std::as_bytes(std::span(bytes)), "small.gguf");
  ASSERT_TRUE(file) << file.error().message;
  auto device = open_device({"cpu", 0, true, "threads=1"});
  ASSERT_TRUE(device);
  auto b = make_model_plan(*file, *device->device, {});
  ASSERT_TRUE(b) << b.error().message;
  EXPECT_TRUE(b->whole_texts);
}

}  // namespace
}  // namespace gimbal::test
