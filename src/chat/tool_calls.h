// Separates tool calls from the text of an answer while it streams. The model's chat template shows how it
// writes calls: the marks around calls are found in the template's source; the text between the marks
// reveals its own form.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gimbal {

struct ToolCall {
  std::string name;
  std::string arguments;  // a JSON object, as text
};

// How calls are written.
struct ToolCallFormat {
  enum class Kind : unsigned char {
    None,     // the template does not support calls
    Marked,   // `begin` call `end`; without an `end`, up to the next `begin` or the end of the answer
    Bare,     // the whole answer is {"name": ..., "parameters": {...}}
    Harmony,  // a message with the header "to=functions.NAME", between control tokens (gpt-oss)
  } kind = Kind::None;
  std::string_view begin = {}, end = {};
  std::string_view all_begin = {}, all_end = {};  // of Marked: optional marks around all calls (DeepSeek)

  static ToolCallFormat of(std::string_view template_source);
};

// Parses the text between marks, one call or several: JSON, one object or a list, "name" and "arguments"
// under any of their usual keys; <function=NAME> with <parameter=KEY>; NAME with <arg_key> and <arg_value>;
// NAME[ARGS]{...}; NAME with a block of JSON; [NAME(key="value")]. nullopt: none of these.
std::optional<std::vector<ToolCall>> parse_tool_calls(std::string_view body);
// Valid names: letters, digits and a few punctuation characters.
bool is_tool_name(std::string_view);

class ToolCallSplitter {
 public:
  // `instead`: names of the callable tools, for an answer that is either text without calls, or calls in
  // place of the text.
  explicit ToolCallSplitter(ToolCallFormat format, std::vector<std::string> instead = {})
      : format_(format), instead_(std::move(instead)) {}

  // The parts of an answer, in order. Failed calls are returned as text: nothing is lost but white space
  // before and after calls.
  struct Piece {
    enum Kind : unsigned char { Text, Control, Call } kind;
    std::string text;  // of Control: its name
    ToolCall call = {};
  };
  using Pieces = std::vector<Piece>;

  Pieces push(std::string_view text);
  Pieces control(std::string_view name);  // a control token by its name
  Pieces finish();                        // returns the held-back text; call it once

  int calls() const { return calls_; }  // so far

 private:
  void split(Pieces& to);
  void take_body(Pieces& to, std::string_view body, std::string_view all);
  void message(Pieces& to, std::string_view name);
  void text(Pieces& to, std::string_view);

  bool text_alone() const { return answered_ && !instead_.empty(); }

  const ToolCallFormat format_;
  const std::vector<std::string> instead_;
  std::string held_;       // a possible beginning of a mark, or an incomplete call
  std::string blank_;      // white space after the text
  bool inside_ = false;    // after a `begin`; of Harmony: in the body of a call
  bool answered_ = false;  // text other than calls has come: a Bare call cannot follow
  // Harmony: the header of a message, until its kind is known
  bool header_ = true;
  std::vector<Piece> before_;
  int calls_ = 0;
};

}  // namespace gimbal
