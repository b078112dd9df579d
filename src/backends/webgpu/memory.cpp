#include "backends/webgpu/memory.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/format.h"

namespace gimbal::webgpu {

OwnedBuffer Memory::make(uint64_t bytes, uint64_t usage) {
  BufferDescriptor wanted;
  wanted.usage = usage, wanted.bytes = bytes;
  return {gpu_.api(), gpu_.api().wgpuDeviceCreateBuffer(gpu_.device(), &wanted)};
}

Failure Memory::start() {
  gpu_.begin_scope();
  landing_ = make(kPieceBytes, kMapRead | kCopyTarget);
  return gpu_.end_scope(format("the {} bytes through which results are read", kPieceBytes));
}

Failure Memory::allocate(uint64_t bytes, DeviceBuffer** out) {
  if (Failure f = gpu_.said({})) return f;
  auto b = std::make_unique<DeviceBuffer>();
  b->bytes = bytes, b->taken = align_up(std::max<uint64_t>(bytes, 4), 4);
  if (b->taken > gpu_.limits().buffer_bytes)
    return {Failure::OutOfMemory, format("{}: {} bytes requested; it allocates at most {} at once",
                                         gpu_.facts().name, bytes, gpu_.limits().buffer_bytes)};
  gpu_.begin_scope();
  b->handle = make(b->taken, kStorage | kUniform | kCopySource | kCopyTarget);
  if (Failure f = gpu_.end_scope(format("{}: {} bytes requested", gpu_.facts().name, bytes))) return f;
  allocated_ += b->taken;
  *out = b.release();
  return {};
}

void Memory::release(DeviceBuffer* b) {
  if (!b) return;
  allocated_ -= b->taken;
  delete b;  // the library keeps the memory while something that was submitted uses it
}

// Partial words at either end are read first.
Failure Memory::write(DeviceBuffer& b, uint64_t offset, const void* data, uint64_t bytes) {
  if (Failure f = gpu_.said({})) return f;
  const auto* from = static_cast<const uint8_t*>(data);
  auto part_of_word = [&](uint64_t at, uint64_t n) {
    uint8_t word[4];
    if (Failure f = read_piece(b, at / 4 * 4, word, 4)) return f;
    memcpy(word + at % 4, from, n);
    return write_words(b, at / 4 * 4, word, 4);
  };
  while (bytes) {
    uint64_t n = bytes / 4 * 4;
    if (offset % 4 || !n) {
      n = std::min(bytes, 4 - offset % 4);
      if (Failure f = part_of_word(offset, n)) return f;
    } else {
      n = std::min(n, kPieceBytes);
      if (Failure f = write_words(b, offset, from, n)) return f;
    }
    offset += n, from += n, bytes -= n;
  }
  return {};
}

Failure Memory::write_words(DeviceBuffer& b, uint64_t offset, const void* data, uint64_t bytes) {
  gpu_.api().wgpuQueueWriteBuffer(gpu_.queue(), b.handle.get(), offset, data, bytes);
  on_the_way_ += bytes;
  if (on_the_way_ < kMaxInFlight) return gpu_.said({});
  on_the_way_ = 0;
  return gpu_.wait_for_all();
}

Failure Memory::read(DeviceBuffer& b, uint64_t offset, void* data, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t at = offset + done, n = std::min(bytes - done, kPieceBytes - at % 4);
    if (Failure f = read_piece(b, at, static_cast<uint8_t*>(data) + done, n)) return f;
    done += n;
  }
  return {};
}

// At most kPieceBytes, counted from the word where it begins.
Failure Memory::read_piece(DeviceBuffer& b, uint64_t offset, void* data, uint64_t bytes) {
  if (Failure f = gpu_.said({})) return f;
  const Api& api = gpu_.api();
  const uint64_t before = offset % 4, all = align_up(before + bytes, 4);
  {
    const OwnedEncoder encoder(api, api.wgpuDeviceCreateCommandEncoder(gpu_.device(), nullptr));
    api.wgpuCommandEncoderCopyBufferToBuffer(encoder.get(), b.handle.get(), offset - before, landing_.get(),
                                             0, all);
    const OwnedCommands commands(api, api.wgpuCommandEncoderFinish(encoder.get(), nullptr));
    if (Failure f = gpu_.said({})) return f;  // wgpu-native ends the process when a submission fails
    const Commands handle = commands.get();
    api.wgpuQueueSubmit(gpu_.queue(), 1, &handle);
  }
  on_the_way_ = 0;  // earlier writes have arrived when this read has
  struct {
    uint32_t status = 0;
    std::string message;
  } a;
  MapCallback callback;
  callback.mode = api.edition.mode, callback.first = &a;
  callback.call = [](uint32_t status, Text message, void* out, void*) {
    auto& answer = *static_cast<decltype(a)*>(out);
    answer.status = status, answer.message = message.view();
  };
  Failure f = gpu_.wait(api.wgpuBufferMapAsync(landing_.get(), kMapRead, 0, all, callback), a.status);
  if (!f && a.status != kSuccess)
    f = {Failure::Invalid,
         format("{}: wgpuBufferMapAsync: status {}: {}", gpu_.facts().name, a.status, a.message)};
  if (!f) {
    const void* at = api.wgpuBufferGetConstMappedRange(landing_.get(), 0, all);
    if (at) memcpy(data, static_cast<const uint8_t*>(at) + before, bytes);
    else f = {Failure::Invalid, format("{}: wgpuBufferGetConstMappedRange gives nothing", gpu_.facts().name)};
    api.wgpuBufferUnmap(landing_.get());
  }
  return gpu_.said(f);
}

}  // namespace gimbal::webgpu
