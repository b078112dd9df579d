// FLAC by libFLAC.
#include <FLAC/stream_decoder.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "media/sound.h"
#include "media/sound_decoders.h"

namespace gimbal {
namespace {

struct FlacReader {
  std::string_view rest;
  StoredSound sound = {};
  bool damaged = false, too_long = false;
};

FLAC__StreamDecoderReadStatus read_flac(const FLAC__StreamDecoder*, FLAC__byte* to, size_t* n, void* client) {
  auto& rest = static_cast<FlacReader*>(client)->rest;
  *n = std::min(*n, rest.size());
  std::memcpy(to, rest.data(), *n);
  rest.remove_prefix(*n);
  return *n ? FLAC__STREAM_DECODER_READ_STATUS_CONTINUE : FLAC__STREAM_DECODER_READ_STATUS_END_OF_STREAM;
}

FLAC__StreamDecoderWriteStatus write_flac(const FLAC__StreamDecoder*, const FLAC__Frame* frame,
                                          const FLAC__int32* const channels[], void* client) {
  auto& reader = *static_cast<FlacReader*>(client);
  const FLAC__FrameHeader& h = frame->header;
  std::vector<float>& out = reader.sound.samples;
  if (out.empty()) reader.sound.rate = int(h.sample_rate);
  reader.damaged |= reader.sound.rate != int(h.sample_rate) ||
                    !check_sound_format("FLAC", h.channels, h.sample_rate) || h.bits_per_sample < 4 ||
                    h.bits_per_sample > 32;
  reader.too_long |= out.size() + h.blocksize > kMaxSoundSamples;
  if (reader.damaged || reader.too_long) return FLAC__STREAM_DECODER_WRITE_STATUS_ABORT;
  const double scale = 1.0 / double(uint64_t(1) << (h.bits_per_sample - 1)) / h.channels;
  for (uint32_t i = 0; i < h.blocksize; i++) {
    double sum = 0;
    for (uint32_t c = 0; c < h.channels; c++) sum += channels[c][i];
    out.push_back(float(sum * scale));
  }
  return FLAC__STREAM_DECODER_WRITE_STATUS_CONTINUE;
}

void flac_error(const FLAC__StreamDecoder*, FLAC__StreamDecoderErrorStatus, void* client) {
  static_cast<FlacReader*>(client)->damaged = true;
}

}  // namespace

Result<StoredSound> decode_flac(std::string_view bytes) {
  FlacReader reader{bytes};
  const std::unique_ptr<FLAC__StreamDecoder, decltype(&FLAC__stream_decoder_delete)> decoder(
      FLAC__stream_decoder_new(), FLAC__stream_decoder_delete);
  if (!decoder) return Error{Code::OutOfMemory, "no memory for the decoder of FLAC"};
  FLAC__stream_decoder_set_md5_checking(decoder.get(), true);
  if (FLAC__stream_decoder_init_stream(decoder.get(), read_flac, nullptr, nullptr, nullptr, nullptr,
                                       write_flac, nullptr, flac_error,
                                       &reader) != FLAC__STREAM_DECODER_INIT_STATUS_OK)
    return Error{Code::Failed, "the decoder of FLAC could not be started"};
  bool whole = true;
  while (whole && !reader.damaged &&
         FLAC__stream_decoder_get_state(decoder.get()) < FLAC__STREAM_DECODER_END_OF_STREAM)
    whole = FLAC__stream_decoder_process_single(decoder.get());
  const uint64_t expected = FLAC__stream_decoder_get_total_samples(decoder.get());
  whole &= FLAC__stream_decoder_finish(decoder.get()) != 0;  // compares the checksum of all samples
  if (reader.too_long) return long_sound();
  if (!whole || reader.damaged) return damaged_sound("FLAC", "its samples cannot be decoded");
  if (expected && expected != reader.sound.samples.size()) return damaged_sound("FLAC", "it ends too early");
  return std::move(reader.sound);
}

}  // namespace gimbal
