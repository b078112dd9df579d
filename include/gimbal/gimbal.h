// The C interface of gimbal, for every language that can call C: Go, Rust, Java, C#, Python's ctypes.
// examples/c_chat.c and examples/python_ctypes.py show it; libgimbal.so (find_package: gimbal::c) has it.
//
// Conventions
// - A function that can fail returns a code, GIMBAL_DONE or one of GIMBAL_ERROR_*, and writes its result
//   through its out-parameter, which is NULL or 0 after a failure. `error`, if it is not NULL, receives an
//   object with the reason: free it with gimbal_error_free(). After GIMBAL_DONE it is NULL.
// - Handles: release each with its own *_free(), in any order, from any thread; NULL is allowed. A handle
//   keeps others alive: a sequence its model, a model its engine.
// - Memory: a result through `char**`, `float**` or `int32_t**` belongs to the caller, who releases it with
//   gimbal_free(). A `const char*` that is returned belongs to its handle. The library copies its arguments.
// - Texts are UTF-8. `const char*` alone ends with a zero byte; beside a number of bytes it may hold any.
// - `options` is a JSON object with the members of a C++ struct of include/gimbal, by their names and with
//   their defaults: "{\"temperature\": 0.7, \"max_tokens\": 100}". NULL: all defaults. An unknown name, a
//   value of the wrong type and one out of range are errors that name the member (gimbal_error_field()).
//   Enumerations are their names in lower case. Results in JSON also have the members' names.
// - Threads: an engine, and a model with its sequences, are each for one thread at a time.
// gimbal_cancel_now(),
//   gimbal_tokenize(), gimbal_detokenize(), gimbal_chat_prompt() and functions on objects of different models
//   may run at any time. Callbacks run on the thread that called the function.
// - No C++ exception leaves the library, and nothing in it aborts or prints. A callback must not throw, jump
//   out, or free the handle that is in use.
//
// Stability: within one number of GIMBAL_C_ABI, functions and constants are added and none is changed or
// removed. There are no structs whose size could change: what grows, grows in JSON. A program compares
// GIMBAL_C_ABI of its header with gimbal_c_abi() of the library that it has loaded; the names of the shared
// library carry the same number (libgimbal.so.1).
#ifndef GIMBAL_GIMBAL_H
#define GIMBAL_GIMBAL_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define GIMBAL_C_API
#else
#define GIMBAL_C_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define GIMBAL_C_ABI 1

GIMBAL_C_API uint32_t gimbal_c_abi(void);
// "0.1.0". Valid for ever.
GIMBAL_C_API const char* gimbal_version(void);

// ---- Errors -----------------------------------------------------------------------------------------------

enum {
  GIMBAL_DONE = 0,
  GIMBAL_ERROR_FAILED = 1,       // went wrong while running; also "cancelled" while a model loads
  GIMBAL_ERROR_USAGE = 2,        // an argument or option is wrong
  GIMBAL_ERROR_NOT_FOUND = 3,    // no such file, model or device
  GIMBAL_ERROR_MALFORMED = 4,    // the model file breaks its format
  GIMBAL_ERROR_UNSUPPORTED = 5,  // valid, but not implemented by this version
  GIMBAL_ERROR_NO_BACKEND = 6,   // no device satisfies the request
  GIMBAL_ERROR_OUT_OF_MEMORY = 7,
  GIMBAL_ERROR_DEVICE_LOST = 8,
};
// Of the constants above: an int in every ABI, also in those where enumerations have other sizes.
typedef int32_t gimbal_result;

typedef struct gimbal_error gimbal_error;

GIMBAL_C_API gimbal_result gimbal_error_code(const gimbal_error* error);
// What happened, where, expected and found; for people.
GIMBAL_C_API const char* gimbal_error_message(const gimbal_error* error);
// What to do; may be empty.
GIMBAL_C_API const char* gimbal_error_remedy(const gimbal_error* error);
// A stable word for programs, such as "driver-too-old"; may be empty.
GIMBAL_C_API const char* gimbal_error_reason(const gimbal_error* error);
// The option at fault, such as "top_p"; may be empty.
GIMBAL_C_API const char* gimbal_error_field(const gimbal_error* error);
GIMBAL_C_API void gimbal_error_free(gimbal_error* error);

