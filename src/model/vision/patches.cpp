#include "model/vision/patches.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "model/vision/patch_positions.h"

namespace gimbal {
namespace {

constexpr int kWindowPixels = 112;

class PatchOrder {
 public:
  PatchOrder(const VisionFile& v, const Piece& piece, PatchRows& out)
      : v_(v),
        piece_(piece),
        out_(out),
        patch_(v.settings.patch),
        merge_(v.settings.merge),
        lines_(piece.height / patch_ / merge_),
        columns_(piece.width / patch_ / merge_),
        table_(v, lines_ * merge_, columns_ * merge_) {}

  void fill() {
    const auto n = size_t(out_.grid.patches), pixels = 3 * size_t(patch_) * size_t(patch_);
    image_.resize(size_t(piece_.width) * size_t(piece_.height) * 3);
    normalised(v_.settings, piece_, image_.data());
    out_.pixels.reserve(n * pixels), out_.added.reserve(n * size_t(v_.width)), out_.rows.reserve(n);
    if (v_.has_class_row()) add_empty(true);
    for (int i = 0; i < v_.queries; i++) add_empty(false), out_.rows.back().wanted = true;
    const int all = std::max(lines_, columns_);
    const int window = v_.arch->windows ? std::max(1, kWindowPixels / patch_ / merge_) : all;
    for (int y = 0; y < lines_; y += window)
      for (int x = 0; x < columns_; x += window) add_window(y, x, window);
    for (int i = 0; i < v_.queries; i++) {
      PatchRow& query = out_.rows[size_t(i)];
      query.first = v_.queries, query.last = int32_t(n) - 1, query.query = i;
      out_.result.push_back(i);
    }
    for (size_t i = 0; i < n; i++) {
      out_.rows[i].pixels = out_.pixels.data() + i * pixels;
      out_.rows[i].added = out_.added.data() + i * size_t(v_.width);
    }
  }

 private:
  // A row without pixels.
  void add_empty(bool of_class) {
    out_.pixels.resize(out_.pixels.size() + 3 * size_t(patch_) * size_t(patch_), 0.0f);
    std::vector<double> sum(size_t(v_.width), 0.0);
    if (of_class) {
      for (size_t i = 0; i < sum.size(); i++) sum[i] = double(v_.class_row[i]);
      table_.add_class(sum);
    }
    out_.added.insert(out_.added.end(), sum.begin(), sum.end());
    out_.rows.push_back({});
  }

  void add_window(int line, int column, int size) {
    const auto first = int32_t(out_.rows.size());
    for (int y = line; y < std::min(line + size, lines_); y++)
      for (int x = column; x < std::min(column + size, columns_); x++) add_joined(y, x);
    if (v_.arch->squares) return;
    for (size_t i = size_t(first); i < out_.rows.size(); i++)
      out_.rows[i].first = first, out_.rows[i].last = int32_t(out_.rows.size()) - 1;
  }

  // The patches of one row of the text model.
  void add_joined(int line, int column) {
    if (v_.queries == 0) out_.result.push_back(line * columns_ + column);
    const auto first = out_.rows.size();
    for (int i = 0; i < merge_ * merge_; i++) {
      const auto [y, x] = v_.arch->squares ? in_squares(i) : std::pair(i / merge_, i % merge_);
      add_patch(line * merge_ + y, column * merge_ + x);
      if (!v_.arch->squares) continue;
      const auto square = int32_t(out_.rows.size() - 1) - i % 4;
      out_.rows.back().first = square, out_.rows.back().last = square + 3;
    }
    out_.rows[first].wanted = v_.queries == 0;
  }

  // Place i of a row's patches that are squares of 2 x 2, one behind the other.
  std::pair<int, int> in_squares(int i) const {
    const int across = merge_ / 2, square = i / 4;
    return {square / across * 2 + i % 4 / 2, square % across * 2 + i % 2};
  }

  // Pixels by channel, line, column, as the kernel has them.
  void add_patch(int line, int column) {
    for (size_t channel = 0; channel < 3; channel++)
      for (int y = line * patch_; y < (line + 1) * patch_; y++)
        for (int x = column * patch_; x < (column + 1) * patch_; x++)
          out_.pixels.push_back(scaled(image_[(size_t(y) * size_t(piece_.width) + size_t(x)) * 3 + channel]));
    std::vector<double> sum(size_t(v_.width), 0.0);
    for (size_t i = 0; i < v_.bias.size(); i++) sum[i] = double(v_.bias[i]);
    table_.add(line, column, sum);
    out_.added.insert(out_.added.end(), sum.begin(), sum.end());
    const int from = v_.arch->class_last;
    out_.rows.push_back({.pixels = nullptr, .added = nullptr, .line = line + from, .column = column + from});
  }

  float scaled(float value) const { return v_.arch->signed_pixels ? 2.0f * value - 1.0f : value; }

