// Asks the packaged llama.cpp through its C API: token ids and texts of a vocabulary, or numbers of a model. `gimbal
// crossval` compares logits and greedy tokens; this gives them to be written down. The oracle scripts build it (bench/compare/install.py) and talk to it through its standard input and output, in
// little-endian 32-bit numbers.
//
// Usage: peer LIBRARY_FOLDER tokenize VOCABULARY   stdin: texts, each {bytes, text}; stdout: see answer()
//        peer LIBRARY_FOLDER embed MODEL CONTEXT 0         stdin: {count, ids}; stdout: width, values
//        peer LIBRARY_FOLDER logits MODEL CONTEXT GREEDY   stdin: {count, ids}; stdout: see continued()
//        peer LIBRARY_FOLDER drafts HEAD CONTEXT GREEDY TARGET   stdin: {count, ids}; stdout: see drafted()
//        peer LIBRARY_FOLDER judge MODEL CONTEXT THREADS   stdin: {count, ids} of a prompt, then of an answer, again
//                                                                 and again; stdout: see judge()
//        peer LIBRARY_FOLDER losses MODEL CONTEXT THREADS [CACHE]  stdin: {count, ids}, again and again; stdout: see
//                                                                 losses(). CACHE: the format of keys and values: q5_0
#include <ggml-backend.h>
#include <llama.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

// Of the library's own interface for draft heads, which its headers in include/ leave out.
void llama_set_embeddings_nextn(llama_context* context, bool value, bool masked);
float* llama_get_embeddings_nextn(llama_context* context);
float* llama_get_embeddings_nextn_ith(llama_context* context, int32_t row);
void llama_set_embeddings_layer_inp(llama_context* context, uint32_t layer, bool value);
float* llama_get_embeddings_layer_inp(llama_context* context, uint32_t layer);
const int32_t* llama_model_target_layer_ids(const llama_model* model);
uint32_t llama_model_target_layer_ids_n(const llama_model* model);

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "peer: %s\n", what.c_str());
  std::exit(1);
}

void put(int32_t number) { std::fwrite(&number, sizeof number, 1, stdout); }
void put(const std::vector<llama_token>& ids) {
  put(int32_t(ids.size()));
  std::fwrite(ids.data(), sizeof ids[0], ids.size(), stdout);
}
void put(const std::string& text) {
  put(int32_t(text.size()));
  std::fwrite(text.data(), 1, text.size(), stdout);
}
bool get(int32_t& number) { return std::fread(&number, sizeof number, 1, stdin) == 1; }

std::vector<llama_token> encoded(const llama_vocab* vocab, const std::string& text, bool add, bool parse) {
  std::vector<llama_token> ids(text.size() * 4 + 16);
  const int count =
      llama_tokenize(vocab, text.data(), int(text.size()), ids.data(), int(ids.size()), add, parse);
  if (count < 0) fail("more tokens than expected");
  ids.resize(size_t(count));
  return ids;
}

std::string piece(const llama_vocab* vocab, llama_token id, bool special) {
  std::string text(256, 0);
  int bytes = llama_token_to_piece(vocab, id, text.data(), int(text.size()), 0, special);
  if (bytes < 0) {
    text.resize(size_t(-bytes));
    bytes = llama_token_to_piece(vocab, id, text.data(), int(text.size()), 0, special);
  }
  text.resize(size_t(bytes));
  return text;
}

std::string decoded(const llama_vocab* vocab, const std::vector<llama_token>& ids, bool remove, bool special) {
  std::string text(ids.size() * 64 + 64, 0);
  int bytes = llama_detokenize(vocab, ids.data(), int(ids.size()), text.data(), int(text.size()), remove, special);
  if (bytes < 0) {
    text.resize(size_t(-bytes));
    bytes = llama_detokenize(vocab, ids.data(), int(ids.size()), text.data(), int(text.size()), remove, special);
  }
  text.resize(size_t(std::max(bytes, 0)));
  return text;
}

