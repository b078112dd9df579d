// Recording: what is held once, how values are named and sized, and that the first mistake is the one told.
#include "program/builder.h"

#include <gtest/gtest.h>

#include "support/fake_backend.h"

namespace gimbal {
namespace {

class Builder : public testing::Test {
 protected:
  void SetUp() override {
    test::FakeSettings s;
    s.packs = set_of(DType::Q4_0);
    device = test::open_fake(s);
  }
  std::unique_ptr<Device> device;
  static constexpr int kRows = 5, kOut = 2;
};

int count(const Program& p, OpKind k) {
  int n = 0;
  for (const gimbal_op& op : p.ops) n += op.kind == uint16_t(k);
  return n;
}

TEST_F(Builder, TiedWeightsAreHeldOnce) {
  ProgramBuilder b(*device, kRows, kOut);
  Value table = b.matrix("token_embd.weight", Shape(DType::Q4_0, {64, 100}));
  Value again = b.matrix("token_embd.weight", Shape(DType::Q4_0, {64, 100}));
  Value norm = b.vector("norm.weight", 64), norm2 = b.vector("norm.weight", 64);
  EXPECT_EQ(table.id, again.id);
  EXPECT_EQ(norm.id, norm2.id);
  Value x = b.rms_norm(b.embed(table, b.rows_input("tokens", DType::I32)), norm, 1e-5f);
  b.output(b.linear(again, b.select_rows(x, b.out_rows_input("out_rows"))));
  auto p = std::move(b).finish();
  ASSERT_TRUE(p) << p.error().message;
  EXPECT_EQ(p->weights.size(), 2u);
  EXPECT_EQ(p->slot_bytes[size_t(Slot::Weights)], align_up(100 * 1000, 64) + 256)
      << "packed size and a vector";
  EXPECT_EQ(p->values[table.id].layout, GIMBAL_PACKED);
  EXPECT_EQ(p->values[norm.id].layout, GIMBAL_DENSE);
  EXPECT_EQ(p->output(p->ops.back()).name, "token_embd");
}

TEST_F(Builder, OneQuantizationServesAllMatmulsOfAValue) {
  ProgramBuilder b(*device, kRows, kOut);
  Value x = b.rows_input("x", DType::F32, 256);
  b.scope("blk.0");
  Value q = b.linear(b.matrix("q.weight", Shape(DType::Q4_0, {256, 8})), x);
  b.linear(b.matrix("k.weight", Shape(DType::Q8_0, {256, 8})), x);    // shares a8_32
  b.linear(b.matrix("v.weight", Shape(DType::Q6_K, {256, 8})), x);    // a8_256
  b.linear(b.matrix("gate.weight", Shape(DType::F16, {256, 8})), x);  // takes x itself
  b.output(b.add(q, q));
  auto p = std::move(b).finish();
  ASSERT_TRUE(p) << p.error().message;
  EXPECT_EQ(count(*p, OpKind::Quantize), 2);
  EXPECT_EQ(count(*p, OpKind::MatMul), 4);
  EXPECT_EQ(p->ops[1].in[1], p->ops[2].in[1]);
  EXPECT_EQ(p->ops.back().in[0], p->ops[1].out[0]);
  EXPECT_EQ(p->output(p->ops[0]).name, "blk.0.quantize");
  EXPECT_EQ(p->output(p->ops[1]).name, "q") << "a linear is named after its weight, whatever the scope";
  EXPECT_EQ(p->output(p->ops.back()).name, "blk.0.add");
}

TEST_F(Builder, ExtentsFollowTheRows) {
  ProgramBuilder b(*device, kRows, kOut);
  Value table = b.matrix("t", Shape(DType::F32, {6, 9}));
  Value x = b.embed(table, b.rows_input("tokens", DType::I32));
  Value heads = b.split_heads(x, 3);
  Value rope = b.rope(heads, b.rows_input("rope", DType::F32, 2), RopePairs::Adjacent);
  Value chosen = b.select_rows(b.join_heads(rope), b.out_rows_input("out"));
  Value logits = b.linear(table, chosen);
  b.output(logits);
  auto p = std::move(b).finish();
  ASSERT_TRUE(p) << p.error().message;
  for (Value v : {x, heads, rope}) EXPECT_EQ(p->values[v.id].extent, GIMBAL_STEP_ROWS);
  for (Value v : {chosen, logits}) EXPECT_EQ(p->values[v.id].extent, GIMBAL_OUT_ROWS);
  EXPECT_EQ(p->values[table.id].extent, GIMBAL_ALL_ROWS);
  EXPECT_EQ(p->info[heads.id].shape, Shape(DType::F32, {3, 2, kRows}));
  EXPECT_EQ(p->info[logits.id].shape, Shape(DType::F32, {9, kOut}));
  const gimbal_op& last = p->ops.back();
  EXPECT_EQ(p->output_shape(last, {4, 1}), Shape(DType::F32, {9, 1}));
  EXPECT_EQ(p->input_shapes(p->ops[0], {4, 1})[1], Shape(DType::I32, {4}));
  EXPECT_EQ(p->input_shapes(p->ops[0], {4, 1})[0], Shape(DType::F32, {6, 9}));
}

TEST_F(Builder, AViewCanBeTheOutput) {
  ProgramBuilder b(*device, kRows, kOut);
  Value x = b.rows_input("x", DType::F32, 6);
  Value sum = b.add(x, x), view = b.split_heads(sum, 3);
  b.output(view);
  auto p = std::move(b).finish();
  ASSERT_TRUE(p);
  for (Value v : {sum, view}) EXPECT_EQ(p->values[v.id].slot, uint32_t(Slot::Output));
  EXPECT_EQ(p->slot_bytes[size_t(Slot::Output)], align_up(6 * kRows * 4, 64));
}

TEST_F(Builder, TheFirstMistakeIsKept) {
  ProgramBuilder b(*device, kRows, kOut);
  Value x = b.rows_input("x", DType::F32, 6), y = b.rows_input("y", DType::F32, 7);
  b.scope("blk.3");
  Value wrong = b.add(x, y);        // the mistake
  wrong = b.split_heads(wrong, 0);  // others, none of which may crash
  wrong = b.linear(b.matrix("w", Shape(DType::Q6_K, {256, 3})), wrong);
  wrong = b.rope(wrong, x, RopePairs::Halves);
  b.cache_write(x, true, wrong, x, x, x);
  b.output(b.join_heads(b.attention(wrong, x, y, x, x, x, {1})));
  auto p = std::move(b).finish();
  ASSERT_FALSE(p);
  EXPECT_EQ(p.error().code, Code::Unsupported);
  EXPECT_EQ(p.error().message, "blk.3.add: add(f32[6, 5], f32[7, 5]): both must be f32 of the same shape");
}

TEST_F(Builder, HeadsMustDivideARow) {
  for (int hd : {4, 0, -3}) {
    ProgramBuilder b(*device, kRows, kOut);
    Value x = b.rows_input("x", DType::F32, 6);
    b.split_heads(b.add(x, x), hd);
    auto p = std::move(b).finish();
    ASSERT_FALSE(p) << hd;
    EXPECT_NE(p.error().message.find("rows of 6"), std::string::npos) << p.error().message;
  }
}

TEST_F(Builder, ASlotCanGoOnBehindWhatIsThere) {
  ProgramBuilder b(*device, kRows, kOut);
  b.continue_at(Slot::Output, 100);
  Value there = b.input("logits", Shape(DType::F32, {16, 1}), Slot::Output);
  b.continue_at(Slot::Output, 1000);
  Value top = b.top_k(there, 4);
  b.output(top);
  auto p = std::move(b).finish();
  ASSERT_TRUE(p) << p.error().message;
  EXPECT_EQ(p->values[there.id].slot, uint32_t(Slot::Output));
  EXPECT_EQ(p->values[there.id].offset, 128u);
  EXPECT_EQ(p->values[top.id].slot, uint32_t(Slot::Output));
  EXPECT_EQ(p->values[top.id].offset, 1024u);
  EXPECT_EQ(p->slot_bytes[size_t(Slot::Output)], 1024u + 64u);
  EXPECT_EQ(p->slot_bytes[size_t(Slot::Work)], 0u);
}

TEST_F(Builder, AbsurdSizesAreErrors) {
  ProgramBuilder b(*device, kRows, kOut);
  for (int i = 0; i < 100; i++)
    b.cache("keys " + std::to_string(i), DType::F32, true, 1 << 14, 1 << 14, 1 << 20);
  auto p = std::move(b).finish();
  ASSERT_FALSE(p);
  EXPECT_EQ(p.error().code, Code::OutOfMemory);
  EXPECT_NE(p.error().message.find("keys"), std::string::npos) << p.error().message;

  ProgramBuilder many(*device, kRows, kOut);
  Value x = many.rows_input("x", DType::F32, 1);
  for (int i = 0; i < 70000; i++) x = many.add(x, x);
  auto too_many = std::move(many).finish();
  ASSERT_FALSE(too_many);
  EXPECT_NE(too_many.error().message.find("65,535"), std::string::npos);
}

}  // namespace
}  // namespace gimbal
