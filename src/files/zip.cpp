#include "files/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

constexpr uint32_t kEndMark = 0x06054b50, kEnd64Mark = 0x06064b50, kLocatorMark = 0x07064b50;
constexpr uint32_t kDirectoryMark = 0x02014b50, kLocalMark = 0x04034b50;
constexpr uint64_t kEnd = 22, kLocator = 20, kEnd64 = 56, kDirectory = 46, kLocal = 30;
constexpr uint64_t kMaxComment = 65535, kMaxDirectory = 64 << 20;
constexpr uint64_t kMaxRatio = 1032;  // of deflate, rounded up
constexpr size_t kZipPiece = 1 << 16;
constexpr uint16_t kIs64 = 0xffff;
constexpr uint32_t kIs64Long = 0xffffffff;

Error bad_zip(const std::string& name, const std::string& what) {
  return {Code::Malformed, format("'{}': {}", escaped(name), what),
          "The archive is damaged or incomplete: get it again."};
}
Error unsupported_zip(const std::string& name, const std::string& what) {
  return {Code::Unsupported, format("'{}': {}", escaped(name), what),
          "Write the archive again with numpy.savez() or numpy.savez_compressed()."};
}

Result<std::vector<std::byte>> part(const FileBytes& file, uint64_t at, uint64_t bytes) {
  std::vector<std::byte> all(static_cast<size_t>(bytes));
  if (bytes)
    if (auto ok = file.read(at, all.data(), all.size()); !ok) return ok.error();
  return all;
}

struct Directory {
  uint64_t begin, bytes, entries;
};

Result<Directory> find_directory(const FileBytes& file, const std::string& name) {
  const uint64_t size = file.size(), tail = std::min(size, kEnd + kMaxComment);
  const auto bytes = part(file, size - tail, tail);
  if (!bytes) return bytes.error();
  for (uint64_t at = tail < kEnd ? 0 : tail - kEnd + 1; at-- > 0;) {
    const std::byte* p = bytes->data() + at;
    if (read_le<uint32_t>(p) != kEndMark || at + kEnd + read_le<uint16_t>(p + 20) != tail) continue;
    Directory d{read_le<uint32_t>(p + 16), read_le<uint32_t>(p + 12), read_le<uint16_t>(p + 10)};
    uint64_t end = size - tail + at;
    if (read_le<uint16_t>(p + 4) != 0 && read_le<uint16_t>(p + 4) != kIs64)
      return unsupported_zip(name, "the archive has several parts");
    if (d.entries == kIs64 || d.bytes == kIs64Long || d.begin == kIs64Long) {
      if (end < kLocator) return bad_zip(name, "the 64-bit end of the directory is missing");
      const auto locator = part(file, end - kLocator, kLocator);
      if (!locator) return locator.error();
      const auto where = read_le<uint64_t>(locator->data() + 8);
      if (read_le<uint32_t>(locator->data()) != kLocatorMark || where > end - kLocator ||
          end - kLocator - where < kEnd64)
        return bad_zip(name, "the 64-bit end of the directory is missing");
      const auto wide = part(file, where, kEnd64);
      if (!wide) return wide.error();
      if (read_le<uint32_t>(wide->data()) != kEnd64Mark)
        return bad_zip(name, "the 64-bit end of the directory is missing");
      d = {read_le<uint64_t>(wide->data() + 48), read_le<uint64_t>(wide->data() + 40),
           read_le<uint64_t>(wide->data() + 32)};
      end = where;
    }
    if (d.begin > end || d.bytes > end - d.begin)
      return bad_zip(
          name, format("the directory: expected {} bytes from {} on before byte {}", d.bytes, d.begin, end));
    if (d.bytes > kMaxDirectory || d.entries > d.bytes / kDirectory)
      return bad_zip(name,
                     format("the directory: {} entries do not fit into its {} bytes", d.entries, d.bytes));
    return d;
  }
  return bad_zip(name, "the end of a zip archive is missing");
}

// The sizes and the place that did not fit into 32 bits, from the entry's extra fields.
bool read_wide(Bytes extra, ZipEntry& e) {
  while (extra.size() >= 4) {
    const auto id = read_le<uint16_t>(extra.data()), size = read_le<uint16_t>(extra.data() + 2);
    extra = extra.subspan(4);
    if (size > extra.size()) return false;
    if (id == 1) {
      Bytes field = extra.first(size);
      for (uint64_t* value : {&e.bytes, &e.packed, &e.begin}) {
        if (*value != kIs64Long) continue;
        if (field.size() < sizeof(uint64_t)) return false;
        *value = read_le<uint64_t>(field.data());
        field = field.subspan(sizeof(uint64_t));
      }
      return true;
    }
    extra = extra.subspan(size);
  }
  return true;
}

// From the entry's own header, whose length the directory does not have, to its data.
Status find_data(const FileBytes& file, const std::string& name, uint64_t directory, ZipEntry& e) {
  if (e.begin > directory || directory - e.begin < kLocal)
    return bad_zip(
        name, format("entry {} begins at byte {}, behind the directory", gimbal::quoted(e.name), e.begin));
  const auto local = part(file, e.begin, kLocal);
  if (!local) return local.error();
  if (read_le<uint32_t>(local->data()) != kLocalMark)
    return bad_zip(name, format("entry {}: no header at byte {}", gimbal::quoted(e.name), e.begin));
  e.begin += kLocal + read_le<uint16_t>(local->data() + 26) + uint64_t(read_le<uint16_t>(local->data() + 28));
  if (e.begin > directory || e.packed > directory - e.begin)
    return bad_zip(name, format("entry {}: expected {} bytes from {} on, before the directory at {}",
                                gimbal::quoted(e.name), e.packed, e.begin, directory));
  return Done{};
}

}  // namespace

