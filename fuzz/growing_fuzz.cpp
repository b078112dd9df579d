// libFuzzer over the log of an unfinished file. With any log, only bytes of the part are kept, and the
// finished file has the wanted bytes.

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "base/growing_file.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gimbal;
  static const std::string path = [] {
    std::string folder = (std::filesystem::temp_directory_path() / "gimbal-growing-XXXXXX").string();
    require(mkdtemp(folder.data()) != nullptr);
    return folder + "/file";
  }();
  const std::string wanted = "the head of a file, and its other bytes";
  require(bool(write_file(path + ".part", wanted.substr(0, 30))));
  require(bool(write_file(path + ".part.log", {reinterpret_cast<const char*>(data), size})));
  auto part = GrowingFile::open(path, 10);
  require(bool(part));
  const auto found = part->begin(wanted.data(), 12);
  require(found && part->kept() <= 30 && (part->kept() == 0) == (*found != GrowingFile::Found::Same));
  require(bool(part->write(wanted.data(), wanted.size())) && bool(part->commit()));
  require(*read_file(path) == wanted);
  return 0;
}
