#include "apps/commands/commands.h"

#include <cctype>

namespace gimbal {
namespace {

constexpr CommandRow kCommands[] = {
    {"run", "", "Use a model", "generate text; without a prompt on a terminal, a conversation", make_run},
    {"serve", "", "Use a model", "answer requests over HTTP: the APIs of OpenAI, Anthropic and Ollama",
     make_serve},
    {"console", "", "Use a model", "chat with a server that `gimbal serve` runs", make_console},
    {"embed", "", "Use a model", "compute the embedding vector of a text", make_embed},
    {"bench", "", "Use a model", "measure the speed of prompts and of generation", make_bench},
    {"audit", "", "Use a model", "check the certificates of answers: the same bits on any machine",
     make_audit},
    {"replay", "", "Use a model", "write the answer of a certificate again, and branch from it", make_replay},
    {"plan", "", "Before running it", "show the exact memory needs of a model, without loading it",
     make_plan},
    {"explain", "", "Before running it", "show which kernel computes each step, and why", make_explain},
    {"pack", "", "Before running it", "store weights pre-packed, for faster starts", make_pack},
    {"backends", "doctor", "This machine",
     "list all backends and devices: usable or not, why, and how to fix it", make_backends},
    {"kernels", "", "This machine",
     "list all kernels of all backends, and which of them this machine can use", make_kernels},
    {"inspect-library", "analyze-library", "This machine",
     "show what a library contains, without running it: symbols, GPU code, instructions",
     make_inspect_library},
    {"find-libraries", "", "This machine",
     "search for C++ inference libraries (libllama, libbitnet), and show what they are", make_find_libraries},
    {"validate-library", "", "This machine",
     "check whether a C++ inference library can be used: file, machine, functions, loading",
     make_validate_library},
    {"verify", "", "This machine", "check every kernel of this machine's device against the exact reference",
     make_verify},
    {"pull", "", "Model files", "download a model from Hugging Face or a URL; shows its memory needs first",
     make_pull},
    {"models", "list", "Model files", "list the models found on this machine", make_models},
    {"rm", "", "Model files", "delete a model", make_remove},
    {"convert", "", "Model files", "write a folder of Hugging Face's as one GGUF file", make_convert},
    {"quantize", "", "Model files", "write a model in a smaller format, or check such a file", make_quantize},
    {"imatrix", "", "Model files", "compute which inputs of a model matter, for quantize --imatrix",
     make_imatrix},
    {"choose", "", "Model files",
     "find the mixture of formats that predicts a text best within a memory budget", make_choose},
    {"info", "", "Model files", "show the contents of a model file", make_info},
    {"tokenize", "", "Model files", "convert text to token ids", make_tokenize},
    {"detokenize", "", "Model files", "convert token ids to text", make_detokenize},
    {"render-template", "", "Model files", "show the prompt that a chat template makes from messages",
     make_render_template},
    {"grammar", "", "Model files", "check whether a text matches a grammar or a JSON schema", make_grammar},
    {"parse-answer", "", "Model files", "show the content, reasoning and tool calls of a model's answer",
     make_parse_answer},
    {"logits", "", "For developers", "write the model's raw output for given tokens", make_logits},
    {"perplexity", "", "For developers",
     "measure how well a model predicts a text, and its distance from another format", make_perplexity},
    {"crossval", "", "For developers", "compare a model here with the same model in llama.cpp's library",
     make_crossval},
    {"dequantize", "", "For developers", "convert raw quantized blocks to float32", make_dequantize},
    {"embed-image", "", "For developers",
     "write what a model gets of a picture: decoded, or as pixels of its encoder", make_embed_image},
    {"completion", "", "For developers", "print the completion script for bash, zsh or fish",
     make_completion},
    {"worker", "", "For developers", "run one engine for `gimbal serve`, which starts it", make_worker},
    {"llama-worker", "", "For developers", "run a libllama for `gimbal crossval`, which starts it",
     make_llama_worker},
    {"manual", "", "For developers", "print the manual page, for `man -l`", make_manual},
};

}  // namespace

std::span<const CommandRow> all_commands() { return kCommands; }

const CommandRow* find_command(const std::string& name) {
  for (const CommandRow& row : kCommands)
    if (name == row.name || (*row.alias && name == row.alias)) return &row;
  return nullptr;
}

namespace {

// The long options of all commands, which share the environment and the user's file.
std::vector<std::string> all_options() {
  std::vector<std::string> names;
  for (const CommandRow& row : kCommands) {
    const DeclaredCommand command = declare(row);
    for (const Arguments::Declared& d : command.arguments->declared())
      for (const std::string& name : split(d.names, ','))
        if (d.set && name.starts_with("--")) names.push_back(name);
  }
  return names;
}

// `rm` and `inspect-library` use their arguments alone; `render-template` has one template; the others have
// no settings, or from elsewhere.
bool reads_settings(const CommandRow& row) {
  for (const char* name : {"rm", "render-template", "inspect-library", "find-libraries", "validate-library",
                           "worker", "llama-worker", "completion", "manual"})
    if (std::string_view(row.name) == name) return false;
  return true;
}

}  // namespace

DeclaredCommand declare(const CommandRow& row) {
  DeclaredCommand d{row.make(), nullptr};
  d.arguments = std::make_unique<Arguments>(
      format("gimbal {}", row.name),
      format("{}{}.", char(std::toupper(static_cast<unsigned char>(row.help[0]))), row.help + 1));
  d.command->declare(*d.arguments);
  d.arguments->section("Common");
  d.arguments->flag("--json", "print the result as JSON", d.command->json);
  d.arguments->flag("--quiet", "no progress and no notes on stderr", d.command->quiet);
  d.arguments->help_flag();
  if (reads_settings(row)) d.arguments->shared_settings(all_options);
  return d;
}

}  // namespace gimbal
