"""What a model file of each architecture holds, as data: keys, tensors and shapes, for scripts/oracle/logits.py.

A description is a dict:
  keys     beyond COMMON, without the architecture's prefix, which "/key" does not get; a text is an expression, "=text" a text
  sizes    changes to SIZES of both seeds; `per layer` values are expressions of i, the layer's number
  embeds   the answer is an embedding, not logits; gelu: llama.cpp's table of GELU makes its answers inexact
  stack    before the names of layers; prompt: tokens, where the usual few do not show everything
  twin     a function that turns (keys, {tensor: (shape, values)}) into those of a file with the same answers, which llama.cpp
           computes as its authors meant it; only --write compares such a form
  head     tensors of the whole model; blocks: {group of tensors: condition on i}
Tensors are "name shape", shapes in the order of the file, as expressions of the sizes. Names get ".weight", after a colon
".bias", and nothing after "!".
"""
import array

# Two sets of sizes, small and odd. d width, l layers, h heads, kv heads of keys and values, hd and vd their sizes, rot
# rotated values of a head, f feed-forward, v vocabulary, e experts, eu used ones, fe their width, fs of the shared one.
SIZES = [
    dict(d=48, l=3, h=4, kv=2, f=40, v=512, e=6, eu=2, fe=24, fs=40),
    dict(d=80, l=4, h=5, kv=1, f=52, v=512, e=5, eu=3, fe=20, fs=28),
]
DERIVED = dict(hd="d // h", vd="hd", rot="hd")

COMMON = {
    "vocab_size": "v", "context_length": "2048", "embedding_length": "d", "block_count": "l", "feed_forward_length": "f",
    "attention.head_count": "h", "attention.head_count_kv": "kv", "rope.freq_base": "10000.0", "rope.dimension_count": "rot",
}
RMS = {"attention.layer_norm_rms_epsilon": "1e-5"}
LAYER = {"attention.layer_norm_epsilon": "1e-5"}
LENGTHS = {"attention.key_length": "hd", "attention.value_length": "vd"}
EXPERTS = {"expert_count": "e", "expert_used_count": "eu"}

TIED = "token_embd d v; output_norm d"
HEAD = TIED + "; output d v"
HEAD_LN = "token_embd d v; output_norm d; output_norm: d"
ATTENTION = "attn_q d h*hd; attn_k d kv*hd; attn_v d kv*vd; attn_output h*vd d"
NORM = "attn_norm d; "
QKV_BIAS = "; attn_q: h*hd; attn_k: kv*hd; attn_v: kv*vd"
QK_NORM = "; attn_q_norm hd; attn_k_norm hd"
GLU = "ffn_gate d f; ffn_up d f; ffn_down f d"
FFN = "ffn_norm d; " + GLU
MLP_LN = "ffn_norm d; ffn_norm: d; ffn_up d f; ffn_up: f; ffn_down f d; ffn_down: d"
MOE = "ffn_gate_inp d e; ffn_gate_exps d fe e; ffn_up_exps d fe e; ffn_down_exps fe d e"
SHARED = "; ffn_gate_shexp d fs; ffn_up_shexp d fs; ffn_down_shexp fs d"
FUSED_LN = ("attn_norm d; attn_norm: d; attn_qkv d (h+2*kv)*hd; attn_qkv: (h+2*kv)*hd; attn_output h*hd d; attn_output: d")
MAMBA2 = ("ssm_in d 2*inner+2*groups*state+dt; ssm_conv1d conv inner+2*groups*state; ssm_conv1d: inner+2*groups*state; "
          "ssm_dt: dt; ssm_a! 1 dt; ssm_d! 1 dt; ssm_norm inner//groups groups; ssm_out inner d")
MAMBA1 = ("ssm_in d 2*inner; ssm_conv1d conv inner; ssm_conv1d: inner; ssm_x inner dt+2*state; ssm_dt dt inner; ssm_dt: inner; "
          "ssm_a! state inner; ssm_d! inner; ssm_out inner d")
SSM2 = {"ssm.conv_kernel": "conv", "ssm.inner_size": "inner", "ssm.state_size": "state", "ssm.group_count": "groups",
        "ssm.time_step_rank": "dt"}
SSM1 = {key: value for key, value in SSM2.items() if key != "ssm.group_count"}
SSM2_SIZES = dict(conv="4", inner="2*d", state="16", groups="2", dt="8")
DELTA = ("attn_qkv d 2*hk*s+hv*s; attn_gate d hv*s; ssm_conv1d conv 2*hk*s+hv*s; ssm_dt: hv; ssm_a! hv; ssm_norm s; "
         "ssm_out hv*s d")
DELTA_KEYS = {"ssm.conv_kernel": "conv", "ssm.inner_size": "hv*s", "ssm.state_size": "s", "ssm.group_count": "hk",
              "ssm.time_step_rank": "hv"}
DELTA_SIZES = dict(conv="4", s="16", hk="2", hv="4", h="4", kv="2", d="48", hd="32", rot="16", l="4")
GATED = "attn_q d 2*h*hd; attn_k d kv*hd; attn_v d kv*vd; attn_output h*vd d" + QK_NORM
POST_BOTH = "post_attention_norm d; post_ffw_norm d; "
BERT_HEAD = "token_embd d v; token_embd_norm d; token_embd_norm: d; token_types d 2"
BERT_NORMS = ("attn_output d d; attn_output: d; attn_output_norm d; attn_output_norm: d; layer_output_norm d; "
              "layer_output_norm: d")
T5_BLOCK = ("attn_norm d; attn_q d h*hd; attn_k d kv*hd; attn_v d kv*vd; attn_o h*vd d; ffn_norm d; ffn_up d f; ffn_down f d")
RWKV6_MIX = ("time_mix_w1 d 5*x; time_mix_w2 x d 5; time_mix_lerp_x d 1 1; time_mix_decay d; time_mix_decay_w1 d dx; time_mix_decay_w2 dx d; "
             "time_mix_receptance d d; time_mix_gate d d; time_mix_output d d; ")
RWKV6_KEYS = {"wkv.head_size": "s", "time_mix_extra_dim": "x", "time_decay_extra_dim": "dx"}
RWKV7_MIX = ("time_mix_w0 d; time_mix_w1 d lw; time_mix_w2 lw d; time_mix_a0 d; time_mix_a1 d la; time_mix_a2 la d; time_mix_v0 d; "
             "time_mix_v1 d lv+(la-lv)*(i==0); time_mix_v2 lv+(la-lv)*(i==0) d; time_mix_k_k d; time_mix_k_a d; time_mix_r_k d; "
             "time_mix_receptance d d; time_mix_key d d; time_mix_value d d; time_mix_output d d; ")
RWKV7_KEYS = {"wkv.head_size": "s", "attention.decay_lora_rank": "lw", "attention.iclr_lora_rank": "la",
              "attention.value_residual_mix_lora_rank": "lv", "attention.gate_lora_rank": "lg"}
RWKV7_GATE = "time_mix_lerp_fused d 1 1 6; time_mix_g1 d lg; time_mix_g2 lg d; "
RWKV_HEAD = TIED + "; output d v; output_norm: d; token_embd_norm d; token_embd_norm: d"
RWKV_NORMS = "attn_norm d; attn_norm: d; attn_norm_2 d; attn_norm_2: d; time_mix_ln d; time_mix_ln: d; "
# The peer's kernels of these states are right for heads of 64 alone on some CPUs.
RWKV_SIZES = dict(s="64", d="128", h="0", kv="0", hd="s", x="7", dx="9", lw="9", la="7", lv="6", lg="11")
GRANITE = {"attention.scale": "0.3", "embedding_scale": "3.0", "logit_scale": "4.0", "residual_scale": "0.4"}

YARN = {"rope.scaling.type": "=yarn", "rope.scaling.factor": "8.0", "rope.scaling.original_context_length": "32"}
DEEPSEEK2 = {
    "keys": {**RMS, **EXPERTS, "expert_feed_forward_length": "fe", "expert_gating_func": "2", "expert_shared_count": "1",
             "expert_weights_norm": "True", "expert_weights_scale": "2.5", "leading_dense_block_count": "1",
             "attention.q_lora_rank": "48", "attention.kv_lora_rank": "r", "attention.key_length": "r + rot",
             "attention.value_length": "r", "attention.key_length_mla": "dn + rot", "attention.value_length_mla": "dv"},
    "head": HEAD, "sizes": dict(kv="1", r="32", dn="16", rot="8", dv="20", fs="fe"),
    "blocks": {NORM + "attn_q_a d 48; attn_q_a_norm 48; attn_q_b 48 h*(dn+rot); attn_kv_a_mqa d r+rot; "
               "attn_kv_a_norm r; attn_k_b dn r h; attn_v_b r dv h; attn_output h*dv d; ffn_norm d": "True",
               GLU: "i == 0", MOE + SHARED + "; exp_probs_b: e": "i > 0"}}


def decoder(layer, head=HEAD, keys=None, **rest):
    return {"keys": {**RMS, **(keys or {})}, "head": head, "blocks": {layer: "True"}, **rest}


SPARSE = {**EXPERTS, "expert_feed_forward_length": "fe"}
ROUTED = {**SPARSE, "expert_gating_func": "2", "expert_weights_norm": "True", "expert_weights_scale": "1.7"}
SHARED_COUNT = {"leading_dense_block_count": "1", "expert_shared_count": "2"}
BIASED = "; exp_probs_b: e"
PREDICTOR = {"nextn.eh_proj 2*d d; nextn.enorm d; nextn.hnorm d; nextn.shared_head_norm d": "i == l - 1"}
DENSE_FIRST = {GLU: "i == 0", MOE + SHARED + BIASED: "i > 0"}


