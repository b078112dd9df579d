// Measures the packaged llama.cpp through its C API, step for step as `gimbal bench` measures gimbal: random
// prompt in one go, then tokens one by one from an empty context with the likeliest token looked up, after
// one warm-up. compare.py builds it against the headers of the packaged release and starts it; the result is
// one JSON object.
//
// Usage: peer LIBRARY_FOLDER MODEL THREADS PROMPT_TOKENS GENERATED_TOKENS REPETITIONS [SEQUENCES]
// REPETITIONS 0: load, compute one token, end; its parent measures the time.
// SEQUENCES: so many, each after PROMPT_TOKENS (0 or more) of its own, are generated together, as `gimbal
// bench --sequences` does; their speed is that of all tokens together.
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <llama.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "peer: %s\n", what.c_str());
  std::exit(1);
}

// The library's log: the useful lines (where weights lie, flash attention), and the
// errors.
struct Log {
  std::vector<std::string> kept;
  std::string line;
  static void add(ggml_log_level level, const char* text, void* data) {
    auto& log = *static_cast<Log*>(data);
    if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
    for (const char* c = text; *c; c++) {
      if (*c != '\n') {
        log.line += *c;
        continue;
      }
      for (const char* word : {"buffer size", "Flash Attention", "flash_attn"})
        if (log.line.find(word) != std::string::npos) {
          log.kept.push_back(log.line);
          break;
        }
      log.line.clear();
    }
  }
};

// The CPU library that is mapped into this process: what runs, whatever was asked for.
std::string loaded_cpu_library() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t at = line.find("/libggml-cpu");
    if (at != std::string::npos) return line.substr(at + 1);
  }
  return {};
}

uint64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  unsigned long kilobytes = 0;
  for (std::string line; std::getline(status, line);)
    if (std::sscanf(line.c_str(), "VmHWM: %lu", &kilobytes) == 1) break;
  return uint64_t(kilobytes) * 1024;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text)
    if (static_cast<unsigned char>(c) >= 0x20)
      out += (c == '"' || c == '\\') ? std::string("\\") + c : std::string(1, c);
  return out + '"';
}

void decode(llama_context* context, llama_token* tokens, int count) {
  const int most = int(llama_n_batch(context));
  for (int at = 0; at < count; at += most)
    if (const int status =
            llama_decode(context, llama_batch_get_one(tokens + at, std::min(most, count - at))))
      fail("llama_decode returned " + std::to_string(status));
}

// Fetches the logits and looks for the greatest, so that no part of a step is left to a later one.
int likeliest(llama_context* context, int vocabulary, int row = -1) {
  const float* logits = llama_get_logits_ith(context, row);
  if (logits == nullptr) fail("there are no logits");
  return int(std::max_element(logits, logits + vocabulary) - logits);
}

void print_list(const char* key, const std::vector<double>& values) {
  std::printf("\"%s\": [", key);
  for (size_t i = 0; i < values.size(); i++) std::printf("%s%.6g", i ? ", " : "", values[i]);
  std::printf("], ");
}

// Computes `count` tokens of one sequence, from a position on, without their logits.
void fill(llama_context* context, llama_batch& batch, int sequence, int count, std::mt19937& random,
          int vocabulary) {
  const int most = int(llama_n_batch(context));
  for (int at = 0; at < count; at += batch.n_tokens) {
    batch.n_tokens = std::min(most, count - at);
    for (int i = 0; i < batch.n_tokens; i++) {
      batch.token[i] = llama_token(random() % unsigned(vocabulary)), batch.pos[i] = at + i;
      batch.n_seq_id[i] = 1, batch.seq_id[i][0] = sequence, batch.logits[i] = 0;
    }
    if (const int status = llama_decode(context, batch))
      fail("llama_decode returned " + std::to_string(status));
  }
}

// Tokens per second of all sequences together, by repetition.
std::vector<double> generate_together(llama_context* context, int sequences, int depth, int generate,
                                      int repetitions, int vocabulary, int& sink) {
  std::mt19937 random(1);
  std::vector<double> speeds;
  llama_batch batch = llama_batch_init(int32_t(llama_n_batch(context)), 0, 1);
  for (int r = -1; r < repetitions; r++) {  // the first one is for warming up
    llama_memory_clear(llama_get_memory(context), false);
    for (int s = 0; s < sequences; s++) fill(context, batch, s, depth, random, vocabulary);
    const auto start = Clock::now();
    for (int i = 0; i < generate; i++) {
      batch.n_tokens = sequences;
      for (int s = 0; s < sequences; s++) {
        batch.token[s] = llama_token(random() % unsigned(vocabulary)), batch.pos[s] = depth + i;
        batch.n_seq_id[s] = 1, batch.seq_id[s][0] = s, batch.logits[s] = 1;
      }
      if (const int status = llama_decode(context, batch))
        fail("llama_decode returned " + std::to_string(status));
      for (int s = 0; s < sequences; s++) sink += likeliest(context, vocabulary, s);
    }
    if (r >= 0) speeds.push_back(sequences * generate / since(start));
  }
  llama_batch_free(batch);
  return speeds;
}

}  // namespace

