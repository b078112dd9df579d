#include "server/api/answer_details.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"

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

namespace {

void add_speed(Json& to, const std::string& what, int n, double ms) {
  to[what + "_n"] = n;
  to[what + "_ms"] = ms;
  to[what + "_per_token_ms"] = n > 0 ? ms / n : 0;
  to[what + "_per_second"] = ms > 0 ? n / ms * 1000 : 0;
}

// An answer without a token has no first one.
double prompt_ms(const Moments& m) { return std::max(0.0, (m.first > 0 ? m.first : m.end) - m.begun) * 1000; }

}  // namespace

Json timings_json(std::span<const Choice> all, const Usage& u) {
  Json to = {{"cache_n", u.shared_tokens}};
  double first = 0, end = 0;
  for (const Choice& c : all) {
    if (c.moments.first > 0) first = first > 0 ? std::min(first, c.moments.first) : c.moments.first;
    end = std::max(end, c.moments.end);
  }
  add_speed(to, "prompt", u.prompt_tokens - u.shared_tokens, all.empty() ? 0 : prompt_ms(all[0].moments));
  add_speed(to, "predicted", u.completion_tokens, first > 0 ? std::max(0.0, end - first) * 1000 : 0);
  return to;
}

Json timings_so_far(const Choice& c, int tokens) {
  Json to = {{"prompt_ms", prompt_ms(c.moments)}};
  add_speed(to, "predicted", tokens, std::max(0.0, now() - c.moments.first) * 1000);
  return to;
}

}  // namespace gimbal::api
