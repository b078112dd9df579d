// JPEG by libjpeg-turbo. Colours of CMYK follow Pillow 11.3 (Convert.c), which models were made with.
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <jpeglib.h>

#include <jerror.h>

#include "media/decoders.h"
#include "media/picture.h"

namespace gimbal {
namespace {

// Progressive pictures have about ten scans. Many scans of many pixels only cost time.
constexpr int kUsualScans = 20, kMaxScans = 500;
constexpr uint64_t kMaxScannedPixels = 400'000'000;

struct JpegErrors {
  jpeg_error_mgr base;  // first: libjpeg knows the pointer to it
  jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void jpeg_failed(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  (*info->err->format_message)(info, errors->message);
  longjmp(errors->jump, 1);
}

// Warnings are errors, but for those without an effect on the pixels.
void jpeg_warned(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_JFIF_MAJOR:
    case JWRN_ADOBE_XFORM:
    case JWRN_BOGUS_ICC: return;
    default: jpeg_failed(info);
  }
}

void count_scans(j_common_ptr info) {
  if (!info->is_decompressor) return;
  auto* jpeg = reinterpret_cast<j_decompress_ptr>(info);
  const int scans = jpeg->input_scan_number;
  const uint64_t pixels = uint64_t(jpeg->image_width) * jpeg->image_height;
  if (scans > kMaxScans || (scans > kUsualScans && uint64_t(scans) * pixels > kMaxScannedPixels))
    ERREXIT(info, JERR_BAD_PROGRESSION);
}

// The functions that may jump hold no objects with destructors.
class JpegReader {
 public:
  JpegReader() {
    info_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = jpeg_failed;
    errors_.base.emit_message = jpeg_warned;
    progress_.progress_monitor = count_scans;
  }
  ~JpegReader() { jpeg_destroy_decompress(&info_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  bool read_header(std::string_view bytes) {
    if (setjmp(errors_.jump)) return false;
    jpeg_create_decompress(&info_);
    info_.progress = &progress_;
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_save_markers(&info_, JPEG_APP0 + 1, 0xffff);
    jpeg_read_header(&info_, TRUE);
    return true;
  }

  // `line` has room for four values a pixel.
  bool read_rows(uint8_t* rgb, uint8_t* line) {
    if (setjmp(errors_.jump)) return false;
    four_ = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    info_.out_color_space = four_ ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&info_);
    while (info_.output_scanline < info_.output_height) {
      uint8_t* to = rgb + size_t(info_.output_scanline) * info_.output_width * 3;
      JSAMPROW row = four_ ? line : to;
      jpeg_read_scanlines(&info_, &row, 1);
      if (four_) inks_to_rgb(line, to);
    }
    jpeg_finish_decompress(&info_);
    return true;
  }

  uint32_t width() const { return info_.image_width; }
  uint32_t height() const { return info_.image_height; }
  const char* message() const { return errors_.message; }
  int orientation() const {
    constexpr std::string_view kExif("Exif\0\0", 6);
    for (auto* m = info_.marker_list; m; m = m->next) {
      const std::string_view data(reinterpret_cast<const char*>(m->data), m->data_length);
      if (data.starts_with(kExif)) return exif_orientation(data.substr(kExif.size()));
    }
    return 1;
  }

 private:
  // Files with Adobe's marker store the inks inverted.
  void inks_to_rgb(const uint8_t* from, uint8_t* to) const {
    for (uint32_t x = 0; x < info_.output_width; x++, from += 4, to += 3) {
      const uint32_t paper = info_.saw_Adobe_marker ? from[3] : 255 - from[3];
      for (int c = 0; c < 3; c++) {
        const uint32_t ink = info_.saw_Adobe_marker ? 255 - from[c] : from[c];
        const uint32_t product = ink * paper + 128;
        to[c] = uint8_t(paper - ((product + (product >> 8)) >> 8));
      }
    }
  }

  jpeg_decompress_struct info_ = {};
  JpegErrors errors_ = {};
  jpeg_progress_mgr progress_ = {};
  bool four_ = false;
};

}  // namespace

Result<StoredPicture> decode_jpeg(std::string_view bytes, uint64_t max_pixels) {
  JpegReader reader;
  if (!reader.read_header(bytes)) return damaged_picture("JPEG", reader.message());
  if (auto ok = check_picture_size(reader.width(), reader.height(), max_pixels); !ok) return ok.error();
  StoredPicture out{{int(reader.width()), int(reader.height()), {}}, reader.orientation()};
  out.picture.rgb.resize(size_t(reader.width()) * reader.height() * 3);
  std::vector<uint8_t> line(size_t(reader.width()) * 4);
  if (!reader.read_rows(out.picture.rgb.data(), line.data()))
    return damaged_picture("JPEG", reader.message());
  return out;
}

}  // namespace gimbal