// Releases a result through char**, float** or int32_t**.
GIMBAL_C_API void gimbal_free(void* memory);

// ---- Cancelling from another thread -----------------------------------------------------------------------

// A flag for functions that take long. Pass it to one call or several; it must live until they return. It
// stays set, so that a call that begins later is cancelled as well: use a new one for each piece of work.
typedef struct gimbal_cancel gimbal_cancel;

// NULL: out of memory.
GIMBAL_C_API gimbal_cancel* gimbal_cancel_new(void);
// From any thread, and from signal handlers. What computes ends within a step of the model.
GIMBAL_C_API void gimbal_cancel_now(gimbal_cancel* cancel);
GIMBAL_C_API void gimbal_cancel_free(gimbal_cancel* cancel);

// ---- Engines: devices, plans, models ----------------------------------------------------------------------

// Finds devices and loads models on them: gimbal::Engine.
typedef struct gimbal_engine gimbal_engine;
// A model with its weights on its devices: gimbal::Model.
typedef struct gimbal_model gimbal_model;

// The events of a gimbal_progress: the kinds of gimbal::Event and gimbal::PullEvent.
enum {
  GIMBAL_EVENT_CHOSEN = 0,     // `what` is the device that will be used
  GIMBAL_EVENT_FALLBACK = 1,   // `what` is not used; `text` has the reason and the replacement
  GIMBAL_EVENT_IGNORED = 2,    // the option `what` has no effect, or a smaller one than requested
  GIMBAL_EVENT_NOTE = 3,       // no action needed
  GIMBAL_EVENT_RECOVERED = 4,  // the device `what` was lost; the work continues on another
  GIMBAL_EVENT_VERIFYING = 5,  // progress: `done` of `total` kernels
  GIMBAL_EVENT_LOADING = 6,    // progress: `done` of `total` bytes
  GIMBAL_EVENT_MEASURING = 7,  // progress: `done` of `total` measured products
  GIMBAL_EVENT_FETCHING = 8,   // progress: `done` of `total` bytes of the file `what`
  GIMBAL_EVENT_CHECKING = 9,   // progress: `done` of `total` bytes of the file `what` are hashed
};
// Returns nonzero to go on; 0 cancels the work whose progress is reported. Unknown kinds may be added.
typedef int32_t (*gimbal_progress)(int32_t kind, const char* what, const char* text, uint64_t done,
                                   uint64_t total, void* user);

// Options: gimbal::DeviceSettings (gimbal/settings.h) and `plugin_folders`, such as
// {"backend": "cuda", "strict": true}. Plugins are also looked for in the folder `gimbal` beside
// libgimbal.so.
GIMBAL_C_API gimbal_result gimbal_engine_new(const char* options, gimbal_engine** engine,
                                             gimbal_error** error);
GIMBAL_C_API void gimbal_engine_free(gimbal_engine* engine);

// Every known backend with its devices, or the reason why it has none: an array of gimbal::Backend
// (gimbal/device.h). Takes up to a few seconds.
GIMBAL_C_API gimbal_result gimbal_backends(gimbal_engine* engine, char** json, gimbal_error** error);
// The model files on this machine: an array of gimbal::LocalModel (gimbal/plan.h).
GIMBAL_C_API gimbal_result gimbal_models(gimbal_engine* engine, char** json, gimbal_error** error);

// The plan that gimbal_load() would carry out, from the file's header alone: gimbal::ModelPlan
// (gimbal/plan.h). A model that does not fit is no error here: "fits" is false, and "misfit" says what would
// help.
GIMBAL_C_API gimbal_result gimbal_plan(gimbal_engine* engine, const char* model, const char* options,
                                       char** json, gimbal_error** error);
