// PNG by libpng: checksums are checked, chunks without an effect on the pixels are skipped.
#include <png.h>

#include <csetjmp>
#include <cstring>

#include "media/decoders.h"
#include "media/picture.h"

namespace gimbal {
namespace {

// The functions that may jump hold no objects with destructors.
class PngReader {
 public:
  explicit PngReader(std::string_view bytes) : rest_(bytes) {}
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  bool read_header();
  bool read_rows(png_bytep* rows);
  const char* message() const { return message_; }
  uint32_t width() const { return width_; }
  uint32_t height() const { return height_; }
  std::string_view exif() const { return exif_; }

 private:
  [[noreturn]] static void fail(png_structp png, png_const_charp message) {
    auto* self = static_cast<PngReader*>(png_get_error_ptr(png));
    std::strncpy(self->message_, message, sizeof self->message_ - 1);
    png_longjmp(png, 1);
  }
  static void warn(png_structp, png_const_charp) {}
  static void read(png_structp png, png_bytep to, size_t n) {
    auto* self = static_cast<PngReader*>(png_get_io_ptr(png));
    if (n > self->rest_.size()) png_error(png, "it ends too early");
    std::memcpy(to, self->rest_.data(), n);
    self->rest_.remove_prefix(n);
  }

  std::string_view rest_, exif_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  uint32_t width_ = 0, height_ = 0;
  char message_[128] = "no memory";
};

bool PngReader::read_header() {
  png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail, warn);
  if (!png_ || !(info_ = png_create_info_struct(png_))) return false;
  if (setjmp(png_jmpbuf(png_))) return false;
  // Profiles are often damaged and never used. Alpha is ignored.
  static const png_byte skipped[] =
      "bKGD\0cHRM\0gAMA\0hIST\0iCCP\0iTXt\0oFFs\0pCAL\0pHYs\0sBIT\0sCAL\0sPLT\0sRGB\0tEXt\0tIME\0tRNS\0zTXt";
  png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, skipped, sizeof skipped / 5);
  png_set_benign_errors(png_, 0);                               // half a picture is an error
  png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // check_picture_size has a better text
  png_set_chunk_malloc_max(png_, 1 << 20);
  png_set_read_fn(png_, this, read);
  png_read_info(png_, info_);
  width_ = png_get_image_width(png_, info_);
  height_ = png_get_image_height(png_, info_);
  return true;
}

bool PngReader::read_rows(png_bytep* rows) {
  if (setjmp(png_jmpbuf(png_))) return false;
  png_set_expand(png_);  // palettes and fewer than 8 bits
  png_set_strip_16(png_);
  png_set_gray_to_rgb(png_);
  png_set_strip_alpha(png_);
  png_set_interlace_handling(png_);
  png_read_update_info(png_, info_);
  if (png_get_rowbytes(png_, info_) != size_t(width_) * 3) png_error(png_, "unknown kind of pixels");
  png_read_image(png_, rows);
  png_read_end(png_, info_);
  png_bytep exif = nullptr;
  png_uint_32 bytes = 0;
  if (png_get_eXIf_1(png_, info_, &bytes, &exif)) exif_ = {reinterpret_cast<const char*>(exif), bytes};
  return true;
}

}  // namespace

Result<StoredPicture> decode_png(std::string_view bytes, uint64_t max_pixels) {
  PngReader reader(bytes);
  if (!reader.read_header()) return damaged_picture("PNG", reader.message());
  if (auto ok = check_picture_size(reader.width(), reader.height(), max_pixels); !ok) return ok.error();
  StoredPicture out{{int(reader.width()), int(reader.height()), {}}};
  const size_t row = size_t(reader.width()) * 3;
  out.picture.rgb.resize(row * reader.height());
  std::vector<png_bytep> rows(reader.height());
  for (size_t y = 0; y < rows.size(); y++) rows[y] = out.picture.rgb.data() + y * row;
  if (!reader.read_rows(rows.data())) return damaged_picture("PNG", reader.message());
  out.orientation = exif_orientation(reader.exif());
  return out;
}

}  // namespace gimbal
