#include "audit/branch.h"

#include "base/format.h"

namespace gimbal {
namespace {

Status check_tokens(const Certificate& c, int tokens) {
  if (tokens >= 0 && size_t(tokens) <= c.answer.tokens.size()) return Done{};
  return Error{Code::Usage,
               format("a branch cannot keep {} tokens: the answer has {}", tokens, c.answer.tokens.size()),
               format("keep at most {}", c.answer.tokens.size()), "", "until"};
}

std::span<const Token> first_tokens(const Certificate& c, int tokens) {
  return std::span(c.answer.tokens).first(size_t(tokens));
}

}  // namespace

GenerateSettings Branch::settings(Constraint* constraint) const {
  GenerateSettings s;
  static_cast<TextSettings&>(s) = text;
  s.certify = true, s.constraint = constraint, s.written = kept;
  return s;
}

Result<Branch> branch_with_seed(const Certificate& origin, std::span<const Token> prompt, int tokens,
                                uint64_t seed) {
  if (auto ok = check_tokens(origin, tokens); !ok) return ok.error();
  const auto kept = first_tokens(origin, tokens);
  Branch b{{certificate_digest(origin), tokens, tokens},
           {prompt.begin(), prompt.end()},
           {kept.begin(), kept.end()},
           origin.text,
           origin.grammar};
  b.text.sampler.seed = seed;
  return b;
}

Result<Branch> branch_with_message(const Certificate& origin, std::span<const Token> prompt, int tokens,
                                   std::span<const Token> message) {
  if (auto ok = check_tokens(origin, tokens); !ok) return ok.error();
  if (message.empty()) return Error{Code::Usage, "the message is empty", "give a text", "", "message"};
  Branch b{{certificate_digest(origin), tokens, 0},
           {prompt.begin(), prompt.end()},
           {},
           origin.text,
           origin.grammar};
  const auto kept = first_tokens(origin, tokens);
  b.prompt.insert(b.prompt.end(), kept.begin(), kept.end());
  b.prompt.insert(b.prompt.end(), message.begin(), message.end());
  return b;
}

Certificate certificate_of(const Branch& b, const Certificate& origin, const Generated& g) {
  std::vector<Token> answer = b.kept;
  answer.insert(answer.end(), g.tokens.begin(), g.tokens.end());
  Certificate c =
      certificate_of(origin.model, origin.settings, b.prompt, b.text, b.grammar, answer, g.finish, g.rows);
  c.version = 2, c.origin = b.origin;
  if (origin.prompt.tokens.empty()) c.prompt.tokens.clear();
  return c;
}

}  // namespace gimbal