  const VisionFile& v_;
  const Piece& piece_;
  PatchRows& out_;
  const int patch_, merge_, lines_, columns_;  // lines and columns of joined patches
  const PatchTable table_;
  std::vector<float> image_;
};

}  // namespace

// Two frames of a spectrum make a row; padding rows complete the last pair.
static Result<PatchGrid> sound_grid(const VisionFile& v, const Piece& piece) {
  if (piece.what != PieceKind::Sound || piece.width != 2 * kSoundRows || piece.height != v.settings.mel_bins)
    return Error{Code::Malformed,
                 format("a piece of a sound has {} x {} values; the encoder takes {} x {}", piece.width,
                        piece.height, 2 * kSoundRows, v.settings.mel_bins),
                 ""};
  PatchGrid g;
  g.lines = 1, g.columns = g.rows = rows_of(v.settings, piece);
  g.patches = g.rows * v.patches_per_row();
  return g;
}

// A row has the frames that three taps of three taps reach: 2t - 2 to 2t + 2, of which 2t - 1 to 2t + 1 are
// the middle ones of a group each.
static void fill_sound(const VisionFile& v, const Piece& piece, PatchRows& out) {
  const int bins = v.settings.mel_bins;
  const auto size = size_t(9 * bins), width = size_t(v.width), n = size_t(out.grid.patches);
  out.pixels.reserve(n * size), out.added.reserve(n * width);
  for (int t = 0; t < int(n); t++) {
    for (int group = -1; group <= 1; group++)
      for (int tap = -1; tap <= 1; tap++)
        for (int bin = 0; bin < bins; bin++) {
          const int frame = 2 * t + group + tap;
          const bool inside = t < kSoundRows && frame >= 0 && frame < piece.width;
          out.pixels.push_back(inside ? piece.mel[size_t(bin) * size_t(piece.width) + size_t(frame)] : 0.0f);
        }
    for (size_t i = 0; i < width; i++)
      out.added.push_back(t < kSoundRows ? v.positions[size_t(t) * width + i] : 0.0f);
    out.rows.push_back({nullptr, nullptr, t, t < kSoundRows, 0, kSoundRows - 1});
    out.rows.back().wanted = t % v.patches_per_row() == 0;
  }
  for (size_t i = 0; i < n; i++)
    out.rows[i].pixels = out.pixels.data() + i * size, out.rows[i].added = out.added.data() + i * width;
  for (int i = 0; i < out.grid.rows; i++) out.result.push_back(i);
}

Result<PatchGrid> patch_grid(const VisionFile& v, const Piece& piece) {
  if (v.arch->sound) return sound_grid(v, piece);
  const int side = v.settings.patch * v.settings.merge;
  if (side < 1 || piece.width < side || piece.height < side)
    return Error{Code::Malformed,
                 format("a piece of a picture has {} x {} pixels, less than one row of {} x {}", piece.width,
                        piece.height, side, side),
                 ""};
  const bool square = v.arch->positions == PatchPositions::Table;
  if (square && (piece.width != v.settings.image_size || piece.height != v.settings.image_size))
    return Error{Code::Malformed,
                 format("a piece of a picture has {} x {} pixels; the encoder takes {} x {}", piece.width,
                        piece.height, v.settings.image_size, v.settings.image_size),
                 ""};
  // Pixels beyond the last whole row are left out: SigLIP's 384 are 27 patches of 14.
  const int lines = piece.height / side, columns = piece.width / side;
  const int64_t patches = int64_t(lines) * columns * v.patches_per_row() + v.has_class_row() + v.queries;
  if (patches > kMostPatches)
    return Error{Code::Usage,
                 format("the picture has {} patches of {} x {} pixels; an encoder takes at most {}", patches,
                        v.settings.patch, v.settings.patch, kMostPatches),
                 "give a picture that is less long or less high"};
  if (v.arch->positions == PatchPositions::Axes) {
    const auto most = int64_t(v.positions.size()) / v.width / 2;
    if (int64_t(std::max(lines, columns)) * v.settings.merge > most)
      return Error{
          Code::Usage,
          format("the picture has {} lines and {} columns of patches; the encoder has positions for {}",
                 lines * v.settings.merge, columns * v.settings.merge, most),
          "give a picture that is less long or less high"};
  }
  const PieceGrid grid = grid_of(v.settings, piece);
  const int breaks = v.line_break.empty() ? 0 : grid.rows - 1;
  return PatchGrid{grid.rows, grid.columns, int(patches), grid.rows * grid.columns + breaks};
}

Result<PatchRows> patch_rows(const VisionFile& v, const Piece& piece) {
  auto grid = patch_grid(v, piece);
  if (!grid) return grid.error();
  PatchRows out;
  out.grid = *grid;
  if (v.arch->sound) fill_sound(v, piece, out);
  else PatchOrder(v, piece, out).fill();
  return out;
}

}  // namespace gimbal
