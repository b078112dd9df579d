// WebP by libwebp. Of animations the first frame, on black where it is smaller than the picture.
#include <webp/decode.h>
#include <webp/demux.h>

#include <memory>

#include "media/decoders.h"
#include "media/picture.h"

namespace gimbal {

Result<StoredPicture> decode_webp(std::string_view bytes, uint64_t max_pixels) {
  const WebPData data{reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
  const std::unique_ptr<WebPDemuxer, decltype(&WebPDemuxDelete)> file(WebPDemux(&data), WebPDemuxDelete);
  if (!file) return damaged_picture("WebP", "its parts do not fit together");
  const uint32_t width = WebPDemuxGetI(file.get(), WEBP_FF_CANVAS_WIDTH);
  const uint32_t height = WebPDemuxGetI(file.get(), WEBP_FF_CANVAS_HEIGHT);
  if (auto ok = check_picture_size(width, height, max_pixels); !ok) return ok.error();
  StoredPicture out{{int(width), int(height), {}}};

  WebPIterator frame = {};
  if (!WebPDemuxGetFrame(file.get(), 1, &frame)) return damaged_picture("WebP", "it has no picture");
  const std::unique_ptr<WebPIterator, decltype(&WebPDemuxReleaseIterator)> release(&frame,
                                                                                   WebPDemuxReleaseIterator);
  const auto x = uint32_t(frame.x_offset), y = uint32_t(frame.y_offset);
  const auto w = uint32_t(frame.width), h = uint32_t(frame.height);
  WebPBitstreamFeatures inside;
  if (WebPGetFeatures(frame.fragment.bytes, frame.fragment.size, &inside) != VP8_STATUS_OK ||
      uint32_t(inside.width) != w || uint32_t(inside.height) != h || x > width || y > height ||
      w > width - x || h > height - y)
    return damaged_picture("WebP", "its first frame is not inside the picture");
  const size_t line = size_t(width) * 3;
  out.picture.rgb.resize(line * height);
  const size_t at = y * line + size_t(x) * 3;
  if (!WebPDecodeRGBInto(frame.fragment.bytes, frame.fragment.size, out.picture.rgb.data() + at,
                         out.picture.rgb.size() - at, int(line)))
    return damaged_picture("WebP", "its pixels cannot be decoded");

  WebPChunkIterator chunk = {};
  if (WebPDemuxGetChunk(file.get(), "EXIF", 1, &chunk)) {
    std::string_view exif(reinterpret_cast<const char*>(chunk.chunk.bytes), chunk.chunk.size);
    constexpr std::string_view kExif("Exif\0\0", 6);  // some writers add it
    if (exif.starts_with(kExif)) exif.remove_prefix(kExif.size());
    out.orientation = exif_orientation(exif);
    WebPDemuxReleaseChunkIterator(&chunk);
  }
  return out;
}

}  // namespace gimbal
