#include "server/api/logprobs.h"

#include <cmath>

namespace gimbal::api {
namespace {

Json one(const Tokenizer& tokenizer, Token token, float logprob) {
  const std::string piece = tokenizer.piece(token, true);
  Json bytes = Json::array();
  for (char c : piece) bytes.push_back(uint8_t(c));
  return {{"token", piece}, {"logprob", finite_logprob(logprob)}, {"bytes", std::move(bytes)}};
}

}  // namespace

float finite_logprob(float p) { return std::isfinite(p) ? p : -9999.0f; }

std::string token_text(const Tokenizer& tokenizer, Token token) { return tokenizer.piece(token, true); }

Json token_logprobs(const Tokenizer& tokenizer, const TokenEvent& t) {
  Json j = one(tokenizer, t.token, t.logprob);
  Json top = Json::array();
  for (const TokenProbability& p : t.top) top.push_back(one(tokenizer, p.token, p.logprob));
  j["top_logprobs"] = std::move(top);
  return j;
}

}  // namespace gimbal::api
