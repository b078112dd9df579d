// A stand-in for libllama, with the interface of release b8390: gimbal itself computes behind it, so a
// comparison with it gives the same bits. GIMBAL_SHIM makes it misbehave:
// - defaults: another default, as of a made-up generation; -DGIMBAL_SHIM_LARGER makes a larger struct
// - crash-load, crash, crash-later: it aborts while it loads, while it computes, at the 20th step
// - hang: it never finishes computing
// - no-model: it loads nothing, and says why on stderr
// - logit, layer: a wrong logit; also a wrong number behind layer 1
// - mark: the wrong number alone; mark at: another value
// - token, vocabulary: another token of the text, a larger vocabulary
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <unistd.h>

#include "crossval/our_layers.h"
#include "files/gguf.h"
#include "runtime/session.h"
#include "tokenizer/tokenizer.h"

extern "C" const gimbal_backend* gimbal_backend_cpu();

namespace {

#define SHIM extern "C" __attribute__((visibility("default")))

bool mode(const char* name) {
  const char* wanted = std::getenv("GIMBAL_SHIM");
  return wanted && std::string(wanted) == name;
}

// As llama.h of b8390 has them; defaults as that release returns them.
struct ModelParams {
  void *devices, *overrides;
  int32_t gpu_layers, split_mode, main_gpu;
  void *split, *progress, *progress_data, *metadata;
  bool vocabulary_only, map, direct, lock, check, extra, no_host, no_alloc;
};
struct ContextParams {
  uint32_t context, batch, micro_batch, sequences;
  int32_t threads, batch_threads, rope_scaling, pooling, attention, flash;
  float base, scale, extend, attend, fast, slow;
  uint32_t original;
  float defragment;
  bool (*evaluated)(void*, bool, void*);
  void* user;
  int32_t type_k, type_v;
  void *abort, *abort_data;
  bool embeddings, offload, no_timing, op_offload, whole_window, unified;
  void* samplers;
  size_t n_samplers;
};
static_assert(sizeof(ModelParams) == 72 && sizeof(ContextParams) == 136);

struct Tokens {
  int32_t count;
  int32_t* token;
  float* embedding;
  int32_t *position, *n_sequences;
  int32_t** sequence;
  int8_t* wanted;
};

// The beginning of ggml_tensor, and what the shim's own functions need.
struct Tensor {
  int32_t type = 0;
  std::string name = {};
  int64_t rows = 0;
  std::vector<float> values = {};
};

struct ShimModel {
  std::unique_ptr<gimbal::ModelSource> file;
  std::unique_ptr<gimbal::Device> device;
  std::unique_ptr<gimbal::Tokenizer> tokenizer;
  gimbal::Config config;
};
struct ShimContext {
  ShimModel* model;
  ContextParams params;
  std::unique_ptr<gimbal::Model> loaded;
  std::unique_ptr<gimbal::Session> session;
  std::vector<float> logits;
};

gimbal::RunOptions options_of(const ContextParams& p) {
  gimbal::RunOptions o;
  o.context = int(p.context), o.batch = std::min(int(p.batch), o.context), o.logit_rows = o.batch;
  o.cache_type = p.type_k == 0 ? gimbal::DType::F32 : gimbal::DType::F16;
  return o;
}

void show_layers(ShimContext& c, std::span<const int32_t> tokens) {
  (void)gimbal::crossval::our_layers(
      *c.model->file, *c.model->device, options_of(c.params), tokens,
      [&](int layer, int width, std::span<const float> rows) {
        Tensor t{
            0, "l_out-" + std::to_string(layer), int64_t(rows.size()) / width, {rows.begin(), rows.end()}};
        if (layer == 1 && (mode("layer") || mode("mark"))) t.values[size_t(width) + 3] += 0.25f;
        if (c.params.evaluated(&t, true, c.params.user)) c.params.evaluated(&t, false, c.params.user);
      });
}

}  // namespace

SHIM void llama_backend_init() {}
SHIM ModelParams llama_model_default_params() {
  ModelParams p{};
  p.gpu_layers = -1, p.split_mode = 1, p.map = p.extra = true;
  return p;
}
static ContextParams defaults() {
  ContextParams p{};
  p.context = mode("defaults") ? 4096 : 512, p.batch = 2048, p.micro_batch = 512, p.sequences = 1;
  p.threads = p.batch_threads = 4;
  p.rope_scaling = p.pooling = p.attention = p.flash = -1;
  p.extend = p.attend = p.fast = p.slow = p.defragment = -1;
  p.type_k = p.type_v = 1;
  p.offload = p.no_timing = p.op_offload = p.whole_window = true;
  return p;
}
#if defined(GIMBAL_SHIM_LARGER)
struct LargerParams {
  ContextParams known;
  int64_t added[5];
};
SHIM LargerParams llama_context_default_params() { return {defaults(), {1, 2, 3, 4, 5}}; }
#else
SHIM ContextParams llama_context_default_params() { return defaults(); }
#endif
SHIM void llama_set_sampler() {}

