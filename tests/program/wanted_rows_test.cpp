// Which ops of a program compute the rows only that somebody wants results of.
#include "program/passes.h"

#include <gtest/gtest.h>

#include "device/values.h"
#include "ops/op_def.h"
#include "program/builder.h"
#include "support/fake_backend.h"

namespace gimbal {
namespace {

class WantedRows : public testing::Test {
 protected:
  static constexpr int kRows = 5, kOut = 2, kWidth = 64;

  std::unique_ptr<Device> device = test::open_fake({});
  ProgramBuilder b{*device, kRows, kOut};
  Value x = b.rows_input("x", DType::F32, kWidth);
  Value wanted = b.out_rows_input("wanted");

  Value norm(Value of) { return b.rms_norm(of, b.vector("norm.weight", kWidth), 1e-5f); }
  Value linear(const char* name, Value of) {
    return b.linear(b.matrix(name, Shape(DType::Q8_0, {kWidth, kWidth})), of);
  }
  Value attention(Value q) {
    const Value keys = b.cache("k", DType::F16, true, 32, 2, 4),
                values = b.cache("v", DType::F16, false, 32, 2, 4),
                position = b.rows_input("position", DType::I32),
                sequence = b.rows_input("sequence", DType::I32),
                pages = b.input("pages", Shape(DType::I32, {4, 1}));
    return b.attention(b.split_heads(q, 32), keys, values, position, sequence, pages, {1});
  }
  Program finish() {
    auto p = std::move(b).finish();
    EXPECT_TRUE(p) << p.error().message;
    return p ? *std::move(p) : Program{};
  }
};

// "matmul:all" or "matmul:wanted", op by op.
std::vector<std::string> ops_of(const Program& p) {
  std::vector<std::string> all;
  for (const gimbal_op& op : p.ops)
    all.push_back(std::string(info(OpKind(op.kind)).name) +
                  (p.values[op.out[0]].extent == GIMBAL_OUT_ROWS ? ":wanted" : ":all"));
  return all;
}
// Every op's shapes follow from its inputs', and its memory is as large as its shape says.
void expect_sound(const Program& p) {
  for (const gimbal_op& op : p.ops) {
    std::vector<Shape> in;
    for (uint16_t v : inputs_of(op)) in.push_back(p.info[v].shape);
    const auto out = output_shape(OpKind(op.kind), params_of(op), in);
    ASSERT_TRUE(out) << out.error().message;
    EXPECT_EQ(*out, p.output(op).shape);
    EXPECT_EQ(shape_of(p.values[op.out[0]]), *out);
  }
  for (size_t v = 0; v < p.values.size(); v++)
    if (p.values[v].slot == uint32_t(Slot::Work)) {
      EXPECT_EQ(p.values[v].bytes, uint64_t(p.info[v].shape.bytes())) << p.info[v].name;
      EXPECT_EQ(p.values[v].offset, p.values[p.info[v].root].offset) << p.info[v].name;
      EXPECT_LE(p.values[v].offset + p.values[v].bytes, p.slot_bytes[size_t(Slot::Work)]) << p.info[v].name;
    }
}

// The end of every model: attention needs all rows, what follows does not.
TEST_F(WantedRows, BehindTheLastAttention) {
  b.layer(0);
  Value y = b.add(x, linear("o", b.join_heads(attention(norm(x)))));
  y = b.add(y, linear("down", b.swiglu(linear("gate", norm(y)), linear("up", norm(y)))));
  b.layer(kAfterLayers);
  Value logits = linear("output", norm(b.select_rows(y, wanted)));
  b.output(logits);
  const Program p = finish();
  expect_sound(p);
  EXPECT_EQ(ops_of(p), (std::vector<std::string>{
                           "rms_norm:all",    "attention:all",      "select_rows:wanted", "quantize:wanted",
                           "mat_mul:wanted",  "select_rows:wanted", "add:wanted",         "rms_norm:wanted",
                           "quantize:wanted", "mat_mul:wanted",     "rms_norm:wanted",    "quantize:wanted",
                           "mat_mul:wanted",  "swiglu:wanted",      "quantize:wanted",    "mat_mul:wanted",
                           "add:wanted",      "rms_norm:wanted",    "quantize:wanted",    "mat_mul:wanted"}));
  for (size_t i = 0; i + 1 < p.layer.size(); i++) EXPECT_LE(p.layer[i], p.layer[i + 1]);
  EXPECT_EQ(p.info[p.ops[2].in[0]].shape, Shape(DType::F32, {kWidth, kRows}));
  EXPECT_EQ(p.ops[5].in[0], x.id) << "the sum's other summand";
  EXPECT_EQ(p.output(p.ops[16]).name, "add") << "where it was selected to, by its own name";
}

TEST_F(WantedRows, OneRowIsLeftAlone) {
  ProgramBuilder one(*device, 1, 1);
  const Value a = one.rows_input("a", DType::F32, kWidth), sum = one.add(a, a);
  one.output(one.select_rows(sum, one.out_rows_input("wanted")));
  const auto p = std::move(one).finish();
  ASSERT_TRUE(p);
  EXPECT_EQ(ops_of(*p), (std::vector<std::string>{"add:all", "select_rows:wanted"}));
}

TEST_F(WantedRows, WhatTheHostReadsKeepsAllRows) {
  const Value states = b.add(x, x);
  b.output(states);
  b.output(b.select_rows(states, wanted));
  const Program p = finish();
  EXPECT_EQ(ops_of(p), (std::vector<std::string>{"add:all", "select_rows:wanted"}));
}

TEST_F(WantedRows, AnOutputIsWrittenWhereItWasSelectedTo) {
  const Value chosen = b.select_rows(b.add(x, x), wanted);
  b.output(chosen);
  const Program p = finish();
  ASSERT_EQ(ops_of(p), (std::vector<std::string>{"select_rows:wanted", "add:wanted"}));
  EXPECT_EQ(p.ops[1].out[0], chosen.id);
  EXPECT_EQ(p.values[chosen.id].slot, uint32_t(Slot::Output));
}

// Rotating the result of attention needs all of it: three dimensions cannot be selected. So all rows of what
// is multiplied with it are needed, too, but not of what follows.
TEST_F(WantedRows, WhatCannotBeSelectedKeepsItsNeighbours) {
  const Value heads = attention(x);
  const Value product = b.mul(heads, b.split_heads(norm(x), 32));
  b.output(b.select_rows(b.add(x, b.join_heads(product)), wanted));
  const Program p = finish();
  expect_sound(p);
  EXPECT_EQ(ops_of(p), (std::vector<std::string>{"attention:all", "rms_norm:all", "mul:all",
                                                 "select_rows:wanted", "select_rows:wanted", "add:wanted"}));
}

TEST_F(WantedRows, NumbersOfRowsAreNotSelected) {
  const Value table = b.matrix("table", Shape(DType::F32, {kWidth, 10}));
  const Value tokens = b.rows_input("tokens", DType::I32);
  const Value normed = norm(x), embedded = b.embed(table, tokens);
  b.output(b.select_rows(b.add(normed, embedded), wanted));
  const Program p = finish();
  expect_sound(p);
  EXPECT_EQ(ops_of(p), (std::vector<std::string>{"select_rows:wanted", "rms_norm:wanted", "embed:all",
                                                 "select_rows:wanted", "add:wanted"}));
}

TEST_F(WantedRows, ViewsFollow) {
  const Value heads = b.split_heads(norm(x), 32);
  const Value angles = b.rows_input("angles", DType::F32, 32);
  b.output(b.select_rows(b.add(x, b.join_heads(b.rope(heads, angles, RopePairs::Halves))), wanted));
  const Program p = finish();
  expect_sound(p);
  EXPECT_EQ(p.info[heads.id].shape, Shape(DType::F32, {32, 2, kOut}));
  EXPECT_EQ(p.values[heads.id].extent, GIMBAL_OUT_ROWS);
  EXPECT_EQ(ops_of(p), (std::vector<std::string>{"select_rows:wanted", "rms_norm:wanted",
                                                 "select_rows:wanted", "rope:wanted", "add:wanted"}));
}

}  // namespace
}  // namespace gimbal
