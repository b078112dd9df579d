// The tensors of a folder under GGUF's names: which rows of a head change places, and which tensors are of
// another model.
#include "huggingface/tensor_names.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace gimbal::test {
namespace {

// Matrices of f32, `columns` of which lie side by side.
TensorTable table_of(const std::vector<std::tuple<const char*, int64_t, int64_t>>& matrices) {
  TensorTable table;
  for (const auto& [name, columns, rows] : matrices) {
    StoredTensor t{};
    t.name = name, t.type = DType::F32, t.rank = 2;
    std::fill(std::begin(t.dim), std::end(t.dim), 1);
    t.dim[0] = columns, t.dim[1] = rows;
    t.bytes = t.stored = uint64_t(columns * rows) * sizeof(float);
    EXPECT_TRUE(table.add(t)) << name;
  }
  return table;
}

ModelShape shape_of(int64_t heads, int64_t head_dim, int64_t rotated) {
  ModelShape s;
  s.layers = 1, s.heads = s.kv_heads = heads, s.head_dim = head_dim, s.rotated = rotated, s.vocabulary = 4;
  return s;
}

// Values of a head that are not rotated stay where they are.
TEST(TensorNames, RowsOfHeadsBecomePairsOfNeighbours) {
  const TensorTable stored = table_of({{"model.layers.0.self_attn.q_proj.weight", 4, 16},
                                       {"model.layers.0.self_attn.k_proj.weight", 4, 16},
                                       {"model.layers.0.self_attn.v_proj.weight", 4, 16}});
  const auto order = [&](int64_t rotated, const char* name) {
    std::deque<std::string> names;
    const auto named = name_tensors(stored, *family_of("llama"), shape_of(2, 8, rotated),
                                    ModelConfig(Json::object(), "'config.json'"), "folder", names);
    EXPECT_TRUE(named) << named.error().message;
    const StoredTensor* t = named ? named->tensors.find(name) : nullptr;
    EXPECT_TRUE(t) << name;
    return t ? named->recipes[t->index].order : std::vector<uint32_t>();
  };
  using Order = std::vector<uint32_t>;
  for (const char* name : {"blk.0.attn_q.weight", "blk.0.attn_k.weight"}) {
    EXPECT_EQ(order(8, name), (Order{0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15})) << name;
    EXPECT_EQ(order(4, name), (Order{0, 2, 1, 3, 4, 5, 6, 7, 8, 10, 9, 11, 12, 13, 14, 15})) << name;
  }
  EXPECT_EQ(order(8, "blk.0.attn_v.weight"), Order());
}

// Beside a text model, with and without "model." before them.
TEST(TensorNames, TensorsOfPictureModelsAreLeftOut) {
  const TensorTable stored = table_of({{"model.vision_tower.patch.weight", 4, 4},
                                       {"vision_tower.norm.weight", 4, 4},
                                       {"multi_modal_projector.linear.weight", 4, 4},
                                       {"model.language_model.embed_tokens.weight", 4, 4}});
  const auto named = [&](const Json& config, std::deque<std::string>& names) {
    return name_tensors(stored, *family_of("llama"), shape_of(1, 4, 4), ModelConfig(config, "'config.json'"),
                        "folder", names);
  };
  std::deque<std::string> names;
  const auto with = named({{"text_config", {{"hidden_size", 4}}}}, names);
  ASSERT_TRUE(with) << with.error().message;
  EXPECT_EQ(with->left_out,
            (std::vector<std::string>{"model.vision_tower.patch.weight", "vision_tower.norm.weight",
                                      "multi_modal_projector.linear.weight"}));
  EXPECT_TRUE(with->tensors.find("token_embd.weight"));
  const auto alone = named(Json::object(), names);
  ASSERT_FALSE(alone) << "a text model has no such tensors";
  EXPECT_EQ(alone.error().code, Code::Unsupported);
}

}  // namespace
}  // namespace gimbal::test
