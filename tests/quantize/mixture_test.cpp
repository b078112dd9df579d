// The rules of mixtures against llama.cpp's own choice for every tensor of four shapes of models, with and
// without importance (tests/data/quantize, written by bench/quantize/compare.py).
#include "quantize/mixture.h"

#include <gtest/gtest.h>

#include <deque>

#include "support/golden.h"

namespace gimbal {
namespace {

// A model of which nothing is read but names, shapes and numbers.
struct ShapeOfModel {
  std::deque<std::string> names;
  ModelSource source;

  static MetadataEntry number(uint64_t v) { return {MetadataType::U32, v}; }

  explicit ShapeOfModel(const nlohmann::ordered_json& shape)
      : source({"GGUF", 3}, Metadata("shape"), {}, nullptr) {
    Metadata m("shape");
    m.add("general.architecture", {MetadataType::String, std::string_view("llama")});
    m.add("llama.block_count", number(shape["layers"]));
    m.add("llama.attention.head_count", number(shape["heads"]));
    m.add("llama.attention.head_count_kv", number(shape["shared"]));
    m.add("llama.expert_count", number(shape["experts"]));
    TensorTable table;
    for (const auto& t : shape["tensors"]) {
      StoredTensor stored{};
      stored.name = names.emplace_back(t[0].get<std::string>());
      stored.type = *dtype_of_gguf(t[2]);
      stored.rank = uint32_t(t[1].size());
      for (size_t i = 0; i < kMaxStoredRank; i++)
        stored.dim[i] = i < t[1].size() ? t[1][i].get<int64_t>() : 1;
      EXPECT_TRUE(table.add(stored));
    }
    source = ModelSource({"GGUF", 3}, std::move(m), std::move(table), nullptr);
  }
};

nlohmann::ordered_json recorded_formats() {
  return test::read_json(std::string(GIMBAL_SOURCE_DIR) + "/tests/data/quantize/formats.json");
}

TEST(Mixture, EveryTensorGetsTheFormatThatLlamaCppGivesIt) {
  int compared = 0, refused = 0;
  const auto recorded = recorded_formats();
  for (const auto& [name, shape] : recorded.items()) {
    const ShapeOfModel model(shape);
    EXPECT_EQ(shape["formats"].size(), mixture_names().size());
    for (const auto& [mixture, both] : shape["formats"].items())
      for (const bool importance : {false, true}) {
        SCOPED_TRACE(name + " " + mixture + (importance ? " with importance" : ""));
        const auto found = mixture_named(mixture);
        ASSERT_TRUE(found);
        const auto formats = formats_of(model.source, {*found, false, {}, {}, {}}, importance);
        ASSERT_TRUE(formats);
        const auto& theirs = both[importance];
        bool needed = false;
        for (const TensorFormat& f : *formats) needed |= f.needs_importance;
        if (theirs.is_null()) {
          // It has no substitute for Q1_0.
          EXPECT_TRUE((needed && !importance) || (name == "odd" && mixture == "Q1_0")) << "llama.cpp refuses";
          refused++;
          continue;
        }
        EXPECT_TRUE(importance || !needed);
        std::string ours;
        for (const TensorFormat& f : *formats) ours += char('A' + info(f.format).gguf);
        EXPECT_EQ(ours, theirs.get<std::string>());
        compared++;
      }
  }
  EXPECT_GT(compared, 200);
  EXPECT_GT(refused, 10);
}

TEST(Mixture, RulesOfTheUserComeFirst) {
  const ShapeOfModel model(recorded_formats()["shared"]);
  QuantizeRules rules{*mixture_named("q4_k"), false, DType::Q8_0, DType::Q5_0, {}};
  EXPECT_STREQ(rules.mixture.name, "Q4_K_M");
  rules.names = {{"blk\\.[0-3]\\.ffn_(up|gate)", DType::Q3_K}, {"ffn_up", DType::IQ4_NL}};
  const auto formats = formats_of(model.source, rules, false);
  ASSERT_TRUE(formats);
  const auto format_of = [&](const char* name) {
    return (*formats)[model.source.tensors().find(name)->index].format;
  };
  EXPECT_EQ(format_of("output.weight"), DType::Q8_0);
  EXPECT_EQ(format_of("token_embd.weight"), DType::Q5_0);
  EXPECT_EQ(format_of("blk.2.ffn_up.weight"), DType::Q3_K);
  EXPECT_EQ(format_of("blk.2.ffn_gate.weight"), DType::Q3_K);
  EXPECT_EQ(format_of("blk.7.ffn_up.weight"), DType::IQ4_NL);
  EXPECT_EQ(format_of("blk.7.ffn_gate.weight"), DType::Q4_K);
  EXPECT_EQ(format_of("blk.7.attn_norm.weight"), DType::F32);
  rules = {*mixture_named("Q2_K"), true, {}, {}, {}};
  const auto pure = formats_of(model.source, rules, false);
  ASSERT_TRUE(pure);
  for (const TensorFormat& f : *pure) EXPECT_EQ(f.format, f.quantized ? DType::Q2_K : DType::F32);
  rules.names = {{"ffn_(up", DType::Q3_K}};
  const auto wrong = formats_of(model.source, rules, false);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::Usage);
  EXPECT_NE(wrong.error().message.find("ffn_(up"), std::string::npos);
}

TEST(Mixture, RulesAreTextAndBack) {
  const QuantizeRules rules{*mixture_named("IQ3_M"), true, DType::Q6_K, DType::F16, {{"a=b|c", DType::Q8_0}}};
  const auto again = QuantizeRules::parsed(rules.text());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->text(), rules.text());
  EXPECT_EQ(again->names[0].pattern, "a=b|c");
  for (const char* wrong :
       {"", "pure\n", "mixture=Q9\n", "mixture=Q8_0\noutput=\n", "mixture=Q8_0\nnames=q8_0\n",
        "mixture=Q8_0\nnames=i32=a\n", "mixture=Q8_0\nother\n"})
    EXPECT_FALSE(QuantizeRules::parsed(wrong)) << wrong;
  const auto unknown = mixture_named("Q4_K_X");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().remedy.find("Q4_K_"), std::string::npos);
}

}  // namespace
}  // namespace gimbal
