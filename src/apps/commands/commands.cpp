#include "apps/commands/commands.h"

#include <cctype>

namespace gimbal {
namespace {

constexpr CommandRow kCommands[] = {
    {"run", "", "Use a model", "generate text; without a prompt on a terminal, a conversation", make_run},
    {"serve", "", "Use a model", "answer requests over HTTP: the APIs of OpenAI, Anthropic and Ollama",
     make_serve},
    {"embed", "", "Use a model", "the embedding of a text: numbers that are near for like meanings",
     make_embed},
    {"bench", "", "Use a model", "measure the speed of prompts and of generation", make_bench},
    {"audit", "", "Use a model", "check the certificates of answers: the same bits on any machine",
     make_audit},
    {"plan", "", "Before running it", "the memory that a model takes, exactly, without loading it",
     make_plan},
    {"explain", "", "Before running it", "the kernel that computes every step, and why", make_explain},
    {"pack", "", "Before running it",
     "keep the weights of a model laid out, so that the next start maps them", make_pack},
    {"backends", "doctor", "This machine",
     "every backend and device: usable or not, why, and what would help", make_backends},
    {"kernels", "", "This machine", "every kernel of every backend, and which of them this machine can use",
     make_kernels},
    {"verify", "", "This machine", "check every kernel of this machine's device against the exact reference",
     make_verify},
    {"pull", "", "Model files", "fetch a model from Hugging Face or a URL; says before what it takes",
     make_pull},
    {"models", "list", "Model files", "the models found on this machine", make_models},
    {"rm", "", "Model files", "take a model off this machine", make_remove},
    {"info", "", "Model files", "what a model file contains", make_info},
    {"tokenize", "", "Model files", "text to token ids", make_tokenize},
    {"detokenize", "", "Model files", "token ids to text", make_detokenize},
    {"render-template", "", "Model files", "the prompt that a chat template makes of messages",
     make_render_template},
    {"logits", "", "For developers", "the model's raw output for given tokens", make_logits},
    {"perplexity", "", "For developers",
     "how well a model predicts a text, and how far it is from another format", make_perplexity},
    {"dequantize", "", "For developers", "raw quantized blocks to float32", make_dequantize},
    {"completion", "", "For developers", "the completion of this command line for bash, zsh or fish",
     make_completion},
    {"worker", "", "For developers", "one engine of `gimbal serve`, which starts it", make_worker},
    {"manual", "", "For developers", "the manual page, for `man -l`", make_manual},
};

}  // namespace

std::span<const CommandRow> all_commands() { return kCommands; }

const CommandRow* find_command(const std::string& name) {
  for (const CommandRow& row : kCommands)
    if (name == row.name || (*row.alias && name == row.alias)) return &row;
  return nullptr;
}

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
  return d;
}

}  // namespace gimbal
