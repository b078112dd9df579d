#include "audit/comparison.h"

#include <algorithm>

#include "base/format.h"

namespace gimbal {

using Subject = AuditResult::Subject;

AuditResult differs(Subject subject, int position, std::string expected, std::string found, std::string why) {
  return {.verdict = AuditResult::Verdict::Differs,
          .subject = subject,
          .position = position,
          .expected = std::move(expected),
          .found = std::move(found),
          .explanation = std::move(why)};
}

void Comparison::set(AuditResult r) {
  r.rows = result_.rows;
  result_ = std::move(r);
}

bool Comparison::row(size_t i, std::string_view digest, Token picked) {
  const Certificate& c = *certificate_;
  const std::string_view expected =
      std::string_view(c.logits.rows).substr(std::min(8 * (i - c.first_row()), c.logits.rows.size()), 8);
  if (i < c.end_row() && digest.substr(0, 8) != expected) {
    set(differs(Subject::Logits, int(i), std::string(expected), std::string(digest.substr(0, 8)),
                i == c.first_row()
                    ? "the logits behind the prompt are others: another prompt, model or setting"
                    : "the logits of this token are others: an earlier token was changed, or the digest "
                      "is forged"));
    return false;
  }
  const bool past = i >= c.answer.tokens.size();
  const Token want = past ? -1 : c.answer.tokens[i];
  if (past && !c.has_stop_row())
    return false;  // the answer ended for another reason: at a limit, or cancelled
  if (picked != want) {
    const auto name = [](Token t) { return t < 0 ? std::string("a stop token") : format("{}", t); };
    set(differs(past || picked < 0 ? Subject::End : Subject::Token, int(i), name(want), name(picked),
                "the logits are the same, and these settings choose another token from them"));
    return false;
  }
  result_.rows++;
  return true;
}

void Comparison::ends_early(size_t tokens, Finish finish) {
  set(differs(Subject::End, int(tokens), format("{} tokens", certificate_->answer.tokens.size()),
              format("{} tokens", tokens),
              format("with these settings the answer ends here ({})", name_of(finish))));
}

void Comparison::chain(const std::string& found) {
  if (found != certificate_->logits.chain)
    set(differs(
        Subject::Chain, -1, certificate_->logits.chain, found,
        "every row begins as in the certificate, and the digest of all is another one: it is forged"));
}

}  // namespace gimbal
