// Reports of a run: for --stats and for --json.
#pragma once
#include <string>

#include "base/json_fwd.h"
#include "engine/engine.h"
#include "engine/measured.h"
#include "engine/reports.h"
#include "runtime/generate.h"

namespace gimbal {

size_t device_count(const ModelPlan&);
// With the reason for each device, in terms of options.
std::vector<PlacedLayers> worded_placement(const ModelPlan&, const OpenedDevice&);
// "4.66 GB, mapped from 'FILE'", for each stage with packed weights.
std::vector<std::string> packed_lines(const ModelPlan&);
// "f16"; of a quantized cache whether it is rotated, and why: "q8_0, not rotated: 8 bits lose little ...".
std::string cache_line(const ModelPlan&);
// "at least 4.2 tokens/s with this disk: ..."
std::string speed_line(const ExpertSpeed&);
// Lines for stderr, each with its newline. `before`: the model's receipt before the text.
std::string run_stats(const LoadedModel&, const Generated&, uint64_t seed,
                      const std::vector<ReceiptLine>& before);
// The reason for an unusual end of the text; empty for the usual ends.
std::string explain_finish(Finish, const Model&);
// {from, steps, tokens, drafted, accepted, seconds}.
Json drafts_json(const std::string& from, const DraftCounts&);
// "120 of 160 kept (75 %), 2.41 tokens a step".
std::string drafts_text(const DraftCounts&);
// Tokens per second.
double prompt_rate(const Generated&);
double generation_rate(const Generated&);
// {load_seconds, prompt_seconds, first_token_seconds, generate_seconds, and both rates}.
Json timing_json(const Generated&, double load_seconds);
// The probability of each token and of the likeliest ones in its place; null if not requested.
Json logprobs_json(const Generated&);
// Keys: see docs/cli.md.
Json run_json(const LoadedModel&, const Generated&, const std::string& text, uint64_t seed);

}  // namespace gimbal
