// The form of a stored page: a head, and the bytes of a model's state. The page's key is a hash of everything
// that decides these bytes. The file's name is a hash of the key, and the checksum covers the key too, so
// only a program that knows the key can find a page or write one that passes the check.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/file.h"
#include "base/result.h"
#include "base/sha256.h"

namespace gimbal {

using PageKey = Sha256::Digest;

struct PageHead {
  static constexpr char kMagic[] = "gimbal-page-002";  // with the zero at its end

  char magic[16];
  uint64_t bytes;           // behind the head
  uint64_t microseconds;    // that computing them took, for statistics
  Sha256::Digest checksum;  // of the key, the members before, and the digests of the bytes' quarters
};
static_assert(sizeof(PageHead) == 64);

// 64 lower-case hexadecimal digits.
std::string name_of(const PageKey&);
bool is_page_name(std::string_view);

PageHead head_of(const PageKey&, Bytes content, uint64_t microseconds);
// Checks a head against the content that a model expects. Errors: Malformed, with the reason in a few words:
// the file's size, the magic, or the checksum.
Status check_page(const PageKey&, const PageHead&, Bytes content);
// Reads and checks a page's file; returns its microseconds. Errors: as check_page(); those of reading.
Result<uint64_t> read_page(const InputFile&, const PageKey&, std::span<std::byte> content);

}  // namespace gimbal
