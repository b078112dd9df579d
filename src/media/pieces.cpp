#include "media/pieces.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/fixed_math.h"
#include "base/format.h"
#include "media/picture.h"

namespace gimbal {
namespace {

// Pixels of all pieces of a picture together: real models stay below a tenth.
constexpr uint64_t kMaxPiecePixels = 40'000'000;
constexpr std::array<uint8_t, 3> kBlack = {0, 0, 0};
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

Size free_size(const PreprocessSettings& s, const Picture& picture) {
  return free_size(picture, s.patch * s.merge, float(s.min_pixels), float(s.max_pixels));
}

// The longer side becomes longest_side; both sides are rounded up to whole rows.
Size longest_size(const PreprocessSettings& s, const Picture& picture) {
  const auto longest = float(s.longest_side), w = float(picture.width), h = float(picture.height);
  const float scale = std::min(longest / w, longest / h), step = float(s.patch * s.merge);
  return {int(std::ceil(w * scale / step) * step), int(std::ceil(h * scale / step) * step)};
}

Result<std::vector<Piece>> whole(const PreprocessSettings& s, const Picture& picture, int image) {
  const Size size = s.rule == PieceRule::Free      ? free_size(s, picture)
                    : s.rule == PieceRule::Longest ? longest_size(s, picture)
                                                   : Size{s.image_size, s.image_size};
  if (auto ok = check_pieces(uint64_t(size.width), uint64_t(size.height)); !ok) return ok.error();
  std::vector<Piece> out;
  out.push_back(piece(PieceKind::Whole, image, padded(picture, size.width, size.height, s.filter, s.border)));
  return out;
}

// The slices of a grid that the picture fills, row by row.
void add_slices(const PreprocessSettings& s, const Picture& picture, int image, Size grid, Size slice,
                std::vector<Piece>& out) {
  const Picture refined =
      padded(picture, grid.width * slice.width, grid.height * slice.height, s.filter, kBlack);
  for (int row = 0; row < grid.height; row++)
    for (int column = 0; column < grid.width; column++)
      out.push_back(
          piece(PieceKind::Tile, image,
                cut_out(refined, column * slice.width, row * slice.height, slice.width, slice.height), row,
                column));
}

// Liquid AI's grid of 2 to 10 tiles: the ratio of sides nearest to the picture's; of equal ones the larger,
// if the picture has more than half of its pixels.
Size split_grid(const Picture& p) {
  constexpr int kFewest = 2, kMost = 10;
  const float ratio = float(p.width) / float(p.height), area = float(int64_t(p.width) * p.height);
  Size best{1, 1};
  float nearest = std::numeric_limits<float>::max();
  for (int tiles = kFewest; tiles <= kMost; tiles++)
    for (int width = 1; width <= tiles; width++) {
      if (tiles % width) continue;
      const int height = tiles / width;
      const float distance = std::abs(ratio - float(width) / float(height));
      const bool fits = area > 0.5f * float(kSplitSide * kSplitSide * tiles);
      if (distance > nearest || (distance == nearest && !fits)) continue;
      nearest = distance, best = {width, height};
    }
  return best;
}

Result<std::vector<Piece>> split(const PreprocessSettings& s, const Picture& picture, int image) {
  constexpr double kTolerance = 2;  // times the most pixels
  const int row = s.patch * s.merge;
  const auto side = [&](int n) { return std::max(double(s.patch), std::nearbyint(double(n) / row) * row); };
  const Size size = free_size(s, picture);
  if (auto ok = check_pieces(uint64_t(size.width), uint64_t(size.height)); !ok) return ok.error();
  const bool large = side(picture.width) * side(picture.height) > double(s.max_pixels) * kTolerance;
  std::vector<Piece> out;
  if (large) add_slices(s, picture, image, split_grid(picture), {kSplitSide, kSplitSide}, out);
  out.push_back(piece(large ? PieceKind::Overview : PieceKind::Whole, image,
                      resampled(picture, size.width, size.height, s.filter)));
  return out;
}

// About side * side pixels in the ratio of w x h, in whole rows. A smaller picture is not enlarged, unless it
// must be.
Size slice_size(const PreprocessSettings& s, int w, int h, bool enlarge) {
  const int step = s.patch * s.merge;
  if (enlarge || int64_t(w) * h > int64_t(s.image_size) * s.image_size) {
    const float ratio = float(w) / float(h);
    h = int(float(s.image_size) / std::sqrt(ratio)), w = int(float(h) * ratio);
  }
  const auto whole = [step](int n) {
    return std::max(int(std::round(float(n) / float(step)) * float(step)), step);
  };
  return {whole(w), whole(h)};
}

// OpenBMB's grid of at most nine slices, as many as the picture has times the encoder's pixels, one less or
// one more: the one whose ratio is nearest to the picture's.
Size slice_grid(int slices, const Picture& p) {
  constexpr int kMost = 9;
  const double ratio = fixed::log(double(p.width) / p.height);
  Size best{1, 1};
  double nearest = std::numeric_limits<double>::infinity();
  for (int n : {slices - 1, slices, slices + 1})
    for (int width = 1; n > 1 && n <= kMost && width <= n; width++) {
      if (n % width) continue;
      const double distance = std::abs(ratio - fixed::log(double(width) / (n / width)));
      if (distance < nearest) nearest = distance, best = {width, n / width};
    }
  return best;
}

Result<std::vector<Piece>> slices(const PreprocessSettings& s, const Picture& picture, int image) {
  constexpr double kMost = 9;
  const double pixels = double(picture.width) * picture.height, own = double(s.image_size) * s.image_size;
  const int count = int(std::min(std::ceil(pixels / own), kMost));
  const Size overview = slice_size(s, picture.width, picture.height, count <= 1);
  if (auto ok = check_pieces(uint64_t(overview.width), uint64_t(overview.height)); !ok) return ok.error();
  std::vector<Piece> out;
  out.push_back(
      piece(PieceKind::Overview, image, resampled(picture, overview.width, overview.height, s.filter)));
  if (count <= 1) return out;
  const Size grid = slice_grid(count, picture);
  // The part of the picture that a slice shows, its sides rounded to whole pixels.
  const auto part = [](int n, int of) { return std::max(int(std::round(float(n) / float(of))), 1); };
  const Size slice = slice_size(s, part(picture.width, grid.width), part(picture.height, grid.height), true);
  if (auto ok = check_pieces(uint64_t(grid.width * slice.width), uint64_t(grid.height * slice.height)); !ok)
    return ok.error();
  add_slices(s, picture, image, grid, slice, out);
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
    case PieceRule::Free:
    case PieceRule::Longest: return whole(s, picture, image);
    case PieceRule::Split: return split(s, picture, image);
    case PieceRule::Slices: return slices(s, picture, image);
    case PieceRule::Pinpoints: return tiles_and_overview(s, picture, image);
    case PieceRule::Refined: return refined_tiles(s, picture, image);
    case PieceRule::Sound: break;
  }
  return Error{Code::Unsupported, format("the projector '{}' is for sounds, not for pictures", s.projector)};
}

PieceGrid grid_of(const PreprocessSettings& s, const Piece& piece) {
  if (piece.what == PieceKind::Sound) return {(piece.width / 2 + s.stack - 1) / s.stack, 1};
  if (s.queries) return {s.queries, 1};
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
