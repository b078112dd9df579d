#include "audit/audit.h"

#include <algorithm>

#include "base/format.h"
#include "runtime/model.h"
#include "runtime/random.h"

namespace gimbal {
namespace {

using Verdict = AuditResult::Verdict;
using Subject = AuditResult::Subject;

constexpr int kRowsPerStep = 128;  // with logits: more take memory and are hardly faster

AuditResult differs(Subject subject, int position, std::string expected, std::string found, std::string why) {
  return {.verdict = Verdict::Differs,
          .subject = subject,
          .position = position,
          .expected = std::move(expected),
          .found = std::move(found),
          .explanation = std::move(why)};
}

// Compares what is recomputed with the certificate, row by row.
class Comparison {
 public:
  explicit Comparison(const Certificate& c) : c_(c) {}

  // The row of the answer's token `i`, or of its end, and the token picked by it; -1: a stop token.
  bool row(size_t i, std::string_view digest, Token picked) {
    const std::string_view expected =
        std::string_view(c_.logits.rows).substr(std::min(8 * i, c_.logits.rows.size()), 8);
    if (i < c_.rows() && digest.substr(0, 8) != expected) {
      result = differs(
          Subject::Logits, int(i), std::string(expected), std::string(digest.substr(0, 8)),
          i == 0
              ? "the logits behind the prompt are others: another prompt, model or setting"
              : "the logits of this token are others: an earlier token was changed, or the digest is forged");
      return false;
    }
    const bool past = i >= c_.answer.tokens.size();
    const Token want = past ? -1 : c_.answer.tokens[i];
    if (past && !c_.has_stop_row())
      return false;  // the answer ended for another reason: at a limit, or cancelled
    if (picked != want) {
      const auto name = [](Token t) { return t < 0 ? std::string("a stop token") : format("{}", t); };
      result = differs(past || picked < 0 ? Subject::End : Subject::Token, int(i), name(want), name(picked),
                       "the logits are the same, and these settings choose another token from them");
      return false;
    }
    result.rows++;
    return true;
  }

  AuditResult result;

 private:
  const Certificate& c_;
};

Result<std::optional<Constraint>> constraint_of(const Certificate& c, const Model& model,
                                                const Tokenizer& tokenizer) {
  if (c.grammar.empty()) return std::optional<Constraint>();
  auto grammar = Grammar::gbnf(c.grammar);
  if (!grammar) return grammar.error();
  auto made = Constraint::create(*grammar, TokenTree::create(tokenizer, model.config().vocabulary));
  if (!made) return made.error();
  return std::optional(std::move(*made));
}

}  // namespace

const char* name_of(Verdict v) {
  constexpr const char* kNames[] = {"same", "differs", "cannot-tell"};
  return kNames[size_t(v)];
}

const char* name_of(Subject s) {
  constexpr const char* kNames[] = {"nothing",   "arithmetic", "fast-kernels", "model", "adapters", "prompt",
                                    "signature", "logits",     "token",        "end",   "chain"};
  return kNames[size_t(s)];
}

std::optional<AuditResult> audit_identity(const Certificate& c, const Certificate::Model& model) {
  const auto cannot = [](Subject s, std::string expected, std::string found, std::string why) {
    AuditResult r = differs(s, -1, std::move(expected), std::move(found), std::move(why));
    r.verdict = Verdict::CannotTell;
    return r;
  };
  if (c.arithmetic != kArithmetic)
    return cannot(Subject::Arithmetic, format("{}", c.arithmetic), format("{}", kArithmetic),
                  "the answer was computed by another version of the arithmetic");
  if (c.settings.fast_kernels)
    return cannot(Subject::FastKernels, "exact kernels", "fast ones",
                  "kernels with another order of sums were allowed, so the bits may be others");
  if (c.model.sha256 != model.sha256)
    return differs(Subject::Model, -1, c.model.sha256, model.sha256, "the model's file is another one");
  const auto same = [](const Certificate::Adapter& a, const Certificate::Adapter& b) {
    return a.sha256 == b.sha256 && a.scale == b.scale;
  };
  if (!std::ranges::equal(c.model.adapters, model.adapters, same))
    return differs(Subject::Adapters, -1, format("{} adapters", c.model.adapters.size()),
                   format("{} adapters", model.adapters.size()),
                   "the LoRA adapters or their scales are others");
  return {};
}

Status set_audit_options(const Certificate& c, RunOptions& o) {
  const auto type = dtype_named(c.settings.cache_type);
  if (!type || c.settings.context < 1)
    return Error{Code::Malformed,
                 format("the certificate has a cache of '{}' for {} positions", c.settings.cache_type,
                        c.settings.context),
                 ""};
  o.context = c.settings.context, o.cache_type = *type;
  o.sequences = 1, o.logit_rows = std::min(o.batch, kRowsPerStep);
  return Done{};
}

namespace {

// Continues `text` from its first `known` tokens of the answer; false at the first difference, and at the
// end.
class Auditor {
 public:
  Auditor(const Certificate& c, Session& session, const Tokenizer& tokenizer, std::span<const Token> prompt,
          Constraint* constraint)
      : c_(c),
        session_(session),
        tokenizer_(tokenizer),
        prompt_(prompt),
        constraint_(constraint),
        compare_(c) {}