Result<std::vector<ZipEntry>> read_zip_directory(const FileBytes& file, const std::string& name) {
  const auto d = find_directory(file, name);
  if (!d) return d.error();
  const auto bytes = part(file, d->begin, d->bytes);
  if (!bytes) return bytes.error();
  std::vector<ZipEntry> all;
  Bytes rest(*bytes);
  while (rest.size() >= kDirectory && read_le<uint32_t>(rest.data()) == kDirectoryMark) {
    const std::byte* p = rest.data();
    const uint64_t text = read_le<uint16_t>(p + 28), extra = read_le<uint16_t>(p + 30),
                   comment = read_le<uint16_t>(p + 32);
    if (text + extra + comment > rest.size() - kDirectory)
      return bad_zip(name, format("entry {} of the directory ends early", all.size() + 1));
    ZipEntry e{std::string(reinterpret_cast<const char*>(p) + kDirectory, size_t(text)),
               read_le<uint32_t>(p + 42),
               read_le<uint32_t>(p + 20),
               read_le<uint32_t>(p + 24),
               read_le<uint32_t>(p + 16),
               false};
    const auto flags = read_le<uint16_t>(p + 8), method = read_le<uint16_t>(p + 10);
    if (!read_wide(rest.subspan(kDirectory + text, extra), e))
      return bad_zip(name, format("entry {}: its sizes are damaged", gimbal::quoted(e.name)));
    if (flags & 1) return unsupported_zip(name, format("entry {} is encrypted", gimbal::quoted(e.name)));
    if (method != 0 && method != 8)
      return unsupported_zip(name, format("entry {} is packed by method {}", gimbal::quoted(e.name), method));
    e.deflated = method == 8;
    if (e.deflated ? e.bytes / kMaxRatio > e.packed : e.bytes != e.packed)
      return bad_zip(
          name, format("entry {}: {} bytes cannot unpack to {}", gimbal::quoted(e.name), e.packed, e.bytes));
    if (auto ok = find_data(file, name, d->begin, e); !ok) return ok.error();
    all.push_back(std::move(e));
    rest = rest.subspan(size_t(kDirectory + text + extra + comment));
  }
  if (all.size() != d->entries || !rest.empty())
    return bad_zip(name, format("the directory: expected {} entries in {} bytes, found {} and {} bytes more",
                                d->entries, d->bytes, all.size(), rest.size()));
  return all;
}

Status unpack_zip_entry(const FileBytes& file, const ZipEntry& e, const std::string& name,
                        const std::function<bool(Bytes piece)>& take) {
  const auto damaged = [&](const std::string& what) {
    return bad_zip(name, format("entry {}: {}", gimbal::quoted(e.name), what));
  };
  std::vector<std::byte> in(kZipPiece), out(kZipPiece);
  uint64_t done = 0, read = 0;
  uLong crc = crc32(0, nullptr, 0);
  const auto pass = [&](Bytes piece) {
    crc = crc32(crc, reinterpret_cast<const Bytef*>(piece.data()), uInt(piece.size()));
    done += piece.size();
    return take(piece);
  };
  z_stream z{};
  struct End {
    z_stream* z = nullptr;
    ~End() {
      if (z) inflateEnd(z);
    }
  } end;
  if (e.deflated) {
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
      return Error{Code::OutOfMemory, "no memory to unpack an archive", ""};
    end.z = &z;
  }
  for (bool last = false; !last;) {
    if (z.avail_in == 0 && read < e.packed) {
      const auto n = size_t(std::min<uint64_t>(kZipPiece, e.packed - read));
      if (auto ok = file.read(e.begin + read, in.data(), n); !ok) return ok;
      read += n;
      z.next_in = reinterpret_cast<Bytef*>(in.data()), z.avail_in = uInt(n);
    }
    if (!e.deflated) {
      if (!z.avail_in) break;
      if (!pass({in.data(), z.avail_in})) return Done{};
      z.avail_in = 0;
      continue;
    }
    z.next_out = reinterpret_cast<Bytef*>(out.data()), z.avail_out = uInt(kZipPiece);
    const int result = inflate(&z, Z_NO_FLUSH);
    const size_t n = kZipPiece - z.avail_out;
    if (done + n > e.bytes)
      return damaged(format("it unpacks to more than the {} bytes that it has by the directory", e.bytes));
    if (n && !pass({out.data(), n})) return Done{};
    if (result == Z_STREAM_END) last = true;
    else if (result != Z_OK || (n == 0 && z.avail_in == 0 && read == e.packed))
      return damaged("its deflated data are damaged or end early");
  }
  if (done != e.bytes) return damaged(format("expected {} bytes, found {}", e.bytes, done));
  if (uint32_t(crc) != e.crc) return damaged("its checksum is another");
  return Done{};
}

}  // namespace gimbal
