// One text while a model writes it: its tokens, and everything that decides the next one (sampler,
// constraint, drafts, stop strings, limits). generate() and the scheduler compute the rows, at different
// times. So a text is the same alone and among others.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "grammar/constraint.h"
#include "runtime/answer.h"
#include "runtime/batch.h"
#include "runtime/reasoning_limit.h"
#include "runtime/sampler.h"

namespace gimbal {

class Model;

struct TextSettings {
  SamplerSettings sampler;
  std::vector<std::string> stops;
  int max_tokens = -1;  // of the whole answer; -1: until the model stops or the context is full
  bool ignore_stop_tokens = false;
  int logprobs = -1;  // log-probability of each token, and of this many most likely tokens; -1: none
  // With a constraint: complete the answer before max_tokens or the context run out, if they leave room for
  // it.
  bool completes = false;
  bool certify = false;           // digests of the rows of logits, for a certificate: runtime/top_logits.h
  ReasoningLimit reasoning = {};  // without a constraint
};

// Checks a text before anything is computed. `width`: of the embeddings that the model takes, or 0. `room`:
// positions for the prompt. Errors: Usage for settings out of range, an empty prompt, one that does not fit
// (context-full); those of check_inputs().
Status check_text(const TextSettings&, const InputView& prompt, int vocabulary, int width, int room);

struct TokenProbability {
  Token token;
  float logprob;  // natural logarithm, at temperature 1 of all logits
};

// One token of the answer. `text`: the text finalized by it: complete UTF-8, no part of a stop string; may
// be empty.
struct TokenEvent {
  Token token;
  int index;  // in the answer, from 0; each once, in order
  std::string text;
  float logprob = 0;                  // with TextSettings::logprobs >= 0
  std::vector<TokenProbability> top;  // the most likely ones, best first
  std::string row;                    // with TextSettings::certify: the digest of its row of logits
  double memory = 0;                  // of the sampler, behind the token: see resume()
};

// The rows of one text in a batch.
struct TextRows {
  size_t first = 0;
  int rows = 0;     // with drafts
  int drafts = 0;   // at the end
  int results = 0;  // rows with a result: none, or the text's last row and its drafts
  int scored = 0;   // rows before these that give the prompt's next token its log-probability
};

class TextState {
 public:
  // `text`: everything up to the end of the prompt, which begins at `begin`; penalties ignore earlier
  // tokens. `tokenizer`: nullptr for tokens alone, without text and without stop tokens. `capacity`:
  // positions that the text can have. `constraint`: at the beginning of the answer; nullptr: any text.
  // Tokenizer and constraint outlive it.
  TextState(Inputs text, size_t begin, TextSettings settings, const Tokenizer* tokenizer, int capacity,
            Constraint* constraint = nullptr);
  // Sets the first tokens of the answer, which the reader has already. The rest continues exactly from
  // them: random numbers, penalties, partial characters, stop strings, grammar. Call it before any pick().
  // `memory`: TokenEvent::memory of the last of them; none: the sampler's memory begins anew. Returns their
  // text, as TokenEvent::text has it.
  std::string resume(std::span<const Token> written, std::optional<double> memory);
  // Asks for the log-probabilities of the prompt's tokens after its first one, and of a stop token. The text
  // needs TextSettings::logprobs, and a prompt without embeddings. `sent`: how many the reader has already.
  void score_prompt(int sent);

  // The text until the end of the answer so far, and its tokens: kNoToken for an embedding.
  const Inputs& inputs() const { return text_; }
  const std::vector<Token>& tokens() const { return text_.tokens(); }
  int prompt_tokens() const { return int(prompt_ - begin_); }
  bool ended() const { return answer_.ended(); }
  // With TextSettings::certify: the digest of the last row, which may have chosen a stop token.
  const std::string& row() const { return event_.row; }
  Answer& answer() { return answer_; }
  const Answer& answer() const { return answer_; }
  int missing(const Sequence& s) const { return int(text_.size()) - s.computed(); }  // tokens to compute
  bool scored() const { return scored_ == prompt_; }  // no token of the prompt lacks its log-probability
  // Leading tokens whose results nothing needs: another sequence may have computed them.
  size_t reusable() const { return scored() ? text_.size() - 1 : scored_ - 1; }
  // The most drafts that the answer has room for.
  int most_drafts() const;
  // Tokens within which the constraint must end the answer: see Constraint::allowed().
  int constrained_left() const;

  // Adds the next `rows` tokens that `s` lacks to the batch, and drafts after the last one. Rows at the end
  // of the text get results.
  TextRows add_rows(const Model&, Sequence& s, int rows, std::span<const Token> drafts, Batch&);

  // Passes the log-probabilities that these rows give to tokens of the prompt to `emit(const TokenTold&)`;
  // its `index` is the token's place in the prompt. `k`: the first result of these rows in the step. Errors:
  // those of check_logits().
  template <class Emit>
  Status score(const StepOutput& out, size_t k, const TextRows& rows, Emit emit) {
    for (int i = 0; i < rows.scored; i++) {
      if (auto ok = score_next(out.logits(k + size_t(i))); !ok) return ok;
      emit(event_);
    }
    return Done{};
  }

  // Picks the next token by logits that no Model computed; event() has it. False: the answer ended with a
  // token outside its text. Not for certificates and scored prompts. Errors: the sampler's, the constraint's.
  Result<bool> take(std::span<const float> logits);
  const TokenEvent& event() const { return event_; }

  // Picks the next token, and one after each draft that equals the token just picked. `k`: the first result
  // of these rows in the step. `emit(const TokenTold&)` gets each token and returns whether the text
  // continues; `ready()` returns whether the next token can be picked now. `right`: accepted drafts; the
  // sequence must drop the others. `k` is behind the scored rows. Errors: the sampler's, the constraint's,
  // the device's.
  struct Picked {
    int right = 0;
    Status ok = Done{};
    const TokenEvent* stop =
        nullptr;  // after score_prompt(): the stop token, `index` counted from the prompt
  };
  template <class Emit, class Ready>
  Picked pick(Model& model, const StepOutput& out, size_t k, const TextRows& rows, Emit emit, Ready ready) {
    for (Picked p;; p.right++) {
      const auto taken = take(model, out, k + size_t(p.right));
      if (!taken) p.ok = taken.error();
      if (taken && !*taken && scores_stop_) p.stop = &event_;
      if (!taken || !*taken || !emit(event_)) return p;
      if (ended() || p.right == rows.drafts || drafts_[size_t(p.right)] != tokens().back() || !ready())
        return p;
    }
  }

 private:
  Result<bool> take(Model&, const StepOutput&, size_t k);
  Result<Token> next(Model&, const StepOutput&, size_t k);
  Result<Token> next(std::span<const float> logits);
  bool add(Token, std::span<const float> logits);
  bool needs_top_only(const Model&) const;
  int wanted_top() const;
  Result<std::string> digest(Model&, const StepOutput&, size_t k) const;
  void add_probabilities(std::span<const float> logits, Token token);
  Status score_next(std::span<const float> logits);

  Inputs text_;
  const size_t begin_, prompt_;  // of the prompt: where it begins and ends
  Sampler sampler_;
  Constraint* const constraint_;
  ReasoningLimiter reasoning_;
  Answer answer_;
  const int logprobs_, capacity_;
  const bool completes_, certify_;
  size_t scored_;              // the first token of the prompt without a log-probability; prompt_: none
  bool scores_stop_ = false;   // a stop token's log-probability is wanted, and not told yet
  std::vector<Token> drafts_;  // of the step
  TokenEvent event_;           // its memory is reused
};

}  // namespace gimbal
