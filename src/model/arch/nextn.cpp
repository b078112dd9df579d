#include "model/arch/nextn.h"

#include "base/format.h"

namespace gimbal::arch {

void logits_and_states(Recorder& m, Value x) {
  if (!m.wants(Output::States)) return logits(m, rms_norm(m, "output_norm", wanted(m, x)));
  m.no_layer();
  const Value states = rms_norm(m, "output_norm", x);
  m.output(Output::States, states);
  logits(m, wanted(m, states));
}

Nextn begin_nextn(Recorder& m) {
  ProgramBuilder& p = m.p;
  const int width = m.config.width, all = m.config.layers + m.config.left_out;
  const int layer = all - m.hyper.count("nextn_predict_layers");
  m.only_layer(layer);
  const std::string own = format("blk.{}.nextn.embed_tokens.weight", layer);
  const Value table = m.matrix(m.has(own) ? own : "token_embd.weight", width, m.config.vocabulary);
  const Value embedding = p.embed(table, m.tokens()), state = m.states();
  m.layer(layer);
  const Value e = p.split_heads(rms_norm(m, "nextn.enorm", embedding), width),
              h = p.split_heads(rms_norm(m, "nextn.hnorm", state), width);
  return {layer, project(m, "nextn.eh_proj", width, p.join_heads(p.concat(e, h)))};
}

void end_nextn(Recorder& m, const Nextn& n, Value x) {
  std::string norm = format("blk.{}.nextn.shared_head_norm", n.layer),
              head = format("blk.{}.nextn.shared_head_head", n.layer);
  m.no_layer();
  if (!m.has(norm + ".weight")) norm = "output_norm";
  if (!m.has(head + ".weight")) head = m.has("output.weight") ? "output" : "token_embd";
  const Value states = rms_norm(m, norm, x);
  m.output(Output::States, states);
  m.output(Output::Logits, project(m, head, m.config.vocabulary, wanted(m, states)));
}

Status configure_nextn(const Metadata& metadata, const TensorTable& tensors, Config& c) {
  if (auto ok = configure_without_nextn(metadata, tensors, c); !ok) return ok;
  c.left_out += c.layers - 1;
  c.layers = 1;
  return Done{};
}

}  // namespace gimbal::arch
