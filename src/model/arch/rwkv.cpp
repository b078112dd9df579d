#include "model/arch/rwkv.h"

#include "base/format.h"

namespace gimbal::arch {

WkvSizes read_wkv(Recorder& m) {
  const int head = m.hyper.count("wkv.head_size"), width = m.config.width;
  if (width % head == 0) return {head, width / head};
  m.hyper.fail(Code::Malformed, format("{}: embedding_length {} is not a multiple of wkv.head_size {}",
                                       m.config.arch, width, head));
  return {width, 1};
}

// A convolution of two taps: 1 for the row before, -1 for the row itself.
Value step_back(Recorder& m, const std::string& name, Value x) {
  const int d = width_of(m, x);
  std::vector<float> taps;
  for (int i = 0; i < d; i++) taps.insert(taps.end(), {1, -1});
  const LayerState s = layer_state(m, name, d);
  return m.p.record(OpKind::ShortConv, {x, m.constant(format("step back {}", d), std::move(taps)), s.values,
                                        s.sequences, s.pages});
}

Value blended(Recorder& m, Value x, Value back, Value weights) {
  return m.p.add(x, m.p.norm(back, NormKind::None, 0, weights));
}

Value times(Recorder& m, Value x, const std::string& name) {
  return m.p.norm(x, NormKind::None, 0, m.vector(name + ".weight", width_of(m, x)));
}

Value normed_heads(Recorder& m, Value y) {
  constexpr float kEpsilon = 64e-5f;  // no key of GGUF's files has it
  const int d = int(m.p.shape(y).dim[0] * m.p.shape(y).dim[1]);
  return m.p.join_heads(m.p.norm(y, NormKind::Layer, kEpsilon, m.vector("time_mix_ln.weight", d),
                                 m.vector("time_mix_ln.bias", d)));
}

Value channel_mix(Recorder& m, Value x) {
  const Value k = project(m, "channel_mix_key", ff_width(m, 0), x);
  return project(m, "channel_mix_value", width_of(m, x), m.p.map(OpKind::SquaredRelu, k));
}

void record_rwkv(Recorder& m, const std::function<Value(Recorder&, int layer, Value x)>& layer) {
  Value x = layer_norm(m, "token_embd_norm", token_embedding(m));
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    x = layer(m, i, x);
  }
  logits(m, layer_norm(m, "output_norm", wanted(m, x)));
}

void record_rwkv_in_llama(Recorder& m, const std::function<Value(Recorder&, Value x)>& mix) {
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    x = m.p.add(x, mix(m, rms_norm(m, "attn_norm", x)));
    x = m.p.add(x, glu(m, rms_norm(m, "ffn_norm", x)));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

}  // namespace gimbal::arch