// The plan after verification, with the kernel of every op and the reason for it: gimbal::Explanation.
GIMBAL_C_API gimbal_result gimbal_explain(gimbal_engine* engine, const char* model, const char* options,
                                          char** json, gimbal_error** error);

// Loads a model. `model`: a GGUF file, a name that gimbal_models() lists, the address of a pulled model, or
// "default", the small model inside the library. Options: gimbal::ModelOptions (gimbal/settings.h), such as
// {"context": 8192, "cache_type": "q8_0"}. `progress` and `cancel` may be NULL. Cancelled:
// GIMBAL_ERROR_FAILED with the reason "cancelled".
GIMBAL_C_API gimbal_result gimbal_load(gimbal_engine* engine, const char* model, const char* options,
                                       gimbal_progress progress, void* user, const gimbal_cancel* cancel,
                                       gimbal_model** loaded, gimbal_error** error);
GIMBAL_C_API void gimbal_model_free(gimbal_model* model);
// An object: name, context, vocabulary; placement, fallbacks and receipt as in gimbal/device.h. Not while a
// sequence of the model computes.
GIMBAL_C_API gimbal_result gimbal_model_info(gimbal_model* model, char** json, gimbal_error** error);

// Downloads a model (gimbal/pull.h has the addresses) and returns the path of its file. Options:
// {"connections": 4, "sha256": "..."}. Cancelled: as gimbal_load(); the next call continues.
GIMBAL_C_API gimbal_result gimbal_pull(const char* address, const char* options, gimbal_progress progress,
                                       void* user, const gimbal_cancel* cancel, char** path,
                                       gimbal_error** error);

// ---- Tokens and embeddings --------------------------------------------------------------------------------

// Text to token ids. Options: {"add_bos": true, "parse_special": true} (gimbal/tokenizer.h).
GIMBAL_C_API gimbal_result gimbal_tokenize(const gimbal_model* model, const char* text, size_t bytes,
                                           const char* options, int32_t** tokens, size_t* count,
                                           gimbal_error** error);
// Token ids to text, which ends with a zero byte that `bytes` does not count. `special`: nonzero writes
// control tokens out. Ignores ids outside the vocabulary.
GIMBAL_C_API gimbal_result gimbal_detokenize(const gimbal_model* model, const int32_t* tokens, size_t count,
                                             int32_t special, char** text, size_t* bytes,
                                             gimbal_error** error);

// One vector of `width` numbers for each text, one after the other. Options: {"pooling": "of_file",
// "normalised": true} (gimbal/model.h). Load the model with {"embed": true}.
GIMBAL_C_API gimbal_result gimbal_embed(gimbal_model* model, const char* const* texts, size_t count,
                                        const char* options, float** vectors, size_t* width,
                                        gimbal_error** error);

// ---- Texts and conversations ------------------------------------------------------------------------------

// A sequence of tokens with its KV cache: gimbal::Sequence. A model has as many at once as its option
// "sequences" says (default 1).
typedef struct gimbal_sequence gimbal_sequence;

GIMBAL_C_API gimbal_result gimbal_sequence_new(gimbal_model* model, gimbal_sequence** sequence,
                                               gimbal_error** error);
GIMBAL_C_API void gimbal_sequence_free(gimbal_sequence* sequence);
// The number of tokens that it holds, and that still fit; -1 for NULL.
GIMBAL_C_API int32_t gimbal_sequence_position(const gimbal_sequence* sequence);
GIMBAL_C_API int32_t gimbal_sequence_room(const gimbal_sequence* sequence);
// Forgets the tokens from `position` on.
GIMBAL_C_API void gimbal_sequence_rewind(gimbal_sequence* sequence, int32_t position);

// The parts of a text for a gimbal_sink.
enum {
  GIMBAL_PART_TEXT = 0,       // of the answer
  GIMBAL_PART_REASONING = 1,  // thoughts before it (chat only)
  GIMBAL_PART_TOOL_CALL = 2,  // a whole call as JSON: name, arguments (chat only)
};
// Receives finalized text: complete UTF-8, with a zero byte behind it, valid until the callback returns.
// Returns nonzero to go on; 0 cancels. Skip parts of unknown kinds.
typedef int32_t (*gimbal_sink)(int32_t part, const char* text, size_t bytes, void* user);

