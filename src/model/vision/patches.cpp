#include "model/vision/patches.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"

namespace gimbal {
namespace {

constexpr int kWindowPixels = 112;

// A patch's position vector, added to `to`.
class PatchTable {
 public:
  PatchTable(const VisionFile& v, int lines, int columns) : v_(v), lines_(lines), columns_(columns) {
    const size_t rows = v.positions.size() / size_t(v.width) - v.has_class_row();
    while (side_ * side_ < int64_t(rows)) side_++;
  }

  void add(int line, int column, std::vector<double>& to) const {
    if (v_.positions.empty()) return;
    if (v_.arch->positions == PatchPositions::Table || (side_ == lines_ && side_ == columns_))
      return add_row(int64_t(line) * columns_ + column, 1, to);
    const auto [y, fy] = place(line, lines_);
    const auto [x, fx] = place(column, columns_);
    const int64_t below = std::min(y + 1, side_ - 1), right = std::min(x + 1, side_ - 1);
    add_row(y * side_ + x, (1 - fy) * (1 - fx), to), add_row(y * side_ + right, (1 - fy) * fx, to);
    add_row(below * side_ + x, fy * (1 - fx), to), add_row(below * side_ + right, fy * fx, to);
  }

 private:
  // Place i of n between the table's corners: the row before it, and the way to the next.
  std::pair<int64_t, double> place(int i, int n) const {
    const double at = n > 1 ? double(i) * double(side_ - 1) / (n - 1) : 0;
    const auto whole = int64_t(std::floor(at));
    return {whole, at - double(whole)};
  }
  void add_row(int64_t row, double share, std::vector<double>& to) const {
    const float* from = v_.positions.data() + size_t(row + v_.has_class_row()) * size_t(v_.width);
    for (size_t i = 0; i < to.size(); i++) to[i] += share * double(from[i]);
  }

  const VisionFile& v_;
  const int lines_, columns_;
  int64_t side_ = 0;
};

class PatchOrder {
 public:
  PatchOrder(const VisionFile& v, const Piece& piece, PatchRows& out)
      : v_(v),
        piece_(piece),
        out_(out),
        patch_(v.settings.patch),
        merge_(v.settings.merge),
        table_(v, piece.height / patch_, piece.width / patch_) {}

  void fill() {
    const auto n = size_t(out_.grid.patches), pixels = 3 * size_t(patch_) * size_t(patch_);
    image_.resize(size_t(piece_.width) * size_t(piece_.height) * 3);
    normalised(v_.settings, piece_, image_.data());
    out_.pixels.reserve(n * pixels), out_.added.reserve(n * size_t(v_.width)), out_.rows.reserve(n);
    if (v_.has_class_row()) add_class_row();
    const int all = std::max(out_.grid.lines, out_.grid.columns);
    const int window = v_.arch->windows ? std::max(1, kWindowPixels / patch_ / merge_) : all;
    for (int y = 0; y < out_.grid.lines; y += window)
      for (int x = 0; x < out_.grid.columns; x += window) add_window(y, x, window);
    for (size_t i = 0; i < n; i++) {
      out_.rows[i].pixels = out_.pixels.data() + i * pixels;
      out_.rows[i].added = out_.added.data() + i * size_t(v_.width);
    }
  }

 private:
  void add_class_row() {
    out_.pixels.resize(3 * size_t(patch_) * size_t(patch_), 0.0f);
    for (size_t i = 0; i < size_t(v_.width); i++)
      out_.added.push_back(
          float(double(v_.class_row[i]) + (v_.positions.empty() ? 0.0 : double(v_.positions[i]))));
    out_.rows.push_back({});
  }

  void add_window(int line, int column, int size) {
    const auto first = int32_t(out_.rows.size());
    for (int y = line; y < std::min(line + size, out_.grid.lines); y++)
      for (int x = column; x < std::min(column + size, out_.grid.columns); x++) {
        out_.result.push_back(y * out_.grid.columns + x);
        for (int i = 0; i < merge_ * merge_; i++) add_patch(y * merge_ + i / merge_, x * merge_ + i % merge_);
      }
    for (size_t i = size_t(first); i < out_.rows.size(); i++)
      out_.rows[i].first = first, out_.rows[i].last = int32_t(out_.rows.size()) - 1;
  }

  // Pixels by channel, line, column, as the kernel has them.
  void add_patch(int line, int column) {
    for (size_t channel = 0; channel < 3; channel++)
      for (int y = line * patch_; y < (line + 1) * patch_; y++)
        for (int x = column * patch_; x < (column + 1) * patch_; x++)
          out_.pixels.push_back(image_[(size_t(y) * size_t(piece_.width) + size_t(x)) * 3 + channel]);
    std::vector<double> sum(size_t(v_.width), 0.0);
    for (size_t i = 0; i < v_.bias.size(); i++) sum[i] = double(v_.bias[i]);
    table_.add(line, column, sum);
    out_.added.insert(out_.added.end(), sum.begin(), sum.end());
    out_.rows.push_back({.pixels = nullptr, .added = nullptr, .line = line, .column = column});
  }

  const VisionFile& v_;
  const Piece& piece_;
  PatchRows& out_;
  const int patch_, merge_;
  const PatchTable table_;
  std::vector<float> image_;
};

}  // namespace

// Two frames of a spectrum make a row; rows behind the last one fill up what is joined.
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
  PatchGrid g;
  // Pixels beyond the last whole row are left out: SigLIP's 384 are 27 patches of 14.
  g.lines = piece.height / side, g.columns = piece.width / side;
  const int64_t patches = int64_t(g.lines) * g.columns * v.patches_per_row() + v.has_class_row();
  if (patches > kMostPatches)
    return Error{Code::Usage,
                 format("the picture has {} patches of {} x {} pixels; an encoder takes at most {}", patches,
                        v.settings.patch, v.settings.patch, kMostPatches),
                 "give a picture that is less long or less high"};
  g.patches = int(patches);
  g.rows = g.lines * g.columns + (v.line_break.empty() ? 0 : g.lines - 1);
  return g;
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