// First: size, BOS, EOS, whether BOS is added, the ids that end a generation, and each token's text with and
// without special ones. Then for each text its ids (plain, with special tokens, also with BOS and EOS) and the
// texts of the first and of the last, special tokens shown or not.
void tokenize(const llama_vocab* vocab) {
  const int size = llama_vocab_n_tokens(vocab);
  put(size);
  put(llama_vocab_bos(vocab));
  put(llama_vocab_eos(vocab));
  put(int32_t(llama_vocab_get_add_bos(vocab)));
  std::vector<llama_token> ends;
  for (llama_token id = 0; id < size; ++id)
    if (llama_vocab_is_eog(vocab, id)) ends.push_back(id);
  put(ends);
  for (const bool special : {true, false})
    for (llama_token id = 0; id < size; ++id) put(piece(vocab, id, special));
  for (int32_t bytes; get(bytes);) {
    std::string text(size_t(bytes), 0);
    if (std::fread(text.data(), 1, text.size(), stdin) != text.size()) fail("a text is cut off");
    const auto plain = encoded(vocab, text, false, false), full = encoded(vocab, text, true, true);
    put(plain);
    put(encoded(vocab, text, false, true));
    put(full);
    put(decoded(vocab, plain, false, false));
    put(decoded(vocab, full, false, true));
    put(decoded(vocab, full, true, false));
  }
}

bool get(std::vector<llama_token>& tokens) {
  int32_t count;
  if (!get(count)) return false;
  tokens.resize(static_cast<size_t>(count));
  if (std::fread(tokens.data(), 4, tokens.size(), stdin) != tokens.size()) fail("the tokens are cut off");
  return true;
}

std::vector<llama_token> given_tokens() {
  std::vector<llama_token> tokens;
  if (!get(tokens)) fail("no tokens");
  return tokens;
}

// Logits of the tokens from `from` on.
void decode(llama_context* context, llama_token* tokens, int count, llama_pos first, int from) {
  llama_batch batch = llama_batch_init(count, 0, 1);
  batch.n_tokens = count;
  for (int i = 0; i < count; ++i) {
    batch.token[i] = tokens[i];
    batch.pos[i] = first + i;
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = 0;
    batch.logits[i] = i >= from;
  }
  if (const int status = llama_decode(context, batch)) fail("llama_decode returned " + std::to_string(status));
  llama_batch_free(batch);
}

// The embedding of a text, pooled as the file says, not normalised.
void embed(llama_model* model, int size) {
  llama_context_params wanted = llama_context_default_params();
  wanted.n_ctx = wanted.n_batch = wanted.n_ubatch = uint32_t(size);
  wanted.n_threads = wanted.n_threads_batch = 1;
  wanted.embeddings = true;
  wanted.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  llama_context* context = llama_init_from_model(model, wanted);
  if (context == nullptr) fail("no context");
  std::vector<llama_token> tokens = given_tokens();
  decode(context, tokens.data(), int(tokens.size()), 0, 0);
  const float* values = llama_get_embeddings_seq(context, 0);
  if (values == nullptr) fail("there is no embedding");
  const int width = llama_model_n_embd(model);
  put(width);
  std::fwrite(values, sizeof *values, size_t(width), stdout);
  llama_free(context);
}

// The cache is in f32. `other`: of the model that a draft head reads.
llama_context* exact_context(llama_model* model, int size, llama_context* other = nullptr) {
  llama_context_params wanted = llama_context_default_params();
  wanted.n_ctx = wanted.n_batch = wanted.n_ubatch = uint32_t(size);
  wanted.n_threads = wanted.n_threads_batch = 1;
  wanted.type_k = wanted.type_v = GGML_TYPE_F32;
  wanted.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  wanted.ctx_other = other;
  llama_context* context = llama_init_from_model(model, wanted);
  if (context == nullptr) fail("no context");
  return context;
}

// The likeliest token, and its logit's distance to the next best one.
llama_token put_best(const float* row, int width) {
  const llama_token best = llama_token(std::max_element(row, row + width) - row);
  float next = -INFINITY;
  for (int id = 0; id < width; ++id)
    if (id != best) next = std::max(next, row[id]);
  const float above = row[best] - next;
  put(best);
  std::fwrite(&above, sizeof above, 1, stdout);
  return best;
}

// The width and the logits behind the tokens; then GREEDY tokens, each with its logit's distance to the next
// best one.
void continued(llama_model* model, int size, int greedy) {
  llama_context* context = exact_context(model, size);
  std::vector<llama_token> tokens = given_tokens();
  const int width = llama_vocab_n_tokens(llama_model_get_vocab(model));
  decode(context, tokens.data(), int(tokens.size()), 0, int(tokens.size()) - 1);
  put(width);
  std::fwrite(llama_get_logits_ith(context, -1), sizeof(float), size_t(width), stdout);
  for (int i = 0; i < greedy; ++i) {
    llama_token best = put_best(llama_get_logits_ith(context, -1), width);
    decode(context, &best, 1, int(tokens.size()) + i, 0);
  }
  llama_free(context);
}

