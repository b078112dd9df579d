// Tells the reasoning of a model from its answer while the text streams: what stands between <think> and
// </think>; or, where control tokens divide an answer into messages, all but the channel "final" (gpt-oss):
// <|channel|>analysis<|message|> ... <|end|><|start|>assistant<|channel|>final<|message|> ... <|return|>
#pragma once
#include <string>
#include <string_view>

namespace gimbal {

class ReasoningSplitter {
 public:
  struct Part {
    std::string reasoning, answer;  // what is certain of each; reasoning comes first when both are there
  };
  // `inside`: the text begins within the reasoning, because the prompt ended with <think>.
  explicit ReasoningSplitter(bool inside) : state_(inside ? State::Inside : State::Before) {}

  // Takes the next piece. A part of it that may be the beginning of a tag is held back.
  Part push(std::string_view piece);
  // Takes a control token as it is written. Text that merely looks like one of a channel divides nothing.
  Part control(std::string_view name);
  Part finish();  // what was held back

  bool inside() const { return state_ == State::Inside; }
  const std::string& reasoning() const { return reasoning_; }  // all so far
  const std::string& answer() const { return answer_; }

 private:
  enum class State : uint8_t { Before, Inside, After, Role, Channel };  // the last two: names, not text
  void give(std::string_view text, Part& to);

  State state_;
  bool channels_ = false;  // messages have been seen: tags count no more
  std::string held_, channel_, reasoning_, answer_;
};

}  // namespace gimbal
