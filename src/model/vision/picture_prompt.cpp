#include "model/vision/picture_prompt.h"

#include <algorithm>

#include "base/format.h"

namespace gimbal {
namespace {

// The texts around a picture, and the tokens around its pieces, by its projector. `tile_name`: a text with
// the tile's line and column, from 1.
struct Frame {
  std::string_view projector, begin, end;
  struct Marks {
    std::string_view before, behind;  // one token each, in lists with a space between
  };
  Marks tile{}, overview{};
  std::string_view tile_name = "", line_end = "";
  std::string_view before_overview = "";  // where tiles precede it
};
constexpr Frame kFrames[] = {
    {"gemma3", "<start_of_image>", "<end_of_image>"},
    {"gemma4v", "<|image>", "<image|>"},
    {"gemma4uv", "<|image>", "<image|>"},
    {"qwen2vl_merger", "<|vision_start|>", "<|vision_end|>"},
    {"qwen2.5vl_merger", "<|vision_start|>", "<|vision_end|>"},
    {"qwen3vl_merger", "<|vision_start|>", "<|vision_end|>"},
    {"glm4v", "<|begin_of_image|>", "<|end_of_image|>"},
    {"internvl", "<img>", "</img>"},
    {"llama4", "<|image_start|>", "<|image_end|>"},
    {"pixtral", "", "[IMG_END]"},
    {"lightonocr", "<|im_start|>", "<|im_end|>"},
    {"kimivl", "<|media_start|>", "<|media_end|>"},
    {"paddleocr", "<|IMAGE_START|>", "<|IMAGE_END|>"},
    {"idefics3",
     "",
     "",
     {"<fake_token_around_image>", ""},
     {"<fake_token_around_image> <global-img>", "<fake_token_around_image>"},
     "<row_{}_col_{}>",
     "\n",
     "\n\n"},
    {"lfm2", "<|image_start|>", "<|image_end|>", {}, {"<|img_thumbnail|>", ""}, "<|img_row_{}_col_{}|>"},
    {"resampler", "", "", {"<slice>", "</slice>"}, {"<image>", "</image>"}, "", "\n"},
    {"minicpmv4_6", "", "", {"<slice>", "</slice>"}, {"<image>", "</image>"}, "", "\n"},
    {"voxtral", "[BEGIN_AUDIO]", ""},
    {"qwen2a", "<|audio_bos|>", "<|audio_eos|>"},
};

class PromptWriter {
 public:
  PromptWriter(const Tokenizer& tokenizer, const PreprocessSettings& settings)
      : tokenizer_(tokenizer), around_all_(settings.slices_together) {
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
      const auto is_tile = [&](size_t k) { return k >= first && k < end && all[k].what == PieceKind::Tile; };
      if (is_tile(i)) tile(all[i], !is_tile(i - 1), !is_tile(i + 1), int(i));
      else if (all[i].what == PieceKind::Overview) overview(is_tile(i - 1), int(i));
      else chunks_.push_back({{}, int(i)});
      if (is_tile(i) && is_tile(i + 1) && all[i + 1].row != all[i].row) token(frame_.line_end);
    }
    text(frame_.end, false);
  }

  std::vector<PromptChunk> take() { return std::move(chunks_); }

 private:
  // Versions before MiniCPM-V 2.6 have the marks of tiles around all of them, and each is marked as a
  // picture.
  void tile(const Piece& p, bool is_first, bool is_last, int index) {
    const Frame::Marks& own = around_all_ ? frame_.overview : frame_.tile;
    if (around_all_ && is_first) tokens(frame_.tile.before);
    tokens(own.before);
    if (!frame_.tile_name.empty()) named(p);
    chunks_.push_back({{}, index});
    tokens(own.behind);
    if (around_all_ && is_last) tokens(frame_.tile.behind);
  }

  void overview(bool behind_tiles, int index) {
    if (behind_tiles) token(frame_.before_overview);
    tokens(frame_.overview.before);
    chunks_.push_back({{}, index});
    tokens(frame_.overview.behind);
  }

  void named(const Piece& p) { token(fmt::format(fmt::runtime(frame_.tile_name), p.row + 1, p.column + 1)); }

  void tokens(std::string_view list) {
    while (!list.empty()) {
      const size_t space = std::min(list.find(' '), list.size());
      token(list.substr(0, space));
      list.remove_prefix(std::min(space + 1, list.size()));
    }
  }

  // The token that is this text; its usual tokens if there is none.
  void token(std::string_view text) {
    if (text.empty()) return;
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
  const bool around_all_;
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
