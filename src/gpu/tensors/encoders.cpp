// The launches that encode formats in blocks, with or without an importance.
#include <numeric>

#include "gpu/tensors/block_formats.h"
#include "gpu/tensors/launch.h"
#include "gpu/tensors/launches.h"
#include "tensor/encode/fits.h"
#include "tensor/encode/iq_formats.h"
#include "tensor/encode/levels.h"

namespace gimbal::gpu {
namespace {

// The formats of each kernel, without those of encode.k (ggml's formulas for blocks of 32). With an
// importance, the latter are searched, too: by encode_offsets.k and encode_single.k.
constexpr DTypeSet kFew = set_of(DType::TQ1_0) | set_of(DType::TQ2_0) | set_of(DType::Q1_0) |
                          set_of(DType::Q2_0) | set_of(DType::MXFP4) | set_of(DType::NVFP4),
                   kScaled = set_of(DType::Q3_K) | set_of(DType::Q6_K) | set_of(DType::IQ4_XS),
                   kOffsets = set_of(DType::Q2_K) | set_of(DType::Q4_K) | set_of(DType::Q5_K),
                   kCodebooks = set_of(DType::IQ1_S) | set_of(DType::IQ1_M) | set_of(DType::IQ2_XXS) |
                                set_of(DType::IQ2_XS) | set_of(DType::IQ2_S) | set_of(DType::IQ3_XXS) |
                                set_of(DType::IQ3_S);

// The rows of an op in a format.
struct EncodedRows {
  DType type;
  Operand x;
  int64_t blocks;
  bool weighted;
  Operand weights{};  // of a row's values, if weighted

