#include "apps/commands/chat_pictures.h"

#include <charconv>

#include "apps/options/picture_options.h"
#include "apps/reports/prompt_progress.h"

namespace gimbal {
namespace {

// The beginning of the marks in a conversation, also in its saved file.
constexpr std::string_view kMarks = "<__media";

}  // namespace

Result<std::string> ChatPictures::add(const std::string& file) {
  auto picture = read_picture(file);
  if (!picture) return picture.error();
  PictureProgress progress(!quiet_);
  auto inputs = inputs_of(*encoder_, tokenizer_, *picture,
                          [&](size_t rows, size_t all) { return progress(rows, all); });
  if (!inputs) return inputs.error();
  pictures_.push_back(std::move(*inputs));
  return picture_mark(kMarks, pictures_.size() - 1);
}

std::vector<size_t> ChatPictures::number(std::vector<ChatMessage>& messages) const {
  std::vector<size_t> numbers;
  for (ChatMessage& m : messages)
    for (size_t at = 0; (at = m.content.find(kMarks, at)) != std::string::npos;) {
      size_t old = 0;
      const char* digits = m.content.data() + std::min(at + kMarks.size() + 1, m.content.size());
      std::from_chars(digits, m.content.data() + m.content.size(), old);
      const std::string mark = picture_mark(kMarks, old);
      if (old < pictures_.size() && m.content.compare(at, mark.size(), mark) == 0) {
        const std::string now = picture_mark(prompt_marks_, numbers.size());
        m.content.replace(at, mark.size(), now);
        numbers.push_back(old), at += now.size();
      } else {
        at += kMarks.size();
      }
    }
  return numbers;
}

Inputs ChatPictures::inputs(const ChatPrompt& prompt, const std::vector<size_t>& numbers) const {
  Inputs all;
  size_t next = 0;
  for (Token t : prompt.tokens)
    if (t == kPictureToken) all.append(pictures_[numbers[size_t(prompt.pictures[next++])]]);
    else all.push(t);
  return all;
}

}  // namespace gimbal
