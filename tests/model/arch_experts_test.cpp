// Architectures with experts, windows, latent attention and layers that share what they remember: numbers and
// tensors that make no sense are refused with words.
#include "support/refused.h"

namespace gimbal::test {
namespace {

// The feed-forward layer as `experts` of 6 values, of which `used` are chosen; `files`: that the tensors
// have.
void mix(TinyLlama& s, uint32_t experts, uint32_t used, uint64_t files) {
  for (const char* name : {"gate", "up", "down"})
    s.tensors.erase(std::string("blk.0.ffn_") + name + ".weight");
  s.u32("expert_count", experts), s.u32("expert_used_count", used), s.u32("expert_feed_forward_length", 6);
  tensor(s, "blk.0.ffn_gate_inp.weight", {8, files});
  tensor(s, "blk.0.ffn_gate_exps.weight", {8, 6, files});
  tensor(s, "blk.0.ffn_up_exps.weight", {8, 6, files});
  tensor(s, "blk.0.ffn_down_exps.weight", {6, 8, files});
}

TEST(Arch, RefusesExpertsAndWindowsThatMakeNoSense) {
  auto experts = [](uint32_t n, uint32_t used, uint64_t files) {
    return [=](TinyLlama& s) { mix(s, n, used, files); };
  };
  auto head_norms = [](TinyLlama& s) {
    tensor(s, "blk.0.attn_q_norm.weight", {4}), tensor(s, "blk.0.attn_k_norm.weight", {4});
  };
  auto qwen = [=](uint32_t n, uint32_t used, uint64_t files) {
    return as("qwen3moe", [=](TinyLlama& s) { head_norms(s), mix(s, n, used, files); });
  };
  auto window = [](uint32_t n) { return [=](TinyLlama& s) { s.u32("attention.sliding_window", n); }; };
  auto with = [](auto first, auto then) { return [=](TinyLlama& s) { first(s), then(s); }; };
  auto count = [](const char* key, uint32_t n) { return [=](TinyLlama& s) { s.u32(key, n); }; };
  auto pattern = [](std::vector<uint8_t> values) {
    return [=](TinyLlama& s) { flags(s, "attention.sliding_window_pattern", values); };
  };
  auto latent = [](TinyLlama& s) {
    mix(s, 4, 2, 4), s.u32("attention.kv_lora_rank", 4), s.u32("expert_shared_count", 1);
  };
  auto swa = with(window(8), count("attention.key_length_swa", 4));
  const std::vector<Refused> all = {
      {"no experts", qwen(0, 1, 1), Code::Malformed, {"expert_count", "0"}},
      {"none used", qwen(4, 0, 4), Code::Malformed, {"expert_used_count", "0"}},
      {"more used than there are", qwen(4, 5, 4), Code::Malformed, {"expert_used_count is 5", "4 experts"}},
      {"more used than kernels choose", qwen(70, 65, 70), Code::Unsupported, {"64"}},
      {"tensors of 3 experts, not 4", qwen(4, 2, 3), Code::Malformed, {"ffn_gate_inp", "8 x 3", "8 x 4"}},
      {"an expert too narrow",
       as("qwen3moe",
          [=](TinyLlama& s) {
            head_norms(s), mix(s, 4, 2, 4), tensor(s, "blk.0.ffn_up_exps.weight", {8, 5, 4});
          }),
       Code::Malformed,
       {"ffn_up_exps", "8 x 5 x 4", "8 x 6 x 4"}},
      {"qwen2moe without biases", as("qwen2moe", experts(4, 2, 4)), Code::Malformed, {"attn_q.bias"}},
      {"a gating of this year",
       as("phimoe", with(experts(4, 2, 4), count("expert_gating_func", 4))),
       Code::Unsupported,
       {"expert_gating_func is 4"}},
      {"olmoe, norms by head",
       as("olmoe", with(experts(4, 2, 4), head_norms)),
       Code::Malformed,
       {"attn_q_norm", "4 x 1"}},
      {"granitemoe without experts",
       as("granitemoe", [](TinyLlama& s) { s.f32("logit_scale", 1); }),
       Code::Malformed,
       {"expert_count"}},
      {"4 experts in 3 groups",
       as("glm4moe", with(experts(4, 2, 4), with(count("expert_group_count", 3),
                                                 with(count("expert_group_used_count", 1),
                                                      [](TinyLlama& s) {
                                                        s.tensors.erase("blk.0.ffn_norm.weight");
                                                        tensor(s, "blk.0.post_attention_norm.weight", {8});
                                                      })))),
       Code::Malformed,
       {"groups"}},
      {"glm4moe with layers for guesses only",
       as("glm4moe", count("nextn_predict_layers", 1)),
       Code::Malformed,
       {"nextn_predict_layers"}},
      {"an absurd shared expert",
       as("glm4moe", with(experts(4, 2, 4), count("expert_shared_count", 1 << 24))),
       Code::Malformed,
       {"expert_shared_count", "more than any model"}},
      {"deepseek2 without a latent size",
       as("deepseek2", experts(4, 2, 4)),
       Code::Malformed,
       {"kv_lora_rank"}},
      {"deepseek2, all rotated", as("deepseek2", latent), Code::Malformed, {"4 values", "4 are rotated"}},
      {"deepseek2, absurd heads",
       as("deepseek2", with(latent, count("attention.key_length_mla", 1 << 24))),
       Code::Malformed,
       {"more than any model"}},
      {"gpt-oss without a window", as("gpt-oss", experts(4, 2, 4)), Code::Malformed, {"sliding_window"}},
      {"gpt-oss, sinks of 3 heads",
       as("gpt-oss", with(experts(4, 2, 4),
                          with(window(8), [](TinyLlama& s) { tensor(s, "blk.0.attn_sinks.weight", {3}); }))),
       Code::Malformed,
       {"attn_sinks", "3 x 1"}},
      {"llama4, other chunks",
       as("llama4", with(experts(4, 1, 4), with(window(16), count("interleave_moe_layer_step", 1)))),
       Code::Unsupported,
       {"sliding_window is 16"}},
      {"gemma2, window 0", as("gemma2", window(0)), Code::Malformed, {"sliding_window"}},
      {"gemma2, window larger than the context", as("gemma2", window(65)), Code::Malformed, {"65", "64"}},
      {"gemma3, a pattern for two layers",
       as("gemma3", with(window(8), pattern({1, 0}))),
       Code::Malformed,
       {"sliding_window_pattern", "1 layers", "a list of 2"}},
      {"gemma3n without a window", as("gemma3n", [](TinyLlama&) {}), Code::Malformed, {"sliding_window"}},
      {"gemma4 without a pattern", as("gemma4", swa), Code::Malformed, {"sliding_window_pattern"}},
      {"gemma4, none to share with",
       as("gemma4", with(swa, with(pattern({1}), with(head_norms, count("attention.shared_kv_layers", 1))))),
       Code::Malformed,
       {"layer 0", "no earlier layer"}},
      {"gemma4, absurd inputs",
       as("gemma4", with(swa, with(pattern({1}), count("embedding_length_per_layer_input", 1 << 24)))),
       Code::Malformed,
       {"per_layer_token_embd"}},
      {"gemma4, heads too many for their width",
       as("gemma4", with(swa, with(pattern({1}), count("attention.key_length_swa", 1 << 24)))),
       Code::Malformed,
       {"more than any model"}},
  };
  expect_refused(all);
  TinyLlama spec;
  qwen(4, 2, 4)(spec);
  const auto e = plan(spec);
  EXPECT_FALSE(e) << e->message;
}

TEST(Arch, RefusesWhatSparseDecodersDoNotCompute) {
  auto experts = [](auto then) { return [=](TinyLlama& s) { mix(s, 4, 2, 4), then(s); }; };
  auto count = [](const char* key, uint32_t n) { return [=](TinyLlama& s) { s.u32(key, n); }; };
  auto adjugates = [](uint32_t group, uint64_t files) {
    return [=](TinyLlama& s) {
      mix(s, 4, 2, 4), s.u32("experts_per_group", group), s.f32("expert_group_scale", 0.05f);
      s.u32("expert_chunk_feed_forward_length", 3);
      tensor(s, "blk.0.attn_q_norm.weight", {4}), tensor(s, "blk.0.attn_k_norm.weight", {4});
      tensor(s, "blk.0.ffn_gate_chexps.weight", {8, 3, files});
      tensor(s, "blk.0.ffn_up_chexps.weight", {8, 3, files});
      tensor(s, "blk.0.ffn_down_chexps.weight", {3, 8, files});
    };
  };
  auto window = [](auto then) {
    return [=](TinyLlama& s) {
      mix(s, 4, 2, 4), s.u32("attention.sliding_window", 8);
      flags(s, "attention.sliding_window_pattern", {1}), then(s);
    };
  };
  auto limit = [](float f) { return [=](TinyLlama& s) { s.f32("swiglu_clamp_exp", f); }; };
  expect_refused({
      {"ernie4_5-moe with experts in every second layer",
       as("ernie4_5-moe", experts(count("interleave_moe_layer_step", 2))),
       Code::Unsupported,
       {"interleave_moe_layer_step is 2", "computes 1"}},
      {"deepseek32 without heads of its indexer",
       as("deepseek32", experts(count("attention.indexer.top_k", 32))),
       Code::Malformed,
       {"attention.indexer.head_count"}},
      {"deepseek32, heads of its indexer shorter than the rotated part",
       as("deepseek32", experts([](TinyLlama& s) {
            s.u32("attention.indexer.top_k", 32), s.u32("attention.indexer.head_count", 2);
            s.u32("attention.indexer.key_length", 2);
          })),
       Code::Malformed,
       {"indexer heads of 2 values"}},
      {"deepseek32 without its number",
       as("deepseek32", experts([](TinyLlama&) {})),
       Code::Malformed,
       {"top_k"}},
      {"smallthinker, another window",
       as("smallthinker", experts(count("attention.sliding_window", 8))),
       Code::Unsupported,
       {"sliding_window is 8", "4096"}},
      {"minimax-m2 without norms",
       as("minimax-m2", experts([](TinyLlama&) {})),
       Code::Malformed,
       {"attn_q_norm"}},
      {"dbrx without a limit", as("dbrx", experts([](TinyLlama&) {})), Code::Malformed, {"clamp_kqv"}},
      {"bailingmoe2, absurd experts for all rows",
       as("bailingmoe2", experts([](TinyLlama& s) {
            s.u32("expert_shared_count", 1 << 20), s.u32("expert_shared_feed_forward_length", 1 << 20);
          })),
       Code::Malformed,
       {"expert_shared_count", "more than any model"}},
      {"mimo2 without a pattern",
       as("mimo2", experts(count("attention.sliding_window", 8))),
       Code::Malformed,
       {"sliding_window_pattern"}},
      {"step35, a limit below the depth of silu",
       as("step35", window(limit(0.1f))),
       Code::Unsupported,
       {"0.1"}},
      {"step35, more rotated than a head has",
       as("step35", window(count("rope.dimension_count_swa", 1 << 24))),
       Code::Malformed,
       {"dimension_count_swa 16777216", "4 values"}},
      {"step35, a negative limit", as("step35", window(limit(-1))), Code::Malformed, {"swiglu_clamp_exp"}},
      {"nemotron_h_moe without a width for all rows",
       as("nemotron_h_moe", experts([](TinyLlama&) {})),
       Code::Malformed,
       {"expert_shared_feed_forward_length"}},
      {"grovemoe, groups of 3 of 4 experts",
       as("grovemoe", adjugates(3, 1)),
       Code::Malformed,
       {"4 experts", "groups of 3"}},
      {"grovemoe, groups of 0", as("grovemoe", adjugates(0, 2)), Code::Malformed, {"experts_per_group"}},
      {"grovemoe, an adjugate too few",
       as("grovemoe", adjugates(2, 1)),
       Code::Malformed,
       {"ffn_gate_chexps", "8 x 3 x 1", "8 x 3 x 2"}},
      {"qwen3vlmoe, too many parts of pictures",
       as("qwen3vlmoe", experts(count("n_deepstack_layers", 2))),
       Code::Malformed,
       {"2 deepstack layers of 1"}},
  });
}

// Llama 4 normalises rotated heads, but for the model with 128 experts, which was trained without it and has
// no key that says so.
TEST(Arch, Llama4OfManyExpertsHasNoNormsOfHeads) {
  for (const uint32_t experts : {16u, 128u}) {
    TinyLlama s;
    as("llama4", [&](TinyLlama& t) {
      mix(t, experts, 1, experts);
      t.u32("interleave_moe_layer_step", 1), t.u32("attention.sliding_window", 0);
      for (const char* name : {"gate", "up"})
        tensor(t, std::string("blk.0.ffn_") + name + "_shexp.weight", {8, 6});
      tensor(t, "blk.0.ffn_down_shexp.weight", {6, 8});
    })(s);
    const auto norms = ops_of(s, [](const auto& op) { return OpKind(op.kind) == OpKind::Norm; });
    EXPECT_EQ(norms.size(), experts == 128 ? 0u : 2u) << experts << " experts";
  }
}

}  // namespace
}  // namespace gimbal::test