def sparse(layer, keys, blocks=None, head=HEAD, **sizes):
    """A decoder whose layers have `layer` and a norm before the feed-forward part, `blocks`."""
    return {"keys": {**RMS, **keys}, "head": head, "sizes": sizes,
            "blocks": {NORM + layer + "; ffn_norm d": "True", **(blocks or DENSE_FIRST)}}


def nemotron(keys, blocks, **sizes):
    """Layers of one block each: attention in the third, experts in every second of the others, else Mamba 2."""
    return {"keys": {**RMS, **LAYER, **LENGTHS, **SSM2, **ROUTED, "attention.head_count_kv": "[kv if j == 2 else 0 for j in range(l)]",
                     "feed_forward_length": "[f if j % 2 == 1 else 0 for j in range(l)]", "expert_shared_count": "1",
                     "expert_shared_feed_forward_length": "fs", **keys},
            "head": TIED, "sizes": dict(SSM2_SIZES, hd="24", l="6", **sizes),
            "blocks": {"attn_norm d": "True", ATTENTION: "i == 2", MAMBA2: "i % 2 == 0 and i != 2",
                       "ffn_gate_inp d e; exp_probs_b: e; ffn_up_shexp d fs; ffn_down_shexp fs d": "i % 2 == 1", **blocks}}


GATED_HEADS = ATTENTION + QK_NORM + "; attn_gate d h*hd; post_attention_norm d; post_ffw_norm d"
# Of MiMo and Step: the second layer and every third behind it attend to everything, with fewer heads.
FAR = "[0 if j % 3 == 1 else 1 for j in range(l)]"
MIMO2 = {**RMS, **LENGTHS, **SPARSE, "expert_gating_func": "2", "attention.sliding_window": "9", "attention.sliding_window_pattern": FAR,
         "attention.head_count_kv": "[1 if j % 3 == 1 else 2 for j in range(l)]", "attention.head_count": "[4 for j in range(l)]",
         "rope.freq_base_swa": "5000.0"}
MIMO2_HEADS = {NORM + "attn_q d 4*hd; attn_output 4*vd d; ffn_norm d": "True", "attn_k d 2*hd; attn_v d 2*vd; attn_sinks 4": "i % 3 != 1",
               "attn_k d hd; attn_v d vd": "i % 3 == 1", GLU: "i == 0", MOE + BIASED: "i > 0"}
STEP35 = {**RMS, **LENGTHS, **ROUTED, "attention.sliding_window": "9", "attention.sliding_window_pattern": FAR,
          "attention.head_count": "[4 if j % 3 == 1 else 6 for j in range(l)]", "attention.head_count_kv": "[2 for j in range(l)]",
          "expert_shared_feed_forward_length": "fs"}
STEP35_HEADS = {NORM + "attn_k d 2*hd; attn_v d 2*hd; ffn_norm d": "True", "attn_q d 4*hd; attn_output 4*hd d": "i % 3 == 1",
                "attn_q d 6*hd; attn_output 6*hd d": "i % 3 != 1", GLU: "i == 0"}
GROK = ATTENTION + "; attn_output_norm d"
MISTRAL4 = dict(DEEPSEEK2, keys={**DEEPSEEK2["keys"], "attention.temperature_scale": "0.3", "attention.temperature_length": "8"})

