// Numbers about an answer: probabilities of its tokens, as OpenAI writes them, and times, in the form of
// llama.cpp's server.
#pragma once
#include "base/json.h"
#include "scheduler/request.h"
#include "server/api/answer.h"

namespace gimbal::api {

// The token as text; an incomplete character as U+FFFD.
std::string token_text(const Tokenizer&, Token);
// A finite value for JSON, which has no infinity: impossible tokens get OpenAI's substitute.
float finite_logprob(float);
// {token, logprob, bytes, top_logprobs: [{token, logprob, bytes}]}
Json token_logprobs(const Tokenizer&, const TokenEvent&);

// ---- times

// Of all choices: the first one's prompt, and the time from the first token to the last one's end. {cache_n,
// prompt_n, prompt_ms, prompt_per_token_ms, prompt_per_second, predicted_n, predicted_ms, ...}
Json timings_json(std::span<const Choice>, const Usage&);
// Of a choice that has so many tokens, before its end. It does not have the prompt's tokens: which of them
// were computed for an earlier request is known at the end.
Json timings_so_far(const Choice&, int tokens);

}  // namespace gimbal::api