// One row of a draft head for each of the tokens, with the states that it reads. The graph of a head computes the results of all rows,
// and the context takes the first ones for those of the rows with results: only a row alone has the right ones.
void decode_head(llama_context* context, const llama_token* tokens, const float* states, int width, int count, llama_pos first) {
  llama_batch batch = llama_batch_init(count, width, 1);
  std::copy(states, states + size_t(width) * size_t(count), batch.embd);
  std::vector<llama_token> own(tokens, tokens + count);
  batch.token = own.data();
  batch.n_tokens = count;
  for (int i = 0; i < count; ++i) {
    batch.pos[i] = first + i;
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = 0;
    batch.logits[i] = count == 1;
  }
  if (const int status = llama_decode(context, batch)) fail("llama_decode returned " + std::to_string(status));
  batch.token = nullptr;
  llama_batch_free(batch);
}

// The width and the logits of the last row; then GREEDY guesses, each from the head's own state of the one before. The first is decoded
// at `position`, the others `step` further each.
void put_guesses(llama_context* context, llama_model* head, int width, int greedy, llama_pos position, int step) {
  const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(head));
  put(vocabulary);
  std::fwrite(llama_get_logits_ith(context, -1), sizeof(float), size_t(vocabulary), stdout);
  for (int i = 0; i < greedy; ++i) {
    const llama_token best = put_best(llama_get_logits_ith(context, -1), vocabulary);
    const float* own = llama_get_embeddings_nextn_ith(context, 0);
    const std::vector<float> states(own, own + width);
    decode_head(context, &best, states.data(), width, 1, position + i * step);
  }
}

// The states of the target's layers that the head reads, for each of the tokens, one layer behind the other.
std::vector<float> layer_states(llama_model* head, llama_context* of_target, std::vector<llama_token>& tokens, int rows) {
  const int32_t* layers = llama_model_target_layer_ids(head);
  const uint32_t count = llama_model_target_layer_ids_n(head);
  for (uint32_t k = 0; k < count; ++k) llama_set_embeddings_layer_inp(of_target, uint32_t(layers[k]), true);
  decode(of_target, tokens.data(), rows, 0, 0);
  const auto from = size_t(llama_model_n_embd(llama_get_model(of_target)));
  std::vector<float> states;
  for (int i = 0; i < rows; ++i)
    for (uint32_t k = 0; k < count; ++k) {
      const float* one = llama_get_embeddings_layer_inp(of_target, uint32_t(layers[k])) + size_t(i) * from;
      states.insert(states.end(), one, one + from);
    }
  return states;
}

// As continued(), of a draft head: the target has computed all tokens but the last one. The width is that of all tokens; those that
// the head has no logit for have minus infinity.
void drafted(llama_model* head, llama_model* target, int size, int greedy) {
  llama_context* of_target = exact_context(target, size);
  llama_context* context = exact_context(head, size, of_target);
  llama_set_embeddings_nextn(context, true, true);
  std::vector<llama_token> tokens = given_tokens();
  const int rows = int(tokens.size()) - 1, width = llama_model_n_embd(head);
  std::vector<float> states = layer_states(head, of_target, tokens, rows);
  llama_batch given = {rows, nullptr, states.data(), nullptr, nullptr, nullptr, nullptr};
  if (const int status = llama_encode(context, given)) fail("llama_encode returned " + std::to_string(status));
  const float* joined = llama_get_embeddings_nextn(context);
  states.assign(joined, joined + size_t(rows) * size_t(width));
  const int last = rows - 1;
  decode_head(context, &tokens[1], states.data(), width, last, 0);
  decode_head(context, &tokens[size_t(rows)], &states[size_t(last) * size_t(width)], width, 1, last);
  put_guesses(context, head, width, greedy, rows, 1);
  llama_free(context);
  llama_free(of_target);
}

