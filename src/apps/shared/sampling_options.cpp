#include "apps/shared/sampling_options.h"

#include <random>

namespace gimbal {

void SamplingOptions::declare(Arguments& a) {
  SamplerSettings& s = settings;
  a.section("Sampling");
  a.flag("--greedy", "always take the most likely token; no randomness", s.greedy);
  a.whole("--seed", "N",
          "seed of the random numbers: the same seed gives the same text (default: a new one for each run)",
          seed, uint64_t(0), UINT64_MAX);
  a.number("--temp", "X",
           "sampling temperature: higher is more random, 0 is the same as --greedy (default 0.8)",
           s.temperature);
  a.whole("--top-k", "N", "sample from the N most likely tokens only; 0: off (default 40)", top_k, 0,
          INT32_MAX);
  a.number("--top-p", "X",
           "sample from the most likely tokens whose probabilities add up to X; 1: off (default 0.95)",
           s.top_p);
  a.number("--min-p", "X",
           "drop tokens less than X times as likely as the most likely one; 0: off (default 0.05)", s.min_p);
  a.number("--typical-p", "X", "locally typical sampling with probability mass X; 1: off (default)",
           s.typical_p);
  a.number("--repeat-penalty", "X",
           "divide the positive scores of recent tokens by X, multiply the negative ones; 1: off (default)",
           s.repeat_penalty);
  a.number("--frequency-penalty", "X",
           "subtract X from a token's score for each time it occurred recently; 0: off (default)",
           s.frequency_penalty);
  a.number("--presence-penalty", "X",
           "subtract X from the score of each token that occurred recently; 0: off (default)",
           s.presence_penalty);
  a.whole("--penalty-window", "N",
          "how many tokens count as recent for the three penalties; -1: all (default 64)", penalty_window, -1,
          INT32_MAX);
}

Status SamplingOptions::finish() {
  settings.top_k = top_k.value_or(settings.top_k);
  settings.penalty_window = penalty_window.value_or(settings.penalty_window);
  settings.seed = seed ? *seed : std::random_device()();  // 32 bits: whole in every JSON reader
  return validate(settings);
}

}  // namespace gimbal
