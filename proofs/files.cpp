// A GGUF file that says anything: no size wraps around, and no byte outside of the file is read. The header's
// functions (src/files/file_arithmetic.h) for all 64-bit numbers; GgufCursor and GgufParser read by them
// alone.
#include "checker.h"
#include "files/file_arithmetic.h"

using namespace gimbal;

// Any read leaves the position inside the file, whatever was read before: the proof begins at any position.
extern "C" void position_stays_inside() {
  const uint64_t size = nondet_ulong(), at = nondet_ulong(), bytes = nondet_ulong();
  ASSUME(at <= size);
  const auto after = position_after(at, bytes, size);
  if (!after) {
    CLAIM(bytes > size - at);
    return;
  }
  CLAIM(*after >= at && *after <= size && *after - at == bytes);
}

// Entries that pass the check fit into the rest of the file, so their number bounds memory and time. For
// every smallest entry that the parser names: elements of 1, 2, 4 and 8 bytes, 14 for metadata, 37 for
// tensors. Files up to 2^48 bytes.
extern "C" void counted_entries_fit() {
  const uint64_t size = nondet_ulong(), at = nondet_ulong(), count = nondet_ulong();
  ASSUME(at <= size && size <= uint64_t(1) << 48);
  constexpr uint64_t kSmallest[] = {1, 2, 4, 8, 14, 37};
  for (int i = 0; i < 6; i++) {
    if (count > most_entries(at, size, kSmallest[i])) continue;
    uint64_t bytes = 0;
    CLAIM(!overflows_mul(count, kSmallest[i], &bytes));
    CLAIM(bytes <= size - at);
  }
}

// A header grows piece by piece. Its memory is reserved, the loaded bytes fit into the accessible part, and
// the requested bytes are loaded. One step from any state that earlier steps can leave.
extern "C" void header_stays_in_its_memory() {
  const uint64_t size = nondet_ulong(), loaded = nondet_ulong(), end = nondet_ulong();
  ASSUME(loaded < end && end <= size && end <= kMaxHeaderBytes && loaded % kHeaderPiece == 0);
  ASSUME(size <= INT64_MAX);  // off_t
  const HeaderGrowth grown = header_growth(loaded, end, size);
  CLAIM(grown.accessible <= reserved_for_header(size));
  CLAIM(grown.loaded <= grown.accessible && grown.loaded <= size && grown.loaded >= end);
  CLAIM(grown.loaded % kHeaderPiece == 0 || grown.loaded == size || grown.loaded == kMaxHeaderBytes);
}

// Sizes of a tensor. Dimensions up to 2^31 - 1 and rows up to their bytes at 8 bytes a value, as read_dims()
// and row_bytes() give them.
extern "C" void tensor_sizes_do_not_wrap() {
  int64_t dim[4];
  for (int i = 0; i < 4; i++) {
    dim[i] = nondet_long();
    ASSUME(dim[i] >= 1 && dim[i] <= 0x7fffffff);
  }
  const uint64_t row = nondet_ulong(), tail = nondet_ulong();
  ASSUME(row <= uint64_t(0x7fffffff) * 8 && tail <= 64);
  const auto bytes = tensor_bytes(dim, row, tail);
  if (!bytes) return;
  CLAIM(*bytes <= INT64_MAX && *bytes >= tail);
  // StoredTensor::values() multiplies the dimensions as int64_t, and must not overflow.
  int64_t values = 1;
  for (int i = 0; i < 4; i++) values *= dim[i];
  CLAIM(values >= 1);
}

extern "C" void tensors_lie_in_the_file() {
  const uint64_t data = nondet_ulong(), offset = nondet_ulong(), bytes = nondet_ulong(),
                 size = nondet_ulong();
  const auto range = range_in_file(data, offset, bytes, size);
  if (!range) return;
  CLAIM(range->begin <= range->end && range->end <= size);
  CLAIM(range->end - range->begin == bytes && range->begin - data == offset);
}

// The parser compares neighbours in the order of their beginnings: enough for all pairs, as no range is
// empty. Four tensors.
extern "C" void neighbours_suffice() {
  constexpr int kTensors = 4;
  FileRange r[kTensors];
  for (int i = 0; i < kTensors; i++) {
    r[i].begin = nondet_ulong(), r[i].end = nondet_ulong();
    ASSUME(r[i].begin < r[i].end);
    if (i) ASSUME(r[i - 1].begin <= r[i].begin && !overlap(r[i - 1], r[i]));
  }
  for (int a = 0; a < kTensors; a++)
    for (int b = a + 1; b < kTensors; b++) CLAIM(r[a].end <= r[b].begin);
}
