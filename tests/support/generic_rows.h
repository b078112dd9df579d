// The rows of a device that compute whatever no faster row does.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "base/format.h"
#include "ops/op_def.h"
#include "program/builder.h"
#include "program/place.h"
#include "tensor/format.h"

namespace gimbal::test {

// The rows of one variant ("cpu.baseline", "vulkan.gpu") can be chosen for lookups, products and products by
// expert of every format of tensor/formats.def, in sizes that no fast row is made for: one block and many,
// one output and many, one row and many. Computes nothing: the conformance suite runs each row.
inline void check_generic_rows(const Device& device, const std::string& variant) {
  const KernelPreference these_alone{{variant + ".*"}, false, true};
  for (const DType type : kAllDTypes) {
    if (!is_weight(format_of(type))) continue;
    const int block = std::max(info(type).block, info(activation_type(type)).block);
    for (const auto& [blocks, outputs, rows] :
         {std::tuple(1, 1, 1), {1, 3, 5}, {7, 17, 33}, {1, 100003, 1}, {3, 5, 4097}}) {
      SCOPED_TRACE(format("{}: {} blocks, {} outputs, {} rows", info(type).name, blocks, outputs, rows));
      ProgramBuilder b(device, rows, rows);
      const int columns = blocks * block, experts = 4;
      const Value x = b.rows_input("x", DType::F32, columns), tokens = b.rows_input("tokens", DType::I32);
      b.output(b.embed(b.matrix("table", Shape(type, {columns, outputs})), tokens));
      b.output(b.linear(b.matrix("weights", Shape(type, {columns, outputs})), x));
      const Value routes = b.route(b.rows_input("scores", DType::F32, experts), {2});
      b.output(b.expert_linear(b.matrix("experts", Shape(type, {columns, outputs * experts})), outputs, x,
                               routes));
      auto program = std::move(b).finish();
      ASSERT_TRUE(program) << program.error().message;
      const auto choices = assign_kernels(*program, device, these_alone);
      EXPECT_TRUE(choices) << choices.error().message;
    }
  }
}

}  // namespace gimbal::test
