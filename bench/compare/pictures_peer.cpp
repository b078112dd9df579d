// Seconds that llama.cpp's mtmd takes for a picture or a sound (bench/compare/pictures.py).
//
// Usage: pictures_peer LIBRARY_FOLDER MMPROJ TEXT_MODEL THREADS TIMES picture WIDTH HEIGHT
//        pictures_peer LIBRARY_FOLDER MMPROJ TEXT_MODEL THREADS TIMES sound SAMPLES
// stdout: JSON, {"seconds": of encoding, of all times, "rows": of one}
#include <ggml-backend.h>
#include <llama.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "mtmd.h"

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "pictures_peer: %s\n", what.c_str());
  std::exit(1);
}

// Numbers without a pattern, the same at each run.
uint32_t next(uint32_t& state) { return state = state * 1664525u + 1013904223u; }

mtmd_bitmap* medium(int argc, char** argv) {
  uint32_t state = 1;
  if (std::string(argv[6]) == "sound") {
    std::vector<float> samples(size_t(std::atoi(argv[7])));
    for (float& s : samples) s = float(next(state) >> 8) / float(1 << 24) - 0.5f;
    return mtmd_bitmap_init_from_audio(samples.size(), samples.data());
  }
  if (argc != 9) fail("a picture has a width and a height");
  const auto width = uint32_t(std::atoi(argv[7])), height = uint32_t(std::atoi(argv[8]));
  std::vector<unsigned char> rgb(size_t(width) * height * 3);
  for (unsigned char& v : rgb) v = static_cast<unsigned char>(next(state) >> 24);
  return mtmd_bitmap_init(width, height, rgb.data());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 8) fail("usage: see the head of pictures_peer.cpp");
  const ggml_log_callback say_errors = [](ggml_log_level level, const char* text, void*) {
    if (level >= GGML_LOG_LEVEL_ERROR && level != GGML_LOG_LEVEL_CONT) std::fputs(text, stderr);
  };
  llama_log_set(say_errors, nullptr);
  mtmd_log_set(say_errors, nullptr);
  ggml_backend_load_all_from_path(argv[1]);
  llama_backend_init();
  const llama_model* model = llama_model_load_from_file(argv[3], llama_model_default_params());
  if (!model) fail(std::string("cannot load ") + argv[3]);
  mtmd_context_params params = mtmd_context_params_default();
  params.use_gpu = false, params.n_threads = std::atoi(argv[4]), params.print_timings = false;
  mtmd_context* context = mtmd_init_from_file(argv[2], model, params);  // warmed up, as by default
  if (!context) fail(std::string("cannot open ") + argv[2]);

  const std::string prompt = mtmd_default_marker();
  const mtmd_input_text text{prompt.data(), prompt.size(), true, true};
  const mtmd_bitmap* media[] = {medium(argc, argv)};
  mtmd_input_chunks* chunks = mtmd_input_chunks_init();
  if (mtmd_tokenize(context, chunks, &text, media, 1) != 0) fail("mtmd_tokenize");
  size_t rows = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int times = std::atoi(argv[5]); times > 0; times--)
    for (size_t i = 0; i < mtmd_input_chunks_size(chunks); i++) {
      const mtmd_input_chunk* chunk = mtmd_input_chunks_get(chunks, i);
      if (mtmd_input_chunk_get_type(chunk) == MTMD_INPUT_CHUNK_TYPE_TEXT) continue;
      if (mtmd_encode_chunk(context, chunk) != 0) fail("mtmd_encode_chunk");
      if (times == 1) rows += mtmd_input_chunk_get_n_tokens(chunk);
    }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("{\"seconds\": %.6f, \"rows\": %zu}\n", seconds, rows);
}
