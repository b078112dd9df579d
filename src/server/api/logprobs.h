// Probabilities of tokens as OpenAI writes them.
#pragma once
#include "base/json.h"
#include "scheduler/request.h"

namespace gimbal::api {

// The token as text; an incomplete character as U+FFFD.
std::string token_text(const Tokenizer&, Token);
// A finite value for JSON, which has no infinity: impossible tokens get OpenAI's substitute.
float finite_logprob(float);
// {token, logprob, bytes, top_logprobs: [{token, logprob, bytes}]}
Json token_logprobs(const Tokenizer&, const TokenEvent&);

}  // namespace gimbal::api
