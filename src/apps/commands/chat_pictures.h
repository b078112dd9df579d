// The pictures of a conversation: a message has a mark in place of each, and a prompt the picture's rows.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "chat/chat_prompt.h"
#include "chat/picture_marks.h"
#include "engine/picture_input.h"

namespace gimbal {

class ChatPictures {
 public:
  // `encoder`: of the model that chats, whose tokenizer outlives this object. `quiet`: shows no progress.
  ChatPictures(std::unique_ptr<PictureInput> encoder, const Tokenizer& tokenizer, bool quiet)
      : encoder_(std::move(encoder)), tokenizer_(tokenizer), quiet_(quiet) {}

  // Decodes and encodes a file, until Ctrl-C under an InterruptGuard. Returns its mark. Errors: those of
  // read_picture() and inputs_of(); cancelled().
  Result<std::string> add(const std::string& file);
  // Replaces the marks in these messages by those of a prompt (prompt_marks()), numbered from 0; pictures of
  // forgotten questions are left out. A mark without its picture stays as text. Returns the pictures'
  // numbers.
  std::vector<size_t> number(std::vector<ChatMessage>&) const;
  std::string_view prompt_marks() const { return prompt_marks_; }
  // The inputs of a prompt with these pictures.
  Inputs inputs(const ChatPrompt&, const std::vector<size_t>& numbers) const;

 private:
  std::unique_ptr<PictureInput> encoder_;
  const Tokenizer& tokenizer_;
  const bool quiet_;
  const std::string prompt_marks_ = new_picture_marks();
  std::vector<Inputs> pictures_;
};

}  // namespace gimbal
