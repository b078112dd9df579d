// Stand-ins for libllama: its functions do nothing. FAKE_LLAMA_<WHAT> makes one that cannot be used.
#include <stdlib.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

API void llama_backend_init(void) {}
API void llama_model_default_params(void) {}
API void llama_context_default_params(void) {}
API void llama_tokenize(void) {}
API void llama_free(void) {}
API void llama_model_desc(void) {}
#ifndef FAKE_LLAMA_PART
API void llama_decode(void) {}
API void llama_get_logits_ith(void) {}
#endif
#ifdef FAKE_LLAMA_OLD
API void llama_load_model_from_file(void) {}
API void llama_new_context_with_model(void) {}
API void llama_n_layer(void) {}
API void llama_n_embd(void) {}
API void llama_n_vocab(void) {}
#else
API void llama_model_load_from_file(void) {}
API void llama_init_from_model(void) {}
API void llama_model_n_layer(void) {}
API void llama_model_n_embd(void) {}
API void llama_vocab_n_tokens(void) {}
API void llama_set_sampler(void) {}
#endif

#ifdef FAKE_LLAMA_CRASH
__attribute__((constructor)) static void start(void) { abort(); }
#endif
#ifdef FAKE_LLAMA_HANG
__attribute__((constructor)) static void start(void) {
  for (;;) pause();
}
#endif
#ifdef FAKE_LLAMA_UNDEFINED
void a_function_that_no_library_has(void);
API void llama_version(void) { a_function_that_no_library_has(); }
#endif
#ifdef FAKE_LLAMA_NEEDS
void of_the_vendor(void);
void of_the_driver(void);
API void llama_version(void) { of_the_vendor(), of_the_driver(); }
#endif