// As drafted(), of a head that guesses a block in one step: the last token and GREEDY masks attend to each other and to the keys and
// values that it makes of the target's states.
void guessed_at_once(llama_model* head, llama_model* target, int size, int greedy) {
  llama_context* of_target = exact_context(target, size);
  llama_context* context = exact_context(head, size, of_target);
  char causal[8] = "";
  llama_model_meta_val_str(head, "dflash.attention.causal", causal, sizeof causal);
  llama_set_causal_attn(context, std::strcmp(causal, "true") == 0);
  std::vector<llama_token> tokens = given_tokens();
  const int rows = int(tokens.size()) - 1;
  const std::vector<float> states = layer_states(head, of_target, tokens, rows);
  llama_batch given = llama_batch_init(rows, int(states.size() / size_t(rows)), 1);
  std::copy(states.begin(), states.end(), given.embd);
  given.n_tokens = rows;
  for (int i = 0; i < rows; ++i) {
    given.pos[i] = i;
    given.n_seq_id[i] = 1;
    given.seq_id[i][0] = 0;
    given.logits[i] = false;
  }
  if (const int status = llama_decode(context, given)) fail("llama_decode returned " + std::to_string(status));
  llama_batch_free(given);
  const llama_vocab* vocab = llama_model_get_vocab(head);
  char from_first[8] = "";  // of DSpark: the first row gives a guess, too
  llama_model_meta_val_str(head, "dflash.sample_from_anchor", from_first, sizeof from_first);
  const int first = std::strcmp(from_first, "true") == 0 ? 0 : 1;
  std::vector<llama_token> block(size_t(first + greedy), llama_vocab_mask(vocab));
  block[0] = tokens.back();
  decode(context, block.data(), first + greedy, rows, 0);
  const int width = llama_vocab_n_tokens(vocab);
  put(width);
  std::fwrite(llama_get_logits_ith(context, first), sizeof(float), size_t(width), stdout);
  for (int i = first; i < first + greedy; ++i) put_best(llama_get_logits_ith(context, i), width);
  llama_free(context);
  llama_free(of_target);
}

// As drafted(), of an assistant, which attends to the target's keys: each guess is made at the last token's position.
void assisted(llama_model* head, llama_model* target, int size, int greedy) {
  llama_context* of_target = exact_context(target, size);
  llama_context* context = exact_context(head, size, of_target);
  llama_set_embeddings_nextn(of_target, true, false);
  llama_set_embeddings_nextn(context, true, true);
  std::vector<llama_token> tokens = given_tokens();
  const int rows = int(tokens.size()) - 1, width = llama_model_n_embd(target);
  decode(of_target, tokens.data(), rows, 0, 0);
  const float* state = llama_get_embeddings_nextn(of_target) + size_t(rows - 1) * size_t(width);
  std::vector<float> states(state, state + width);
  decode_head(context, &tokens[size_t(rows)], states.data(), width, 1, rows);
  put_guesses(context, head, width, greedy, rows, 0);
  llama_free(context);
  llama_free(of_target);
}

// The context that a person gets who names its size and the number of threads.
llama_context* usual_context(llama_model* model, int size, int threads, const char* cache = nullptr) {
  llama_context_params wanted = llama_context_default_params();
  for (int type = 0; cache != nullptr && type <= GGML_TYPE_COUNT; ++type) {
    if (type == GGML_TYPE_COUNT) fail(std::string(cache) + " is no format");
    const char* name = ggml_type_name(ggml_type(type));
    if (name == nullptr || std::strcmp(name, cache) != 0) continue;
    wanted.type_k = wanted.type_v = ggml_type(type);
    wanted.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;  // values in few bits need it
    break;
  }
  wanted.n_ctx = wanted.n_batch = uint32_t(size);
  wanted.n_threads = wanted.n_threads_batch = threads;
  llama_context* context = llama_init_from_model(model, wanted);
  if (context == nullptr) fail("no context");
  return context;
}

