// Pages of KV caches: their numbers and sizes for every setting and model that the checks of
// runtime/model_plan.cpp and model/config.cpp let through, and the places of numbers inside a page. Reads
// src/model/state.cpp and src/packing/layout.h as they are.
#include "checker.h"
#include "model/state.cpp"
#include "packing/layout.h"

using namespace gimbal;

// The limits of check() in runtime/model_plan.cpp, and of config.cpp.
constexpr int kMaxContext = 1 << 24, kMaxSequences = 65536, kMaxBatch = 65536, kMaxPages = 1 << 22;
constexpr int kMaxHeadDim = 1 << 16, kMaxWidth = 1 << 24;

extern "C" void pages_stay_in_their_limit() {
  StatePool pool;
  const int sequences = nondet_int(), context = nondet_int(), batch = nondet_int();
  const int64_t positions = nondet_long();
  ASSUME(sequences >= 1 && sequences <= kMaxSequences && context >= 1 && context <= kMaxContext);
  ASSUME(batch >= 1 && batch <= kMaxBatch);
  const int64_t each = int64_t(context + kPagePositions - 1) / kPagePositions;
  ASSUME(each * sequences <= kMaxPages);
  ASSUME(positions >= 0 && positions <= each * kPagePositions * sequences);
  pool.kind = nondet_bool() ? StateKind::Paged : StateKind::Recurrent;
  pool.window = nondet_int();
  ASSUME(pool.window >= 0);
  const StatePool made = sized(pool, sequences, context, positions, batch, nondet_bool());
  CLAIM(made.pages >= 0 && made.pages <= kMaxPages && made.table >= 1 && made.table <= kMaxContext / 64);
}

static DType any_cache_type() {
  const int i = nondet_int();
  ASSUME(i >= 0 && i <= int(DType::IQ4_NL));
  return DType(i);
}

extern "C" void caches_do_not_wrap() {
  const DType type = any_cache_type();
  const bool is_key = nondet_bool();
  const int64_t head_dim = nondet_int(), heads = nondet_int(), pages = nondet_int();
  ASSUME(head_dim >= 1 && head_dim <= kMaxHeadDim && heads >= 1 && heads <= kMaxWidth);
  ASSUME(pages >= 1 && pages <= kMaxPages);
  ASSUME(heads * head_dim <= kMaxWidth);
  const int64_t bytes = packing::cache_bytes(type, is_key, head_dim, heads, pages);
  CLAIM(bytes > 0);
}