  // As many blocks for each lane as make whole words.
  int64_t blocks_of_lane() const { return 4 / std::gcd(int64_t(info(type).bytes), int64_t(4)); }
  uint64_t lanes() const { return uint64_t(blocks + blocks_of_lane() - 1) / uint64_t(blocks_of_lane()); }
};

// A launch of such a kernel: operands, of which the table may be empty, and the numbers of the format.
template <class Word>
TensorLaunch launch_of(OpPlan& o, const char* kernel, const EncodedRows& r, const BlockFormat& f,
                       std::span<const Word> table) {
  TensorLaunch l(o, kernel);
  l.read(0, r.x).write(bytes_of(o.out())).row(uint32_t(o.in(0).dim[0]));
  if (!table.empty()) l.read(1, constants(o, table));
  if (r.weighted) l.read(2, r.weights).after_those_before();
  for (uint32_t n : f.number) l.number(n);
  return l;
}
TensorLaunch launch_of(OpPlan& o, const char* kernel, const EncodedRows& r) {
  const BlockFormat f = block_format(r.type);
  return launch_of(o, kernel, r, f, f.table);
}

// ggml's formulas for blocks of 32.
void encode_plainly(OpPlan& o, const EncodedRows& r) {
  const DType t = r.type;
  const bool spans = t == DType::Q4_1 || t == DType::Q5_1;
  const int64_t bits = t == DType::Q8_0 ? 8 : t == DType::Q5_0 || t == DType::Q5_1 ? 5 : 4;
  TensorLaunch l(o, "encode");
  l.read(0, r.x).write(bytes_of(o.out()));
  l.numbers({r.blocks, int64_t(info(t).bytes), bits, spans});
  l.launch(uint64_t(r.blocks + 1) / 2);
}

void encode_few(OpPlan& o, const EncodedRows& r) {
  const DType t = r.type;
  const int64_t rule = t == DType::TQ1_0                        ? 1
                       : t == DType::Q1_0                       ? 2
                       : t == DType::MXFP4 || t == DType::NVFP4 ? 3
                                                                : 0;
  TensorLaunch l = launch_of(o, "encode_few", r);
  l.numbers({rule, t == DType::NVFP4 ? 16 : info(t).block, r.blocks_of_lane(), r.blocks});
  l.launch(r.lanes());
}

struct ScaledFormat {
  float least, most, first_level, last_level;
  std::span<const float> factors;
};
ScaledFormat scaled_format(DType t) {
  if (t == DType::Q6_K) return {-128, 127, -32, 31, encoding::kFactors6};
  if (t == DType::Q3_K) return {-32, 31, -4, 3, encoding::kFactors3};
  return {-32, 31, encoding::NonLinear::first, encoding::NonLinear::last, encoding::kFactorsNonLinear};
}

void encode_scaled(OpPlan& o, const EncodedRows& r) {
  const ScaledFormat s = scaled_format(r.type);
  TensorLaunch l = launch_of(o, "encode_scaled", r);
  l.numbers({r.blocks_of_lane(), r.blocks});
  for (float v : {s.least, s.most, s.first_level, s.last_level}) l.number(v);
  l.number(uint32_t(s.factors.size()));
  for (float v : s.factors) l.number(v);
  l.launch(r.lanes());
}

struct OffsetFormat {
  int64_t top, most, rounds;
  std::span<const float> covers, shifts;
};
OffsetFormat offset_format(DType t) {
  constexpr int64_t kRounds = encoding::kOffsetRoundsOf32;
  if (t == DType::Q4_1) return {15, 1, kRounds, encoding::kCoversOf4, encoding::kShiftsOf4};
  if (t == DType::Q5_1) return {31, 1, kRounds, encoding::kCoversOf5, encoding::kShiftsOf5};
  if (t == DType::Q2_K) return {3, 15, 2, encoding::kCovers2, encoding::kShifts2};
  if (t == DType::Q4_K) return {15, 63, 1, encoding::kCovers4, encoding::kShifts4};
  return {31, 63, 1, encoding::kCovers5, encoding::kShifts5};
}

void encode_offsets(OpPlan& o, const EncodedRows& r) {
  const OffsetFormat f = offset_format(r.type);
  TensorLaunch l = launch_of(o, "encode_offsets", r);
  l.numbers({f.top, f.most, r.blocks, f.rounds, encoding::unit_rounds(int(f.most)), int64_t(f.covers.size()),
             int64_t(f.shifts.size())});
  for (float v : f.covers) l.number(v);
  for (float v : f.shifts) l.number(v);
  l.launch(uint64_t(r.blocks));
}

struct SingleFormat {
  float first_level, last_level;
  std::span<const float> factors;
};
SingleFormat single_format(DType t) {
  if (t == DType::Q4_0) return {-8, 7, encoding::kFactors4};
  if (t == DType::Q5_0) return {-16, 15, encoding::kFactors5};
  return {encoding::NonLinear::first, encoding::NonLinear::last, encoding::kFactorsNonLinear};
}

void encode_single(OpPlan& o, const EncodedRows& r) {
  const SingleFormat f = single_format(r.type);
  TensorLaunch l = launch_of(o, "encode_single", r);
  l.numbers({r.blocks_of_lane(), r.blocks});
  for (float v : {f.first_level, f.last_level}) l.number(v);
  l.number(uint32_t(f.factors.size()));
  for (float v : f.factors) l.number(v);
  l.launch(r.lanes());
}

// The words of kernels/encode_codebook.k: first scales, then the points next to each choice of levels, each
// as its number above 16 bits with its levels.
std::vector<uint32_t> search_table(const encoding::Codebook& book, const encoding::FirstScales& first,
                                   std::span<const uint16_t> grid) {
  std::vector<uint32_t> words;
  words.reserve(64 + book.neighbours.size());
  for (const auto& factors : {first.rough, first.of_rough, first.of_covering})
    for (float v : factors) words.push_back(std::bit_cast<uint32_t>(v));
  for (uint16_t point : book.neighbours) words.push_back(uint32_t(point) << 16 | grid[point]);
  return words;
}

template <class Levels>
void encode_coded(OpPlan& o, const EncodedRows& r, const encoding::CodedFormat<Levels>& f) {
  const BlockFormat format = block_format(r.type);
  const encoding::Codebook& book = f.book();
  const std::vector<uint32_t> words = search_table(book, f.first, format.table);
  TensorLaunch l = launch_of(o, "encode_codebook", r, format, std::span(words));
  const std::span<const float> levels = f.levels[0]->at;
  const size_t last = levels.size() - 1;
  const float apart = levels[1] - levels[0];
  l.numbers({r.blocks_of_lane(), r.blocks, book.near, int64_t(last)});
  l.number(apart), l.number(levels[last] - (levels[0] + apart * float(last)));
  l.numbers({f.levels[1] ? 2 : 1, f.each_part});
  l.number(levels[0]), l.number(f.levels[1] ? f.levels[1]->at[0] : 0);
  l.numbers({f.most}), l.number(f.divisor);
  for (const auto& factors : {f.first.rough, f.first.of_rough, f.first.of_covering})
    l.number(uint32_t(factors.size()));
  l.launch(r.lanes());
}
void encode_codebook(OpPlan& o, const EncodedRows& r) {
  switch (r.type) {
    case DType::IQ1_S: return encode_coded(o, r, encoding::kIq1S);
    case DType::IQ1_M: return encode_coded(o, r, encoding::kIq1M);
    case DType::IQ2_XXS: return encode_coded(o, r, encoding::kIq2Xxs);
    case DType::IQ2_XS: return encode_coded(o, r, encoding::kIq2Xs);
    case DType::IQ2_S: return encode_coded(o, r, encoding::kIq2S);
    case DType::IQ3_XXS: return encode_coded(o, r, encoding::kIq3Xxs);
    default: return encode_coded(o, r, encoding::kIq3S);
  }
}

// The weights that an importance gives the values of a row.
Operand weights_of(OpPlan& o, const gimbal_value& importance, int64_t block) {
  const int64_t n = importance.dim[0];
  const Operand weights = scratch(o, DType::F32, n);
  TensorLaunch l(o, "encode_weights");
  l.read(0, operand(importance)).write(weights);
  l.numbers({block});
  l.launch(uint64_t(n / block));
  return weights;
}

}  // namespace

void plan_encode(OpPlan& o) {
  const DType t = DType(o.out().dtype);
  const Operand x = operand(o.in(0));
  EncodedRows r{t, x, x.count() / info(t).block, o.op.inputs > 1};
  // There the importance plays no part (tensor/quant_encode.cpp).
  if (has(kFew, t) || t == DType::Q8_0) r.weighted = false;
  if (r.weighted) r.weights = weights_of(o, o.in(1), info(t).block);
  const bool offset = t == DType::Q4_1 || t == DType::Q5_1;
  if (has(kFew, t)) encode_few(o, r);
  else if (has(kScaled, t)) encode_scaled(o, r);
  else if (has(kCodebooks, t)) encode_codebook(o, r);
  else if (has(kOffsets, t) || (r.weighted && offset)) encode_offsets(o, r);
  else if (t == DType::IQ4_NL || r.weighted) encode_single(o, r);
  else encode_plainly(o, r);
}

}  // namespace gimbal::gpu
