// Asks the packaged llama.cpp's mtmd, which scripts/oracle/projectors.py compiles, about pictures and sounds:
// the pixels that its encoder gets, the encoder's rows, the tokens around them, and a text model's logits.
// Numbers are little-endian, of 32 bits.
//
// Usage: pictures LIBRARY_FOLDER encode MMPROJ TEXT_MODEL
//          stdin:  {bytes, prompt}, {count}, then each picture {0, width, height, RGB} or sound {1, samples,
//          f32 samples} stdout: {passes}, each {width, height, channels, f32 [channels][height][width]}; then
//                  {chunks}, each {0, count, ids} or {1, rows, columns of rows, positions, width, f32
//                  [rows][width]}
//        pictures LIBRARY_FOLDER logits TEXT_MODEL
//          stdin:  {chunks}, each {0, count, ids} or {1, rows, columns of rows (0: a sequence), rows see each
//          other, width, f32} stdout: {rows, vocabulary, f32 [rows][vocabulary]}, of all rows
#include <ggml-backend.h>
#include <llama.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "mtmd.h"

namespace {

constexpr int kContext = 2048;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "pictures: %s\n", what.c_str());
  std::exit(1);
}

void put(int32_t number) { std::fwrite(&number, sizeof number, 1, stdout); }
void put(const float* values, size_t n) { std::fwrite(values, sizeof *values, n, stdout); }

int32_t get() {
  int32_t number = 0;
  if (std::fread(&number, sizeof number, 1, stdin) != 1) fail("the input ends too early");
  return number;
}
template <typename T>
std::vector<T> get_all(size_t n) {
  std::vector<T> all(n);
  if (std::fread(all.data(), sizeof(T), n, stdin) != n) fail("the input ends too early");
  return all;
}

// One run of the encoder's graph: what its input holds.
struct Pass {
  int64_t width, height, channels;
  std::vector<float> values;
};

// Reads the input while an op that uses it is about to run.
bool on_op(ggml_tensor* op, bool ask, void* to) {
  auto& passes = *static_cast<std::vector<Pass>*>(to);
  for (int i = 0; ask && i < GGML_MAX_SRC && op->src[i]; i++) {
    const ggml_tensor* in = op->src[i];
    if (std::string(in->name) != "inp_raw") continue;
    // The second kernel of a still picture reads what the first one read.
    if (op->src[0] && std::string(op->src[0]->name) == "v.patch_embd.weight.1") continue;
    const auto n = size_t(in->ne[0] * in->ne[1] * in->ne[2]);
    const auto* data = static_cast<const float*>(in->data);
    for (int64_t k = 0; k < in->ne[3]; k++, data += n)
      passes.push_back({in->ne[0], in->ne[1], in->ne[2], std::vector<float>(data, data + n)});
  }
  return false;
}

llama_model* load(const char* path) {
  llama_model_params p = llama_model_default_params();
  llama_model* model = llama_model_load_from_file(path, p);
  if (!model) fail(std::string("cannot load ") + path);
  return model;
}

void encode(const char* mmproj, const char* text_model) {
  std::vector<Pass> passes;
  const llama_model* model = load(text_model);
  mtmd_context_params params = mtmd_context_params_default();
  params.use_gpu = false, params.n_threads = 1, params.warmup = false, params.print_timings = false;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.cb_eval = on_op, params.cb_eval_user_data = &passes;
  mtmd_context* context = mtmd_init_from_file(mmproj, model, params);
  if (!context) fail(std::string("cannot open ") + mmproj);

  const auto bytes = get_all<char>(size_t(get()));
  const std::string prompt(bytes.begin(), bytes.end());
  std::vector<const mtmd_bitmap*> media;
  for (int n = get(); n > 0; n--) {
    if (get() == 0) {
      const int width = get(), height = get();
      const auto rgb = get_all<unsigned char>(size_t(width) * size_t(height) * 3);
      media.push_back(mtmd_bitmap_init(uint32_t(width), uint32_t(height), rgb.data()));
    } else {
      const auto samples = get_all<float>(size_t(get()));
      media.push_back(mtmd_bitmap_init_from_audio(samples.size(), samples.data()));
    }
  }
  const mtmd_input_text text{prompt.data(), prompt.size(), true, true};
  mtmd_input_chunks* chunks = mtmd_input_chunks_init();
  if (mtmd_tokenize(context, chunks, &text, media.data(), media.size()) != 0) fail("mtmd_tokenize");

  struct Rows {
    int count, columns, positions;
    std::vector<float> values;
  };
  const int width = llama_model_n_embd_inp(model);
  std::vector<Rows> rows(mtmd_input_chunks_size(chunks));
  for (size_t i = 0; i < rows.size(); i++) {
    const mtmd_input_chunk* chunk = mtmd_input_chunks_get(chunks, i);
    if (mtmd_input_chunk_get_type(chunk) == MTMD_INPUT_CHUNK_TYPE_TEXT) continue;
    if (mtmd_encode_chunk(context, chunk) != 0) fail("mtmd_encode_chunk");
    const int n = int(mtmd_input_chunk_get_n_tokens(chunk));
    const float* values = mtmd_get_output_embd(context);
    const mtmd_image_tokens* image = mtmd_input_chunk_get_tokens_image(chunk);
    rows[i] = {n, image ? int(mtmd_image_tokens_get_nx(image)) : n, mtmd_input_chunk_get_n_pos(chunk),
               std::vector<float>(values, values + size_t(n) * size_t(width))};
  }
  put(int32_t(passes.size()));
  for (const Pass& p : passes)
    put(int32_t(p.width)), put(int32_t(p.height)), put(int32_t(p.channels)),
        put(p.values.data(), p.values.size());
  put(int32_t(rows.size()));
  for (size_t i = 0; i < rows.size(); i++) {
    size_t n = 0;
    const llama_token* ids = mtmd_input_chunk_get_tokens_text(mtmd_input_chunks_get(chunks, i), &n);
    put(rows[i].count > 0), put(rows[i].count > 0 ? rows[i].count : int32_t(n));
    if (rows[i].count > 0) {
      put(rows[i].columns), put(rows[i].positions), put(width),
          put(rows[i].values.data(), rows[i].values.size());
    } else {
      std::fwrite(ids, sizeof *ids, n, stdout);
    }
  }
}

