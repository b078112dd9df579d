// A text with marks for pictures, as chunks: tokens, and pieces of pictures with the tokens that each family
// of models puts around and between them.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "media/pieces.h"
#include "tokenizer/tokenizer.h"

namespace gimbal {

// Stands for a picture in a text. Without any, the pictures precede the text.
inline constexpr std::string_view kPictureMark = "<__media__>";

// The parts of a text between its marks, one more than `pictures`. Errors: Usage for another number of marks.
Result<std::vector<std::string_view>> parts_between_pictures(std::string_view text, int pictures);

struct PromptChunk {
  std::vector<Token> tokens;
  int piece = -1;  // an index of the pieces; -1: tokens
};

// `pieces`: of `pictures` pictures, in their order. Each part of the text is tokenized alone, control tokens
// recognized; tokens that begin a text stand before everything. Errors: Usage for another number of marks.
Result<std::vector<PromptChunk>> picture_prompt(const Tokenizer&, const PreprocessSettings&,
                                                std::string_view text, std::span<const Piece> pieces,
                                                int pictures);

// The chunks of one picture alone, which has all of these pieces.
std::vector<PromptChunk> picture_chunks(const Tokenizer&, const PreprocessSettings&,
                                        std::span<const Piece> pieces);

}  // namespace gimbal
