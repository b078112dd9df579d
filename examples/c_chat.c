// A conversation in C, by include/gimbal/gimbal.h alone. Ctrl-C stops an answer.
//   c_chat [MODEL]     questions on stdin, a line each
#include <gimbal/gimbal.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static gimbal_cancel* cancel;
static void on_interrupt(int number) {
  (void)number;
  gimbal_cancel_now(cancel);
}

static int32_t print_part(int32_t part, const char* text, size_t bytes, void* user) {
  (void)user;
  if (part == GIMBAL_PART_TEXT) fwrite(text, 1, bytes, stdout);
  return fflush(stdout) == 0;
}

static int32_t print_progress(int32_t kind, const char* what, const char* text, uint64_t done, uint64_t total,
                              void* user) {
  (void)user;
  if (kind == GIMBAL_EVENT_FALLBACK) fprintf(stderr, "%s is not used: %s\n", what, text);
  if (kind == GIMBAL_EVENT_LOADING && done == total) fprintf(stderr, "loaded on %s\n", what);
  return 1;
}

static int fail(gimbal_error* error) {
  fprintf(stderr, "error: %s\n  %s\n", gimbal_error_message(error), gimbal_error_remedy(error));
  gimbal_error_free(error);
  return 1;
}

int main(int argc, char** argv) {
  gimbal_error* error;
  gimbal_engine* engine;
  gimbal_model* model = NULL;
  gimbal_sequence* sequence = NULL;
  if (gimbal_c_abi() != GIMBAL_C_ABI) return fprintf(stderr, "another libgimbal.so was expected\n"), 1;
  if (gimbal_engine_new(NULL, &engine, &error)) return fail(error);
  gimbal_result done =
      gimbal_load(engine, argc > 1 ? argv[1] : "default", NULL, print_progress, NULL, NULL, &model, &error);
  if (!done) done = gimbal_sequence_new(model, &sequence, &error);
  gimbal_engine_free(engine);  // the model keeps its own references
  gimbal_messages* messages = gimbal_messages_new();
  if (!done) done = gimbal_messages_add(messages, "system", "Answer in one sentence.", &error);
  signal(SIGINT, on_interrupt);
  char line[4096];
  while (!done && fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    done = gimbal_messages_add(messages, "user", line, &error);
    cancel = gimbal_cancel_new();
    if (!done)
      done = gimbal_chat(sequence, messages, "{\"max_tokens\": 60, \"greedy\": true}", print_part, NULL,
                         cancel, NULL, &error);
    gimbal_cancel_free(cancel);
    cancel = NULL;
    printf("\n");
  }
  gimbal_messages_free(messages);
  gimbal_sequence_free(sequence);
  gimbal_model_free(model);
  return done ? fail(error) : 0;
}
