// The pictures of a conversation: a message has a mark in place of each, and a prompt the picture's rows.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "chat/chat_prompt.h"
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
  // Gives the marks in these messages rising numbers; the pictures of forgotten questions are left out.
  // Returns the numbers of the pictures.
  std::vector<size_t> number(std::vector<ChatMessage>&) const;
  // The inputs of a prompt with these pictures.
  Inputs inputs(const ChatPrompt&, const std::vector<size_t>& numbers) const;

  static constexpr std::string_view kMarks = "<__media";  // their beginning

 private:
  std::unique_ptr<PictureInput> encoder_;
  const Tokenizer& tokenizer_;
  const bool quiet_;
  std::vector<Inputs> pictures_;
};

}  // namespace gimbal
