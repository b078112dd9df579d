// Separates reasoning from the answer while the text streams. Reasoning stands between <think> and
// </think>; or, if control tokens divide the text into messages (gpt-oss), in all channels but "final":
// <|channel|>analysis<|message|> ... <|end|><|start|>assistant<|channel|>final<|message|> ... <|return|>
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace gimbal {

// Sets what begins and ends the reasoning in a model's text, and the text that ends it early, in a limit of
// the runtime (ReasoningLimit). `channels`: of gpt-oss; `inside`: the answer begins within the reasoning.
template <class Limit>
void set_reasoning_marks(Limit& limit, bool channels, bool inside) {
  limit.inside = inside;
  limit.begin = channels ? "<|channel|>analysis<|message|>" : "<think>";
  limit.end = channels ? "<|end|>" : "</think>";
  limit.finish = channels ? "<|end|><|start|>assistant<|channel|>final<|message|>" : "</think>\n\n";
}

class ReasoningSplitter {
 public:
  struct Part {
    std::string reasoning, answer;  // finalized text of each; if both are present, reasoning is first
  };
  // `inside`: the text begins within the reasoning, because the prompt ended with <think>. `continues`: the
  // reader has the beginning of the answer, so white space before the rest belongs to it.
  explicit ReasoningSplitter(bool inside, bool continues = false)
      : state_(inside ? State::Inside : State::Before), continues_(continues) {}

  // Takes the next piece. Holds back a possible beginning of a tag.
  Part push(std::string_view piece);
  // Takes a control token by its name. Text that merely looks like a channel's token divides nothing.
  Part control(std::string_view name);
  Part finish();  // returns the held-back text

  bool inside() const { return state_ == State::Inside; }
  const std::string& reasoning() const { return reasoning_; }  // all so far
  const std::string& answer() const { return answer_; }

 private:
  enum class State : uint8_t { Before, Inside, After, Role, Channel };  // the last two: names, not text
  void give(std::string_view text, Part& to);

  State state_;
  bool continues_;
  bool channels_ = false;  // messages have been seen: tags are ignored from now on
  std::string held_, channel_, reasoning_, answer_;
};

}  // namespace gimbal
