// The audit of one answer, step by step. Several share the steps of a model: audit() gives each its turn.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "audit/audit.h"
#include "audit/comparison.h"

namespace gimbal {

class Auditor {
 public:
  // All outlive it. `tree`: for a certificate with a grammar. Errors: those of a grammar; of a prompt, a
  // token or a setting that this model cannot have.
  static Result<std::unique_ptr<Auditor>> create(const AuditJob&, const ModelPlan&, const Tokenizer&,
                                                 const std::shared_ptr<const TokenTree>& tree,
                                                 const AuditOptions&);
  ~Auditor();

  // From the beginning, on an empty sequence of this model. Errors: OutOfMemory if none is free.
  Status begin(Model&);
  bool done() const { return range_ == ranges_.size(); }

  // The room that a step has left: rows, and rows with a result.
  struct Room {
    int rows, results;
  };
  // Adds its next rows, with the answer's tokens as drafts, as far as there is room.
  void add(Model&, Batch&, Room&);
  // Compares the results of these rows; `k`: the first of them in the step, then the one behind them.
  // Errors: those of the sampler, the grammar and the device.
  Status take(Model&, const StepOutput&, size_t& k);

  AuditResult result() const;
  size_t tokens() const { return prompt_.size() + certificate_.answer.tokens.size(); }
  size_t computed() const { return sequence_ ? size_t(sequence_->computed()) : 0; }

 private:
  struct Range {
    size_t first, end;  // rows of the answer
  };
  Auditor(const AuditJob&, const Tokenizer&, int capacity, const AuditOptions&);
  void begin_range();
  void settle();
  void pass_on(size_t tokens, std::string_view text);

  const Certificate& certificate_;
  const std::span<const Token> prompt_;
  const Tokenizer& tokenizer_;
  const int capacity_;
  const bool whole_;  // all rows are checked, so the chain is, too
  const std::function<void(std::string_view)> text_sink_;
  std::vector<Range> ranges_;
  std::optional<Constraint> constraint_;

  std::unique_ptr<Sequence> sequence_;
  std::optional<TextState> text_;
  Comparison comparison_;
  RowChain chain_;
  size_t range_ = 0, next_ = 0;  // the row that is compared next
  size_t emitted_ = 0;           // tokens whose text was passed on
  bool same_ = true, added_ = false;
  TextRows part_;  // of the step
};

}  // namespace gimbal
