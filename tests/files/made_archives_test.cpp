// Archives made byte by byte: with the 64-bit fields of PKWARE's APPNOTE (4.3.14, 4.3.15 and 4.5.3), as
// programs write them for many entries and large files, and with an entry that is no array.
#include <gtest/gtest.h>
#include <zlib.h>

#include <span>

#include "files/npy.h"

namespace gimbal::test {
namespace {

template <class T>
std::string le(T value) {
  std::string out;
  for (size_t i = 0; i < sizeof(T); i++) out += char(uint64_t(value) >> 8 * i & 0xff);
  return out;
}

struct Archive {
  bool wide_end = true;    // the directory's place and size in 64 bits
  bool wide_entry = true;  // the entry's sizes and place, too
  uint32_t locator = 0x07064b50;
  int64_t moved = 0;         // what the locator says, beside the truth
  std::string between = "";  // the 64-bit end and its locator
  std::string entry = array();
  uint16_t entry_comment = 0;  // bytes of a comment that the directory says to have

  static std::string array() {
    const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\n";
    return std::string("\x93NUMPY\x01\x00", 8) + le(uint16_t(header.size())) + header + "xyz";
  }

  std::string bytes() const {
    const std::string name = "a.npy";
    const auto crc = uint32_t(crc32(0, reinterpret_cast<const Bytef*>(entry.data()), uInt(entry.size())));
    const auto size = uint32_t(entry.size());
    const std::string front = "front";  // the entry does not begin at 0
    std::string out = front + le(uint32_t(0x04034b50)) + le(uint16_t(45)) + le(uint64_t(0)) + le(crc) +
                      le(size) + le(size) + le(uint16_t(name.size())) + le(uint16_t(0)) + name + entry;
    const uint64_t directory = out.size();
    const uint32_t all = 0xffffffff;
    std::string extra;
    if (wide_entry)
      extra = le(uint16_t(0x7777)) + le(uint16_t(2)) + "??" + le(uint16_t(1)) + le(uint16_t(24)) +
              le(uint64_t(size)) + le(uint64_t(size)) + le(uint64_t(front.size()));
    out += le(uint32_t(0x02014b50)) + le(uint16_t(45)) + le(uint16_t(45)) + le(uint64_t(0)) + le(crc) +
           le(wide_entry ? all : size) + le(wide_entry ? all : size) + le(uint16_t(name.size())) +
           le(uint16_t(extra.size())) + le(entry_comment) + le(uint64_t(0)) +
           le(wide_entry ? all : uint32_t(front.size())) + name + extra;
    const uint64_t end = out.size();
    if (wide_end)
      out += le(uint32_t(0x06064b50)) + le(uint64_t(44 + between.size())) + le(uint16_t(45)) +
             le(uint16_t(45)) + le(uint64_t(0)) + le(uint64_t(1)) + le(uint64_t(1)) + le(end - directory) +
             le(directory) + between + le(locator) + le(uint32_t(0)) + le(uint64_t(int64_t(end) + moved)) +
             le(uint32_t(1));
    const std::string comment = "a comment of some more bytes";
    return out + le(uint32_t(0x06054b50)) + le(uint32_t(0)) + le(uint16_t(wide_end ? 0xffff : 1)) +
           le(uint16_t(wide_end ? 0xffff : 1)) + le(wide_end ? all : uint32_t(end - directory)) +
           le(wide_end ? all : uint32_t(directory)) + le(uint16_t(comment.size())) + comment;
  }
  std::string error() const {
    const std::string all = bytes();
    const auto source = parse_npz(std::as_bytes(std::span(all)), "made.npz");
    return source ? "no error" : source.error().message;
  }
};

TEST(MadeArchives, PlacesAndSizesOf64BitsAreRead) {
  for (const bool wide_end : {false, true})
    for (const bool wide_entry : {false, true}) {
      const std::string bytes = Archive{.wide_end = wide_end, .wide_entry = wide_entry}.bytes();
      const auto source = parse_npz(std::as_bytes(std::span(bytes)), "made.npz");
      ASSERT_TRUE(source) << wide_end << wide_entry << ": " << source.error().message;
      ASSERT_EQ(source->tensors().size(), 1u);
      const StoredTensor& a = source->tensors()[0];
      EXPECT_EQ(a.name, "a");
      const auto values = source->read(a);
      ASSERT_TRUE(values) << values.error().message;
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(values->data()), values->size()), "xyz");
    }
}

TEST(MadeArchives, AnEndThatIsNotWhereTheLocatorSaysIsMissing) {
  const std::string missing = "'made.npz': the 64-bit end of the directory is missing";
  EXPECT_EQ(Archive{.between = "up to 8!"}.error(), "no error") << "it may have further fields";
  EXPECT_EQ(Archive{.locator = 0x07064b51}.error(), missing);
  EXPECT_EQ(Archive{.moved = -1}.error(), missing);
  EXPECT_EQ(Archive{.moved = 1000}.error(), missing) << "behind the end of the file";
  EXPECT_EQ(Archive{.moved = -100'000}.error(), missing) << "above all numbers of a file";
  // 8 bytes before the locator there is no place for the 56 bytes of an end.
  EXPECT_EQ((Archive{.moved = 56, .between = le(uint32_t(0x06064b50)) + "more"}).error(), missing);
}

TEST(MadeArchives, DamagedEntriesAreNamed) {
  EXPECT_EQ(Archive{.entry_comment = 1}.error(), "'made.npz': entry 1 of the directory ends early");
  EXPECT_EQ(Archive{.entry = "hello"}.error(),
            "'made.npz': entry 'a.npy': the magic number of npy files is missing");
  EXPECT_EQ(Archive{.entry = "\x93NUMPY"}.error(),
            "'made.npz': entry 'a.npy': it ends within its header, after 6 bytes");
  EXPECT_EQ(Archive{.entry = Archive::array().substr(0, 20)}.error(),
            "'made.npz': entry 'a.npy' ends within its header");
}

}  // namespace
}  // namespace gimbal::test
