// Quantizes a file with llama.cpp's library: what bench/quantize/compare.py sets beside `gimbal quantize`.
// Usage: peer IN OUT FILE_TYPE THREADS [IMATRIX.dat]. Prints {"result": 0, "seconds": ...}.
#include <llama.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace {

struct Entry {
  std::string name;
  std::vector<float> weights;
};

// The binary form of importance matrices, of a file that compare.py wrote.
std::vector<Entry> read_importance(const char* path) {
  std::ifstream in(path, std::ios::binary);
  const auto number = [&] {
    int32_t n = 0;
    in.read(reinterpret_cast<char*>(&n), sizeof n);
    return n;
  };
  std::vector<Entry> all(static_cast<size_t>(number()));
  for (Entry& e : all) {
    e.name.resize(size_t(number()));
    in.read(e.name.data(), std::streamsize(e.name.size()));
    const int calls = number();
    e.weights.resize(size_t(number()));
    in.read(reinterpret_cast<char*>(e.weights.data()), std::streamsize(e.weights.size() * sizeof(float)));
    for (float& w : e.weights) w /= float(calls);
  }
  return all;
}

}  // namespace

int main(int count, char** values) {
  if (count < 5) return 2;
  llama_backend_init();
  llama_log_set(
      [](ggml_log_level level, const char* text, void*) {
        if (level >= GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
      },
      nullptr);
  llama_model_quantize_params p = llama_model_quantize_default_params();
  p.ftype = llama_ftype(std::atoi(values[3])), p.nthread = std::atoi(values[4]), p.allow_requantize = true;
  std::vector<Entry> importance;
  std::vector<llama_model_imatrix_data> rows;
  if (count > 5) {
    importance = read_importance(values[5]);
    for (const Entry& e : importance) rows.push_back({e.name.c_str(), e.weights.data(), e.weights.size()});
    rows.push_back({nullptr, nullptr, 0});
    p.imatrix = rows.data();
  }
  const auto begin = std::chrono::steady_clock::now();
  const uint32_t result = llama_model_quantize(values[1], values[2], &p);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("{\"result\": %u, \"seconds\": %.3f}\n", result, seconds.count());
  return int(result);
}
