// Greedy tokens and logits of microsoft/BitNet's program, for bitnet_model.py: linked with the libraries that
// its build makes. In, as 32-bit numbers: the tokens of a prompt. Out: the tokens that follow; the logits
// that each was chosen by, computed one token at a time; and the same logits with all tokens in one batch.
#include <llama.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int count, char** arguments) {  // MODEL PROMPT_TOKENS NEW_TOKENS
  if (count != 4) return 2;
  std::vector<llama_token> tokens(size_t(std::atoi(arguments[2])));
  const int more = std::atoi(arguments[3]);
  if (std::fread(tokens.data(), 4, tokens.size(), stdin) != tokens.size()) return 1;
  llama_backend_init();
  llama_model* model = llama_load_model_from_file(arguments[1], llama_model_default_params());
  llama_context_params options = llama_context_default_params();
  options.n_ctx = 256;
  options.n_threads = options.n_threads_batch = 1;
  llama_context* context = model ? llama_new_context_with_model(model, options) : nullptr;
  if (!context) return 1;
  const int vocabulary = llama_n_vocab(model);
  std::vector<llama_token> chosen, all = tokens;
  std::vector<float> logits;
  int at = 0;
  while (int(chosen.size()) < more) {
    if (llama_decode(context, llama_batch_get_one(tokens.data(), int(tokens.size()), at, 0))) return 1;
    at += int(tokens.size());
    const float* last = llama_get_logits_ith(context, -1);
    logits.insert(logits.end(), last, last + vocabulary);
    tokens = {llama_token(std::max_element(last, last + vocabulary) - last)};
    chosen.push_back(tokens[0]), all.push_back(tokens[0]);
  }
  std::fwrite(chosen.data(), 4, chosen.size(), stdout);
  std::fwrite(logits.data(), 4, logits.size(), stdout);

  llama_kv_cache_clear(context);
  const int last = int(all.size()) - 1, first = last - more;
  llama_batch batch = llama_batch_init(last, 0, 1);
  batch.n_tokens = last;
  for (int i = 0; i < last; i++) {
    batch.token[i] = all[i], batch.pos[i] = i, batch.n_seq_id[i] = 1, batch.seq_id[i][0] = 0;
    batch.logits[i] = i >= first;
  }
  if (llama_decode(context, batch)) return 1;
  for (int i = first; i < last; i++)
    std::fwrite(llama_get_logits_ith(context, i), 4, size_t(vocabulary), stdout);
}