// For each token of an answer, the answer's earlier ones being given: the likeliest token, by how much its logit is above that of
// the answer's token, and, where these are not the same token, all logits. The answer's token -1 is any that ends a generation.
void judge(llama_model* model, int size, int threads) {
  llama_context* context = usual_context(model, size, threads);
  const llama_vocab* vocab = llama_model_get_vocab(model);
  const int width = llama_vocab_n_tokens(vocab);
  put(width);
  for (std::vector<llama_token> prompt, answer; get(prompt) && get(answer);) {
    llama_memory_clear(llama_get_memory(context), true);
    decode(context, prompt.data(), int(prompt.size()), 0, int(prompt.size()) - 1);
    for (size_t i = 0; i < answer.size(); ++i) {
      if (i > 0) decode(context, &answer[i - 1], 1, int(prompt.size() + i) - 1, 0);
      const float* row = llama_get_logits_ith(context, -1);
      const llama_token best = llama_token(std::max_element(row, row + width) - row);
      llama_token theirs = answer[i];
      if (theirs < 0) {
        for (llama_token id = 0; id < width; ++id)
          if (llama_vocab_is_eog(vocab, id) && (theirs < 0 || row[id] > row[theirs])) theirs = id;
        if (theirs < 0) fail("no token ends a generation");
      }
      const float above = row[best] - row[theirs];
      put(best);
      put(theirs);
      std::fwrite(&above, sizeof above, 1, stdout);
      if (best != theirs) std::fwrite(row, sizeof *row, size_t(width), stdout);
    }
  }
  llama_free(context);
}

// For each window the negative logarithms of the probabilities of the tokens of its second half, the first of it left out: a count,
// and the numbers.
void losses(llama_model* model, int size, int threads, const char* cache) {
  llama_context* context = usual_context(model, size, threads, cache);
  const int width = llama_vocab_n_tokens(llama_model_get_vocab(model));
  for (std::vector<llama_token> window; get(window);) {
    const int count = int(window.size()), scored = count - count / 2 - 1, first = count - 1 - scored;
    llama_memory_clear(llama_get_memory(context), true);
    decode(context, window.data(), count, 0, first);
    put(scored);
    for (int i = first; i < count - 1; ++i) {
      const float* row = llama_get_logits_ith(context, i);
      const float most = *std::max_element(row, row + width);
      double sum = 0;
      for (int k = 0; k < width; ++k) sum += std::exp(double(row[k]) - most);
      const float loss = float(most + std::log(sum) - row[window[size_t(i) + 1]]);
      std::fwrite(&loss, sizeof loss, 1, stdout);
    }
  }
  llama_free(context);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) fail("usage: peer LIBRARY_FOLDER tokenize|logits|embed|drafts|judge|losses FILE [CONTEXT NUMBER [TARGET]]");
  const bool tokens = std::strcmp(argv[2], "tokenize") == 0;
  llama_log_set(
      [](ggml_log_level level, const char* text, void*) {
        if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
      },
      nullptr);
  ggml_backend_load_all_from_path(argv[1]);
  llama_backend_init();
  llama_model_params wanted = llama_model_default_params();
  wanted.vocab_only = tokens;
  llama_model* model = llama_model_load_from_file(argv[3], wanted);
  if (model == nullptr) fail(std::string(argv[3]) + " cannot be loaded");
  if (tokens) tokenize(llama_model_get_vocab(model));
  else if (argc == 6 && std::strcmp(argv[2], "embed") == 0) embed(model, std::atoi(argv[4]));
  else if (argc == 6 && std::strcmp(argv[2], "logits") == 0) continued(model, std::atoi(argv[4]), std::atoi(argv[5]));
  else if (argc == 7 && std::strcmp(argv[2], "drafts") == 0) {
    llama_model* target = llama_model_load_from_file(argv[6], wanted);
    if (target == nullptr) fail(std::string(argv[6]) + " cannot be loaded");
    char arch[32] = "";
    llama_model_meta_val_str(model, "general.architecture", arch, sizeof arch);
    const auto way = std::strcmp(arch, "dflash") == 0 ? guessed_at_once : llama_model_target_layer_ids_n(model) ? drafted : assisted;
    way(model, target, std::atoi(argv[4]), std::atoi(argv[5]));
    llama_model_free(target);
  } else if (argc == 6 && std::strcmp(argv[2], "judge") == 0) judge(model, std::atoi(argv[4]), std::atoi(argv[5]));
  else if ((argc == 6 || argc == 7) && std::strcmp(argv[2], "losses") == 0)
    losses(model, std::atoi(argv[4]), std::atoi(argv[5]), argc == 7 ? argv[6] : nullptr);
  else fail("it does tokenize, embed, logits, drafts, judge and losses; all but the first need a context size and a number");
  llama_model_free(model);
  return 0;
}