SHIM void* llama_model_load_from_file(const char* path, ModelParams) {
  if (mode("crash-load"))
    std::fprintf(stderr, "shim: about to load\nshim: bad pointer\n"), std::raise(SIGSEGV);
  if (mode("no-model")) return std::fprintf(stderr, "shim: unknown model architecture: 'made-up'\n"), nullptr;
  auto model = std::make_unique<ShimModel>();
  auto file = gimbal::open_gguf(path, {});
  if (!file) return std::fprintf(stderr, "shim: %s\n", file.error().message.c_str()), nullptr;
  model->file = std::make_unique<gimbal::ModelSource>(std::move(*file));
  auto device = gimbal::Device::open(*gimbal_backend_cpu(), 0, "threads=1");
  auto tokenizer = gimbal::Tokenizer::create(model->file->metadata());
  auto config = gimbal::configure(*model->file);
  if (!device || !tokenizer || !config) return nullptr;
  model->device = std::move(*device), model->tokenizer = std::move(*tokenizer), model->config = *config;
  return model.release();
}
SHIM void* llama_init_from_model(ShimModel* model, ContextParams params) {
  auto c = std::make_unique<ShimContext>();
  c->model = model, c->params = params;
  auto plan = gimbal::make_model_plan(*model->file, *model->device, options_of(params));
  if (!plan) return std::fprintf(stderr, "shim: %s\n", plan.error().message.c_str()), nullptr;
  auto loaded = gimbal::Model::load(std::move(*plan), *model->file);
  if (!loaded) return std::fprintf(stderr, "shim: %s\n", loaded.error().message.c_str()), nullptr;
  c->loaded = std::move(*loaded);
  auto session = gimbal::Session::create(*c->loaded);
  if (!session) return nullptr;
  c->session = std::move(*session);
  return c.release();
}
SHIM void llama_free(ShimContext* c) { delete c; }
SHIM int32_t llama_model_n_layer(const ShimModel* m) { return m->config.layers; }
SHIM int32_t llama_model_n_embd(const ShimModel* m) { return m->config.width; }
SHIM int32_t llama_model_desc(const ShimModel*, char* to, size_t n) { return std::snprintf(to, n, "a shim"); }
SHIM const ShimModel* llama_model_get_vocab(const ShimModel* m) { return m; }
SHIM int32_t llama_vocab_n_tokens(const ShimModel* m) {
  return m->config.vocabulary + (mode("vocabulary") ? 8 : 0);
}
SHIM int32_t llama_tokenize(const ShimModel* m, const char* text, int32_t bytes, int32_t* to, int32_t room,
                            bool, bool) {
  auto ids = m->tokenizer->encode({text, size_t(bytes)}, {.parse_special = false});
  if (mode("token") && ids.size() > 4) ids[4] = 5;
  if (int32_t(ids.size()) > room) return -int32_t(ids.size());
  std::copy(ids.begin(), ids.end(), to);
  return int32_t(ids.size());
}
SHIM int32_t llama_decode(ShimContext* c, Tokens batch) {
  static int calls = 0;
  if (mode("crash") || (mode("crash-later") && ++calls == 20))
    std::fprintf(stderr, "shim: GGML_ASSERT(rows == 7) failed\n"), std::abort();
  while (mode("hang")) usleep(10000);
  const std::span<const int32_t> tokens(batch.token, size_t(batch.count));
  if (c->params.evaluated) show_layers(*c, tokens);
  c->logits.clear();
  const auto ok = c->session->advance(
      tokens, gimbal::Session::Wanted::All,
      [&](size_t, std::span<const float> row) { c->logits.insert(c->logits.end(), row.begin(), row.end()); });
  const size_t width = size_t(c->model->config.vocabulary);
  if ((mode("logit") || mode("layer")) && tokens.size() > 2) c->logits[width * 2 + 7] += 0.5f;
  return ok ? 0 : 1;
}
SHIM float* llama_get_logits_ith(ShimContext* c, int32_t row) {
  const size_t width = size_t(c->model->config.vocabulary);
  const size_t at = c->logits.size() < width * (size_t(row) + 1) ? 0 : size_t(row);
  return c->logits.empty() ? nullptr : c->logits.data() + at * width;
}
SHIM const char* ggml_get_name(const Tensor* t) { return t->name.c_str(); }
SHIM int64_t ggml_nelements(const Tensor* t) { return int64_t(t->values.size()); }
SHIM int64_t ggml_nrows(const Tensor* t) { return t->rows; }
SHIM bool ggml_is_contiguous(const Tensor*) { return true; }
SHIM void ggml_backend_tensor_get(const Tensor* t, void* to, size_t offset, size_t bytes) {
  std::memcpy(to, reinterpret_cast<const char*>(t->values.data()) + offset, bytes);
}
