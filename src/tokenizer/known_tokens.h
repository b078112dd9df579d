// Special tokens that are known by their text. Files often declare them as plain tokens, or name no
// end-of-turn id at all, so their text is the last resort.
#pragma once
#include <string_view>

namespace gimbal {

struct KnownToken {
  std::string_view text;
  bool stops;  // ends a generation; the others only mark a place in the text
};

// Names from the models' published tokenizer files. llama.cpp decides which of them end a generation; the
// reference data (`eog`) checks this.
inline constexpr KnownToken kKnownTokens[] = {
    // ends of a turn or a text
    {"<|eot_id|>", true},             // Llama 3
    {"<|eom_id|>", true},             // Llama 3, before a tool call
    {"<|end_of_text|>", true},        // Llama 3, Granite
    {"<|im_end|>", true},             // ChatML
    {"<|end|>", true},                // Phi-3
    {"<|return|>", true},             // gpt-oss
    {"<|call|>", true},               // gpt-oss
    {"<|calls|>", true},              // Solar
    {"<|flush|>", true},              // Solar
    {"<end_of_turn>", true},          // Gemma
    {"<eos>", true},                  // Gemma
    {"<turn|>", true},                // Gemma 4
    {"<|tool_response>", true},       // Gemma 4
    {"[e~[", true},                   // MiniMax
    {"<|endoftext|>", true},          // GPT-2 and many
    {"</s>", true},                   // SentencePiece
    {"<EOT>", true},                  // CodeLlama
    {"_<EOT>", true},                 // CodeLlama
    {"[EOT]", true},                  // Kimi
    {"[EOS]", true},                  // Kimi
    {"<end_of_utterance>", true},     // SmolVLM
    {"<｜end▁of▁sentence｜>", true},  // DeepSeek
    // fill-in-the-middle: ends of the inserted text
    {"<|fim_pad|>", true},
    {"<fim-pad>", true},
    {"<fim_pad>", true},
    {"<PAD>", true},
    {"[PAD]", true},
    {"<|fim_repo|>", true},
    {"<|repo_name|>", true},
    {"<fim-repo>", true},
    {"<REPO>", true},
    {"<reponame>", true},
    {"<|file_sep|>", true},
    // fill-in-the-middle: marks in the prompt
    {"<|fim_prefix|>", false},
    {"<fim-prefix>", false},
    {"<fim_prefix>", false},
    {"<｜fim▁begin｜>", false},
    {"<PRE>", false},
    {"▁<PRE>", false},
    {"<|code_prefix|>", false},
    {"<|fim_suffix|>", false},
    {"<fim-suffix>", false},
    {"<fim_suffix>", false},
    {"<｜fim▁hole｜>", false},
    {"<SUF>", false},
    {"▁<SUF>", false},
    {"<|code_suffix|>", false},
    {"<|fim_middle|>", false},
    {"<fim-middle>", false},
    {"<fim_middle>", false},
    {"<｜fim▁end｜>", false},
    {"<MID>", false},
    {"▁<MID>", false},
    {"<|code_middle|>", false},
    {"<|prefix|>", false},
    {"<|suffix|>", false},
    {"<|middle|>", false},
};

}  // namespace gimbal
