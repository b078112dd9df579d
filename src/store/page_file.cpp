#include "store/page_file.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"

namespace gimbal {
namespace {

std::string_view text_of(const void* p, size_t bytes) { return {static_cast<const char*>(p), bytes}; }

Sha256::Digest checksum_of(const PageKey& key, const PageHead& head, Bytes content) {
  Sha256 sha;
  sha.add(text_of(key.data(), key.size()));
  sha.add(text_of(&head, offsetof(PageHead, checksum)));
  // Quarters of whole blocks, the last one with the rest.
  const std::string_view bytes = text_of(content.data(), content.size());
  const size_t quarter = bytes.size() / 256 * 64;
  for (const Sha256::Digest& d :
       Sha256::four({bytes.substr(0, quarter), bytes.substr(quarter, quarter),
                     bytes.substr(2 * quarter, quarter), bytes.substr(3 * quarter)}))
    sha.add(text_of(d.data(), d.size()));
  return sha.digest();
}

}  // namespace

std::string name_of(const PageKey& key) {
  Sha256 sha;
  sha.add("gimbal-page-name");
  sha.add(text_of(key.data(), key.size()));
  return sha.hex();
}

bool is_page_name(std::string_view name) {
  return name.size() == 64 && name.find_first_not_of("0123456789abcdef") == name.npos;
}

PageHead head_of(const PageKey& key, Bytes content, uint64_t microseconds) {
  PageHead head{{}, content.size(), microseconds, {}};
  std::memcpy(head.magic, PageHead::kMagic, sizeof head.magic);
  head.checksum = checksum_of(key, head, content);
  return head;
}

Status check_page(const PageKey& key, const PageHead& head, Bytes content) {
  const auto wrong = [](std::string why) { return Error{Code::Malformed, std::move(why), ""}; };
  if (std::memcmp(head.magic, PageHead::kMagic, sizeof head.magic) != 0)
    return wrong("it does not begin as a page");
  if (head.bytes != content.size())
    return wrong(format("its head names {} bytes, expected {}", head.bytes, content.size()));
  if (head.checksum != checksum_of(key, head, content))
    return wrong("its checksum does not fit its contents");
  return Done{};
}

Result<uint64_t> read_page(const InputFile& file, const PageKey& key, std::span<std::byte> content) {
  PageHead head{};
  if (file.size() != sizeof head + content.size())
    return Error{Code::Malformed,
                 format("it has {} bytes, expected {}", file.size(), sizeof head + content.size()), ""};
  if (auto ok = file.read(0, &head, sizeof head); !ok) return ok.error();
  if (auto ok = file.read(sizeof head, content.data(), content.size()); !ok) return ok.error();
  if (auto ok = check_page(key, head, content); !ok) return ok.error();
  return head.microseconds;
}

}  // namespace gimbal
