// How the packaged llama.cpp answers hostile files (hostile.py): each is read in a child process with 4 GB of
// address space and 10 seconds.
//
// Usage: load_peer gguf|vocabulary, file names on stdin, one a line. For each a line: refused, accepted,
// "crashed N" (by signal N, with 6 for a failed assertion), or "late".
// gguf: gguf_init_from_file() without data, and then the check of bounds that llama_model_loader makes of
// each tensor. vocabulary: llama_model_load_from_file() with vocab_only, and a text tokenized.
#include <gguf.h>
#include <llama.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

namespace {

bool reads_gguf(const std::string& path) {
  ggml_context* context = nullptr;
  gguf_context* file = gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = &context});
  if (!file) return false;
  const uint64_t size = std::filesystem::file_size(path);
  for (int64_t i = 0; i < gguf_get_n_tensors(file); i++) {
    const ggml_tensor* tensor = ggml_get_tensor(context, gguf_get_tensor_name(file, i));
    const uint64_t offset = gguf_get_data_offset(file) + gguf_get_tensor_offset(file, i);
    const uint64_t bytes = ggml_nbytes(tensor);
    if (offset + bytes < offset || offset + bytes > size) return false;
  }
  return true;
}

bool reads_vocabulary(const std::string& path) {
  llama_model_params params = llama_model_default_params();
  params.vocab_only = true;
  llama_model* model = llama_model_load_from_file(path.c_str(), params);
  if (!model) return false;
  std::vector<llama_token> tokens(4000);
  const std::string text = "ab <0x-1>\n▁a <s></s>" + std::string(3000, 'a');
  llama_tokenize(llama_model_get_vocab(model), text.data(), int32_t(text.size()), tokens.data(), 4000, true,
                 true);
  return true;
}

void read_in_child(const std::string& path, bool vocabulary) {
  const rlimit memory{rlim_t(4) << 30, rlim_t(4) << 30}, cores{0, 0};
  setrlimit(RLIMIT_AS, &memory);
  setrlimit(RLIMIT_CORE, &cores);
  alarm(10);
  bool accepted = false;
  try {
    accepted = vocabulary ? reads_vocabulary(path) : reads_gguf(path);
  } catch (const std::exception&) {}
  _exit(accepted ? 0 : 1);
}

}  // namespace

int main(int argc, char** argv) {
  const bool vocabulary = argc > 1 && argv[1] == std::string("vocabulary");
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  for (std::string path; std::getline(std::cin, path);) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      if (!std::freopen("/dev/null", "w", stderr)) _exit(1);
      read_in_child(path, vocabulary);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status)) std::puts(WEXITSTATUS(status) ? "refused" : "accepted");
    else if (WTERMSIG(status) == SIGALRM) std::puts("late");
    else std::printf("crashed %d\n", WTERMSIG(status));
  }
  return 0;
}
