// Inputs of the cases of the tensor library's ops: numbers of every format, and views of them.
#pragma once
#include "ops/defs/tensor_parts.h"
#include "ops/rounding.h"

namespace gimbal::ops {

// How a value lies in its memory. What lies between its elements is 0xff in every byte, so NaN or -1.
enum class Lies {
  Dense,
  Offset,        // behind three other elements
  Turned,        // the last dim is the dense one
  Flipped,       // backwards along every dim
  Stepped,       // every second element of rows with an odd one behind them
  Repeated,      // one element along the first dim
  RepeatedRows,  // one row along the last dim
};
inline constexpr Lies kViews[] = {Lies::Dense,  Lies::Turned,   Lies::Stepped,     Lies::Flipped,
                                  Lies::Offset, Lies::Repeated, Lies::RepeatedRows};
// Those whose elements lie apart, as of a value that is written.
inline constexpr Lies kApart[] = {Lies::Dense, Lies::Stepped, Lies::Turned, Lies::Flipped, Lies::Offset};
const char* name_of(Lies);
// Entry i of a list that begins again behind its end.
template <size_t N>
constexpr Lies nth(const Lies (&list)[N], size_t i) {
  return list[i % N];
}

// The same elements; repeated ones are those at the last index. Not of formats in blocks.
CaseInput laid_out(const CaseInput& dense, Lies);

// The numbers of an op's cases.
inline Numbers numbers_for(OpKind kind, DType t) { return Numbers(uint64_t(kind) * 131 + uint64_t(t)); }

enum class Fill {
  Normal,  // about 1; whole numbers up to 100
  Few,     // many equal ones; floats with NaN, infinities, zeros of both signs and subnormals among them
  Wide,    // of all sizes, to the ends of the format
};
CaseInput numbers(const Shape&, Numbers&, Fill, Lies = Lies::Dense);
// The same numbers in a format, each rounded once.
CaseInput numbers_of(const Shape&, const std::vector<double>&, Lies = Lies::Dense);
// Whole numbers from 0 to `below` - 1, of an integer format.
CaseInput ids(const Shape&, Numbers&, int below, Lies = Lies::Dense);

// A case of these inputs, named after the op, the format and `text`.
Case tensor_case(OpKind, DType named, const std::string& text, std::vector<CaseInput> inputs,
                 const OpParams& params = {});

// The index of an element as the one along a dim, and those before and behind it.
struct Along {
  size_t inner, size;

  Along(const Shape& s, int64_t dim) : inner(1), size(size_t(s.dim[dim])) {
    for (int64_t i = 0; i < dim; i++) inner *= size_t(s.dim[i]);
  }
  // Of element i: the place with index 0 along the dim, of a value with `of` elements along it.
  size_t line(size_t i, size_t of) const { return i % inner + i / inner / size * of * inner; }
  size_t index(size_t i) const { return i / inner % size; }
};

}  // namespace gimbal::ops
