// embed(table[d, v], tokens i32[R]) -> f32[d, R]: row `token` of the table, decoded.
#include "ops/defs/parts.h"

namespace gimbal::ops {

constinit const OpDef Embed = {
    .inputs = {{"table", Role::Weight}, {"tokens", Role::Rows}},
    .operations = 1,
    .shape = [](const ShapeCall& c) -> Result<Shape> {
      if (c.in[0].rank != 2) return c.refuse("the table must be a matrix");
      if (!is_index_row(c.in[1])) return c.refuse("tokens must be one row of i32");
      return Shape(DType::F32, {c.in[0].dim[0], c.in[1].dim[0]});
    },
    .cost =
        [](Cost& c, std::span<const Shape> in, const Shape&, int64_t) {
          c.bytes_read = double(row_bytes(in[0].type, in[0].dim[0])) * double(in[1].dim[0]);
        },
};

constinit const OpCheck EmbedCheck = {
    .reference =
        [](const reference::Call& c) {
          const auto d = size_t(c.out.shape.dim[0]);
          for (size_t i = 0; i < c.computed; i++) c.put(i, c.x(0)[size_t(c.x(1)[i / d]) * d + i % d]);
        },
    .tolerance = roundings<0>,  // decoding a block is defined to the bit: tensor/quant
    .cases =
        [](DType table) {
          return row_cases(OpKind::Embed, table, [table](Case& c, int width, Numbers& n) {
            if (!can_decode(table) || width % info(table).block) return false;
            std::vector<int32_t> tokens;
            for (int r = 0; r < c.capacity; r++) tokens.push_back((r * 17 + 20) % 37);
            c.inputs = {weights(Shape(table, {width, 37}), n),
                        integers(Shape(DType::I32, {c.capacity}), tokens)};
            return true;
          });
        },
    .bench =
        [](DType table, int rows, int copy) {
          return Bench{format("{} x {}", kBenchColumns, kBenchOutputs),
                       {{Shape(table, {kBenchColumns, kBenchOutputs}), {}},
                        bench_integers(rows, 769 + copy, 97, kBenchOutputs)}};
        },
};

}  // namespace gimbal::ops
