// GIF by giflib: the first picture of a file. Later ones are not read.
#include <gif_lib.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "media/decoders.h"

namespace gimbal {
namespace {

int read_gif(GifFileType* file, GifByteType* to, int n) {
  auto& rest = *static_cast<std::string_view*>(file->UserData);
  const size_t some = std::min(rest.size(), size_t(std::max(n, 0)));
  std::memcpy(to, rest.data(), some);
  rest.remove_prefix(some);
  return int(some);
}

struct CloseGif {
  void operator()(GifFileType* file) const {
    int ignored;
    DGifCloseFile(file, &ignored);
  }
};

void put_colour(const ColorMapObject& colours, int index, uint8_t* to) {
  const GifColorType black = {0, 0, 0};
  const GifColorType& c = index < colours.ColorCount ? colours.Colors[index] : black;
  to[0] = c.Red, to[1] = c.Green, to[2] = c.Blue;
}

Error damaged_gif(int code) {
  const char* why = GifErrorString(code);
  return damaged_picture("GIF", why ? why : "it cannot be decoded");
}

// Skips extensions; leaves the reader at the first picture.
bool find_picture(GifFileType* gif) {
  for (;;) {
    GifRecordType kind;
    if (DGifGetRecordType(gif, &kind) == GIF_ERROR) return false;
    if (kind == IMAGE_DESC_RECORD_TYPE) return DGifGetImageDesc(gif) != GIF_ERROR;
    if (kind != EXTENSION_RECORD_TYPE) return false;
    int code;
    GifByteType* block = nullptr;
    if (DGifGetExtension(gif, &code, &block) == GIF_ERROR) return false;
    while (block)
      if (DGifGetExtensionNext(gif, &block) == GIF_ERROR) return false;
  }
}

}  // namespace

Result<StoredPicture> decode_gif(std::string_view bytes, uint64_t max_pixels) {
  int error = 0;
  const std::unique_ptr<GifFileType, CloseGif> gif(DGifOpen(&bytes, read_gif, &error));
  if (!gif) return damaged_gif(error);
  if (auto ok = check_picture_size(uint64_t(gif->SWidth), uint64_t(gif->SHeight), max_pixels); !ok)
    return ok.error();
  if (!find_picture(gif.get())) return damaged_gif(gif->Error);
  const GifImageDesc& part = gif->Image;
  const ColorMapObject* colours = part.ColorMap ? part.ColorMap : gif->SColorMap;
  if (!colours) return damaged_picture("GIF", "it has no colours");
  const int width = gif->SWidth, height = gif->SHeight;
  if (part.Width < 1 || part.Height < 1 || part.Left < 0 || part.Top < 0 || part.Width > width - part.Left ||
      part.Height > height - part.Top)
    return damaged_picture("GIF", "its first frame is not inside the picture");

  StoredPicture out{{width, height, {}}};
  out.picture.rgb.resize(size_t(width) * size_t(height) * 3);
  if (gif->SColorMap && (part.Width != width || part.Height != height))
    for (size_t i = 0; i < out.picture.rgb.size(); i += 3)
      put_colour(*gif->SColorMap, gif->SBackGroundColor, &out.picture.rgb[i]);
  std::vector<GifPixelType> line(size_t(part.Width), 0);
  static constexpr struct {
    int from, step;
  } kPasses[] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}}, kOnePass[] = {{0, 1}};
  const auto* pass = part.Interlace ? kPasses : kOnePass;
  for (int passes = part.Interlace ? 4 : 1; passes > 0; passes--, pass++)
    for (int y = pass->from; y < part.Height; y += pass->step) {
      if (DGifGetLine(gif.get(), line.data(), part.Width) == GIF_ERROR) return damaged_gif(gif->Error);
      uint8_t* to = &out.picture.rgb[(size_t(part.Top + y) * size_t(width) + size_t(part.Left)) * 3];
      for (int x = 0; x < part.Width; x++) put_colour(*colours, line[size_t(x)], to + 3 * x);
    }
  return out;
}

}  // namespace gimbal
