// The settings of sampling, each described once. Range check, command line, configuration file, workers'
// protocol and the JSON fields of the server read this table.
//
// A new setting is a member of Sampling (include/gimbal/sampling.h), a line here, and its use in sampler.cpp.
#pragma once
#include <gimbal/sampling.h>

#include <cfloat>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace gimbal {

// The field of a server's API that gives a setting.
struct JsonField {
  const char* name = nullptr;  // nullptr: the API has no such field
  double low = 0, high = 0;    // accepted by the API; values below the setting's own range mean "off"
  std::optional<double> default_ = {};  // of the API; none: the member's
  const char* alias = nullptr;          // a second name
};

struct SamplingSetting {
  using Member =
      std::variant<bool Sampling::*, uint64_t Sampling::*, float Sampling::*, int Sampling::*,
                   std::vector<std::pair<int32_t, float>> Sampling::*, std::vector<std::string> Sampling::*>;
  const char* field;  // the member's name: in errors, bindings and the protocol
  Member member;
  // Of numbers
  double low = 0, high = FLT_MAX;
  bool above_low = false;          // `low` itself is out of range
  const char* expected = "";       // "'field' is X, but must be ..."
  std::optional<double> off = {};  // the value that turns it off
  // Of the command line; option nullptr: none
  const char* option = nullptr;
  const char* value = "X";
  const char* help = "";  // without the default
  // Of the APIs that follow OpenAI's, and of Ollama's
  JsonField openai = {}, ollama = {};
};