  // Rows from the answer's token `from` on: all, or `most`. False: there is a difference.
  Result<bool> check(size_t from, size_t most, const AuditOptions& options) {
    TextSettings settings = c_.text;
    settings.certify = true;
    TextState text(Inputs({prompt_.begin(), prompt_.end()}), 0, std::move(settings), &tokenizer_,
                   session_.model().context(), constraint_);
    text.resume(std::span(c_.answer.tokens).first(from), 0);
    size_t next = from;
    bool same = true;
    const auto emit = [&](const TokenTold& told) {
      chain_.add(told.row);
      same = compare_.row(next++, told.row, told.token);
      return same && next < from + most && next < c_.rows();
    };
    while (same && next < from + most && next < c_.rows()) {
      if (text.ended()) return end_too_early(text, next);
      const int missing = text.missing(session_.sequence()), rows = std::min(missing, session_.batch());
      const RunOptions& o = session_.model().plan().options;
      const int room = std::min({o.logit_rows - 1, session_.batch() - rows, text.most_drafts()});
      const auto left = std::span(c_.answer.tokens).subspan(std::min(next, c_.answer.tokens.size()));
      const size_t drafts =
          rows < missing || room < 0 ? 0 : std::min({size_t(room), left.size(), from + most - next - 1});
      auto step = session_.step(text, rows, left.first(drafts), part_);
      if (!step) {
        if (auto moved = session_.recover(step.error()); !moved) return moved.error();
        continue;
      }
      if (options.progress)
        options.progress(size_t(session_.position()), prompt_.size() + c_.answer.tokens.size());
      if (rows < missing) continue;
      const auto picked = session_.pick(text, *step, part_, emit);
      if (!picked.ok) {
        if (auto moved = session_.recover(picked.ok.error()); !moved) return moved.error();
        session_.rewind(int(text.tokens().size()) - 1);
      } else if (same && text.ended() && text.answer().finish() == Finish::StopToken) {
        chain_.add(text.row());
        return compare_.row(next, text.row(), -1);
      }
    }
    return same;
  }

  AuditResult& result() { return compare_.result; }
  const RowChain& chain() const { return chain_; }

 private:
  bool end_too_early(const TextState& text, size_t at) {
    const auto rows = compare_.result.rows;
    compare_.result =
        differs(Subject::End, int(at), format("{} tokens", c_.answer.tokens.size()), format("{} tokens", at),
                format("with these settings the answer ends here ({})", name_of(text.answer().finish())));
    compare_.result.rows = rows;
    return false;
  }

  const Certificate& c_;
  Session& session_;
  const Tokenizer& tokenizer_;
  const std::span<const Token> prompt_;
  Constraint* const constraint_;
  Comparison compare_;
  RowChain chain_;
  TextRows part_;
};

// So many of `all` positions, in rising order.
std::vector<size_t> drawn(size_t all, size_t n, uint64_t seed) {
  std::vector<size_t> chosen;
  Random random(seed);
  // Selection sampling (Knuth, The Art of Computer Programming, volume 2, algorithm S).
  for (size_t i = 0; i < all && chosen.size() < n; i++)
    if (random.uniform() * double(all - i) < double(n - chosen.size())) chosen.push_back(i);
  return chosen;
}

}  // namespace

Result<AuditResult> audit(const Certificate& c, Session& session, const Tokenizer& tokenizer,
                          const AuditOptions& options) {
  const std::vector<Token>& prompt = c.prompt.tokens.empty() ? options.prompt : c.prompt.tokens;
  if (prompt.empty())
    return Error{Code::Usage, "the certificate holds its prompt's digest only", "give the prompt's tokens"};
  if (prompt_digest(prompt) != c.prompt.sha256)
    return differs(Subject::Prompt, -1, c.prompt.sha256, prompt_digest(prompt), "the prompt is another one");
  const ModelPlan& plan = session.model().plan();
  if (auto ok = check_text(c.text, prompt, plan.config.vocabulary, 0, session.room()); !ok) return ok.error();
  for (Token t : c.answer.tokens)
    if (auto ok = check_input({t}, plan.config.vocabulary, 0); !ok) return ok.error();
  auto constraint = constraint_of(c, session.model(), tokenizer);
  if (!constraint) return constraint.error();
  Auditor auditor(c, session, tokenizer, prompt, *constraint ? &**constraint : nullptr);
  if (options.sample && (c.text.sampler.mirostat || c.text.sampler.adaptive_target >= 0))
    return Error{Code::Usage,
                 "this sampler remembers all tokens before, so single positions cannot be checked",
                 "check the whole answer: leave the sample out"};
  if (options.sample) {
    for (size_t at : drawn(c.rows(), size_t(std::max(0, *options.sample)), options.seed)) {
      if (*constraint) (*constraint)->rewind(0);
      auto same = auditor.check(at, 1, options);
      if (!same) return same.error();
      if (!*same) break;
    }
    return auditor.result();
  }
  auto same = auditor.check(0, c.rows(), options);
  if (!same) return same.error();
  if (*same && auditor.chain().chain() != c.logits.chain) {
    const int rows = auditor.result().rows;
    auditor.result() =
        differs(Subject::Chain, -1, c.logits.chain, auditor.chain().chain(),
                "every row begins as in the certificate, and the digest of all is another one: it is forged");
    auditor.result().rows = rows;
  }
  return auditor.result();
}

}  // namespace gimbal