int main(int argc, char** argv) {
  const auto begin = Clock::now();
  if (argc != 7 && argc != 8)
    fail("usage: peer LIBRARY_FOLDER MODEL THREADS PROMPT_TOKENS GENERATED_TOKENS REPETITIONS [SEQUENCES]");
  const int threads = std::atoi(argv[3]), prompt = std::atoi(argv[4]), generate = std::atoi(argv[5]);
  const int repetitions = std::atoi(argv[6]);
  const int sequences = argc == 8 ? std::atoi(argv[7]) : 0;
  if (threads < 1 || prompt < (sequences ? 0 : 1) || generate < 0 || repetitions < 0 || sequences < 0)
    fail("a number is out of range");

  Log log;
  llama_log_set(Log::add, &log);
  ggml_backend_load_all_from_path(argv[1]);
  llama_backend_init();
  ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  if (cpu == nullptr) fail(std::string(argv[1]) + " holds no CPU library that this CPU can run");

  llama_model* model = llama_model_load_from_file(argv[2], llama_model_default_params());
  if (model == nullptr) fail(std::string(argv[2]) + " cannot be loaded");
  // The defaults hold but for the threads and the size of the context: gimbal's rule, and the 256s of the
  // library.
  llama_context_params wanted = llama_context_default_params();
  wanted.n_ctx = uint32_t(std::max(prompt, generate + 1) + 255) / 256 * 256;
  if (sequences) {  // a context for each
    wanted.n_ctx = uint32_t(prompt + generate + 255) / 256 * 256 * uint32_t(sequences);
    wanted.n_seq_max = uint32_t(sequences);
  }
  wanted.n_threads = wanted.n_threads_batch = threads;
  llama_context* context = llama_init_from_model(model, wanted);
  if (context == nullptr) fail("no context for " + std::string(argv[2]));
  // Headers of another release would have put these numbers into the wrong places.
  if (llama_n_ctx(context) != wanted.n_ctx ||
      llama_n_batch(context) != std::min(wanted.n_batch, wanted.n_ctx) ||
      llama_n_threads(context) != threads || llama_n_threads_batch(context) != threads)
    fail("the library does not read the settings as its headers say");

  // Threads that stay, as the peer's own benchmark has them; else it starts new ones for every token.
  ggml_backend_reg_t registry = ggml_backend_dev_backend_reg(cpu);
  auto* new_pool = reinterpret_cast<decltype(&ggml_threadpool_new)>(
      ggml_backend_reg_get_proc_address(registry, "ggml_threadpool_new"));
  if (new_pool == nullptr) fail("the CPU library has no ggml_threadpool_new");
  ggml_threadpool_params pool_wanted = ggml_threadpool_params_default(threads);
  ggml_threadpool* pool = new_pool(&pool_wanted);
  if (pool == nullptr) fail("no threads");
  llama_attach_threadpool(context, pool, nullptr);

  const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
  std::mt19937 random(1);
  std::vector<llama_token> tokens(size_t(std::max(prompt, generate + 1)));
  for (llama_token& token : tokens) token = llama_token(random() % unsigned(vocabulary));
  const double load_seconds = since(begin);

  std::vector<double> prompt_speeds, generation_speeds;
  int sink = 0;
  if (repetitions == 0) {
    decode(context, tokens.data(), 1);
    sink += likeliest(context, vocabulary);
  } else if (sequences) {
    generation_speeds =
        generate_together(context, sequences, prompt, generate, repetitions, vocabulary, sink);
  } else {
    for (int r = -1; r < repetitions; r++) {  // the first one is for warming up
      llama_memory_clear(llama_get_memory(context), false);
      auto start = Clock::now();
      decode(context, tokens.data(), prompt);
      sink += likeliest(context, vocabulary);
      if (r >= 0) prompt_speeds.push_back(prompt / since(start));
      if (generate == 0) continue;
      llama_memory_clear(llama_get_memory(context), false);
      decode(context, tokens.data(), 1);
      sink += likeliest(context, vocabulary);
      start = Clock::now();
      for (int i = 1; i <= generate; i++) {
        decode(context, tokens.data() + i, 1);
        sink += likeliest(context, vocabulary);
      }
      if (r >= 0) generation_speeds.push_back(generate / since(start));
    }
  }

  std::printf("{\"library\": %s, ", quoted(loaded_cpu_library()).c_str());
  print_list("prompt_tokens_per_second", prompt_speeds);
  print_list("generation_tokens_per_second", generation_speeds);
  std::printf(
      "\"load_seconds\": %.6g, \"peak_memory_bytes\": %llu, \"threads\": %d, \"context\": %u, \"token\": "
      "%d, ",
      load_seconds, static_cast<unsigned long long>(peak_bytes()), int(llama_n_threads(context)),
      unsigned(llama_n_ctx(context)), sink);
  std::printf("\"system\": %s, \"log\": [", quoted(llama_print_system_info()).c_str());
  for (size_t i = 0; i < log.kept.size(); i++)
    std::printf("%s%s", i ? ", " : "", quoted(log.kept[i]).c_str());
  std::printf("]}\n");
  llama_free(context);
  llama_model_free(model);
  return 0;
}