// Decodes one chunk and appends the logits of its rows. Returns how far positions advance.
int decode(llama_context* context, llama_batch batch, bool together, int vocabulary,
           std::vector<float>& out) {
  llama_set_causal_attn(context, !together);
  if (llama_decode(context, batch) != 0) fail("llama_decode");
  for (int i = 0; i < batch.n_tokens; i++) {
    const float* row = llama_get_logits_ith(context, i);
    out.insert(out.end(), row, row + vocabulary);
  }
  return batch.n_tokens;
}

void logits(const char* text_model) {
  llama_model* model = load(text_model);
  llama_context_params params = llama_context_default_params();
  params.n_ctx = params.n_batch = params.n_ubatch = kContext;
  params.n_threads = params.n_threads_batch = 1;
  params.type_k = params.type_v = GGML_TYPE_F32;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  llama_context* context = llama_init_from_model(model, params);
  if (!context) fail("cannot make a context");
  const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
  std::vector<float> out;
  int32_t at = 0;
  for (int n = get(); n > 0; n--) {
    const bool is_picture = get() != 0;
    const int count = get(), columns = is_picture ? get() : 0;
    const bool together = is_picture && get() != 0;
    std::vector<llama_token> ids;
    std::vector<float> rows;
    if (is_picture) {
      const int width = get();
      rows = get_all<float>(size_t(count) * size_t(width));
    } else {
      ids = get_all<llama_token>(size_t(count));
    }
    // A grid has four positions a row, one kind behind the other.
    const auto m = size_t(count);
    std::vector<llama_pos> places(columns ? 4 * m : m);
    for (size_t i = 0; i < m; i++) {
      places[i] = columns ? at : at + int32_t(i);
      if (!columns) continue;
      places[i + m] = at + int32_t(i) / columns, places[i + 2 * m] = at + int32_t(i) % columns,
                 places[i + 3 * m] = 0;
    }
    std::vector<int32_t> ones(m, 1);
    std::vector<llama_seq_id> first(m, 0);
    std::vector<llama_seq_id*> sequences(m);
    for (size_t i = 0; i < m; i++) sequences[i] = &first[i];
    std::vector<int8_t> wanted(m, 1);
    const llama_batch batch{count,
                            is_picture ? nullptr : ids.data(),
                            is_picture ? rows.data() : nullptr,
                            places.data(),
                            ones.data(),
                            sequences.data(),
                            wanted.data()};
    decode(context, batch, together, vocabulary, out);
    at += columns ? std::max(columns, count / columns) : count;
  }
  put(int32_t(out.size() / size_t(vocabulary))), put(vocabulary), put(out.data(), out.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) fail("usage: see the head of pictures.cpp");
  const ggml_log_callback say_errors = [](ggml_log_level level, const char* text, void*) {
    if (level >= GGML_LOG_LEVEL_ERROR && level != GGML_LOG_LEVEL_CONT) std::fputs(text, stderr);
  };
  llama_log_set(say_errors, nullptr);
  mtmd_log_set(say_errors, nullptr);
  ggml_backend_load_all_from_path(argv[1]);
  llama_backend_init();
  const std::string mode = argv[2];
  if (mode == "encode" && argc == 5) encode(argv[3], argv[4]);
  else if (mode == "logits" && argc == 4) logits(argv[3]);
  else fail("usage: see the head of pictures.cpp");
  return 0;
}
