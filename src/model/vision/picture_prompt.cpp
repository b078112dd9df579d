#include "model/vision/picture_prompt.h"

#include <algorithm>

#include "base/format.h"

namespace gimbal {
namespace {

// The texts around a picture, by its projector.
struct Frame {
  std::string_view projector, begin, end;
};
constexpr Frame kFrames[] = {
    {"gemma3", "<start_of_image>", "<end_of_image>"},
    {"qwen2vl_merger", "<|vision_start|>", "<|vision_end|>"},
    {"qwen2.5vl_merger", "<|vision_start|>", "<|vision_end|>"},
    {"qwen3vl_merger", "<|vision_start|>", "<|vision_end|>"},
    {"internvl", "<img>", "</img>"},
    {"pixtral", "", "[IMG_END]"},
};

class PromptWriter {
 public:
  PromptWriter(const Tokenizer& tokenizer, const PreprocessSettings& settings)
      : tokenizer_(tokenizer), refined_(settings.rule == PieceRule::Refined) {
    for (const Frame& f : kFrames)
      if (f.projector == settings.projector) frame_ = f;
  }

  // The first part of a text gets its BOS, even if it is empty.
  void text(std::string_view part, bool first) {
    if (first || !part.empty()) add(tokenizer_.encode(part, {.add_bos = first}));
  }

  // The pieces [first, end) of one picture.
  void picture(std::span<const Piece> all, size_t first, size_t end) {
    text(frame_.begin, false);
    for (size_t i = first; i < end; i++) {
      if (refined_) before(all, i, first);
      chunks_.push_back({{}, int(i)});
      if (refined_ && all[i].what == PieceKind::Tile && all[i + 1].what == PieceKind::Tile &&
          all[i + 1].row != all[i].row)
        token("\n");
      if (refined_ && all[i].what == PieceKind::Overview) token("<fake_token_around_image>");
    }
    text(frame_.end, false);
  }

  std::vector<PromptChunk> take() { return std::move(chunks_); }

 private:
  // Idefics 3: tiles have their places, from 1, and the overview has a name.
  void before(std::span<const Piece> all, size_t i, size_t first) {
    const Piece& p = all[i];
    if (p.what == PieceKind::Tile) {
      token("<fake_token_around_image>");
      return token(format("<row_{}_col_{}>", p.row + 1, p.column + 1));
    }
    if (i > first) token("\n\n");
    token("<fake_token_around_image>"), token("<global-img>");
  }

  // The token that is this text; its usual tokens if there is none.
  void token(const std::string& text) {
    for (Token t = 0; t < tokenizer_.size(); t++)
      if (tokenizer_.piece(t, true) == text) return add({t});
    add(tokenizer_.encode(text, {.add_bos = false}));
  }

  void add(const std::vector<Token>& tokens) {
    if (tokens.empty()) return;
    if (chunks_.empty() || chunks_.back().piece >= 0) chunks_.push_back({});
    chunks_.back().tokens.insert(chunks_.back().tokens.end(), tokens.begin(), tokens.end());
  }

  const Tokenizer& tokenizer_;
  const bool refined_;
  Frame frame_{};
  std::vector<PromptChunk> chunks_;
};

}  // namespace

Result<std::vector<std::string_view>> parts_between_pictures(std::string_view text, int pictures) {
  std::vector<std::string_view> parts;
  for (size_t at = 0;;) {
    const size_t mark = text.find(kPictureMark, at);
    parts.push_back(text.substr(at, mark == text.npos ? mark : mark - at));
    if (mark == text.npos) break;
    at = mark + kPictureMark.size();
  }
  if (parts.size() == 1) parts.insert(parts.begin(), size_t(pictures), std::string_view());
  if (parts.size() == size_t(pictures) + 1) return parts;
  return Error{
      Code::Usage,
      format("the text has {} marks {}, but there are {} pictures", parts.size() - 1, kPictureMark, pictures),
      "write one mark for each picture, or none: then the pictures precede the text"};
}

Result<std::vector<PromptChunk>> picture_prompt(const Tokenizer& tokenizer,
                                                const PreprocessSettings& settings, std::string_view text,
                                                std::span<const Piece> pieces, int pictures) {
  const auto parts = parts_between_pictures(text, pictures);
  if (!parts) return parts.error();
  PromptWriter writer(tokenizer, settings);
  size_t piece = 0;
  for (size_t i = 0; i < parts->size(); i++) {
    writer.text((*parts)[i], i == 0);
    if (i == size_t(pictures)) break;
    size_t end = piece;
    while (end < pieces.size() && pieces[end].image == int(i)) end++;
    writer.picture(pieces, piece, end);
    piece = end;
  }
  return writer.take();
}

std::vector<PromptChunk> picture_chunks(const Tokenizer& tokenizer, const PreprocessSettings& settings,
                                        std::span<const Piece> pieces) {
  PromptWriter writer(tokenizer, settings);
  writer.picture(pieces, 0, pieces.size());
  return writer.take();
}

}  // namespace gimbal
