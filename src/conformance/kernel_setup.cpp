#include "conformance/kernel_setup.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/format.h"
#include "program/builder.h"

namespace gimbal {
namespace {

// Sizes as in models of one to eight billion parameters.
constexpr int kColumns = 2048, kOutputs = 8192;           // of a matrix
constexpr int kHeadDim = 128, kHeads = 32, kKvHeads = 8;  // of attention
constexpr int kPositions = 4096;                          // in the cache
constexpr int kWidth = 4096;                              // of everything that works on rows
constexpr int kVocabulary = 128256, kTopK = 40;
constexpr int kSmallOps = 8;  // in one program, so that starting it does not count
constexpr uint64_t kMostCopies = 4096;

class Recorder {
 public:
  Recorder(const Device& d, OpKind kind, DType format, int rows, uint64_t bytes)
      : device_(d), p_(d, rows, rows), kind_(kind), format_(format), rows_(rows), bytes_(bytes) {}

  Result<KernelSetup> record() && {
    if (auto ok = ops(); !ok) return ok.error();
    auto program = std::move(p_).finish();
    if (!program) return program.error();
    s_.program = std::move(*program);
    const std::vector<gimbal_op> all = std::exchange(s_.program.ops, {});
    std::vector<bool> wanted(s_.program.values.size());
    for (const gimbal_op& op : all)
      if (OpKind(op.kind) == kind_) {
        s_.tested.push_back(op);
        for (int i = 0; i < op.inputs; i++) wanted[op.in[i]] = true;
      }
    for (const gimbal_op& op : all)
      if (OpKind(op.kind) != kind_ && wanted[op.out[0]]) s_.before.push_back(op);
    return std::move(s_);
  }

 private:
  Status ops() {
    switch (kind_) {
      case OpKind::MatMul: mat_mul(); break;
      case OpKind::Embed: {
        s_.shape = format("{} x {}", kColumns, kOutputs);
        Value table = p_.matrix("table", Shape(format_, {kColumns, kOutputs}));
        for (int i = 0; i < kSmallOps; i++) p_.embed(table, whole("tokens", 769 + i, 97, kOutputs));
        break;
      }
      case OpKind::CacheWrite:
      case OpKind::Attention: attention(); break;
      case OpKind::Quantize:  // recorded by the product that wants it
        for (int i = 0; i < kSmallOps; i++)
          p_.linear(p_.matrix("w", Shape(format_ == DType::A8_32 ? DType::Q8_0 : DType::Q6_K, {kWidth, 16})),
                    row(kWidth));
        break;
      case OpKind::Rope: {
        s_.shape = format("{} x {}", kHeads, kHeadDim);
        Value table = row(kHeadDim);
        for (int i = 0; i < kSmallOps; i++)
          p_.rope(p_.split_heads(row(kHeads * kHeadDim), kHeadDim), table, RopePairs::Halves);
        return Done{};
      }
      case OpKind::RmsNorm: {
        Value weight = p_.vector("norm", kWidth);
        for (int i = 0; i < kSmallOps; i++) p_.rms_norm(row(kWidth), weight, 1e-5f);
        break;
      }
      case OpKind::SelectRows: {
        Value which = p_.out_rows_input("rows");
        s_.inputs.push_back({which.id, {}});
        for (int i = 0; i < rows_; i++) s_.inputs.back().whole.push_back(rows_ - 1 - i);
        for (int i = 0; i < kSmallOps; i++) p_.select_rows(row(kWidth), which);
        break;
      }
      case OpKind::SwiGlu: two([&](Value a, Value b) { p_.swiglu(a, b); }); break;
      case OpKind::SquaredReluGlu: two([&](Value a, Value b) { p_.squared_relu_glu(a, b); }); break;
      case OpKind::Add: two([&](Value a, Value b) { p_.add(a, b); }); break;
      case OpKind::Scale:
        for (int i = 0; i < kSmallOps; i++) p_.scale(row(kWidth), 0.5f);
        break;
      case OpKind::TopK:  // as a sampler asks for: of a large vocabulary
        s_.shape = format("{} of {}", kTopK, kVocabulary);
        for (int i = 0; i < kSmallOps; i++) p_.top_k(row(kVocabulary), kTopK);
        break;
      case OpKind::Sort:
        for (int i = 0; i < kSmallOps; i++) p_.sort(row(kWidth), SortOrder::Rising);
        break;
      case OpKind::ArgSort:
        for (int i = 0; i < kSmallOps; i++) p_.argsort(row(kWidth), SortOrder::Falling);
        break;
      default:
        return Error{Code::Unsupported, format("the benchmark has no shape for '{}'", info(kind_).name),
                     "add one to conformance/kernel_setup.cpp"};
    }
    if (s_.shape.empty()) s_.shape = format("{}", kWidth);
    return Done{};
  }

