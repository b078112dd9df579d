// Measures ik_llama.cpp through its C API as peer.cpp measures llama.cpp: the API is that of an older release
// of the same family, so one text cannot serve both. ik_compare.py builds and starts it.
//
// Usage: ik_peer MODEL THREADS PROMPT_TOKENS GENERATED_TOKENS REPACK
// REPACK 1: weights are rearranged when they are loaded, which that engine leaves to its user to choose.
#include <llama.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "ik_peer: %s\n", what.c_str());
  std::exit(1);
}

void only_errors(ggml_log_level level, const char* text, void*) {
  if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
}

struct Engine {
  llama_model* model = nullptr;
  llama_context* context = nullptr;
  int vocabulary = 0, position = 0, sink = 0;

  void restart() { llama_kv_cache_clear(context), position = 0; }
  // Computes tokens, fetches the logits of the last one and looks for the greatest.
  void step(llama_token* tokens, int count) {
    if (llama_decode(context, llama_batch_get_one(tokens, count, position, 0))) fail("llama_decode failed");
    position += count;
    const float* logits = llama_get_logits_ith(context, -1);
    if (logits == nullptr) fail("there are no logits");
    sink += int(std::max_element(logits, logits + vocabulary) - logits);
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) fail("usage: ik_peer MODEL THREADS PROMPT_TOKENS GENERATED_TOKENS REPACK");
  const int threads = std::atoi(argv[2]), prompt = std::atoi(argv[3]), generate = std::atoi(argv[4]);
  llama_log_set(only_errors, nullptr);
  llama_backend_init();
  llama_model_params how = llama_model_default_params();
  how.repack_tensors = std::atoi(argv[5]) != 0;
  how.use_mmap = !how.repack_tensors;
  Engine e;
  e.model = llama_model_load_from_file(argv[1], how);
  if (e.model == nullptr) fail(std::string(argv[1]) + " cannot be loaded");
  llama_context_params wanted = llama_context_default_params();
  wanted.n_ctx = uint32_t(std::max(prompt, generate + 1) + 255) / 256 * 256;
  wanted.n_threads = wanted.n_threads_batch = uint32_t(threads);
  e.context = llama_init_from_model(e.model, wanted);
  if (e.context == nullptr) fail("no context");
  e.vocabulary = llama_n_vocab(e.model);
  std::mt19937 random(1);
  std::vector<llama_token> tokens(size_t(std::max(prompt, generate + 1)));
  for (llama_token& token : tokens) token = llama_token(random() % unsigned(e.vocabulary));

  double prompt_speed = 0, generation_speed = 0;
  for (int round = 0; round < 2; round++) {  // the first one is for warming up
    e.restart();
    auto start = Clock::now();
    e.step(tokens.data(), prompt);
    prompt_speed = prompt / since(start);
    e.restart();
    e.step(tokens.data(), 1);
    start = Clock::now();
    for (int i = 1; i <= generate; i++) e.step(tokens.data() + i, 1);
    generation_speed = generate / since(start);
  }
  std::printf("{\"prompt\": %.6g, \"generation\": %.6g, \"token\": %d}\n", prompt_speed, generation_speed,
              e.sink);
  return 0;
}
