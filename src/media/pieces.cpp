#include "media/pieces.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/format.h"
#include "media/resample.h"

namespace gimbal {
namespace {

// Pixels of all pieces of a picture together: real models stay below a tenth.
constexpr uint64_t kMaxPiecePixels = 40'000'000;
constexpr std::array<uint8_t, 3> kBlack = {0, 0, 0}, kGrey = {122, 116, 104};
using Filter = ResampleFilter;

struct Size {
  int width, height;
};

Status check_pieces(uint64_t width, uint64_t height) {
  if (width * height <= kMaxPiecePixels) return Done{};
  return Error{Code::Usage,
               format("the model would get a picture of {} x {} pixels; at most {} million can be made",
                      width, height, kMaxPiecePixels / 1'000'000),
               "crop the picture so that its sides differ less"};
}

Piece piece(PieceKind what, int image, Picture picture, int row = 0, int column = 0) {
  return {image, what, row, column, picture.width, picture.height, std::move(picture.rgb), {}};
}

// All tiles of image_size, row by row.
void add_tiles(const PreprocessSettings& s, const Picture& picture, int image, std::vector<Piece>& out) {
  const int side = s.image_size;
  for (int row = 0; row < picture.height / side; row++)
    for (int column = 0; column < picture.width / side; column++)
      out.push_back(piece(PieceKind::Tile, image, cut_out(picture, column * side, row * side, side, side),
                          row, column));
}

Piece overview(const PreprocessSettings& s, const Picture& picture, int image, Filter filter) {
  return piece(PieceKind::Overview, image, resampled(picture, s.image_size, s.image_size, filter));
}

// The nearest size in multiples of `align` with at least and at most so many pixels, all in f32.
Size free_size(const Picture& p, int align, float least, float most) {
  const auto w = float(p.width), h = float(p.height), step = float(align);
  float width = std::max(step, std::round(w / step) * step),
        height = std::max(step, std::round(h / step) * step);
  if (most > 0 && width * height > most) {
    const float shrink = std::sqrt(w * h / most);
    width = std::max(step, std::floor(w / shrink / step) * step);
    height = std::max(step, std::floor(h / shrink / step) * step);
  } else if (width * height < least) {
    const float grow = std::sqrt(least / (w * h));
    width = std::ceil(w * grow / step) * step;
    height = std::ceil(h * grow / step) * step;
  }
  return {int(width), int(height)};
}

// The size that keeps most pixels of the picture, and of these the one that wastes least.
Size best_pinpoint(const PreprocessSettings& s, const Picture& p) {
  Size best{s.pinpoints[0].first, s.pinpoints[0].second};
  int64_t most = -1, least_waste = 0;
  for (const auto& [width, height] : s.pinpoints) {
    const float scale = std::min(float(width) / float(p.width), float(height) / float(p.height));
    const int64_t inner = int64_t(float(p.width) * scale) * int64_t(float(p.height) * scale);
    const int64_t effective = std::min(inner, int64_t(p.width) * p.height);
    const int64_t waste = int64_t(width) * height - effective;
    if (effective < most || (effective == most && waste >= least_waste)) continue;
    most = effective, least_waste = waste, best = {width, height};
  }
  return best;
}

Result<std::vector<Piece>> tiles_and_overview(const PreprocessSettings& s, const Picture& picture,
                                              int image) {
  std::vector<Piece> out;
  if (picture.width > s.image_size || picture.height > s.image_size) {
    const Size size = best_pinpoint(s, picture);
    if (auto ok = check_pieces(uint64_t(size.width), uint64_t(size.height)); !ok) return ok.error();
    add_tiles(s, padded(picture, size.width, size.height, Filter::Bicubic, kBlack), image, out);
  }
  out.push_back(overview(s, picture, image, Filter::Bicubic));
  return out;
}

Size whole_tiles(const PreprocessSettings& s, int width, int height) {
  const int side = s.image_size;
  return {(width + side - 1) / side * side, (height + side - 1) / side * side};
}

Result<std::vector<Piece>> refined_tiles(const PreprocessSettings& s, const Picture& picture, int image) {
  std::vector<Piece> out;
  if (!s.longest_side) {  // files of old converters
    const Size size = free_size(picture, s.image_size, 0, 0);
    if (auto ok = check_pieces(uint64_t(size.width), uint64_t(size.height)); !ok) return ok.error();
    add_tiles(s, padded(picture, size.width, size.height, Filter::Bicubic, kBlack), image, out);
    out.push_back(overview(s, picture, image, Filter::Bicubic));
    return out;
  }
  const double ratio = double(picture.width) / picture.height;
  int width = s.longest_side, height = s.longest_side;
  if (picture.width >= picture.height) height = int(width / ratio);
  else width = int(height * ratio);
  int& shorter = picture.width >= picture.height ? height : width;
  shorter = std::max(shorter + shorter % 2, 1);
  const Size tiles = whole_tiles(s, width, height);
  if (auto ok = check_pieces(uint64_t(tiles.width), uint64_t(tiles.height)); !ok) return ok.error();
  const Picture refined = resampled(resampled(picture, width, height, Filter::Lanczos), tiles.width,
                                    tiles.height, Filter::Lanczos);
  add_tiles(s, refined, image, out);
  out.push_back(overview(s, refined, image, Filter::Lanczos));
  return out;
}

Result<std::vector<Piece>> whole(const PreprocessSettings& s, const Picture& picture, int image) {
  Size size{s.image_size, s.image_size};
  Filter filter = Filter::Bicubic;
  std::array<uint8_t, 3> border = kGrey;
  if (s.rule == PieceRule::Free) {
    const int align = s.patch * s.merge;
    const float pixels = float(align) * float(align);
    size = free_size(picture, align, float(s.min_rows) * pixels, float(s.max_rows) * pixels);
    border = kBlack;
  } else if (s.projector != "mlp") {
    filter = Filter::Bilinear, border = kBlack;
  }
  if (auto ok = check_pieces(uint64_t(size.width), uint64_t(size.height)); !ok) return ok.error();
  std::vector<Piece> out;
  out.push_back(piece(PieceKind::Whole, image, padded(picture, size.width, size.height, filter, border)));
  return out;
}

}  // namespace

const char* name_of(PieceKind kind) {
  switch (kind) {
    case PieceKind::Whole: return "whole";
    case PieceKind::Tile: return "tile";
    case PieceKind::Overview: return "overview";
    case PieceKind::Sound: return "sound";
  }
  return "";
}

Result<std::vector<Piece>> pieces_of(const PreprocessSettings& s, const Picture& picture, int image) {
  if (picture.width < 1 || picture.height < 1) return Error{Code::Usage, "the picture is empty"};
  switch (s.rule) {
    case PieceRule::Square:
    case PieceRule::Free: return whole(s, picture, image);
    case PieceRule::Pinpoints: return tiles_and_overview(s, picture, image);
    case PieceRule::Refined: return refined_tiles(s, picture, image);
    case PieceRule::Sound: break;
  }
  return Error{Code::Unsupported, format("the projector '{}' is for sounds, not for pictures", s.projector)};
}

PieceGrid grid_of(const PreprocessSettings& s, const Piece& piece) {
  if (piece.what == PieceKind::Sound) return {(piece.width / 2 + s.stack - 1) / s.stack, 1};
  return {piece.width / (s.patch * s.merge), piece.height / (s.patch * s.merge)};
}

int rows_of(const PreprocessSettings& s, const Piece& piece) {
  const auto [columns, rows] = grid_of(s, piece);
  const int breaks = s.projector == "pixtral" ? rows - 1 : 0;
  return columns * rows + breaks;
}

void normalised(const PreprocessSettings& s, const Piece& piece, float* out) {
  if (piece.what == PieceKind::Sound) {
    std::copy(piece.mel.begin(), piece.mel.end(), out);
    return;
  }
  // A value has 256 results.
  float table[3][256];
  for (int c = 0; c < 3; c++)
    for (int v = 0; v < 256; v++) table[c][v] = (float(v) / 255.0f - s.mean[c]) / s.std[c];
  for (size_t i = 0; i < piece.rgb.size(); i++) out[i] = table[i % 3][piece.rgb[i]];
}

}  // namespace gimbal