  Value row(int width) {
    Value v = p_.rows_input("x", DType::F32, width);
    s_.inputs.push_back({v.id, {}});
    return v;
  }
  // One number per row: begin, begin + step ..., modulo `below`.
  Value whole(const char* name, int begin, int step, int below) {
    Value v = p_.rows_input(name, DType::I32);
    s_.inputs.push_back({v.id, {}});
    for (int i = 0; i < rows_; i++)
      s_.inputs.back().whole.push_back(int32_t((begin + int64_t(step) * i) % below));
    return v;
  }
  template <class Op>
  void two(Op op) {
    for (int i = 0; i < kSmallOps; i++) {
      Value a = row(kWidth), b = row(kWidth);
      op(a, b);
    }
  }
  int copies(uint64_t size) const {
    return int(std::clamp<uint64_t>((bytes_ + size - 1) / std::max<uint64_t>(size, 1), 1, kMostCopies));
  }

  void mat_mul() {
    s_.shape = format("{} x {}", kColumns, kOutputs);
    const Shape shape(format_, {kColumns, kOutputs});
    Value x = row(kColumns);
    // Memory is what counts for caches: a packed matrix can be larger than the file's.
    const int n = copies(std::min(uint64_t(shape.bytes()), device_.packed_bytes(shape).value_or(UINT64_MAX)));
    for (int i = 0; i < n; i++) p_.linear(p_.matrix(format("w{}", i), shape), x);
  }

  // A few rows follow on a long text; many are a prompt of their own.
  void attention() {
    const bool prompt = rows_ >= 64;
    s_.shape = format("{}/{} heads of {}", kHeads, kKvHeads, kHeadDim);
    const int begin = prompt ? 0 : kPositions - rows_, positions = std::max(kPositions, rows_),
              pages = (positions + kPagePositions - 1) / kPagePositions;
    s_.begin = begin;
    Value position = whole("position", begin, 1, positions), sequence = whole("sequence", 0, 0, 1),
          table = p_.input("pages", Shape(DType::I32, {pages, 1}));
    s_.position = position.id;
    s_.inputs.push_back({table.id, {}});
    for (int i = 0; i < pages; i++) s_.inputs.back().whole.push_back(i);
    Value q = p_.split_heads(row(kHeads * kHeadDim), kHeadDim),
          k = p_.split_heads(row(kKvHeads * kHeadDim), kHeadDim),
          v = p_.split_heads(row(kKvHeads * kHeadDim), kHeadDim);
    const uint64_t size = device_.cache_bytes(format_, true, kHeadDim, kKvHeads, kPagePositions, pages) +
                          device_.cache_bytes(format_, false, kHeadDim, kKvHeads, kPagePositions, pages);
    for (int i = 0, n = copies(size); i < n; i++) {
      Value keys = p_.cache("keys", format_, true, kHeadDim, kKvHeads, pages),
            values = p_.cache("values", format_, false, kHeadDim, kKvHeads, pages);
      p_.cache_write(keys, true, k, position, sequence, table);
      p_.cache_write(values, false, v, position, sequence, table);
      if (kind_ == OpKind::Attention)
        p_.attention(q, keys, values, position, sequence, table, 1 / std::sqrt(float(kHeadDim)));
    }
  }

  const Device& device_;
  ProgramBuilder p_;
  const OpKind kind_;
  const DType format_;
  const int rows_;
  const uint64_t bytes_;
  KernelSetup s_;
};

}  // namespace

std::vector<DType> formats_of(const gimbal_kernel_info& row) {
  const OpKind kind{row.op};
  const DTypeSet set = kind == OpKind::Attention  ? row.in[1].dtypes
                       : kind == OpKind::Quantize ? row.out[0].dtypes
                                                  : row.in[0].dtypes;
  std::vector<DType> all;
  for (DType t : kAllDTypes)
    if (has(set, t)) all.push_back(t);
  return all;
}

Result<KernelSetup> set_up_kernel(const Device& device, OpKind kind, DType format, int rows, uint64_t bytes) {
  return Recorder(device, kind, format, rows, bytes).record();
}

}  // namespace gimbal
