// MP3 by libmpg123 (LGPL), opened at the first use and not part of the program.
#include <dlfcn.h>

#include <memory>
#include <type_traits>

#include "base/format.h"
#include "media/sound.h"
#include "media/sound_decoders.h"

namespace gimbal {
namespace {

// The values of mpg123.h that are used here; they are part of its binary interface.
constexpr int kMpgOk = 0, kMpgDone = -12, kMpgNewFormat = -11, kMpgNeedMore = -10;
constexpr int kMpgAddFlags = 2;                                              // a parameter
constexpr long kMpgMonoMix = 0x4, kMpgQuiet = 0x20, kMpgForceFloat = 0x400;  // flags
constexpr int kMpgMono = 1, kMpgFloat32 = 0x200;

struct Mpg123 {
  int (*init)();
  void* (*create)(const char* decoder, int* error);
  void (*destroy)(void*);
  int (*param)(void*, int parameter, long value, double);
  int (*open_feed)(void*);
  int (*feed)(void*, const unsigned char* bytes, size_t n);
  int (*read)(void*, void* to, size_t bytes, size_t* done);
  int (*format)(void*, long* rate, int* channels, int* encoding);
};

Result<const Mpg123*> load_mpg123() {
#ifdef __APPLE__
  void* library = dlopen("libmpg123.0.dylib", RTLD_NOW | RTLD_LOCAL);
#else
  void* library = dlopen("libmpg123.so.0", RTLD_NOW | RTLD_LOCAL);
#endif
  if (!library)
    return Error{
        Code::Unsupported, "MP3 needs libmpg123, which is not installed",
        "install it: apt-get install libmpg123-0 (Debian, Ubuntu), or give the sound as WAV or FLAC"};
  static Mpg123 m;
  bool whole = true;
  const auto find = [&](auto& to, const char* name) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(library, name));
    whole &= to != nullptr;
  };
  find(m.init, "mpg123_init"), find(m.create, "mpg123_new"), find(m.destroy, "mpg123_delete");
  find(m.param, "mpg123_param"), find(m.open_feed, "mpg123_open_feed"), find(m.feed, "mpg123_feed");
  find(m.read, "mpg123_read"), find(m.format, "mpg123_getformat");
  if (!whole || m.init() != kMpgOk)
    return Error{Code::Unsupported, "the libmpg123 of this machine cannot be used",
                 "give the sound as WAV or FLAC"};
  return &m;
}

}  // namespace

Result<StoredSound> decode_mp3(std::string_view bytes) {
  static const Result<const Mpg123*> library = load_mpg123();
  if (!library) return library.error();
  const Mpg123& m = **library;
  const std::unique_ptr<void, void (*)(void*)> reader(m.create(nullptr, nullptr), m.destroy);
  if (!reader || m.param(reader.get(), kMpgAddFlags, kMpgMonoMix | kMpgQuiet | kMpgForceFloat, 0) != kMpgOk ||
      m.open_feed(reader.get()) != kMpgOk ||
      m.feed(reader.get(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()) != kMpgOk)
    return Error{Code::Failed, "the decoder of MP3 could not be started"};
  StoredSound out;
  for (std::vector<float> part(1 << 15);;) {
    size_t done = 0;
    const int state = m.read(reader.get(), part.data(), part.size() * sizeof(float), &done);
    if (state == kMpgNewFormat) {
      long rate = 0;
      int channels = 0, encoding = 0;
      if (m.format(reader.get(), &rate, &channels, &encoding) != kMpgOk || channels != kMpgMono ||
          encoding != kMpgFloat32)
        return damaged_sound("MP3", "its samples cannot be decoded");
      if (auto ok = check_sound_format("MP3", channels, rate); !ok) return ok.error();
      if (out.rate && out.rate != rate) return damaged_sound("MP3", "its rate changes");
      out.rate = int(rate);
    }
    if (done && !out.rate) return damaged_sound("MP3", "its samples cannot be decoded");
    out.samples.insert(out.samples.end(), part.begin(), part.begin() + std::ptrdiff_t(done / sizeof(float)));
    if (out.samples.size() > kMaxSoundSamples) return long_sound();
    if (state == kMpgDone || state == kMpgNeedMore) break;  // all bytes were given
    if (state != kMpgOk && state != kMpgNewFormat)
      return damaged_sound("MP3", "its samples cannot be decoded");
    if (state == kMpgOk && !done) return damaged_sound("MP3", "its samples cannot be decoded");
  }
  if (out.samples.empty()) return damaged_sound("MP3", "no frame was found");
  return out;
}

}  // namespace gimbal
