#include "apps/sampling_options.h"

#include <random>

namespace gimbal {

void SamplingOptions::declare(Arguments& a) {
  SamplerSettings& s = settings;
  a.section("Sampling");
  a.flag("--greedy", "always the most likely token", s.greedy);
  a.whole("--seed", "N", "for the same text again; default: another one each time", seed, uint64_t(0),
          UINT64_MAX);
  a.number("--temp", "X",
           "sampling temperature: higher is more random, 0 always takes the likeliest (default 0.8)",
           s.temperature);
  a.whole("--top-k", "N", "among the N most likely; 0: off (default 40)", top_k, 0, INT32_MAX);
  a.number("--top-p", "X", "only the likeliest tokens whose probabilities add up to X; 1: off (default 0.95)",
           s.top_p);
  a.number("--min-p", "X", "drop tokens less than X times as likely as the likeliest; 0: off (default 0.05)",
           s.min_p);
  a.number("--typical-p", "X", "locally typical sampling; 1: off (default)", s.typical_p);
  a.number("--repeat-penalty", "X", "makes repetition less likely; 1: off (default)", s.repeat_penalty);
  a.number("--frequency-penalty", "X", "lower a token's score by X each time it has occurred (default 0)",
           s.frequency_penalty);
  a.number("--presence-penalty", "X", "subtracted if a token occurred (default 0)", s.presence_penalty);
  a.whole("--penalty-window", "N", "tokens that the penalties look back at; -1: all (default 64)",
          penalty_window, -1, INT32_MAX);
}

Status SamplingOptions::finish() {
  settings.top_k = top_k.value_or(settings.top_k);
  settings.penalty_window = penalty_window.value_or(settings.penalty_window);
  settings.seed = seed ? *seed : std::random_device()();  // 32 bits: whole in every JSON reader
  return validate(settings);
}

}  // namespace gimbal
