#include "model/arch/decoder.h"

#include "base/format.h"

namespace gimbal::arch {
namespace {

enum class Bias { None, MayBe, Needed };

// One projection: <name>.weight with what belongs to it.
Value project(Recorder& m, const Decoder& d, const std::string& name, int columns, int rows, Value x,
              Bias bias) {
  Value w = m.matrix(name + ".weight", columns, rows);
  if (d.scales)
    if (auto s = m.optional_number(name + ".scale")) return m.p.scale(m.p.linear(w, x), *s);
  if (bias == Bias::None) return m.p.linear(w, x);
  if (bias == Bias::Needed) return m.p.linear(w, x, m.vector(name + ".bias", rows));
  return m.p.linear(w, x, m.optional_vector(name + ".bias", rows));
}

}  // namespace

void record_decoder(Recorder& m, const Decoder& d) {
  const Config& c = m.config;
  ProgramBuilder& p = m.p;
  const int q_width = c.heads * c.head_dim, kv_width = c.kv_heads * c.head_dim;
  const auto scale = float(1 / __builtin_sqrt(double(c.head_dim)));
  const Bias qkv = d.qkv_bias ? Bias::Needed : Bias::MayBe;
  auto norm = [&](Value x, const char* name, int width) {
    return p.rms_norm(x, m.vector(name, width), c.norm_epsilon);
  };

  Value table = m.matrix("token_embd.weight", c.width, c.vocabulary);
  Value x = m.embedded(table);
  for (int i = 0; i < c.layers && !m.failed(); i++) {
    m.layer(i);
    Value h = norm(x, "attn_norm.weight", c.width);
    Value q = project(m, d, "attn_q", c.width, q_width, h, qkv);
    Value k = project(m, d, "attn_k", c.width, kv_width, h, qkv);
    Value v = project(m, d, "attn_v", c.width, kv_width, h, qkv);
    Value a = m.self_attention(q, k, v, scale);
    if (d.sub_norms) a = norm(a, "attn_sub_norm.weight", q_width);
    x = p.add(x, project(m, d, "attn_output", q_width, c.width, a, Bias::MayBe));

    h = norm(x, "ffn_norm.weight", c.width);
    Value gate = project(m, d, "ffn_gate", c.width, c.ff_width, h, Bias::None);
    Value up = project(m, d, "ffn_up", c.width, c.ff_width, h, Bias::None);
    h = (p.*d.gated)(gate, up);
    if (d.sub_norms) h = norm(h, "ffn_sub_norm.weight", c.ff_width);
    x = p.add(x, project(m, d, "ffn_down", c.ff_width, c.width, h, Bias::None));
  }
  m.no_layer();
  x = p.select_rows(x, m.wanted_rows());
  x = norm(x, "output_norm.weight", c.width);
  // Without an output matrix of its own, the model reads its answer off the embedding table.
  Value head = m.has("output.weight") ? m.matrix("output.weight", c.width, c.vocabulary) : table;
  m.output(Output::Logits, p.linear(head, x));
  if (m.wants(Output::Hidden)) m.output(Output::Hidden, x);
}

Status configure_decoder(const Gguf& file, Config& c, RopePairs pairs) {
  c.rope_pairs = pairs;
  if (file.unsigned_integer(c.arch + ".expert_count").value_or(0) > 0)
    return Error{Code::Unsupported,
                 format("{}: a mixture of experts ({}.expert_count) is not computed by this version",
                        file.path(), c.arch),
                 ""};
  if (auto v = file.unsigned_integer(c.arch + ".attention.value_length"); v && int64_t(*v) != c.head_dim)
    return Error{Code::Unsupported,
                 format("{}: values of {} per head with keys of {} are not computed by this version",
                        file.path(), *v, c.head_dim),
                 ""};
  return Done{};
}

}  // namespace gimbal::arch