// A text that a model has written.
typedef struct gimbal_text gimbal_text;
enum {
  GIMBAL_FINISH_STOP_TOKEN = 0,
  GIMBAL_FINISH_STOP_STRING = 1,
  GIMBAL_FINISH_LENGTH = 2,
  GIMBAL_FINISH_CONTEXT_FULL = 3,
  GIMBAL_FINISH_CANCELLED = 4,
};
// With a zero byte behind it; `bytes` may be NULL. Of a chat: the answer without reasoning and calls.
GIMBAL_C_API const char* gimbal_text_string(const gimbal_text* text, size_t* bytes);
GIMBAL_C_API const int32_t* gimbal_text_tokens(const gimbal_text* text, size_t* count);
// Why it ended: GIMBAL_FINISH_*; -1 for NULL.
GIMBAL_C_API int32_t gimbal_text_finish(const gimbal_text* text);
// An object: gimbal::Generated (gimbal/text.h), with log-probabilities where they were asked for; of a chat
// with "message" as gimbal_messages_add_json() takes it.
GIMBAL_C_API const char* gimbal_text_json(const gimbal_text* text);
GIMBAL_C_API void gimbal_text_free(gimbal_text* text);

// Computes the prompt after the tokens that the sequence holds, and generates. Options: gimbal::TextOptions
// and gimbal::Sampling (gimbal/text.h, gimbal/sampling.h). `sink`, `cancel` and `text` may be NULL. A
// cancelled text is no error: its finish says so. Errors: GIMBAL_ERROR_USAGE for a prompt that is empty or
// does not fit.
GIMBAL_C_API gimbal_result gimbal_generate(gimbal_sequence* sequence, const char* prompt, size_t bytes,
                                           const char* options, gimbal_sink sink, void* user,
                                           const gimbal_cancel* cancel, gimbal_text** text,
                                           gimbal_error** error);

// The messages of a conversation, in order. For one thread at a time.
typedef struct gimbal_messages gimbal_messages;

// NULL: out of memory.
GIMBAL_C_API gimbal_messages* gimbal_messages_new(void);
GIMBAL_C_API void gimbal_messages_free(gimbal_messages* messages);
// `role`: "system", "user" or "assistant".
GIMBAL_C_API gimbal_result gimbal_messages_add(gimbal_messages* messages, const char* role,
                                               const char* content, gimbal_error** error);
// A message as OpenAI's API writes it: role and content; of the assistant also reasoning and tool_calls, of
// the role "tool" also tool_call_id.
GIMBAL_C_API gimbal_result gimbal_messages_add_json(gimbal_messages* messages, const char* json,
                                                    gimbal_error** error);
// Removes the last `count` messages.
GIMBAL_C_API void gimbal_messages_drop(gimbal_messages* messages, size_t count);
GIMBAL_C_API size_t gimbal_messages_count(const gimbal_messages* messages);

// The model's answer by the chat template of its file; it is appended to the messages, also when it was
// cancelled. The sequence keeps the tokens that it has in common with the new prompt. Options:
// gimbal::ChatOptions (gimbal/chat.h) and those of gimbal_generate(); "tools" is an array of {name,
// description, parameters}. `sink`, `cancel` and `text` may be NULL.
GIMBAL_C_API gimbal_result gimbal_chat(gimbal_sequence* sequence, gimbal_messages* messages,
                                       const char* options, gimbal_sink sink, void* user,
                                       const gimbal_cancel* cancel, gimbal_text** text, gimbal_error** error);
// The prompt that gimbal_chat() would compute, with control tokens written out.
GIMBAL_C_API gimbal_result gimbal_chat_prompt(const gimbal_model* model, const gimbal_messages* messages,
                                              const char* options, char** text, gimbal_error** error);

#ifdef __cplusplus
}
#endif

#endif  // GIMBAL_GIMBAL_H
