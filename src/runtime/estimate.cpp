#include "runtime/estimate.h"

#include <algorithm>

#include "base/bytes.h"
#include "ops/op.h"

namespace gimbal {
namespace {

uint64_t count(int n) { return uint64_t(std::max(0, n)); }

uint64_t matrix(DType type, uint64_t columns, uint64_t rows) {
  return uint64_t(row_bytes(type, int64_t(align_up(columns, uint64_t(info(type).block))))) * rows;
}

}  // namespace

MemoryEstimate estimate_inference_memory(const ModelDimensions& d) {
  const uint64_t layers = count(d.layers), width = count(d.embedding), ffn = count(d.ffn),
                 head_dim = count(d.head_dim), q = count(d.heads) * head_dim,
                 kv = count(d.kv_heads) * head_dim, vocabulary = count(d.vocabulary);
  const uint64_t pages = (count(d.context) + kPagePositions - 1) / kPagePositions,
                 sequences = count(d.sequences);
  const uint64_t rows = std::min(count(d.batch), count(d.context) * sequences), f32 = sizeof(float);
  MemoryEstimate m;
  const uint64_t table = matrix(d.weights, width, vocabulary);
  const uint64_t attention = matrix(d.weights, width, q + 2 * kv) + matrix(d.weights, q, width);
  const uint64_t feed_forward = matrix(d.weights, width, 2 * ffn) + matrix(d.weights, ffn, width);
  m.weights =
      (d.tied_output ? 1 : 2) * table + layers * (attention + feed_forward) + (2 * layers + 1) * width * f32;
  // Every device stores values in vectors of 16.
  m.cache = layers *
            (matrix(d.cache, head_dim, count(d.kv_heads)) +
             matrix(d.cache, align_up(head_dim, 16), count(d.kv_heads))) *
            kPagePositions * pages * sequences;
  // Alive at the peak, besides the stream itself: queries and keys before and after their rotation and the
  // values; or gate, up and their product, in the last layer for wanted rows only (program/passes.h).
  const uint64_t wanted = std::max<uint64_t>(1, std::min(count(d.logit_rows), rows)),
                 in_attention = 2 * q + 2 * kv, in_feed_forward = 3 * ffn;
  const uint64_t in_layers = d.layers > 1 ? std::max(in_attention, in_feed_forward) : in_attention;
  m.activations = f32 * std::max(rows * (width + in_layers), wanted * (width + in_feed_forward));
  m.step = rows * f32 * (3 + head_dim) + pages * sequences * f32;
  m.output = wanted * vocabulary * f32;
  return m;
}

}  // namespace gimbal
