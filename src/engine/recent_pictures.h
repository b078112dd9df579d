// The rows of pictures as a text model gets them, and the recent ones: clients send all pictures of a
// conversation with every turn.
#pragma once
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/picture_input.h"

namespace gimbal {

// The inputs of one picture for a text model.
struct PictureRows {
  std::vector<PromptChunk> chunks;  // tokens and pieces
  std::vector<EmbeddingsPtr> rows;  // by piece
  uint64_t bytes() const;
};

using PictureRowsPtr = std::shared_ptr<const PictureRows>;

// The rows of a picture, or of a sound where the projector hears: decoded, cut into pieces, encoded. Errors:
// Usage for a file that cannot be used; those of encode().
Result<PictureRowsPtr> rows_of_picture(PictureInput&, const Tokenizer&, std::string_view file,
                                       const PictureWatch& = {});

// The prompt with rows in place of each kNoToken, one picture for each.
Inputs with_pictures(std::span<const Token> prompt, std::span<const PictureRowsPtr>);

// The name of a picture: SHA-256 of its file.
std::string picture_digest(std::string_view file);

// The rows of recent pictures, by the digests of their files.
class RecentPictures {
 public:
  explicit RecentPictures(uint64_t most_bytes) : most_(most_bytes) {}
  PictureRowsPtr find(const std::string& digest);
  void add(const std::string& digest, PictureRowsPtr);

 private:
  struct Entry {
    std::string digest;
    PictureRowsPtr rows;
  };
  const uint64_t most_;
  uint64_t bytes_ = 0;
  std::list<Entry> entries_;  // the latest first
  std::map<std::string, std::list<Entry>::iterator> by_digest_;
};

}  // namespace gimbal
