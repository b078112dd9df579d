#include "model/arch/blocks.h"

namespace gimbal::arch {

SparseLayers read_sparse(Recorder& m, UsualRouting usual) {
  Hyperparameters& h = m.hyper;
  const char* width = "expert_shared_feed_forward_length";
  SparseLayers l{h.count("leading_dense_block_count", 0, 0), read_experts(m, usual), 0};
  l.shared = h.has(width) ? h.count(width, {}, 0)
                          : bounded(m, "expert_shared_count and the width of an expert",
                                    int64_t(h.count("expert_shared_count", 0, 0)) * l.experts.width);
  return l;
}

Value sparse_feed_forward(Recorder& m, const SparseLayers& l, int layer, Value x, float shared_limit) {
  if (layer < l.dense) return glu(m, x);
  const Value mixed = mixture(m, l.experts, x);
  return l.shared ? m.p.add(mixed, glu(m, x, OpKind::SwiGlu, "_shexp", l.shared, shared_limit)) : mixed;
}

}  // namespace gimbal::arch
