// libFuzzer over the files of stored pages: whatever the bytes are, a page is read if they are those that a
// writer with its key makes, and deleted otherwise. libFuzzer sees the comparison of checksums, so it makes
// pages that are right, too. Each input is tried as it is, over the beginning of a right page, and with the
// checksum of another key.
#include <unistd.h>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "require.h"
#include "store/page_folder.h"

namespace {

using namespace gimbal;

constexpr size_t kContent = 96;  // of a page

struct Place {
  std::string folder = "/tmp/page-fuzz-" + std::to_string(getpid());
  PageKey key{1, 2, 3}, other{1, 2, 4};
  std::vector<std::byte> content = std::vector<std::byte>(kContent, std::byte(7));
  std::string file, whole;
  std::unique_ptr<PageFolder> pages;

  Place() {
    auto opened = PageFolder::open({folder, uint64_t(1) << 30, false, {}});
    require(bool(opened));
    pages = std::move(*opened);
    require(bool(pages->write(key, content, 5)));
    const std::string name = name_of(key);
    file = folder + "/" + name.substr(0, 2) + "/" + name;
    std::ifstream in(file, std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(in), {});
  }
  ~Place() { std::filesystem::remove_all(folder); }

  void try_file(const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
    std::vector<std::byte> found(kContent);
    const auto read = pages->read(key, found);
    const PageHead right = head_of(key, found, read ? *read : 0);
    const bool is_right = bytes.size() == sizeof right + kContent &&
                          std::memcmp(bytes.data(), &right, sizeof right) == 0 &&
                          std::memcmp(bytes.data() + sizeof right, found.data(), kContent) == 0;
    require(bool(read) == is_right && (bytes != whole || is_right));
    if (read) return;
    require(read.error().code == Code::Malformed && !read.error().message.empty());
    require(!std::filesystem::exists(file));
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Place place;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  place.try_file(bytes);
  // A part of the whole file, with the input over its beginning.
  std::string mixed = place.whole;
  mixed.replace(0, std::min(mixed.size(), size), bytes, 0, std::min(mixed.size(), size));
  place.try_file(mixed);
  if (size <= sizeof(PageHead)) return 0;
  const Bytes content(reinterpret_cast<const std::byte*>(data) + sizeof(PageHead), size - sizeof(PageHead));
  const PageHead head = head_of(place.other, content, 5);
  std::memcpy(bytes.data(), &head, sizeof head);
  place.try_file(bytes);
  return 0;
}
