// The location of a sequence's positions in a paged cache.
#pragma once

// The page that holds a position of a sequence. Positions and pages come from the runtime, which checks them.
struct Pages {
  const int32_t* table;
  int32_t per_sequence;
  int64_t operator()(int32_t sequence, int32_t position) const {
    return table[int64_t(sequence) * per_sequence + position / kPagePositions];
  }
};
inline Pages pages_of(const CpuTask& t, int input) {
  return {reinterpret_cast<const int32_t*>(t.x[input]), int32_t(t.in[input]->dim[0])};
}

// Bytes of one head in one page: heads and pages are of equal size and contiguous.
inline int64_t head_bytes(const gimbal_value& cache) {
  return int64_t(cache.bytes) / (cache.dim[1] * cache.dim[3]);
}
