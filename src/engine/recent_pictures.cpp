#include "engine/recent_pictures.h"

#include "base/sha256.h"
#include "media/picture.h"
#include "media/pieces.h"

namespace gimbal {

namespace {

Result<std::vector<Piece>> pieces_of_file(const PreprocessSettings& settings, std::string_view file) {
  if (settings.rule == PieceRule::Sound) {
    auto sound = decode_sound(file);
    if (!sound) return sound.error();
    return pieces_of(settings, *sound, 0);
  }
  auto picture = decode_picture(file);
  if (!picture) return picture.error();
  return pieces_of(settings, *picture, 0);
}

}  // namespace

uint64_t PictureRows::bytes() const {
  uint64_t sum = 0;
  for (const EmbeddingsPtr& e : rows) sum += e->values().size_bytes();
  return sum;
}

PictureRowsPtr RecentPictures::find(const std::string& digest) {
  const auto at = by_digest_.find(digest);
  if (at == by_digest_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, at->second);
  return at->second->rows;
}

void RecentPictures::add(const std::string& digest, PictureRowsPtr rows) {
  if (by_digest_.count(digest)) return;
  bytes_ += rows->bytes();
  entries_.push_front({digest, std::move(rows)});
  by_digest_[digest] = entries_.begin();
  while (bytes_ > most_ && entries_.size() > 1) {
    bytes_ -= entries_.back().rows->bytes();
    by_digest_.erase(entries_.back().digest);
    entries_.pop_back();
  }
}

Result<PictureRowsPtr> rows_of_picture(PictureInput& input, const Tokenizer& tokenizer, std::string_view file,
                                       const PictureWatch& watch) {
  // Its sender can do something about it.
  const auto unusable = [](Error e) {
    e.code = Code::Usage;
    return e;
  };
  const PreprocessSettings& settings = input.projector().vision.settings;
  auto pieces = pieces_of_file(settings, file);
  if (!pieces) return unusable(pieces.error());
  auto rows = std::make_shared<PictureRows>();
  rows->chunks = picture_chunks(tokenizer, settings, *pieces);
  auto encoded = input.encode(*pieces, watch);
  if (!encoded) return encoded.error();
  rows->rows = std::move(*encoded);
  return PictureRowsPtr(std::move(rows));
}

Inputs with_pictures(std::span<const Token> prompt, std::span<const PictureRowsPtr> pictures) {
  Inputs all;
  size_t next = 0;
  for (const Token t : prompt)
    if (t == kNoToken) all.append(inputs_of(pictures[next]->chunks, pictures[next]->rows)), next++;
    else all.push(t);
  return all;
}

std::string picture_digest(std::string_view file) {
  Sha256 digest;
  digest.add(file);
  return digest.hex();
}

}  // namespace gimbal
