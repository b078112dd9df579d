#include "media/picture.h"

#include "base/format.h"
#include "base/text.h"
#include "media/decoders.h"

namespace gimbal {
namespace {

constexpr const char* kPictureFormats = "PNG, JPEG, WebP and GIF can be read";

struct PictureFormat {
  const char* name;
  std::string_view start;  // of the file
  size_t at;               // a second mark, for RIFF
  std::string_view mark;
  Result<StoredPicture> (*decode)(std::string_view,
                                  uint64_t max_pixels);  // nullptr: recognized, to be named in the error
};

constexpr PictureFormat kKnownPictures[] = {
    {"PNG", {"\x89PNG\r\n\x1a\n", 8}, 0, {}, decode_png},
    {"JPEG", "\xff\xd8\xff", 0, {}, decode_jpeg},
    {"WebP", "RIFF", 8, "WEBP", decode_webp},
    {"GIF", "GIF8", 0, {}, decode_gif},
    {"BMP", "BM", 0, {}, nullptr},
    {"TIFF", {"II*\0", 4}, 0, {}, nullptr},
    {"TIFF", {"MM\0*", 4}, 0, {}, nullptr},
    {"PDF", "%PDF", 0, {}, nullptr},
    {"AVIF or HEIF", "", 4, "ftyp", nullptr},
    {"SVG", "<svg", 0, {}, nullptr},
};

const PictureFormat* format_of(std::string_view bytes) {
  for (const PictureFormat& f : kKnownPictures)
    if (bytes.starts_with(f.start) && bytes.substr(std::min(f.at, bytes.size())).starts_with(f.mark))
      return &f;
  return nullptr;
}

}  // namespace

Status check_picture_size(uint64_t width, uint64_t height, uint64_t max_pixels) {
  if (!width || !height)
    return Error{Code::Malformed, format("the picture is damaged: its size is {} x {}", width, height)};
  if (width > kMaxPictureSide || height > kMaxPictureSide || width * height > max_pixels)
    return Error{
        Code::Usage,
        format("the picture has {} x {} pixels; at most {} million pixels and sides of {} can be read", width,
               height, max_pixels / 1'000'000, kMaxPictureSide),
        "make the picture smaller; models look at few of its pixels anyway"};
  return Done{};
}

Error damaged_picture(const char* format_name, std::string_view why) {
  return Error{Code::Malformed, format("the {} picture is damaged: {}", format_name, escaped(why)),
               "save the picture again with a program that can show it"};
}

Status check_picture_bytes(std::string_view bytes) {
  if (bytes.empty()) return Error{Code::Malformed, "the picture is empty"};
  if (bytes.size() > kMaxPictureBytes)
    return Error{Code::Usage,
                 format("the picture has {} bytes; the limit is {}", bytes.size(), kMaxPictureBytes),
                 "make the picture smaller"};
  const PictureFormat* format = format_of(bytes);
  if (!format) return Error{Code::Unsupported, "the bytes are not those of a picture", kPictureFormats};
  if (!format->decode)
    return Error{Code::Unsupported, gimbal::format("pictures in {} cannot be read", format->name),
                 kPictureFormats};
  return Done{};
}

Result<Picture> decode_picture(std::string_view bytes, uint64_t max_pixels) {
  if (auto ok = check_picture_bytes(bytes); !ok) return ok.error();
  auto stored = format_of(bytes)->decode(bytes, max_pixels);
  if (!stored) return stored.error();
  return upright(std::move(stored->picture), stored->orientation);
}

}  // namespace gimbal
