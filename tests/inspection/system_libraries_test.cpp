// The libraries of this system, against nm, readelf and objdump of binutils.
#include <gtest/gtest.h>
#include <link.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <sstream>

#include "base/file.h"
#include "inspection/inspection.h"
#include "inspection/instructions.h"
#include "support/run_program.h"

namespace gimbal {
namespace {

using Names = std::set<std::string>;

// Those of this process, and their neighbours in the same folders: at most 20.
std::vector<std::string> shared_libraries() {
  std::set<std::string> found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        if (info->dlpi_name[0] == '/') static_cast<std::set<std::string>*>(to)->insert(info->dlpi_name);
        return 0;
      },
      &found);
  const std::string folder =
      found.empty() ? "/usr/lib" : std::filesystem::path(*found.begin()).parent_path().string();
  std::set<std::string> more;
  for (const auto& e : std::filesystem::directory_iterator(folder))
    if (e.is_regular_file() && e.path().filename().string().find(".so.") != std::string::npos)
      more.insert(e.path().string());
  for (const std::string& m : more)
    if (found.size() < 20) found.insert(m);
  return {found.begin(), found.end()};
}

Names names_of(const NameList& list) {
  Names all;
  for (size_t i = 0; i < list.kept(); i++) all.emplace(list[i]);
  return all;
}

// Of a line "0000 T name" or "     U name".
void read_nm(const std::string& out, Names& defined, Names& undefined) {
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<std::string> w;
    for (std::string one; words >> one;) w.push_back(one);
    if (w.size() == 3 && w[1].size() == 1) defined.insert(w[2]);
    if (w.size() == 2 && w[0].size() == 1) undefined.insert(w[1]);
  }
}

TEST(SystemLibraries, SharedOnesHaveTheSymbolsThatNmLists) {
  const auto all = shared_libraries();
  ASSERT_GE(all.size(), 4u);
  for (const std::string& path : all) {
    SCOPED_TRACE(path);
    const auto found = inspect_library(path);
    ASSERT_TRUE(found) << found.error().message;
    Names defined, undefined;
    read_nm(test::run_program({"/usr/bin/env", "nm", "-D", "--without-symbol-versions", path}).out, defined,
            undefined);
    EXPECT_EQ(names_of(found->images[0].exported), defined);
    EXPECT_EQ(names_of(found->images[0].undefined), undefined);
    const std::string dynamic = test::run_program({"/usr/bin/env", "readelf", "-dW", path}).out;
    size_t needed = 0;
    for (size_t at = dynamic.find("(NEEDED)"); at != std::string::npos; at = dynamic.find("(NEEDED)", at + 1))
      needed++;
    EXPECT_EQ(found->images[0].needed.size(), needed);
    for (const std::string& n : found->images[0].needed)
      EXPECT_NE(dynamic.find("[" + n + "]"), std::string::npos) << n;
    if (!found->images[0].build_id.empty()) {
      EXPECT_NE(
          test::run_program({"/usr/bin/env", "readelf", "-nW", path}).out.find(found->images[0].build_id),
          std::string::npos);
    }
  }
}

TEST(SystemLibraries, ArchivesHaveTheSymbolsThatNmLists) {
  size_t tried = 0;
  for (const std::string& path : shared_libraries()) {
    const std::string folder = std::filesystem::path(path).parent_path().string();
    for (const char* name : {"libpcre2-8.a", "libz.a", "libc_nonshared.a", "libm.a"}) {
      const std::string archive = folder + "/" + name;
      const auto found = inspect_library(archive);
      if (!found || found->images[0].members == 0) continue;
      SCOPED_TRACE(archive);
      Names defined, undefined;
      read_nm(test::run_program({"/usr/bin/env", "nm", "-g", archive}).out, defined, undefined);
      for (const std::string& d : defined) undefined.erase(d);
      EXPECT_EQ(names_of(found->images[0].exported), defined);
      EXPECT_EQ(names_of(found->images[0].undefined), undefined);
      tried++;
    }
    if (tried) break;
  }
  EXPECT_GT(tried, 0u) << "zlib1g-dev and libpcre2-dev bring archives, and building needs both";
}

#if defined(__x86_64__)

// The beginnings of instructions in a library with code for many processors, which objdump finds as well.
TEST(SystemLibraries, InstructionsBeginWhereObjdumpSees) {
  std::string libm;
  for (const std::string& path : shared_libraries())
    if (path.find("/libm.so") != std::string::npos || path.find("/libm-") != std::string::npos) libm = path;
  ASSERT_FALSE(libm.empty());
  const std::string listing =
      test::run_program({"/usr/bin/env", "objdump", "-d", "-w", "-j", ".text", "--no-show-raw-insn", libm})
          .out;
  std::vector<uint64_t> theirs;
  bool upper = false;
  std::istringstream lines(listing);
  for (std::string line; std::getline(lines, line);)
    if (const size_t colon = line.find(":\t");
        colon != std::string::npos && std::isspace(static_cast<unsigned char>(line[0]))) {
      theirs.push_back(std::stoull(line.substr(0, colon), nullptr, 16));
      upper |= line.find("%zmm") != std::string::npos;
    }
  ASSERT_GT(theirs.size(), 10'000u);
  // The section's place in the file, from readelf: "[14] .text PROGBITS address offset size".
  const std::string sections = test::run_program({"/usr/bin/env", "readelf", "-SW", libm}).out;
  std::istringstream row(sections.substr(sections.find(" .text ")));
  std::string name, type, address, offset, size;
  row >> name >> type >> address >> offset >> size;
  const std::string whole = *read_file(libm);
  const auto* begin = reinterpret_cast<const uint8_t*>(whole.data()) + std::stoull(offset, nullptr, 16);
  std::span<const uint8_t> code(begin, std::stoull(size, nullptr, 16));
  InstructionCounts counts;
  std::vector<uint64_t> ours;
  bool waits = false;  // objdump joins fwait (9b) and the instruction behind it: "fstcw"
  for (uint64_t at = std::stoull(address, nullptr, 16); !code.empty();) {
    const size_t n = decode_x86_64(code, counts);
    if (!waits || code[0] < 0xd8 || code[0] > 0xdf) ours.push_back(at);
    waits = code[0] == 0x9b;
    at += n ? n : 1, code = code.subspan(n ? n : 1);
  }
  EXPECT_EQ(ours, theirs);
  EXPECT_GT(counts.of[size_t(InstructionFamily::Fma)], 100u);
  EXPECT_EQ(counts.of[size_t(InstructionFamily::Avx512)] > 0, upper);
}

#endif

}  // namespace
}  // namespace gimbal
