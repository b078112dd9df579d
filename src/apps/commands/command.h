// A command declares its options, then runs. One file per command; commands.cpp has the table of
// commands.
#pragma once
#include <memory>

#include "apps/toolkit/arguments.h"
#include "apps/toolkit/exit_code.h"
#include "base/result.h"

namespace gimbal {

inline constexpr const char* kModelHelp =
    "model file, a folder of Hugging Face's, a name listed by `gimbal list`, an address "
    "(hf.co/OWNER/REPO:QUANT or a "
    "URL), or `default` for the built-in model";

class Command {
 public:
  virtual ~Command() = default;
  virtual void declare(Arguments&) = 0;
  // Called after parsing. Returns the exit code, or the error that main() reports.
  virtual Result<int> run() = 0;
  // The feature that this command needs and this build lacks; nullptr: none.
  virtual const char* absent_feature() const { return nullptr; }

  bool json = false;        // every command has --json and --quiet
  bool json_lines = false;  // with --json it prints one line per event
  bool quiet = false;       // no progress, no notes; still reports errors and device fallbacks
};

using MakeCommand = std::unique_ptr<Command> (*)();

std::unique_ptr<Command> make_run();
std::unique_ptr<Command> make_serve();
std::unique_ptr<Command> make_worker();
std::unique_ptr<Command> make_llama_worker();
std::unique_ptr<Command> make_crossval();
std::unique_ptr<Command> make_console();
std::unique_ptr<Command> make_embed();
std::unique_ptr<Command> make_bench();
std::unique_ptr<Command> make_plan();
std::unique_ptr<Command> make_explain();
std::unique_ptr<Command> make_pack();
std::unique_ptr<Command> make_backends();
std::unique_ptr<Command> make_kernels();
std::unique_ptr<Command> make_inspect_library();
std::unique_ptr<Command> make_find_libraries();
std::unique_ptr<Command> make_validate_library();
std::unique_ptr<Command> make_verify();
std::unique_ptr<Command> make_pull();
std::unique_ptr<Command> make_models();
std::unique_ptr<Command> make_remove();
std::unique_ptr<Command> make_info();
std::unique_ptr<Command> make_convert();
std::unique_ptr<Command> make_quantize();
std::unique_ptr<Command> make_imatrix();
std::unique_ptr<Command> make_choose();
std::unique_ptr<Command> make_tokenize();
std::unique_ptr<Command> make_detokenize();
std::unique_ptr<Command> make_render_template();
std::unique_ptr<Command> make_audit();
std::unique_ptr<Command> make_replay();
std::unique_ptr<Command> make_grammar();
std::unique_ptr<Command> make_parse_answer();
std::unique_ptr<Command> make_logits();
std::unique_ptr<Command> make_perplexity();
std::unique_ptr<Command> make_dequantize();
std::unique_ptr<Command> make_embed_image();
std::unique_ptr<Command> make_completion();
std::unique_ptr<Command> make_manual();

// Commands of features that this build lacks (cmake/features.cmake).

// A command without options. `feature`: one of GIMBAL_FEATURES.
std::unique_ptr<Command> absent_command(const char* feature);

}  // namespace gimbal
