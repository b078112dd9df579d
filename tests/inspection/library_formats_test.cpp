// Small libraries of every file format (tests/data/libraries), against what LLVM's tools print of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/format.h"
#include "inspection/image_reader.h"
#include "inspection/inspection.h"
#include "support/golden.h"

namespace gimbal {
namespace {

using Names = std::set<std::string>;

std::string library_file(const std::string& name) {
  return std::string(GIMBAL_SOURCE_DIR "/tests/data/libraries/") + name;
}

Inspection look(const std::string& name) {
  auto found = inspect_library(library_file(name));
  EXPECT_TRUE(found) << found.error().message;
  return found ? std::move(*found) : Inspection{};
}

Names names_of(const NameList& list) {
  Names all;
  for (size_t i = 0; i < list.kept(); i++) all.emplace(list[i]);
  return all;
}

Names names_of(const nlohmann::ordered_json& list) { return list.get<Names>(); }

std::string joined(const std::vector<std::string>& parts) { return fmt::to_string(fmt::join(parts, ":")); }

// "elf64-x86-64" and so on, as LLVM names them.
std::string llvm_format(const BinaryImage& i) {
  static const std::map<std::string, std::string> kElf = {
      {"x86-64", "elf64-x86-64"},       {"x86", "elf32-i386"},
      {"arm64", "elf64-littleaarch64"}, {"ARM", "elf32-littlearm"},
      {"PowerPC 64", "elf64-powerpc"},  {"S/390", "elf64-s390"},
      {"MIPS", "elf32-mips"},           {"RISC-V 64", "elf64-littleriscv"}};
  if (i.format == "ELF") return kElf.count(i.machine) ? kElf.at(i.machine) : "unknown";
  if (i.format == "Mach-O") return "Mach-O";
  return i.machine == "x86" ? "COFF-i386" : i.machine == "arm64" ? "COFF-ARM64" : "COFF-x86-64";
}

TEST(LibraryFormats, AreReadAsLlvmReadsThem) {
  const auto expected = test::read_json(library_file("expected.json"));
  ASSERT_GE(expected.size(), 25u);
  for (const auto& [name, facts] : expected.items()) {
    SCOPED_TRACE(name);
    const Inspection found = look(name);
    ASSERT_FALSE(found.images.empty());
    Names exported = names_of(facts["exported"]);
    if (name.starts_with("llama-") && name.ends_with(".lib"))
      exported.insert("llama_data");  // LLVM names its pointer alone
    for (const BinaryImage& i : found.images) {
      EXPECT_EQ(names_of(i.exported), exported);
      EXPECT_EQ(i.exported.count(), exported.size()) << "each name once";
      EXPECT_EQ(names_of(i.undefined), names_of(facts["undefined"]));
      if (!found.container.ends_with("thin archive")) {
        const std::string format = llvm_format(i);
        EXPECT_TRUE(names_of(facts["formats"]).count(format)) << format;
        EXPECT_EQ(i.bits, format.starts_with("elf32") || format == "COFF-i386" ? 32 : 64) << format;
      }
      if (facts.contains("needed")) {
        Names needed(i.needed.begin(), i.needed.end());
        if (i.format == "Mach-O") needed.insert(i.name);  // LLVM lists a dylib's own name, too
        EXPECT_EQ(needed, names_of(facts["needed"]));
      }
      if (facts.contains("soname")) { EXPECT_EQ(i.name, facts["soname"].get<std::string>()); }
      if (facts.contains("runpath")) { EXPECT_EQ(joined(i.runpath), facts["runpath"].get<std::string>()); }
      if (facts.contains("rpath")) { EXPECT_EQ(joined(i.rpath), facts["rpath"].get<std::string>()); }
      if (facts.contains("build_id")) { EXPECT_EQ(i.build_id, facts["build_id"].get<std::string>()); }
    }
  }
}

TEST(LibraryFormats, WithoutSectionsTheLoadersTablesAreRead) {
  for (const char* name : {"sectionless-gnu.so", "sectionless-sysv.so"}) {
    SCOPED_TRACE(name);
    const Inspection found = look(name);
    ASSERT_EQ(found.images.size(), 1u);
    const BinaryImage& i = found.images[0];
    EXPECT_EQ(names_of(i.exported),
              (Names{"bitnet_eval", "ggml_vec_dot_i2_s", "llama_data", "llama_decode", "llama_n_ctx"}));
    EXPECT_EQ(names_of(i.undefined), Names{"other_library"});
    EXPECT_EQ(i.name, "libllama.so.1");
    EXPECT_TRUE(i.stripped);
    EXPECT_FALSE(i.notes.empty());
    EXPECT_EQ(i.cpu.bytes, 0x60u) << "the segment with code, as readelf shows it";
  }
}

TEST(LibraryFormats, KindsOfContainers) {
  for (auto [name, kind] :
       std::initializer_list<std::pair<const char*, const char*>>{{"gnu.a", "GNU archive"},
                                                                  {"bsd.a", "BSD archive"},
                                                                  {"darwin.a", "BSD archive"},
                                                                  {"coff.lib", "COFF archive"},
                                                                  {"thin.a", "GNU thin archive"},
                                                                  {"llama-fat.dylib", "fat Mach-O"},
                                                                  {"llama-x86_64.so", ""}})
    EXPECT_EQ(look(name).container, kind) << name;
  const Inspection fat = look("llama-fat.dylib");
  ASSERT_EQ(fat.images.size(), 2u);
  EXPECT_EQ(fat.images[0].machine, "x86-64");
  EXPECT_EQ(fat.images[1].machine, "arm64");
  EXPECT_EQ(fat.images[1].system, "macOS 12.0 or newer");
  EXPECT_EQ(look("llama-x86_64.lib").images[0].needed, std::vector<std::string>{"llama-x86_64.dll"});
}

TEST(LibraryFormats, ByteOrders) {
  EXPECT_TRUE(look("llama-s390x.so").images[0].big_endian);
  EXPECT_TRUE(look("llama-mips.so").images[0].big_endian);
  EXPECT_FALSE(look("llama-riscv64.so").images[0].big_endian);
}

TEST(LibraryFormats, CodeForGpus) {
  const Inspection found = look("gpu.so");
  std::map<std::string, std::string> kinds;
  for (const EmbeddedGpuCode& g : found.images.at(0).gpu_code) kinds[g.kind] = joined(g.targets);
  EXPECT_EQ(kinds, (std::map<std::string, std::string>{{"NVIDIA fatbin", "compute_75:sm_80:sm_90"},
                                                       {"AMD code object", "gfx90a:gfx1100"},
                                                       {"SPIR-V", "SPIR-V 1.5"},
                                                       {"Metal source", ""},
                                                       {"OpenCL source", ""},
                                                       {"WGSL source", ""}}));
  EXPECT_TRUE(look("llama-x86_64.so").images[0].gpu_code.empty());
}

// Cut anywhere, a file is refused with a reason or read with what is left; it never takes the program along.
TEST(LibraryFormats, TruncatedFilesAreRefusedOrRead) {
  const auto expected = test::read_json(library_file("expected.json"));
  for (const auto& [name, facts] : expected.items()) {
    const std::string whole = *read_file(library_file(name));
    size_t refused = 0, tried = 0;
    for (size_t n = 0; n < whole.size(); n += 1 + whole.size() / 97, tried++) {
      const auto found = inspect_library(std::as_bytes(std::span(whole).first(n)), "cut.so");
      if (found) continue;
      refused++;
      EXPECT_EQ(found.error().code, Code::Malformed);
      EXPECT_TRUE(found.error().message.starts_with("'cut.so' ")) << found.error().message;
    }
    EXPECT_GE(refused * 10, tried * 6) << name << ": most cuts lose headers or sections";
  }
}

// The dylib's LC_SYMTAB (mach-o/loader.h) after its two words of kind and size: where its symbols are, how
// many, where its strings are, and how many bytes.
constexpr size_t kSymtabWords = 8;
size_t symtab_of(const std::string& dylib) {
  const size_t at = dylib.find(std::string("\2\0\0\0\x18\0\0\0", 8));
  EXPECT_NE(at, std::string::npos);
  return at + kSymtabWords;
}
std::string little_endian(uint32_t v) {
  std::string s;
  for (int i = 0; i < 4; i++) s += char(v >> 8 * i & 0xff);
  return s;
}
Result<Inspection> inspect_bytes(const std::string& bytes, const char* name) {
  return inspect_library(std::as_bytes(std::span(bytes)), name);
}

// The header of a 32-bit ELF says at byte 32 where the section headers are; 0: there are none.
TEST(LibraryFormats, WithoutSectionsSegmentsOf32BitsTellWhatIsCode) {
  std::string bytes = *read_file(library_file("llama-i386.so"));
  bytes.replace(32, 4, little_endian(0));
  const auto found = inspect_bytes(bytes, "x.so");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->images.at(0).bits, 32);
  EXPECT_EQ(found->images.at(0).cpu.bytes, 0x80u) << "the segment with code, as readelf shows it";
}

// A stripped dylib may have no symbols, but the loader needs the exports.
TEST(LibraryFormats, WithoutSymbolsTheExportsOfAMachOAreRead) {
  std::string bytes = *read_file(library_file("llama-x86_64.dylib"));
  bytes.replace(symtab_of(bytes) + 4, 4, little_endian(0));
  const auto found = inspect_bytes(bytes, "x.dylib");
  ASSERT_TRUE(found) << found.error().message;
  const BinaryImage& i = found->images.at(0);
  EXPECT_EQ(names_of(i.exported),
            (Names{"bitnet_eval", "ggml_vec_dot_i2_s", "llama_data", "llama_decode", "llama_n_ctx"}));
  EXPECT_EQ(i.undefined.count(), 0u);
  EXPECT_TRUE(i.stripped);
}

// nlist.h: N_EXT (1) with a value and without a section is a variable that several objects may have
// ("common"); N_FUN (0x24) is a debugger's.
TEST(LibraryFormats, KindsOfMachOSymbols) {
  std::string bytes = *read_file(library_file("library-arm64-macho.o"));
  const std::string undefined("\1\0\0\0\0\0\0\0\0\0\0\0", 12);  // without a section and a value
  const size_t last = 456 + 7 * 16 + 4;                         // of other_library, as objdump lists them
  ASSERT_EQ(bytes.substr(last, undefined.size()), undefined);
  Names names = {"bitnet_eval", "ggml_vec_dot_i2_s", "llama_data", "llama_decode", "llama_n_ctx"};
  const BinaryImage before = inspect_bytes(bytes, "x.o")->images.at(0);
  EXPECT_EQ(names_of(before.exported), names);
  EXPECT_EQ(names_of(before.undefined), Names{"other_library"});
  bytes[last + 4] = 8;
  const BinaryImage common = inspect_bytes(bytes, "x.o")->images.at(0);
  names.insert("other_library");
  EXPECT_EQ(names_of(common.exported), names);
  EXPECT_EQ(common.undefined.count(), 0u);

  std::string stripped = *read_file(library_file("stripped-x86_64.dylib"));
  EXPECT_TRUE(inspect_bytes(stripped, "x.dylib")->images.at(0).stripped);
  const size_t first = 12456 + 4;  // of bitnet_eval: N_SECT and N_EXT
  ASSERT_EQ(stripped[first], 0x0f);
  stripped[first] = 0x24;
  const BinaryImage debugged = inspect_bytes(stripped, "x.dylib")->images.at(0);
  EXPECT_FALSE(debugged.stripped);
  EXPECT_EQ(names_of(debugged.exported),
            (Names{"ggml_vec_dot_i2_s", "llama_data", "llama_decode", "llama_n_ctx"}));
}

// The exports are a tree of texts: here the first branch, "_", leads back to the root.
TEST(LibraryFormats, ExportsOfAMachOThatGoInACircleEnd) {
  std::string bytes = *read_file(library_file("llama-x86_64.dylib"));
  bytes.replace(symtab_of(bytes) + 4, 4, little_endian(0));
  const size_t root = bytes.find(std::string("\0\1_\0\5", 5));
  ASSERT_NE(root, std::string::npos);
  bytes[root + 4] = '\0';
  const auto found = inspect_bytes(bytes, "x.dylib");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->images.at(0).exported.count(), 0u);
}