MIXTURES = {
    "qwen3vlmoe": decoder(NORM + ATTENTION + QK_NORM + "; ffn_norm d; " + MOE, TIED,
                          {**LENGTHS, **SPARSE, "rope.dimension_sections": "[4, 4, 4, 0]"}, sizes=dict(hd="24")),
    "mistral4": MISTRAL4,
    "mistral4:yarn": dict(MISTRAL4, keys={**MISTRAL4["keys"], **YARN, "rope.scaling.yarn_log_multiplier": "0.1"}),
    "deepseek32": dict(DEEPSEEK2, keys={**DEEPSEEK2["keys"], "attention.indexer.head_count": "2", "attention.indexer.key_length": "64",
                                        "attention.indexer.top_k": "256"},
                       blocks={**DEEPSEEK2["blocks"], "indexer.k_norm 64; indexer.k_norm: 64; indexer.proj d 2; indexer.attn_k d 64; "
                                                      "indexer.attn_q_b 48 2*64": "True"}),
    "glm-dsa": dict(DEEPSEEK2, keys={**{key: value for key, value in DEEPSEEK2["keys"].items() if key != "expert_gating_func"},
                                     "attention.indexer.head_count": "2", "attention.indexer.key_length": "64",
                                     "attention.indexer.top_k": "256", "attention.indexer.types": "[1 - j % 2 for j in range(l)]"},
                    blocks={**DEEPSEEK2["blocks"], "indexer.k_norm 64; indexer.k_norm: 64; indexer.proj d 2; indexer.attn_k d 64; "
                                                   "indexer.attn_q_b 48 2*64": "i % 2 == 0"}),
    # Each row attends to 8 positions.
    "deepseek32:chosen": dict(DEEPSEEK2, keys={**DEEPSEEK2["keys"], "attention.indexer.head_count": "9", "attention.indexer.key_length": "64",
                                               "attention.indexer.top_k": "8"},
                              blocks={**DEEPSEEK2["blocks"], "indexer.k_norm 64; indexer.k_norm: 64; indexer.proj d 9; "
                                                             "indexer.attn_k d 64; indexer.attn_q_b 48 9*64": "True"}),
    "glm-dsa:chosen": dict(DEEPSEEK2, keys={**{key: value for key, value in DEEPSEEK2["keys"].items() if key != "expert_gating_func"},
                                            "attention.indexer.head_count": "10", "attention.indexer.key_length": "64",
                                            "attention.indexer.top_k": "5", "attention.indexer.types": "[1 - j % 2 for j in range(l)]"},
                           blocks={**DEEPSEEK2["blocks"], "indexer.k_norm 64; indexer.k_norm: 64; indexer.proj d 10; "
                                                          "indexer.attn_k d 64; indexer.attn_q_b 48 10*64": "i % 2 == 0"}),
    "kimi-linear": {
        "keys": {**RMS, **ROUTED, **SHARED_COUNT, "attention.kv_lora_rank": "r", "attention.key_length": "r + rot",
                 "attention.value_length": "r", "attention.key_length_mla": "dn + rot", "attention.value_length_mla": "dv",
                 "attention.head_count_kv": "[1 if j == 1 else 0 for j in range(l)]", "ssm.conv_kernel": "4", "kda.head_dim": "s"},
        "head": HEAD, "sizes": dict(r="32", dn="16", rot="8", dv="20", s="16", kv="1", l="4", fs="2*fe"),
        "blocks": {"attn_norm d; ffn_norm d": "True", **DENSE_FIRST,
                   "attn_q d h*s; attn_k d h*s; attn_v d h*s; ssm_conv1d_q 4 1 h*s; ssm_conv1d_k 4 1 h*s; ssm_conv1d_v 4 1 h*s; "
                   "ssm_f_a d s; ssm_f_b s h*s; ssm_beta d h; ssm_a! 1 h; ssm_dt: h*s; ssm_g_a d s; ssm_g_b s h*s; ssm_norm s; "
                   "attn_output h*s d": "i != 1",
                   "attn_q d h*(dn+rot); attn_kv_a_mqa d r+rot; attn_kv_a_norm r; attn_k_b dn r h; attn_v_b r dv h; attn_output h*dv d":
                       "i == 1"}},
    "nemotron_h_moe": nemotron({}, {"ffn_up_exps d fe e; ffn_down_exps fe d e": "i % 2 == 1"}),
    "nemotron_h_moe:latent": nemotron(
        {"moe_latent_size": "n", "expert_used_count": "[2 if j == 1 else 3 for j in range(l)]",
         "expert_feed_forward_length": "[20 if j == 1 else 24 for j in range(l)]"},
        {"ffn_latent_down d n; ffn_latent_up n d": "i % 2 == 1", "ffn_up_exps n 20 e; ffn_down_exps 20 n e": "i == 1",
         "ffn_up_exps n 24 e; ffn_down_exps 24 n e": "i in (3, 5)"}, n="20"),
    "minimax-m2": sparse(ATTENTION + "; attn_q_norm h*hd; attn_k_norm kv*hd", {**LENGTHS, **SPARSE, "expert_gating_func": "2"},
                         {MOE + BIASED: "True"}, hd="16", rot="8", f="fe"),
    "ernie4_5-moe": sparse(ATTENTION, {**LENGTHS, **SPARSE, "interleave_moe_layer_step": "1", "leading_dense_block_count": "1",
                                       "expert_shared_feed_forward_length": "fs"}, head=TIED, hd="24", fs="2*fe"),
    "hunyuan-moe": sparse(ATTENTION + QK_NORM, {**LENGTHS, **SPARSE, "expert_shared_feed_forward_length": "fs"},
                          {MOE + SHARED: "True"}, TIED, hd="24", f="fe"),
    "hunyuan-moe:plain": sparse(ATTENTION + QK_NORM, {**LENGTHS, **SPARSE}, {MOE + SHARED: "True"}, hd="24", f="fe", fs="f"),
    "bailingmoe": sparse(ATTENTION, {**LENGTHS, **SPARSE, "expert_shared_count": "2", "expert_weights_norm": "True"},
                         {MOE + SHARED: "True"}, hd="24", fs="2*fe"),
    "bailingmoe2": sparse("attn_qkv d (h+2*kv)*hd; attn_output h*hd d" + QK_NORM, {**ROUTED, **SHARED_COUNT},
                          hd="d // h", rot="4", fs="2*fe"),
    "bailingmoe2:groups": sparse(
        "attn_qkv d (h+2*kv)*hd; attn_output h*hd d" + QK_NORM,
        {**ROUTED, **SHARED_COUNT, "expert_group_count": "4", "expert_group_used_count": "2", "expert_shared_feed_forward_length": "12",
         "nextn_predict_layers": "1"},
        {**DENSE_FIRST, **PREDICTOR, "layer_output_norm d": "i == l - 1"}, e="12", eu="3", l="4", hd="d // h", fs="24"),
    "dots1": sparse(ATTENTION + QK_NORM, {**LENGTHS, **ROUTED, **SHARED_COUNT}, hd="24", kv="h", fs="2*fe"),
    "deepseek": sparse(ATTENTION, {**SPARSE, **SHARED_COUNT}, {GLU: "i == 0", MOE + SHARED: "i > 0"}, fs="2*fe"),
    "exaone-moe": sparse(ATTENTION + QK_NORM, {**LENGTHS, **ROUTED, "attention.sliding_window": "9", "leading_dense_block_count": "1",
                                               "expert_shared_feed_forward_length": "fs"},
                         None, HEAD + "; rope_freqs hd//2", hd="24", l="5"),
    "mellum": decoder(NORM + ATTENTION + QK_NORM + "; ffn_norm d; " + MOE, HEAD, {
        **LENGTHS, **EXPERTS, **YARN, "expert_feed_forward_length": "fe", "attention.sliding_window": "9"}, sizes=dict(hd="24", l="5")),
    "mellum:far": decoder(NORM + ATTENTION + QK_NORM + "; ffn_norm d; " + MOE, HEAD,
                          {**LENGTHS, **EXPERTS, "expert_feed_forward_length": "fe"}, sizes=dict(hd="24")),
    "exaone-moe:nextn": sparse(
        ATTENTION + QK_NORM, {**LENGTHS, **ROUTED, "attention.sliding_window": "9", "leading_dense_block_count": "1",
                              "attention.sliding_window_pattern": "[1, 0, 1, 0]", "nextn_predict_layers": "1"},
        {GLU: "i in (0, l - 1)", MOE + SHARED + BIASED: "0 < i < l - 1", **PREDICTOR}, hd="24", l="4", fs="fe"),
    "afmoe": sparse(GATED_HEADS, {**LENGTHS, **ROUTED, **SHARED_COUNT, "attention.sliding_window": "9"}, hd="24", l="5", fs="2*fe"),
    "afmoe:bases": sparse(GATED_HEADS, {**LENGTHS, **SPARSE, "leading_dense_block_count": "2", "expert_shared_count": "0",
                                        "attention.sliding_window": "9", "rope.freq_base_swa": "5000.0"},
                          {GLU: "i < 2", MOE + BIASED: "i >= 2"}, hd="24", l="5"),
    "muse-glimmer": decoder(NORM + GATED_HEADS + "; " + FFN, HEAD,
                            {**LENGTHS, "attention.sliding_window": "9", "logit_scale": "0.4", "final_logit_softcapping": "3.0"},
                            sizes=dict(hd="24", l="5")),
    "cohere2moe": {"keys": {**LAYER, **ROUTED, "logit_scale": "0.25", "attention.sliding_window": "9", "leading_dense_block_count": "1",
                            "expert_shared_count": "2"}, "head": TIED, "sizes": dict(l="5", fs="2*fe"),
                   "blocks": {NORM + ATTENTION: "True", GLU: "i == 0", MOE + SHARED: "i > 0"}},
    "cohere2moe:joined": {"keys": {**RMS, **SPARSE, "logit_scale": "0.25", "attention.sliding_window": "9", "leading_dense_block_count": "0",
                                   "attention.sliding_window_pattern": "[1, 0, 1, 0]", "nextn_predict_layers": "1"}, "head": TIED,
                          "sizes": dict(l="4"),
                          "blocks": {NORM + ATTENTION + "; ffn_gate_inp d e; ffn_gate_up_exps d 2*fe e; ffn_down_exps fe d e": "True",
                                     **PREDICTOR}},
    "smallthinker": sparse(ATTENTION, {**LENGTHS, **SPARSE, "expert_gating_func": "2", "attention.sliding_window": "4096",
                                       "context_length": "8192", "rope.freq_base_swa": "5000.0"}, {MOE: "True"}, TIED, hd="24", l="6"),
    "smallthinker:everywhere": sparse(ATTENTION, {**SPARSE, "expert_gating_func": "1"}, {MOE: "True"}, l="5"),
    "arctic": sparse(ATTENTION, EXPERTS, {"ffn_gate d d; ffn_up d d; ffn_down d d; ffn_norm_exps d; " + MOE: "True"}, fe="f"),
    "dbrx": {"keys": {**LAYER, **EXPERTS, "attention.clamp_kqv": "1.5"}, "head": HEAD, "sizes": dict(fe="f"),
             "blocks": {NORM + "attn_qkv d (h+2*kv)*hd; attn_output h*hd d; attn_output_norm d; " + MOE: "True"}},
    "grok": {**sparse(GROK, EXPERTS, {"layer_output_norm d; " + MOE: "True"}, fe="f"), "gelu": True},
    "grok:second": {**sparse(GROK, {**SPARSE, **YARN, "rope.scaling.yarn_ext_factor": "1.0", "rope.scaling.yarn_attn_factor": "1.0",
                                    "logit_scale": "0.5", "embedding_scale": "5.0", "attention.output_scale": "0.3",
                                    "attn_logit_softcapping": "8.0", "final_logit_softcapping": "4.0"},
                             {"post_ffw_norm d; " + GLU + "; " + MOE: "True"}), "gelu": True},
    "step35": {"keys": STEP35, "head": HEAD, "sizes": dict(hd="16", h="6", l="5"),
               "blocks": {**STEP35_HEADS, MOE + SHARED: "i > 0"}},
    "step35:limits": {
        "keys": {**STEP35, "swiglu_clamp_exp": "[0.0 if j == 2 else 0.4 for j in range(l)]", "nextn_predict_layers": "1",
                 "swiglu_clamp_shexp": "[0.0 if j == 3 else 0.7 for j in range(l)]", "rope.freq_base_swa": "5000.0"},
        "head": HEAD + "; rope_freqs hd//2", "sizes": dict(hd="16", h="6", l="6"),
        "blocks": {**STEP35_HEADS, MOE + SHARED + BIASED: "i > 0", "attn_q_norm hd; attn_k_norm hd": "True",
                   "attn_gate d 4": "i % 3 == 1", "attn_gate d 6": "i % 3 != 1", **PREDICTOR}},
    "mimo2": {"keys": MIMO2, "head": HEAD, "sizes": dict(hd="24", vd="16", rot="8", h="4", kv="2", l="5"), "blocks": MIMO2_HEADS},
    "mimo2:scaled": {"keys": {**MIMO2, "attention.value_scale": "0.7", "nextn_predict_layers": "1"}, "head": HEAD,
                     "sizes": dict(hd="24", vd="16", rot="8", h="4", kv="2", l="6"),
                     "blocks": {**{group.replace("attn_q d 4*hd; ", ""): condition for group, condition in MIMO2_HEADS.items()
                                   if "attn_k" not in group},
                                "attn_qkv d 6*hd+2*vd; attn_sinks 4": "i % 3 != 1", "attn_qkv d 5*hd+vd": "i % 3 == 1", **PREDICTOR}},
}


