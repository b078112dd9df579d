// Tells the calls of tools from the text of an answer while it streams. How a model writes a call is what its
// chat template shows it: the marks around calls are looked for in the template's source, and what stands
// between them tells its own form.
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
    None,     // the template knows no calls
    Marked,   // `begin` call `end`; without an `end`, up to the next `begin` or the end of the answer
    Bare,     // the whole answer is {"name": ..., "parameters": {...}}
    Harmony,  // a message with the header "to=functions.NAME", between control tokens (gpt-oss)
  } kind = Kind::None;
  std::string_view begin = {}, end = {};
  std::string_view all_begin = {}, all_end = {};  // of Marked: may stand around all calls (DeepSeek)

  static ToolCallFormat of(std::string_view template_source);
};

// A call, or several of them, as they stand between marks: JSON, one object or a list, "name" and "arguments"
// under any of their usual keys; <function=NAME> with <parameter=KEY>; NAME with <arg_key> and <arg_value>;
// NAME[ARGS]{...}; NAME with a block of JSON; [NAME(key="value")]. Nothing: none of these.
std::optional<std::vector<ToolCall>> parse_tool_calls(std::string_view body);
// What a call may name: letters, digits and a few signs.
bool is_tool_name(std::string_view);

class ToolCallSplitter {
 public:
  // `instead`: of an answer that is text without calls, or calls in its place: the names of what may be
  // called.
  explicit ToolCallSplitter(ToolCallFormat format, std::vector<std::string> instead = {})
      : format_(format), instead_(std::move(instead)) {}

  // What an answer consists of, in order. What looked like a call and is none comes as text: nothing is lost
  // but space before and behind calls.
  struct Piece {
    enum Kind : unsigned char { Text, Control, Call } kind;
    std::string text;  // of Control: its name
    ToolCall call = {};
  };
  using Pieces = std::vector<Piece>;

  Pieces push(std::string_view text);
  Pieces control(std::string_view name);  // a control token as it is written
  Pieces finish();                        // what was held back; call it once

  int calls() const { return calls_; }  // so far

 private:
  void split(Pieces& to);
  void take_body(Pieces& to, std::string_view body, std::string_view all);
  void message(Pieces& to, std::string_view name);
  void text(Pieces& to, std::string_view);

  bool text_alone() const { return answered_ && !instead_.empty(); }

  const ToolCallFormat format_;
  const std::vector<std::string> instead_;
  std::string held_;       // may be the beginning of a mark, or is a call that has not ended
  std::string blank_;      // space behind the text
  bool inside_ = false;    // behind a `begin`; of Harmony: in the body of a call
  bool answered_ = false;  // text came that is no call: a bare one can not follow
  // Harmony: the header of a message, until it is known what it is
  bool header_ = true;
  std::vector<Piece> before_;
  int calls_ = 0;
};

}  // namespace gimbal