TEST(LibraryFormats, TheSymbolTableOfAMachOLiesInTheFile) {
  const std::string whole = *read_file(library_file("llama-x86_64.dylib"));
  const auto refusal = [](const std::string& bytes) {
    const auto found = inspect_bytes(bytes, "x.dylib");
    return found ? std::string("read") : found.error().message;
  };
  // Its strings are the file's last bytes.
  const std::string cut = refusal(whole.substr(0, whole.size() - 1));
  EXPECT_NE(cut.find("symbol table"), std::string::npos) << cut;
  EXPECT_NE(cut.find(format("byte {}, but it has {}", whole.size(), whole.size() - 1)), std::string::npos)
      << cut;
  // A symbol takes 16 bytes.
  std::string far = whole, many = whole;
  far.replace(symtab_of(far), 8, little_endian(20'000) + little_endian(3));
  many.replace(symtab_of(many), 8, little_endian(12'000) + little_endian(1000));
  EXPECT_NE(refusal(far).find(format("byte 20048, but it has {}", whole.size())), std::string::npos)
      << refusal(far);
  EXPECT_NE(refusal(many).find(format("byte 28000, but it has {}", whole.size())), std::string::npos)
      << refusal(many);
}

TEST(LibraryFormats, ErrorsSayWhatTheFileIs) {
  const auto message = [](std::string bytes) {
    const auto found = inspect_library(std::as_bytes(std::span(bytes)), "x.so");
    return found ? std::string("read") : found.error().message;
  };
  EXPECT_EQ(message(""), "'x.so' is empty, not a library");
  EXPECT_NE(message("#!/bin/sh\n").find("it is a script"), std::string::npos);
  EXPECT_NE(message("GGUF\3\0\0\0").find("it is a model file"), std::string::npos);
  EXPECT_NE(message("INPUT ( libx.so )").find("linker script"), std::string::npos);
  EXPECT_NE(message("plain text").find("expected ELF, Mach-O, PE, COFF or a static archive"),
            std::string::npos);
  const std::string whole = *read_file(library_file("llama-x86_64.so"));
  EXPECT_EQ(message(whole.substr(0, 2000)),
            format("'x.so' is truncated: the end of its section headers is at byte {}, but it has 2000",
                   whole.size()));
  EXPECT_EQ(inspect_library("/does/not/exist.so").error().code, Code::NotFound);
  EXPECT_EQ(inspect_library("/").error().code, Code::Failed);
}

TEST(LibraryFormats, LimitsAreReportedAndCountsStayRight) {
  InspectionLimits limits;
  limits.name_bytes = 20;
  const auto found = inspect_library(library_file("llama-x86_64.so"), limits);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->images[0].exported.count(), 5u);
  EXPECT_LT(found->images[0].exported.kept(), 5u);
  ASSERT_FALSE(found->images[0].notes.empty());
  EXPECT_NE(found->images[0].notes.back().find("was counted, and not kept"), std::string::npos);
}

// The limit is one of all names together, each with four bytes for its place.
TEST(LibraryFormats, NamesBeyondTheLimitAreCounted) {
  InspectionLimits limits;
  limits.name_bytes = 3 * (4 + 4);
  InspectionBudget budget(limits);
  NameList names, others;
  for (const char* name : {"aaaa", "bbbb", "cccc"}) budget.add(names, name);
  EXPECT_FALSE(budget.names_dropped());
  budget.add(names, "dddd"), budget.add(others, "e");
  EXPECT_TRUE(budget.names_dropped());
  EXPECT_EQ(names.kept(), 3u);
  EXPECT_EQ(names.count(), 4u);
  EXPECT_EQ(others.kept(), 0u);
  EXPECT_EQ(others.count(), 1u);
}

TEST(LibraryFormats, ListsOfNamesAreSortedAndHaveEachNameOnce) {
  NameList names, other;
  for (const char* name : {"d", "b", "a", "b", "c", "a", "b"}) names.add(name);
  names.skip(2);
  const auto kept = [&] {
    std::vector<std::string> all;
    for (size_t i = 0; i < names.kept(); i++) all.emplace_back(names[i]);
    return joined(all);
  };
  names.sort();
  EXPECT_EQ(kept(), "a:b:c:d");
  EXPECT_EQ(names.count(), 6u) << "two more were counted";
  for (const char* name : {"a", "bb", "d"}) other.add(name);
  names.remove(other);
  EXPECT_EQ(kept(), "b:c");
  EXPECT_EQ(names.count(), 4u);
}

}  // namespace
}  // namespace gimbal