inline constexpr SamplingSetting kSamplingSettings[] = {
    {.field = "greedy",
     .member = &Sampling::greedy,
     .option = "--greedy",
     .help = "always take the most likely token; no randomness"},
    {.field = "seed",
     .member = &Sampling::seed,
     .option = "--seed",
     .value = "N",
     .help =
         "seed of the random numbers: the same seed gives the same text (default: a new one for each run)"},
    {.field = "temperature",
     .member = &Sampling::temperature,
     .expected = "0 (greedy) or a positive number",
     .option = "--temp",
     .help = "sampling temperature: higher is more random, 0 is the same as --greedy",
     .openai = {"temperature", 0, 2, 1},
     .ollama = {"temperature", 0, 1e6, 0.8f}},
    {.field = "top_k",
     .member = &Sampling::top_k,
     .high = INT32_MAX,
     .expected = "0 (off) or a positive number",
     .off = 0,
     .option = "--top-k",
     .value = "N",
     .help = "sample from the N most likely tokens only; 0: off",
     .openai = {"top_k", -1, INT32_MAX, 0},
     .ollama = {"top_k", 0, INT32_MAX, 40}},
    {.field = "top_p",
     .member = &Sampling::top_p,
     .high = 1,
     .expected = "from 0 to 1 (off)",
     .off = 1,
     .option = "--top-p",
     .help = "sample from the most likely tokens whose probabilities add up to X; 1: off",
     .openai = {"top_p", 0, 1, 1},
     .ollama = {"top_p", 0, 1, 0.9f}},
    {.field = "min_p",
     .member = &Sampling::min_p,
     .high = 1,
     .expected = "from 0 (off) to 1",
     .off = 0,
     .option = "--min-p",
     .help = "drop tokens less than X times as likely as the most likely one; 0: off",
     .openai = {"min_p", 0, 1, 0},
     .ollama = {"min_p", 0, 1, 0}},
    {.field = "typical_p",
     .member = &Sampling::typical_p,
     .high = 1,
     .expected = "from 0 to 1 (off)",
     .off = 1,
     .option = "--typical-p",
     .help = "locally typical sampling with probability mass X; 1: off",
     .openai = {"typical_p", 0, 1},
     .ollama = {"typical_p", 0, 1}},
    {.field = "repeat_penalty",
     .member = &Sampling::repeat_penalty,
     .above_low = true,
     .expected = "a positive number (1: off)",
     .off = 1,
     .option = "--repeat-penalty",
     .help = "divide the positive scores of recent tokens by X, multiply the negative ones; 1: off",
     .openai = {"repeat_penalty", 0, FLT_MAX, {}, "repetition_penalty"},
     .ollama = {"repeat_penalty", 1e-6, 1e6, 1.1f}},
    {.field = "frequency_penalty",
     .member = &Sampling::frequency_penalty,
     .low = -FLT_MAX,
     .expected = "a finite number (0: off)",
     .off = 0,
     .option = "--frequency-penalty",
     .help = "subtract X from a token's score for each time it occurred recently; 0: off",
     .openai = {"frequency_penalty", -2, 2},
     .ollama = {"frequency_penalty", -100, 100}},
    {.field = "presence_penalty",
     .member = &Sampling::presence_penalty,
     .low = -FLT_MAX,
     .expected = "a finite number (0: off)",
     .off = 0,
     .option = "--presence-penalty",
     .help = "subtract X from the score of each token that occurred recently; 0: off",
     .openai = {"presence_penalty", -2, 2},
     .ollama = {"presence_penalty", -100, 100}},
    {.field = "penalty_window",
     .member = &Sampling::penalty_window,
     .low = -1,
     .high = INT32_MAX,
     .expected = "-1 (all tokens), 0 (none) or a positive number",
     .off = 0,
     .option = "--penalty-window",
     .value = "N",
     .help = "how many tokens count as recent for the three penalties; -1: all",
     .openai = {.default_ = -1},
     .ollama = {"repeat_last_n", -1, INT32_MAX, 64}},
    {.field = "dynatemp_range",
     .member = &Sampling::dynatemp_range,
     .expected = "0 (off) or a positive number",
     .off = 0,
     .option = "--dynatemp-range",
     .help = "let the temperature go from X below to X above --temp, by how undecided the model is; 0: off",
     .openai = {"dynatemp_range", 0, 100},
     .ollama = {"dynatemp_range", 0, 100}},
    {.field = "dynatemp_exponent",
     .member = &Sampling::dynatemp_exponent,
     .expected = "0 or more",
     .option = "--dynatemp-exp",
     .help = "exponent of the entropy for --dynatemp-range",
     .openai = {"dynatemp_exponent", 0, 100},
     .ollama = {"dynatemp_exponent", 0, 100}},
    {.field = "top_n_sigma",
     .member = &Sampling::top_n_sigma,
     .expected = "0 (off) or a positive number",
     .off = 0,
     .option = "--top-n-sigma",
     .help = "keep scores within X standard deviations of the largest; 0: off",
     .openai = {"top_n_sigma", -1, 1e6},
     .ollama = {"top_n_sigma", -1, 1e6}},
    {.field = "xtc_probability",
     .member = &Sampling::xtc_probability,
     .high = 1,
     .expected = "from 0 (off) to 1",
     .off = 0,
     .option = "--xtc-probability",
     .help = "how often XTC drops the most likely tokens but one; 0: off",
     .openai = {"xtc_probability", 0, 1},
     .ollama = {"xtc_probability", 0, 1}},
    {.field = "xtc_threshold",
     .member = &Sampling::xtc_threshold,
     .high = 1,
     .expected = "from 0 to 1",
     .option = "--xtc-threshold",
     .help = "the probability from which XTC counts a token as likely; above 0.5: off",
     .openai = {"xtc_threshold", 0, 1},
     .ollama = {"xtc_threshold", 0, 1}},
    {.field = "dry_multiplier",
     .member = &Sampling::dry_multiplier,
     .expected = "0 (off) or a positive number",
     .off = 0,
     .option = "--dry-multiplier",
     .help = "strength of DRY's penalty for tokens that would lengthen a repetition; 0: off",
     .openai = {"dry_multiplier", 0, 1e6},
     .ollama = {"dry_multiplier", 0, 1e6}},
    {.field = "dry_base",
     .member = &Sampling::dry_base,
     .low = 1,
     .expected = "1 or more",
     .option = "--dry-base",
     .help = "how DRY's penalty grows with each token of a repetition",
     .openai = {"dry_base", 1, 1e6},
     .ollama = {"dry_base", 1, 1e6}},
    {.field = "dry_allowed_length",
     .member = &Sampling::dry_allowed_length,
     .low = 1,
     .high = INT32_MAX,
     .expected = "a positive number",
     .option = "--dry-allowed-length",
     .value = "N",
     .help = "repetitions shorter than N tokens cost nothing with DRY",
     .openai = {"dry_allowed_length", 1, INT32_MAX},
     .ollama = {"dry_allowed_length", 1, INT32_MAX}},
    {.field = "dry_penalty_last_n",
     .member = &Sampling::dry_penalty_last_n,
     .low = -1,
     .high = INT32_MAX,
     .expected = "-1 (all tokens), 0 (off) or a positive number",
     .option = "--dry-penalty-last-n",
     .value = "N",
     .help = "how many of the last tokens DRY looks at; -1: all, 0: off",
     .openai = {"dry_penalty_last_n", -1, INT32_MAX},
     .ollama = {"dry_penalty_last_n", -1, INT32_MAX}},
    {.field = "dry_sequence_breakers",
     .member = &Sampling::dry_sequence_breakers,
     .option = "--dry-sequence-breaker",
     .value = "TEXT",
     .help = "a text that ends repetitions for DRY, in place of a line's end, colon, quote and asterisk; "
             "repeatable; none: no text does",
     .openai = {"dry_sequence_breakers"},
     .ollama = {"dry_sequence_breakers"}},
    {.field = "mirostat",
     .member = &Sampling::mirostat,
     .high = 2,
     .expected = "0 (off), 1 or 2",
     .off = 0,
     .option = "--mirostat",
     .value = "N",
     .help =
         "hold the text's surprise at --mirostat-tau, by Mirostat 1 or 2, in place of the filters; 0: off",
     .openai = {"mirostat", 0, 2},
     .ollama = {"mirostat", 0, 2}},
    {.field = "mirostat_tau",
     .member = &Sampling::mirostat_tau,
     .expected = "0 or more",
     .option = "--mirostat-tau",
     .help = "the surprise that Mirostat aims at, in bits",
     .openai = {"mirostat_tau", 0, 1e6},
     .ollama = {"mirostat_tau", 0, 1e6}},
    {.field = "mirostat_eta",
     .member = &Sampling::mirostat_eta,
     .expected = "0 or more",
     .option = "--mirostat-eta",
     .help = "how fast Mirostat corrects itself",
     .openai = {"mirostat_eta", 0, 1e6},
     .ollama = {"mirostat_eta", 0, 1e6}},
    {.field = "adaptive_target",
     .member = &Sampling::adaptive_target,
     .low = -1,
     .high = 1,
     .expected = "-1 (off), or from 0 to 1",
     .off = -1,
     .option = "--adaptive-target",
     .help = "draw tokens that have this probability on average; below 0: off",
     .openai = {"adaptive_target", -1, 1},
     .ollama = {"adaptive_target", -1, 1}},
    {.field = "adaptive_decay",
     .member = &Sampling::adaptive_decay,
     .high = 0.99f,
     .expected = "from 0 to 0.99",
     .option = "--adaptive-decay",
     .help = "how slowly the average of --adaptive-target forgets",
     .openai = {"adaptive_decay", 0, 0.99},
     .ollama = {"adaptive_decay", 0, 0.99}},
    {.field = "logit_bias", .member = &Sampling::logit_bias},
};

// The defaults of an API: &SamplingSetting::openai or ::ollama.
inline Sampling default_sampling(JsonField SamplingSetting::*api) {
  Sampling to;
  for (const SamplingSetting& s : kSamplingSettings) {
    const std::optional<double> value = (s.*api).default_;
    if (!value) continue;
    if (const auto* number = std::get_if<float Sampling::*>(&s.member)) to.** number = float(*value);
    if (const auto* whole = std::get_if<int Sampling::*>(&s.member)) to.** whole = int(*value);
  }
  return to;
}

}  // namespace gimbal
