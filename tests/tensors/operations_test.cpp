// docs/operations.md is made of the tables: functions of ops/maps.def, ops of ops/ops.def, and what the
// kernels of the CPU and of GPUs claim. After a change of a table, GIMBAL_UPDATE_DOCS=1 operations_test
// writes it again.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "device/tensor_claims.h"
#include "discovery/registry.h"
#include "engine/backend_places.h"
#include "gpu/tensors/launches.h"
#include "ops/maps.h"
#include "ops/op_def.h"

namespace gimbal {
namespace {

// What users call an op, and the test that compares its results with other people's numbers.
struct OperationWords {
  const char *calls, *proof;
};
const std::map<OpKind, OperationWords>& words() {
  static const std::map<OpKind, OperationWords> all = {
      {OpKind::Map, {"`map`, operators", "maps_test, golden_tensors_test"}},
      {OpKind::Cast, {"`to`, `copy`, `contiguous`, `full`", "golden_tensors_test"}},
      {OpKind::Assign, {"`fill_`, `copy_`, `cat`, `stack`, `pad`, `roll`", "golden_tensors_test"}},
      {OpKind::Select, {"`where`", "golden_tensors_test"}},
      {OpKind::Reduce, {"`sum`, `mean` and the like, pools", "golden_tensors_test"}},
      {OpKind::Softmax, {"`softmax`, `log_softmax`", "golden_tensors_test"}},
      {OpKind::Normalize, {"`layer_norm`, `rms_norm`", "golden_tensors_test"}},
      {OpKind::CumSum, {"`cumsum`", "golden_tensors_test"}},
      {OpKind::Gather, {"`gather`, `index_select`, `top_k`, `upsample_nearest`", "golden_tensors_test"}},
      {OpKind::Scatter, {"`scatter`, `scatter_add`, `index_add`", "golden_tensors_test"}},
      {OpKind::CheckIds, {"all that take ids", "golden_tensors_test"}},
      {OpKind::Product, {"`matmul`, `linear`", "golden_tensors_test"}},
      {OpKind::Conv, {"`conv`, `conv_transpose`", "golden_tensors_test"}},
      {OpKind::Resample, {"`upsample_bilinear2d`", "golden_tensors_test"}},
      {OpKind::Random, {"`Generator`", "golden_tensors_test"}},
      {OpKind::Order, {"`argsort`, `sort`, `top_k`", "golden_tensors_test"}},
      {OpKind::Custom, {"`custom_op`", "custom_op_test; `Custom::verify` by the user's reference"}},
      {OpKind::CustomInPlace, {"`custom_op` in place", "custom_op_test; `Custom::verify`"}},
      {OpKind::Encode, {"`to` a quantized format, `quantize`", "blocks_test (ggml's bytes or error)"}},
      {OpKind::IndexedProduct, {"`linear_indexed`", "blocks_test"}},
      {OpKind::SolveTriangular, {"`solve_triangular`", "linear_algebra_test (NumPy)"}},
      {OpKind::Cholesky, {"`cholesky`", "linear_algebra_test (NumPy)"}},
      {OpKind::Qr, {"`qr`", "linear_algebra_test (NumPy)"}},
  };
  return all;
}

// Groups of formats by name, and the others one by one.
std::string formats(DTypeSet set) {
  std::string out;
  auto take = [&](DTypeSet group, const char* name) {
    if ((set & group) != group) return;
    out += (out.empty() ? "" : ", ") + std::string(name);
    set &= ~group;
  };
  take(kNumbers, "all numbers"), take(kFloats, "floats"), take(kIntegers, "integers");
  if (const DTypeSet blocks = set & ~kNumbers) take(blocks, "blocks");
  if (set) out += (out.empty() ? "" : ", ") + names_of(set);
  return out;
}

// The union of what the kernels of an op claim.
struct Claims {
  DTypeSet in[GIMBAL_MAX_INPUTS] = {}, out = 0;
  bool views = true;
  int kernels = 0;
};
void take(Claims& all, const gimbal_kernel_info& k) {
  for (int i = 0; i < GIMBAL_MAX_INPUTS; i++) {
    all.in[i] |= k.in[i].dtypes;
    if (k.in[i].dtypes && !k.in[i].strided) all.views = false;
  }
  all.out |= k.out[0].dtypes;
  all.kernels++;
}
Claims claims_of(const Device& d, OpKind op) {
  Claims all;
  for (uint16_t r : d.kernels_for(uint16_t(op))) take(all, d.kernel(r));
  return all;
}
// The rows that every GPU backend with kernels of tensors has.
Claims claims_of_gpus(OpKind op) {
  gpu::Rows rows;
  gpu::add_tensor_rows(rows, "gpu");
  Claims all;
  for (const gpu::Row& r : rows.rows)
    if (OpKind(r.info.op) == op) take(all, r.info);
  return all;
}
// What GPUs take of what the CPU takes.
std::string gpu_words(OpKind op, const Claims& cpu, const Claims& gpu) {
  if (op == OpKind::Custom) return "kernel texts of f32, f16, bf16";  // rows that a program adds
  if (gpu.kernels == 0) return "no";
  DTypeSet lacking = 0;
  for (int i = 0; i < GIMBAL_MAX_INPUTS; i++) lacking |= cpu.in[i] & ~gpu.in[i];
  lacking |= cpu.out & ~gpu.out;
  return lacking ? "but " + formats(lacking) : "yes";
}
std::string operands(const Claims& c) {
  std::string in;
  for (int i = 0; i < GIMBAL_MAX_INPUTS && c.in[i]; i++) in += (i ? "; " : "") + formats(c.in[i]);
  return in;
}

std::string page(const Device& d) {
  std::ostringstream out;
  out << "# Operations of tensors\n\n"
         "Made of the tables by `operations_test`, which fails when this page differs from them; write it "
         "again with\n"
         "`GIMBAL_UPDATE_DOCS=1 build/release/tests/operations_test`. [tensors.md](tensors.md) has the "
         "rules.\n\n"
         "Every kernel has a form for each instruction set of the CPU, with the same bits. The column GPU is "
         "for all GPU\n"
         "backends and the emulator. The CPU computes the others, or a strict queue gives an error.\n\n"
         "Formats: floats are f16, bf16, f32 and f64; integers u8, i16, i32, u32 and i64; all numbers are "
         "these with bool, and with i8, u16, u64\n"
         "and f8, which are stored only; blocks are the quantized formats of weights but i2_s.\n\n"
         "## Functions\n\n"
         "`x.map(\"exp\")`, in Python also `x.exp()`. Halves are computed in f32 and rounded once. Error: of "
         "f32, in units of the last\n"
         "place; 0: rounded right, or exact.\n\n"
         "| function | operands | numbers | formats | result | error | GPU "
         "|\n|---|--:|--:|---|---|--:|---|\n";
  for (const MapFacts& f : kMaps)
    out << "| " << f.name << " | " << int(f.inputs) << " | " << int(f.numbers) << " | "
        << formats(formats_of(f)) << " | " << (f.to_bool ? "bool" : "as the operands") << " | " << int(f.ulps)
        << " | " << formats(formats_of(f) & claims_of_gpus(OpKind::Map).in[0]) << " |\n";
  out << "\n## Kernels\n\n"
         "Views: operands of any strides are read in place; otherwise they are copied first, which `explain` "
         "shows.\n\n"
         "| op | calls | operands | result | views | GPU | proof |\n|---|---|---|---|---|---|---|\n";
  for (OpKind op : kAllOps) {
    if (!is_tensor_op(op)) continue;
    const auto& w = words().at(op);
    Claims c = claims_of(d, op);
    std::string in = operands(c);
    if (c.kernels == 0) in = "all numbers", c.out = kNumbers;  // custom ones, whose rows are the program's
    out << "| " << info(op).name << " | " << w.calls << " | " << in << " | " << formats(c.out) << " | "
        << (c.views ? "yes" : "no") << " | " << gpu_words(op, c, claims_of_gpus(op)) << " | " << w.proof
        << " |\n";
  }
  return out.str();
}

TEST(Operations, ThePageIsThatOfTheTables) {
  Registry all(backend_places());
  DeviceRequest r;
  r.backend = "cpu", r.strict = true;
  auto opened = all.open(r);
  ASSERT_TRUE(opened) << opened.error().message;
  const std::string want = page(*opened->device), path = GIMBAL_SOURCE_DIR "/docs/operations.md";
  if (std::getenv("GIMBAL_UPDATE_DOCS")) std::ofstream(path) << want;
  std::ifstream file(path);
  const std::string found((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(found, want) << "write it again: GIMBAL_UPDATE_DOCS=1 operations_test";
}

TEST(Operations, EveryOpHasWordsAndKernels) {
  for (OpKind op : kAllOps) EXPECT_EQ(words().contains(op), is_tensor_op(op)) << info(op).name;
}

}  // namespace
}  // namespace gimbal
