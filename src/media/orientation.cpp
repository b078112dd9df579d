#include "media/picture.h"

#include <cstddef>

namespace gimbal {
namespace {

class TiffReader {
 public:
  explicit TiffReader(std::string_view bytes) : bytes_(bytes), big_(bytes.starts_with("MM")) {}
  bool has(size_t at, size_t n) const { return at <= bytes_.size() && n <= bytes_.size() - at; }
  // The caller has checked has(at, n).
  uint32_t number(size_t at, size_t n) const {
    uint32_t v = 0;
    for (size_t i = 0; i < n; i++) v = v << 8 | uint8_t(bytes_[big_ ? at + i : at + n - 1 - i]);
    return v;
  }

 private:
  std::string_view bytes_;
  bool big_;
};

}  // namespace

int exif_orientation(std::string_view tiff) {
  constexpr uint32_t kOrientation = 0x112, kShort = 3;
  if (!tiff.starts_with("II") && !tiff.starts_with("MM")) return 1;
  const TiffReader reader(tiff);
  if (!reader.has(0, 8) || reader.number(2, 2) != 42) return 1;
  const size_t folder = reader.number(4, 4);
  if (!reader.has(folder, 2)) return 1;
  const size_t entries = reader.number(folder, 2);
  for (size_t i = 0; i < entries; i++) {
    const size_t at = folder + 2 + 12 * i;
    if (!reader.has(at, 12)) return 1;
    if (reader.number(at, 2) != kOrientation || reader.number(at + 2, 2) != kShort) continue;
    const uint32_t value = reader.number(at + 8, 2);
    return value >= 1 && value <= 8 ? int(value) : 1;
  }
  return 1;
}

Picture upright(Picture p, int orientation) {
  if (orientation < 2 || orientation > 8) return p;
  // Bit by bit: rows and columns exchanged; then columns, then rows, counted from the far end.
  const bool exchanged = orientation >= 5;
  const bool flip_x = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const bool flip_y = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  Picture out{exchanged ? p.height : p.width, exchanged ? p.width : p.height, {}};
  out.rgb.resize(p.rgb.size());
  uint8_t* to = out.rgb.data();
  for (int y = 0; y < out.height; y++)
    for (int x = 0; x < out.width; x++) {
      const int u = flip_x ? out.width - 1 - x : x, v = flip_y ? out.height - 1 - y : y;
      const size_t from =
          3 * (exchanged ? size_t(u) * size_t(p.width) + size_t(v) : size_t(v) * size_t(p.width) + size_t(u));
      for (size_t c = 0; c < 3; c++) *to++ = p.rgb[from + c];
    }
  return out;
}

}  // namespace gimbal