def without_adjugates(keys, tensors):
    """GroveMoE as Qwen3 with experts alone: expert e gets the hidden values of its adjugate e // group behind its own."""
    group, scale, count = (keys[f"grovemoe.{key}"] for key in ("experts_per_group", "expert_group_scale", "expert_count"))
    keys = {key.replace("grovemoe.", "qwen3moe."): value for key, value in keys.items() if "group" not in key and "chunk" not in key}
    keys["general.architecture"] = "qwen3moe"
    keys["qwen3moe.expert_feed_forward_length"] += tensors["blk.0.ffn_up_chexps.weight"][0][1]
    merged = {}
    for name, (shape, values) in tensors.items():
        if "_chexps" in name:
            continue
        if "_exps" in name:
            other, small = tensors[name.replace("_exps", "_chexps")]
            down = "ffn_down" in name
            parts = array.array("f")
            for e in range(count):
                for row in range(shape[1] if down else 1):
                    for numbers, dims, expert, factor in ((values, shape, e, 1), (small, other, e // group, scale if down else 1)):
                        size = dims[0] if down else dims[0] * dims[1]
                        first = (expert * dims[1] + row) * dims[0] if down else expert * size
                        parts.extend(factor * x for x in numbers[first:first + size])
            shape = [shape[0] + other[0], shape[1], count] if down else [shape[0], shape[1] + other[1], count]
            values = parts
        merged[name] = (shape, values)
    return keys, merged


ARCHS = {
    "llama": decoder(NORM + ATTENTION + "; " + FFN),
    "qwen2": decoder(NORM + ATTENTION + QKV_BIAS + "; " + FFN),
    "bitnet": decoder(NORM + ATTENTION + "; attn_sub_norm d; ffn_sub_norm f; " + FFN, TIED),
    "llama:experts": decoder(NORM + ATTENTION + "; ffn_norm d; " + MOE, keys=EXPERTS, sizes=dict(fe="f")),
    "qwen2moe": decoder(NORM + ATTENTION + QKV_BIAS + "; ffn_norm d; " + MOE + SHARED + "; ffn_gate_inp_shexp d",
                        keys={**EXPERTS, "expert_feed_forward_length": "fe", "expert_shared_feed_forward_length": "fs"}),
    "qwen3": decoder(NORM + ATTENTION + QK_NORM + "; " + FFN, TIED, LENGTHS, sizes=dict(hd="24")),
    "qwen3moe": decoder(NORM + ATTENTION + QK_NORM + "; ffn_norm d; " + MOE, TIED,
                        {**LENGTHS, **EXPERTS, "expert_feed_forward_length": "fe"}, sizes=dict(hd="24")),
    "grovemoe": decoder(NORM + ATTENTION + QK_NORM + "; ffn_norm d; " + MOE + "; ffn_gate_chexps d 12 e//3; ffn_up_chexps d 12 e//3; "
                        "ffn_down_chexps 12 d e//3", TIED,
                        {**LENGTHS, **EXPERTS, "expert_feed_forward_length": "fe", "expert_chunk_feed_forward_length": "12",
                         "experts_per_group": "3", "expert_group_scale": "0.5"}, sizes=dict(hd="24", e="21", eu="4"),
                        twin=without_adjugates),
    # With the numbers of the published model, which its folder does not have.
    "grovemoe:published": decoder(NORM + ATTENTION + QK_NORM + "; ffn_norm d; " + MOE + "; ffn_gate_chexps d 128 e//2; "
                                  "ffn_up_chexps d 128 e//2; ffn_down_chexps 128 d e//2", TIED,
                                  {**LENGTHS, **EXPERTS, "expert_feed_forward_length": "fe", "expert_chunk_feed_forward_length": "128",
                                   "experts_per_group": "2", "expert_group_scale": "0.05"}, sizes=dict(hd="24", e="8", eu="3"),
                                  twin=without_adjugates),
    "paddleocr": decoder(NORM + ATTENTION + "; " + FFN, TIED, {"rope.dimension_sections": "[2, 2, hd//2-4, 0]"}),
    "qwen2vl": decoder(NORM + ATTENTION + QKV_BIAS + "; " + FFN, TIED, {"rope.dimension_sections": "[2, 2, hd//2-4, 0]"}),
    "qwen3vl": decoder(NORM + ATTENTION + QK_NORM + "; " + FFN, TIED, {**LENGTHS, "rope.dimension_sections": "[4, 4, 4, 0]"},
                       sizes=dict(hd="24")),
    "qwen35": {"keys": {**RMS, **LENGTHS, **DELTA_KEYS, "full_attention_interval": "2", "rope.dimension_sections": "[3, 3, 2, 0]"},
               "head": TIED, "sizes": DELTA_SIZES,
               "blocks": {NORM + "post_attention_norm d; " + GLU: "True", GATED: "i % 2 == 1",
                          DELTA + "; ssm_beta d hv; ssm_alpha d hv": "i % 2 == 0"}},
    "qwen35moe": {"keys": {**RMS, **LENGTHS, **DELTA_KEYS, **EXPERTS, "expert_feed_forward_length": "fe",
                           "expert_shared_feed_forward_length": "fs", "full_attention_interval": "2",
                           "rope.dimension_sections": "[3, 3, 2, 0]"},
                  "head": TIED, "sizes": DELTA_SIZES,
                  "blocks": {NORM + "post_attention_norm d; " + MOE + SHARED + "; ffn_gate_inp_shexp d": "True",
                             GATED: "i % 2 == 1", DELTA + "; ssm_beta d hv; ssm_alpha d hv": "i % 2 == 0"}},
    "qwen3next": {"keys": {**RMS, **LENGTHS, **DELTA_KEYS, **EXPERTS, "expert_feed_forward_length": "fe",
                           "expert_shared_feed_forward_length": "fs", "full_attention_interval": "2"},
                  "head": TIED, "sizes": DELTA_SIZES,
                  "blocks": {NORM + "post_attention_norm d; " + MOE + SHARED + "; ffn_gate_inp_shexp d": "True",
                             GATED: "i % 2 == 1", DELTA + "; ssm_ba d 2*hv": "i % 2 == 0"}},
    "gemma": decoder(NORM + ATTENTION + "; " + FFN, TIED, LENGTHS, gelu=True),
    "gemma2": decoder(NORM + ATTENTION + "; " + POST_BOTH + FFN, TIED,
                      {**LENGTHS, "attention.sliding_window": "9", "attn_logit_softcapping": "20.0",
                       "final_logit_softcapping": "10.0"}, gelu=True, sizes=dict(l="26", d="32", h="2", kv="1", f="24")),
    "gemma3": decoder(NORM + ATTENTION + QK_NORM + "; " + POST_BOTH + FFN, TIED,
                      {**LENGTHS, "attention.sliding_window": "9"}, gelu=True, sizes=dict(l="7", hd="16")),
    "gpt-oss": decoder(NORM + ATTENTION + QKV_BIAS + "; attn_output: d; attn_sinks h; post_attention_norm d; " + MOE +
                       "; ffn_gate_inp: e; ffn_gate_exps: fe e; ffn_up_exps: fe e; ffn_down_exps: d e", HEAD,
                       {**LENGTHS, **EXPERTS, "expert_feed_forward_length": "fe", "attention.sliding_window": "9"},
                       sizes=dict(hd="16", l="4")),
    "phi3": decoder(NORM + "attn_qkv d (h+2*kv)*hd; attn_output h*hd d; ffn_norm d; ffn_up d 2*f; ffn_down f d"),
    "phimoe": decoder(NORM + "attn_norm: d; " + ATTENTION + QKV_BIAS + "; attn_output: d; ffn_norm d; ffn_norm: d; " + MOE,
                      HEAD + "; output_norm: d; output: v", EXPERTS, sizes=dict(fe="f")),
    "command-r": {"keys": {**LAYER, "logit_scale": "0.25"}, "head": TIED, "blocks": {NORM + ATTENTION + "; " + GLU: "True"}},
    "cohere2": {"keys": {**LAYER, "logit_scale": "0.25", "attention.sliding_window": "9"}, "head": TIED, "sizes": dict(l="5"),
                "blocks": {NORM + ATTENTION + "; " + GLU: "True"}},
    "granite": decoder(NORM + ATTENTION + "; " + FFN, TIED, GRANITE),
    "granitemoe": decoder(NORM + ATTENTION + "; ffn_norm d; " + MOE, TIED, {**GRANITE, **EXPERTS}, sizes=dict(fe="f")),
    "granitehybrid": {"keys": {**RMS, **GRANITE, **SSM2, "attention.head_count_kv": "[0 if j % 2 == 0 else kv for j in range(l)]",
                               "rope.scaling.finetuned": "True"},
                      "head": TIED, "sizes": SSM2_SIZES,
                      "blocks": {NORM + FFN: "True", MAMBA2: "i % 2 == 0", ATTENTION: "i % 2 == 1"}},
    "mamba": {"keys": {**RMS, **SSM1, "feed_forward_length": "0", "attention.head_count": "0"}, "head": TIED,
              "sizes": dict(conv="4", inner="2*d", state="8", dt="5", h="1"), "blocks": {NORM + MAMBA1: "True"}},
    "mamba2": {"keys": {**RMS, **SSM2, "feed_forward_length": "0", "attention.head_count": "0"}, "head": TIED,
               "sizes": dict(SSM2_SIZES, h="1"), "blocks": {NORM + MAMBA2: "True"}},
    "falcon-h1": {"keys": {**RMS, **LENGTHS, **SSM2}, "head": TIED, "sizes": dict(SSM2_SIZES, hd="24"),
                  "blocks": {NORM + ATTENTION + "; " + MAMBA2 + "; ffn_norm! d; " + GLU: "True"}},
    "jamba": {"keys": {**RMS, **SSM1, **EXPERTS, "attention.head_count_kv": "[kv if j == 2 else 0 for j in range(l)]"},
              "head": TIED, "sizes": dict(conv="4", inner="2*d", state="8", dt="5", fe="f", l="4"),
              "blocks": {NORM + "ffn_norm d": "True", ATTENTION: "i == 2",
                         MAMBA1 + "; ssm_dt_norm dt; ssm_b_norm state; ssm_c_norm state": "i != 2",
                         GLU: "i % 2 == 0", MOE: "i % 2 == 1"}},
    "nemotron_h": {"keys": {**RMS, **LAYER, **LENGTHS, **SSM2, "attention.head_count_kv": "[kv if j == 2 else 0 for j in range(l)]",
                            "feed_forward_length": "[f if j % 3 == 1 else 0 for j in range(l)]"},
                   "head": TIED, "sizes": dict(SSM2_SIZES, hd="24", l="6"),
                   "blocks": {NORM.rstrip("; "): "True", "ffn_up d f; ffn_down f d": "i % 3 == 1", ATTENTION: "i == 2",
                              MAMBA2: "i % 3 != 1 and i != 2"}},
    "lfm2": {"keys": {**RMS, "shortconv.l_cache": "3", "attention.head_count_kv": "[0 if j % 2 == 0 else kv for j in range(l)]"},
             "head": "token_embd d v; token_embd_norm d",
             "blocks": {NORM + FFN: "True", ATTENTION + QK_NORM: "i % 2 == 1",
                        "shortconv.in_proj d 3*d; shortconv.conv 3 d; shortconv.out_proj d d": "i % 2 == 0"}},
    "smollm3": decoder(NORM + ATTENTION + "; " + FFN, TIED, sizes=dict(l="5")),
    "olmo2": decoder(ATTENTION + "; attn_q_norm d; attn_k_norm kv*hd; " + POST_BOTH + GLU),
    "olmoe": decoder(NORM + ATTENTION + "; attn_q_norm d; attn_k_norm kv*hd; ffn_norm d; " + MOE, keys=EXPERTS,
                     sizes=dict(fe="f", kv="h")),
    "exaone4": decoder(ATTENTION + QK_NORM + "; " + POST_BOTH + GLU),
    "ernie4_5": decoder(NORM + ATTENTION + "; " + FFN, TIED, LENGTHS, sizes=dict(hd="24")),
    "hunyuan-dense": decoder(NORM + ATTENTION + QK_NORM + "; " + FFN, TIED, LENGTHS, sizes=dict(hd="24")),
    "seed_oss": decoder(NORM + ATTENTION + QKV_BIAS + "; post_attention_norm d; " + GLU, TIED, LENGTHS, sizes=dict(hd="24")),
    "minicpm": decoder(NORM + ATTENTION + "; " + FFN, TIED,
                       {"embedding_scale": "7.0", "logit_scale": "3.0", "residual_scale": "0.37"}),
    "internlm2": decoder(NORM + ATTENTION + "; " + FFN),
    "mistral3": decoder(NORM + ATTENTION + "; " + FFN, TIED, LENGTHS, sizes=dict(hd="24")),
    "glm4": decoder(NORM + ATTENTION + QKV_BIAS + "; post_attention_norm d; ffn_norm d; ffn_up d 2*f; ffn_down f d; post_ffw_norm d",
                    sizes=dict(rot="hd // 2")),
    "stablelm": {"keys": LAYER, "head": HEAD_LN + "; output d v", "sizes": dict(rot="8"),
                 "blocks": {NORM + "attn_norm: d; " + ATTENTION + QKV_BIAS + "; ffn_norm d; ffn_norm: d; " + GLU: "True"}},
    "starcoder2": {"keys": LAYER, "head": HEAD_LN, "gelu": True,
                   "blocks": {NORM + "attn_norm: d; " + ATTENTION + QKV_BIAS + "; attn_output: d; " + MLP_LN: "True"}},
    "gptneox": {"keys": {**LAYER, "use_parallel_residual": "True"}, "head": HEAD_LN + "; output d v", "gelu": True,
                "sizes": dict(kv="h", rot="4"), "blocks": {FUSED_LN + "; " + MLP_LN: "True"}},
    "falcon": {"keys": LAYER, "head": HEAD_LN, "gelu": True, "sizes": dict(kv="1"),
               "blocks": {"attn_norm d; attn_norm: d; attn_qkv d (h+2*kv)*hd; attn_output h*hd d; ffn_up d f; ffn_down f d": "True"}},
    "gpt2": {"keys": {**LAYER, "context_length": "256"}, "head": HEAD_LN + "; position_embd d 256", "gelu": True,
             "sizes": dict(kv="h"), "blocks": {FUSED_LN + "; " + MLP_LN: "True"}},
    "mpt": {"keys": {**LAYER, "attention.clamp_kqv": "1.5", "attention.max_alibi_bias": "8.0"}, "head": TIED, "gelu": True,
            "sizes": dict(kv="h"), "blocks": {"attn_norm d; attn_qkv d 3*d; attn_output d d; ffn_norm d; ffn_up d f; ffn_down f d": "True"}},
    "bloom": {"keys": LAYER, "head": HEAD_LN + "; token_embd_norm d; token_embd_norm: d", "gelu": True, "sizes": dict(kv="h"),
              "blocks": {FUSED_LN + "; " + MLP_LN: "True"}},
    "deepseek2": DEEPSEEK2,
    "llama4": {"keys": {**RMS, **LENGTHS, **EXPERTS, "expert_feed_forward_length": "fe", "interleave_moe_layer_step": "2"},
               "head": HEAD, "sizes": dict(hd="16", eu="1", fs="fe", l="4"),
               "blocks": {NORM + ATTENTION + "; ffn_norm d": "True", GLU: "i % 2 == 0", MOE + SHARED: "i % 2 == 1"}},
    "lfm2moe": {"keys": {**RMS, **EXPERTS, "expert_feed_forward_length": "fe", "expert_gating_func": "2",
                         "leading_dense_block_count": "1", "shortconv.l_cache": "3",
                         "attention.head_count_kv": "[0 if j % 2 == 0 else kv for j in range(l)]"},
                "head": "token_embd d v; token_embd_norm d",
                "blocks": {NORM + "ffn_norm d": "True", GLU: "i == 0", MOE + "; exp_probs_b: e": "i > 0", ATTENTION + QK_NORM: "i % 2 == 1",
                           "shortconv.in_proj d 3*d; shortconv.conv 3 d; shortconv.out_proj d d": "i % 2 == 0"}},
    # Further mixtures of experts.
    **MIXTURES,
    "phi2": {"keys": LAYER, "head": HEAD_LN + "; output d v; output: v", "gelu": True, "sizes": dict(kv="h", rot="4"),
             "blocks": {NORM + "attn_norm: d; " + ATTENTION + QKV_BIAS + "; attn_output: d; ffn_up d f; ffn_up: f; ffn_down f d; "
                        "ffn_down: d": "True"}},
    "nemotron": {"keys": LAYER, "head": HEAD_LN + "; output d v", "sizes": dict(rot="hd // 4 * 2"),
                 "blocks": {NORM + "attn_norm: d; " + ATTENTION + "; ffn_norm d; ffn_norm: d; ffn_up d f; ffn_down f d": "True"}},
    "arcee": decoder(NORM + ATTENTION + "; ffn_norm d; ffn_up d f; ffn_down f d", keys=LENGTHS, sizes=dict(hd="24")),
    "apertus": decoder(NORM + ATTENTION + QK_NORM + "; ffn_norm d; ffn_up d f; ffn_down f d", keys={
        **LENGTHS, "/xielu.alpha_p": "[0.5 + 0.3 * j for j in range(l)]", "/xielu.alpha_n": "[0.4 - 0.2 * j for j in range(l)]",
        "/xielu.beta": "[0.5 for j in range(l)]", "/xielu.eps": "[-1e-6 for j in range(l)]"}, sizes=dict(hd="24")),
    "olmo": {"keys": {**LAYER, "attention.clamp_kqv": "1.5"}, "head": "token_embd d v", "blocks": {ATTENTION + "; " + GLU: "True"}},
    "exaone": decoder(NORM + ATTENTION + "; " + FFN, HEAD + "; rope_freqs rot//2"),
    "minicpm3": decoder(NORM + "attn_q_a d 40; attn_q_a_norm 40; attn_q_b 40 h*(dn+rot); attn_kv_a_mqa d r+rot; attn_kv_a_norm r; "
                        "attn_kv_b r h*(dn+d//h); attn_output d d; " + FFN, TIED,
                        {"attention.q_lora_rank": "40", "attention.kv_lora_rank": "r", "attention.key_length": "dn + rot"},
                        sizes=dict(kv="h", r="32", dn="16", rot="8")),
    "chatglm": decoder(NORM + "attn_qkv d (h+2*kv)*hd; attn_qkv: (h+2*kv)*hd; attn_output d d; ffn_norm d; ffn_up d 2*f; ffn_down f d",
                       sizes=dict(rot="hd // 2")),
    "qwen": decoder(NORM + "attn_qkv d 3*d; attn_qkv: 3*d; attn_output d d; ffn_norm d; ffn_gate d f//2; ffn_up d f//2; ffn_down f//2 d",
                    sizes=dict(kv="h")),
    "baichuan": decoder(NORM + ATTENTION + "; " + FFN, sizes=dict(l="32", d="16", h="2", kv="h", f="12")),
    "starcoder": {"keys": {**LAYER, "context_length": "256"}, "head": HEAD_LN + "; position_embd d 256", "gelu": True,
                  "sizes": dict(kv="1"), "blocks": {FUSED_LN + "; " + MLP_LN: "True"}},
    "orion": {"keys": LAYER, "head": HEAD_LN + "; output d v",
              "blocks": {NORM + "attn_norm: d; " + ATTENTION + "; ffn_norm d; ffn_norm: d; " + GLU: "True"}},
    "codeshell": {"keys": LAYER, "head": HEAD_LN + "; output d v", "gelu": True, "blocks": {FUSED_LN + "; " + MLP_LN: "True"}},
    "xverse": decoder(NORM + ATTENTION + "; " + FFN),
    "jais": {"keys": {**LAYER, "attention.max_alibi_bias": "8.0"}, "head": HEAD_LN + "; output d v", "sizes": dict(kv="h"),
             "blocks": {FUSED_LN + "; ffn_norm d; ffn_norm: d; ffn_gate d f; ffn_gate: f; ffn_up d f; ffn_up: f; ffn_down f d; "
                        "ffn_down: d": "True"}},
    "jais2": {"keys": LAYER, "head": HEAD_LN + "; output d v",
              "blocks": {NORM + "attn_norm: d; " + ATTENTION + QKV_BIAS + "; attn_output: d; " + MLP_LN: "True"}},
    "refact": decoder(NORM + ATTENTION + "; " + FFN, sizes=dict(kv="1")),
    "plamo": decoder(NORM + ATTENTION + "; " + GLU),
    "plamo2": {"keys": {**RMS, **LENGTHS, **SSM1, "ssm.group_count": "0",
                        "attention.head_count_kv": "[kv if j % 2 == 1 else 0 for j in range(l)]"},
               "head": TIED, "sizes": dict(conv="4", inner="dt*12", state="8", dt="5", l="4", hd="16", few="64"),
               "blocks": {NORM + "post_attention_norm! d; ffn_norm d; ffn_up d 2*f; ffn_down f d; post_ffw_norm! d": "True",
                          "attn_qkv d (h+2*kv)*hd; attn_output h*hd d; attn_q_norm hd h; attn_k_norm hd kv": "i % 2 == 1",
                          "ssm_in d 2*inner; ssm_conv1d conv inner; ssm_x inner few+2*state; ssm_dt few dt; ssm_dt: dt; ssm_a! dt; ssm_d! dt; "
                          "ssm_out inner d; ssm_dt_norm! few; ssm_b_norm! state; ssm_c_norm! state": "i % 2 == 0"}},
    "plamo3": decoder(NORM + "attn_qkv d (h+2*kv)*hd; attn_output h*hd d" + QK_NORM + "; post_attention_norm! d; ffn_norm d; ffn_up d 2*f; "
                      "ffn_down f d; post_ffw_norm! d", keys={**LENGTHS, "attention.sliding_window": "9"}, sizes=dict(l="9", hd="16")),
    "maincoder": decoder(NORM + ATTENTION + QK_NORM + "; " + FFN, TIED, LENGTHS, sizes=dict(hd="24")),
    "openelm": decoder(NORM + "attn_qkv d 3*(i+1)*hd; attn_output (i+1)*hd d" + QK_NORM + "; ffn_norm d; ffn_gate d f+8*i; ffn_up d f+8*i; "
                       "ffn_down f+8*i d", TIED, {**LENGTHS, "attention.head_count": "[j + 1 for j in range(l)]",
                       "attention.head_count_kv": "[j + 1 for j in range(l)]", "feed_forward_length": "[f + 8 * j for j in range(l)]"},
                       sizes=dict(hd="16")),
    "pangu-embedded": decoder(NORM + ATTENTION + QKV_BIAS + "; attn_output: d; " + FFN, HEAD, LENGTHS, sizes=dict(hd="24")),
    "plm": decoder(NORM + "attn_q d h*(dn+rot); attn_kv_a_mqa d r+rot; attn_kv_a_norm r; attn_kv_b r h*(dn+dv); attn_output h*dv d; "
                   "ffn_norm d; ffn_up d f; ffn_down f d", TIED,
                   {"attention.kv_lora_rank": "r", "attention.key_length": "dn + rot", "attention.value_length": "dv"},
                   sizes=dict(kv="h", r="32", dn="16", rot="8", dv="20")),
    "granite_swa": decoder(NORM + ATTENTION + "; attn_sinks h; " + FFN, TIED, {
        **GRANITE, "attention.sliding_window": "9", "attention.sliding_window_pattern": "[1, 1, 0, 1][:l]",
        "attention.rope_pattern": "[1, 0, 1, 1][:l]"}),
    "spark2_5": decoder(NORM + ATTENTION + "; attn_gate d h; " + FFN, TIED, {
        **LENGTHS, "attention.sliding_window": "9", "attention.sliding_window_pattern": "[1, 0, 1, 1][:l]",
        "rope.freq_base_swa": "5000.0"}, gelu=True, sizes=dict(hd="16")),
    # A layer with attention, one with a product in its place, one without.
    "deci": {"keys": {**RMS, **LENGTHS, "attention.head_count": "[0 if j == 2 else h for j in range(l)]",
                      "attention.head_count_kv": "[kv if j % 3 == 0 else 0 for j in range(l)]",
                      "feed_forward_length": "[f + 8 * j for j in range(l)]"},
             "head": HEAD + "; rope_freqs rot//2",
             "blocks": {"ffn_norm d; ffn_gate d f+8*i; ffn_up d f+8*i; ffn_down f+8*i d": "True", "attn_norm d; attn_output d d": "i == 1",
                        NORM + ATTENTION: "i % 3 == 0"}},
    # Forms of the above.
    "baichuan:alibi": decoder(NORM + ATTENTION + "; " + FFN, sizes=dict(l="40", d="16", h="2", kv="h", f="12")),
    "granite_swa:experts": decoder(NORM + ATTENTION + "; attn_sinks h; ffn_norm d; ffn_gate_inp d e; ffn_gate_up_exps d 2*f e; "
                                   "ffn_down_exps f d e; ffn_up_shexp d 2*fs; ffn_down_shexp fs d", TIED, {
        **GRANITE, **EXPERTS, "attention.sliding_window": "9", "attention.sliding_window_pattern": "[0, 1, 0, 1][:l]",
        "expert_shared_feed_forward_length": "fs"}),
    "nemotron:biases": {"keys": LAYER, "head": HEAD_LN + "; output d v", "sizes": dict(rot="hd // 2 * 2"),
                        "blocks": {NORM + "attn_norm: d; " + ATTENTION + QKV_BIAS + "; attn_output: d; " + MLP_LN: "True"}},
    "arcee:plain": decoder(NORM + ATTENTION + "; ffn_norm d; ffn_up d f; ffn_down f d"),
    "exaone:plain": decoder(NORM + ATTENTION + "; " + FFN),
    "olmo:plain": {"keys": LAYER, "head": "token_embd d v; output d v", "blocks": {ATTENTION + "; " + GLU: "True"}},
    "minicpm3:longrope": decoder(NORM + "attn_q_a d 40; attn_q_a_norm 40; attn_q_b 40 h*(dn+rot); attn_kv_a_mqa d r+rot; "
                                 "attn_kv_a_norm r; attn_kv_b r h*(dn+d//h); attn_output d d; " + FFN,
                                 HEAD + "; rope_factors_long rot//2; rope_factors_short rot//2",
                                 {"attention.q_lora_rank": "40", "attention.kv_lora_rank": "r", "attention.key_length": "dn + rot",
                                  "rope.scaling.original_context_length": "128"}, sizes=dict(kv="h", r="32", dn="16", rot="8")),
    "plamo3:far": decoder(NORM + "attn_qkv d (h+2*kv)*hd; attn_output h*hd d" + QK_NORM + "; post_attention_norm! d; ffn_norm d; "
                          "ffn_up d 2*f; ffn_down f d; post_ffw_norm! d", TIED, LENGTHS, sizes=dict(hd="16")),
    "deepseek2:yarn": dict(DEEPSEEK2, keys={**DEEPSEEK2["keys"], **YARN, "rope.scaling.yarn_log_multiplier": "0.0707"}),
    "llama:linear": decoder(NORM + ATTENTION + "; " + FFN, keys={"rope.scaling.type": "=linear", "rope.scaling.factor": "4.0"}),
    "llama:yarn": decoder(NORM + ATTENTION + "; " + FFN, keys=YARN),
    "llama:rope_freqs": decoder(NORM + ATTENTION + "; " + FFN, HEAD + "; rope_freqs rot//2"),
    "qwen2:yarn": decoder(NORM + ATTENTION + QKV_BIAS + "; " + FFN, keys={
        "rope.scaling.type": "=yarn", "rope.scaling.factor": "4.0", "rope.scaling.original_context_length": "32"}),
    "phi3:longrope": decoder(NORM + "attn_qkv d (h+2*kv)*hd; attn_output h*hd d; ffn_norm d; ffn_up d 2*f; ffn_down f d",
                             HEAD + "; rope_factors_long rot//2; rope_factors_short rot//2",
                             {"rope.scaling.type": "=longrope", "rope.scaling.attn_factor": "1.19",
                              "rope.scaling.original_context_length": "128"}),
    "phi3:unnamed": decoder(NORM + "attn_qkv d (h+2*kv)*hd; attn_output h*hd d; ffn_norm d; ffn_up d 2*f; ffn_down f d",
                            TIED + "; rope_factors_long rot//2; rope_factors_short rot//2",
                            {"rope.scaling.attn_factor": "1.3", "rope.scaling.original_context_length": "512"},
                            sizes=dict(hd="16", rot="12", d="h*hd")),
    "granite:unrotated": decoder(NORM + ATTENTION + "; " + FFN, TIED, {**GRANITE, "rope.scaling.finetuned": "False"}),
    "mistral3:temperature": decoder(NORM + ATTENTION + "; " + FFN, TIED, {
        **LENGTHS, "attention.temperature_scale": "0.3", "rope.scaling.type": "=yarn", "rope.scaling.factor": "4.0",
        "rope.scaling.original_context_length": "8", "rope.scaling.yarn_log_multiplier": "1.0"}, sizes=dict(hd="24")),
    "hunyuan-dense:alpha": decoder(NORM + ATTENTION + QK_NORM + "; " + FFN, TIED, {**LENGTHS, "rope.scaling.alpha": "50.0"},
                                   sizes=dict(hd="24")),
    "command-r:head_norms": {"keys": {**LAYER, "logit_scale": "0.25"}, "head": TIED, "sizes": dict(l="64", d="16", h="2", kv="1", f="12"),
                             "blocks": {NORM + ATTENTION + "; attn_q_norm hd h; attn_k_norm hd kv; " + GLU: "True"}},
    "cohere2:pattern": {"keys": {**LAYER, "logit_scale": "0.25", "attention.sliding_window": "9",
                                 "attention.sliding_window_pattern": "[0, 1, 1, 0]"}, "head": TIED, "sizes": dict(l="4"),
                        "blocks": {NORM + ATTENTION + "; " + GLU: "True"}},
    "mpt:biases": {"keys": {**LAYER, "attention.max_alibi_bias": "8.0"}, "head": HEAD_LN + "; output d v", "gelu": True,
                   "sizes": dict(kv="h"), "blocks": {FUSED_LN + "; " + MLP_LN: "True"}},
    "glm4:nextn": {
        "keys": {**RMS, "nextn_predict_layers": "1"}, "head": HEAD, "sizes": dict(rot="hd // 2"),
        "blocks": {NORM + ATTENTION + QKV_BIAS + "; post_attention_norm d; ffn_norm d; ffn_up d 2*f; ffn_down f d; post_ffw_norm d": "True",
                   "nextn.eh_proj 2*d d; nextn.enorm d; nextn.hnorm d; nextn.shared_head_norm d": "i == l - 1"}},
    "olmo2:window": decoder(ATTENTION + "; attn_q_norm d; attn_k_norm kv*hd; " + POST_BOTH + GLU, keys={
        "attention.sliding_window": "9", "rope.scaling.type": "=yarn", "rope.scaling.factor": "8.0",
        "rope.scaling.original_context_length": "64", "rope.scaling.attn_factor": "1.1"}, sizes=dict(l="5")),
    "exaone4:window": decoder(ATTENTION + QK_NORM + "; " + POST_BOTH + GLU, keys={"attention.sliding_window": "9"},
                              sizes=dict(l="64", d="16", h="2", kv="1", f="12")),
    "stablelm:parallel": {"keys": {**LAYER, "use_parallel_residual": "True"}, "head": HEAD_LN + "; output d v", "sizes": dict(rot="4"),
                          "blocks": {NORM + "attn_norm: d; " + ATTENTION + "; attn_q_norm hd h; attn_k_norm hd kv; " + GLU: "True"}},
    "gptneox:sequential": {"keys": {**LAYER, "use_parallel_residual": "False"}, "head": HEAD_LN + "; output d v", "gelu": True,
                           "sizes": dict(kv="h", rot="4"), "blocks": {FUSED_LN + "; " + MLP_LN: "True"}},
    "falcon:two_norms": {"keys": LAYER, "head": HEAD_LN + "; output d v", "gelu": True,
                         "blocks": {"attn_norm d; attn_norm: d; attn_norm_2 d; attn_norm_2: d; attn_qkv d (h+2*kv)*hd; "
                                    "attn_output h*hd d; ffn_up d f; ffn_down f d": "True"}},
    "mamba:rms": {"keys": {**RMS, **SSM1, "feed_forward_length": "0", "attention.head_count": "0", "ssm.dt_b_c_rms": "True"},
                  "head": TIED, "sizes": dict(conv="4", inner="2*d", state="8", dt="6", h="1"), "blocks": {NORM + MAMBA1: "True"}},
    "lfm2:window": {"keys": {**RMS, "shortconv.l_cache": "4", "attention.sliding_window": "9",
                             "attention.head_count_kv": "[kv if j % 2 == 0 else 0 for j in range(l)]"},
                    "head": "token_embd d v; token_embd_norm d",
                    "blocks": {NORM + FFN: "True", ATTENTION + QK_NORM: "i % 2 == 0",
                               "shortconv.in_proj d 3*d; shortconv.conv 4 d; shortconv.out_proj d d": "i % 2 == 1"}},
    "qwen35:layers": {"keys": {**RMS, **LENGTHS, **DELTA_KEYS, "attention.recurrent_layers": "[j != 1 for j in range(l)]",
                               "rope.dimension_sections": "[3, 3, 2, 0]"},
                      "head": TIED, "sizes": DELTA_SIZES,
                      "blocks": {NORM + "post_attention_norm d; " + GLU: "True", GATED: "i == 1",
                                 DELTA + "; ssm_beta d hv; ssm_alpha d hv": "i != 1"}},
    "qwen3next:joined": {"keys": {**RMS, **LENGTHS, **DELTA_KEYS, **EXPERTS, "expert_feed_forward_length": "fe",
                                  "expert_shared_feed_forward_length": "fs", "full_attention_interval": "2"},
                         "head": TIED, "sizes": DELTA_SIZES,
                         "blocks": {NORM + "post_attention_norm d; " + MOE + SHARED + "; ffn_gate_inp_shexp d": "True",
                                    GATED: "i % 2 == 1",
                                    DELTA.replace("attn_qkv d 2*hk*s+hv*s; attn_gate d hv*s", "ssm_in d 2*hk*s+2*hv*s") +
                                    "; ssm_ba d 2*hv": "i % 2 == 0"}},
    "granitehybrid:experts": {
        "keys": {**RMS, **GRANITE, **SSM2, **EXPERTS, "attention.head_count_kv": "[kv if j == 1 else 0 for j in range(l)]",
                 "expert_shared_feed_forward_length": "fs", "rope.scaling.finetuned": "False"},
        "head": TIED, "sizes": dict(SSM2_SIZES, fe="f", groups="1"),
        "blocks": {NORM + "ffn_norm d; " + MOE + SHARED: "True", MAMBA2: "i != 1", ATTENTION: "i == 1"}},
    "llama4:several": {
        "keys": {**RMS, **LENGTHS, **SPARSE, "interleave_moe_layer_step": "1"}, "head": HEAD, "sizes": dict(hd="16", fs="fe", l="4"),
        "blocks": {NORM + ATTENTION + "; ffn_norm d": "True", MOE + SHARED: "True"}},
    "deepseek2:lite": {
        "keys": {**RMS, **EXPERTS, "expert_feed_forward_length": "fe", "expert_gating_func": "1", "expert_shared_count": "2",
                 "expert_weights_scale": "1.0", "leading_dense_block_count": "24", "attention.kv_lora_rank": "r",
                 "attention.key_length": "dn + rot", "attention.value_length": "dv"},
        "head": TIED, "sizes": dict(l="27", d="32", h="2", kv="h", f="16", fe="16", fs="2*fe", r="16", dn="8", rot="8", dv="8"),
        "blocks": {NORM + "attn_q d h*(dn+rot); attn_kv_a_mqa d r+rot; attn_kv_a_norm r; attn_kv_b r h*(dn+dv); attn_output h*dv d; "
                   "ffn_norm d": "True", GLU: "i < 24", MOE + SHARED: "i >= 24"}},
    "glm4moe": {
        "keys": {**RMS, **LENGTHS, **EXPERTS, "expert_feed_forward_length": "fe", "expert_gating_func": "2", "expert_shared_count": "1",
                 "expert_weights_norm": "True", "expert_weights_scale": "1.7", "leading_dense_block_count": "1",
                 "nextn_predict_layers": "1"},
        "head": TIED, "sizes": dict(hd="16", rot="8", fs="fe", l="4"),
        "blocks": {NORM + ATTENTION + QKV_BIAS + QK_NORM + "; post_attention_norm d": "True", GLU: "i == 0",
                   MOE + SHARED + "; exp_probs_b: e": "i > 0",
                   "nextn.eh_proj 2*d d; nextn.enorm d; nextn.hnorm d; nextn.shared_head_norm d": "i == l - 1"}},
    "gemma3n": {
        "keys": {**RMS, **LENGTHS, "attention.sliding_window": "12", "rope.freq_base_swa": "5000.0"}, "gelu": True,
        "sizes": dict(hd="24", l="5", p="256"),
        "head": TIED + "; per_layer_token_embd p*l v; per_layer_model_proj d p*l; per_layer_proj_norm p; altup_proj d d 3; "
                "altup_unembd_proj d d 3",
        "blocks": {NORM + ATTENTION + QK_NORM + "; " + POST_BOTH + FFN + "; inp_gate d p; proj p d; post_norm d; "
                   "altup_correct_coef 4 4; altup_correct_scale d; altup_predict_coef 4 16; altup_router d 4; altup_router_norm d; "
                   "laurel_l d 64; laurel_r 64 d; laurel_post_norm d": "True"}},
    "gemma4": {
        "keys": {**RMS, **LENGTHS, "attention.key_length_swa": "16", "attention.value_length_swa": "16", "attention.shared_kv_layers": "2",
                 "attention.sliding_window": "9", "attention.sliding_window_pattern": "[1, 1, 1, 0, 1, 0]",
                 "embedding_length_per_layer_input": "p", "final_logit_softcapping": "15.0", "rope.dimension_count_swa": "16",
                 "rope.freq_base_swa": "5000.0"},
        "gelu": True, "sizes": dict(hd="32", l="6", p="12", h="4", kv="2"),
        "head": TIED + "; rope_freqs hd//2; per_layer_token_embd p*l v; per_layer_model_proj d p*l; per_layer_proj_norm p",
        "blocks": {NORM + POST_BOTH + FFN + "; inp_gate d p; proj p d; post_norm d; layer_output_scale 1": "True",
                   "attn_q d h*16; attn_output h*16 d; attn_q_norm 16": "i not in (3, 5)",
                   "attn_q d h*hd; attn_output h*hd d; attn_q_norm hd": "i in (3, 5)",
                   "attn_k d kv*16; attn_v d kv*16; attn_k_norm 16": "i < 3",
                   "attn_k d kv*hd; attn_v d kv*hd; attn_k_norm hd": "i == 3"}},
    # Encoders, and decoders that embed: compared by their embeddings.
    "bert": {
        "keys": {**LAYER, "attention.causal": "False", "pooling_type": "1"}, "embeds": True, "gelu": True, "sizes": dict(kv="h"),
        "head": "token_embd d v; token_embd_norm d; token_embd_norm: d; token_types d 2; position_embd d 2048",
        "blocks": {ATTENTION + QKV_BIAS + "; attn_output: d; attn_output_norm d; attn_output_norm: d; ffn_up d f; ffn_up: f; ffn_down f d; "
                   "ffn_down: d; layer_output_norm d; layer_output_norm: d": "True"}},
    "nomic-bert": {
        "keys": {**LAYER, "attention.causal": "False", "pooling_type": "1"}, "embeds": True, "sizes": dict(kv="h"),
        "head": "token_embd d v; token_embd_norm d; token_embd_norm: d; token_types d 2",
        "blocks": {"attn_qkv d 3*d; attn_output d d; attn_output_norm d; attn_output_norm: d; " + GLU +
                   "; layer_output_norm d; layer_output_norm: d": "True"}},
    "modern-bert": {
        "keys": {**LAYER, "attention.causal": "False", "pooling_type": "2", "attention.sliding_window": "16",
                 "attention.sliding_window_pattern": "3", "rope.freq_base_swa": "5000.0"},
        "embeds": True, "gelu": True, "sizes": dict(kv="h", l="5"), "head": TIED + "; token_embd_norm d",
        "blocks": {"attn_norm d": "i > 0", "attn_qkv d 3*d; attn_output d d; ffn_norm d; ffn_up d 2*f; ffn_down f d": "True"}},
    "gemma-embedding": {
        "keys": {**RMS, **LENGTHS, "attention.sliding_window": "12", "pooling_type": "1", "rope.freq_base_swa": "5000.0"},
        "embeds": True, "gelu": True, "sizes": dict(hd="24", l="7"), "head": TIED,
        "blocks": {NORM + ATTENTION + QK_NORM + "; " + POST_BOTH + FFN: "True"}},
    "qwen3:embedding": {**decoder(NORM + ATTENTION + QK_NORM + "; " + FFN, TIED, {**LENGTHS, "pooling_type": "3"}, sizes=dict(hd="24")),
                        "embeds": True},
    "nomic-bert-moe": {
        "keys": {**LAYER, **EXPERTS, "attention.causal": "False", "pooling_type": "1", "moe_every_n_layers": "2"}, "embeds": True,
        "gelu": True, "sizes": dict(kv="h"), "head": BERT_HEAD,
        "blocks": {"attn_qkv d 3*d; attn_qkv: 3*d; " + BERT_NORMS: "True", "ffn_up d f; ffn_up: f; ffn_down f d; ffn_down: d": "i % 2 == 0",
                   "ffn_gate_inp d e; ffn_up_exps d f e; ffn_down_exps f d e": "i % 2 == 1"}},
    "jina-bert-v3": {
        "keys": {**LAYER, "attention.causal": "False", "pooling_type": "1"}, "embeds": True, "gelu": True, "sizes": dict(kv="h"),
        "head": BERT_HEAD,
        "blocks": {"attn_qkv d 3*d; attn_qkv: 3*d; " + BERT_NORMS + "; ffn_up d f; ffn_up: f; ffn_down f d; ffn_down: d": "True"}},
    "eurobert": {"keys": {**RMS, "attention.causal": "False", "pooling_type": "1"}, "embeds": True, "head": TIED,
                 "blocks": {NORM + ATTENTION + "; " + FFN: "True"}},
    "neo-bert": {"keys": {**RMS, "attention.causal": "False", "pooling_type": "2"}, "embeds": True, "sizes": dict(kv="h"),
                 "head": "token_embd d v; enc.output_norm d",
                 "blocks": {NORM + "attn_qkv d (h+2*kv)*hd; attn_output d d; ffn_norm d; ffn_up d 2*f; ffn_down f d": "True"}},
    "llama-embed": {**decoder(NORM + ATTENTION + "; " + FFN, HEAD, {"attention.causal": "False", "pooling_type": "1"}), "embeds": True},
    "llama-embed:experts": {**decoder(NORM + ATTENTION + "; ffn_norm d; " + MOE, TIED,
                                      {**EXPERTS, "attention.causal": "False", "pooling_type": "3"}, sizes=dict(fe="f")), "embeds": True},
    "jina-bert-v2": {
        "keys": {**LAYER, "attention.causal": "False", "pooling_type": "1"}, "embeds": True, "gelu": True, "sizes": dict(kv="h"),
        "head": BERT_HEAD, "blocks": {"attn_q d d; attn_k d d; attn_v d d" + QKV_BIAS + "; " + BERT_NORMS + "; " + GLU + "; ffn_down: d": "True"}},
    "jina-bert-v2:code": {
        "keys": {**LAYER, "attention.causal": "False", "pooling_type": "1"}, "embeds": True, "gelu": True, "sizes": dict(kv="h", h="6", d="48"),
        "head": BERT_HEAD,
        "blocks": {"attn_q d d; attn_k d d; attn_v d d" + QKV_BIAS + "; attn_q_norm d; attn_q_norm: d; attn_k_norm d; attn_k_norm: d; "
                   "attn_norm_2 d; attn_norm_2: d; " +
                   BERT_NORMS + "; ffn_up d 2*f; ffn_down f d; ffn_down: d": "True"}},
    "t5encoder": {
        "keys": {**RMS, **LENGTHS, "attention.causal": "False", "attention.relative_buckets_count": "32", "pooling_type": "1"},
        "embeds": True, "gelu": True, "sizes": dict(kv="h", hd="24"), "stack": "enc.", "prompt": 200, "head": "token_embd d v; enc.output_norm d",
        "blocks": {T5_BLOCK + "; ffn_gate d f": "True", "attn_rel_b h 32": "i == 0"}},
    "t5encoder:relu": {
        "keys": {**RMS, **LENGTHS, "attention.causal": "False", "attention.relative_buckets_count": "12", "pooling_type": "1"},
        "embeds": True, "sizes": dict(kv="h", hd="24"), "stack": "enc.", "prompt": 200, "head": "token_embd d v; enc.output_norm d; output d v",
        "blocks": {T5_BLOCK + "; attn_rel_b h 12": "True"}},
    "rwkv6": {"keys": {**LAYER, **RWKV6_KEYS, "token_shift_count": "2", "rescale_every_n_layers": "2"}, "head": RWKV_HEAD, "sizes": RWKV_SIZES,
              "blocks": {RWKV6_MIX + RWKV_NORMS + "time_mix_lerp_fused d 1 1 5; time_mix_first s d//s; time_mix_key d d; time_mix_value d d; "
                         "channel_mix_lerp_k d 1 1; channel_mix_lerp_r d 1 1; channel_mix_key d f; channel_mix_value f d; "
                         "channel_mix_receptance d d": "True"}},
    "rwkv6:parts": {"keys": {**LAYER, **RWKV6_KEYS, "token_shift_count": "2"}, "head": RWKV_HEAD, "sizes": dict(RWKV_SIZES, s="32", d="96"),
                    "blocks": {RWKV6_MIX + RWKV_NORMS + "time_mix_lerp_w d 1 1; time_mix_lerp_k d 1 1; time_mix_lerp_v d 1 1; "
                               "time_mix_lerp_r d 1 1; time_mix_lerp_g d 1 1; time_mix_first s d//s; time_mix_key d d; time_mix_value d d; "
                               "channel_mix_lerp_k d 1 1; channel_mix_lerp_r d 1 1; channel_mix_key d f; channel_mix_value f d; "
                               "channel_mix_receptance d d": "True"}},
    "rwkv6qwen2": {"keys": {**RMS, **RWKV6_KEYS, "token_shift_count": "1"}, "head": HEAD, "sizes": dict(RWKV_SIZES, d="192", kv="1", h="3"),
                   "blocks": {RWKV6_MIX + "attn_norm d; time_mix_lerp_fused d 1 1 5; time_mix_key d kv*s; time_mix_key: kv*s; "
                              "time_mix_value d kv*s; time_mix_value: kv*s; time_mix_receptance: d; " + FFN: "True"}},
    "rwkv7": {"keys": {**LAYER, **RWKV7_KEYS, "token_shift_count": "2"}, "head": RWKV_HEAD, "sizes": RWKV_SIZES,
              "blocks": {RWKV7_MIX + RWKV7_GATE + RWKV_NORMS + "channel_mix_lerp_k d 1 1; channel_mix_key d f; channel_mix_value f d": "True"}},
    "arwkv7": {"keys": {**RMS, **RWKV7_KEYS, "token_shift_count": "1"}, "head": HEAD, "sizes": RWKV_SIZES,
               "blocks": {RWKV7_MIX + RWKV7_GATE + "attn_norm d; time_mix_ln d; time_mix_ln: d; " + FFN: "True"}},
    "arwkv7:ungated": {"keys": {**RMS, **RWKV7_KEYS, "token_shift_count": "1", "attention.gate_lora_rank": "0"}, "head": HEAD, "sizes": RWKV_SIZES,
                       "blocks": {RWKV7_MIX + "time_mix_lerp_fused d 1 1 5; attn_norm d; " + FFN: "True"}},
}
