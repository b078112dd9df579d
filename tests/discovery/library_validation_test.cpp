// Validation of C++ inference libraries: stand-ins for libllama that work, and every way in which one does
// not.
#include "discovery/library_validation.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/file.h"
#include "support/golden.h"
#include "support/made_elf.h"

namespace gimbal {
namespace {

namespace fs = std::filesystem;

std::string fake_llama(const std::string& which) {
  return (fs::read_symlink("/proc/self/exe").parent_path() / "fake-llama" / which / "libllama.so").string();
}

LibraryValidation validated(const std::string& path, std::string gpu = "") {
  LibraryDemand demand;
  demand.interface = &llama_interface(), demand.gpu = std::move(gpu);
  return validate_library(path, demand);
}

std::string checks(const LibraryValidation& v) {
  std::string all;
  for (const LibraryFailure& f : v.failures) all += (all.empty() ? "" : " ") + f.check;
  return all;
}

TEST(LibraryValidation, AUsableOne) {
  const LibraryValidation v = validated(fake_llama("whole"));
  EXPECT_TRUE(v.usable()) << error_of(v).message;
  EXPECT_EQ(v.generation, "b8390");
  EXPECT_EQ(validated(fake_llama("old")).generation, "b3889");
}

TEST(LibraryValidation, EachFailureSaysExpectedFoundAndRemedy) {
  for (const char* which : {"part", "crash", "hang", "undefined", "needs", "absent"}) {
    LibraryDemand demand;
    demand.interface = &llama_interface();
    demand.limit = std::chrono::milliseconds(which == std::string("hang") ? 300 : 10000);
    const LibraryValidation v = validate_library(fake_llama(which), demand);
    EXPECT_FALSE(v.usable()) << which;
    for (const LibraryFailure& f : v.failures)
      EXPECT_FALSE(f.message.empty() || f.expected.empty() || f.found.empty() || f.remedy.empty())
          << which << ": " << f.check;
    const Error e = error_of(v);
    EXPECT_NE(e.message.find(fake_llama(which)), std::string::npos) << e.message;
    EXPECT_FALSE(e.remedy.empty()) << which;
  }
}

TEST(LibraryValidation, AMissingFile) {
  const LibraryValidation v = validated("/does/not/exist/libllama.so");
  EXPECT_EQ(checks(v), "file");
  EXPECT_EQ(v.failures[0].message, "Library not found: /does/not/exist/libllama.so");
  EXPECT_EQ(error_of(v).code, Code::NotFound);
}

TEST(LibraryValidation, AllMissingFunctionsAreNamed) {
  const LibraryValidation v = validated(fake_llama("part"));
  EXPECT_EQ(checks(v), "functions");
  EXPECT_EQ(v.failures[0].message, "required symbols are missing: llama_decode, llama_get_logits_ith");
  LibraryDemand bitnet;
  bitnet.interface = &bitnet_interface();
  EXPECT_EQ(validate_library(fake_llama("whole"), bitnet).failures.at(0).message,
            "required symbols are missing: bitnet_model_new_from_file, bitnet_context_new, bitnet_tokenize, "
            "bitnet_eval");
}

TEST(LibraryValidation, WhatTheLoaderRefuses) {
  const LibraryValidation undefined = validated(fake_llama("undefined"));
  EXPECT_EQ(checks(undefined), "load");
  EXPECT_TRUE(undefined.failures[0].message.starts_with("Failed to load library: "))
      << undefined.failures[0].message;
  EXPECT_NE(undefined.failures[0].message.find("a_function_that_no_library_has"), std::string::npos);
  // A constructor that crashes takes the child along, not this process.
  const LibraryValidation crash = validated(fake_llama("crash"));
  EXPECT_EQ(checks(crash), "load");
  EXPECT_NE(crash.failures[0].message.find("SIGABRT"), std::string::npos) << crash.failures[0].message;
}

TEST(LibraryValidation, AllMissingLibrariesAreNamed) {
  const LibraryValidation v = validated(fake_llama("needs"));
  EXPECT_EQ(checks(v), "needed needed");
  std::set<std::string> missing, remedies;
  for (const LibraryFailure& f : v.failures) missing.insert(f.expected), remedies.insert(f.remedy);
  EXPECT_EQ(missing, (std::set<std::string>{"libsome-vendor.so", "libcudart.so"}));
  EXPECT_TRUE(remedies.count("install the driver of the device, or use a build for the CPU"));
  // Beside the library they are found, although it has no search path.
  const fs::path folder = fs::path(test::temporary_path("beside"));
  fs::create_directories(folder);
  fs::copy_file(fake_llama("needs"), folder / "libllama.so", fs::copy_options::overwrite_existing);
  for (const char* name : {"libsome-vendor.so", "libcudart.so"})
    fs::copy_file(fs::path(fake_llama("elsewhere")).parent_path() / name, folder / name,
                  fs::copy_options::overwrite_existing);
  const LibraryValidation whole = validated((folder / "libllama.so").string());
  EXPECT_TRUE(whole.usable()) << error_of(whole).message;
}

TEST(LibraryValidation, ForeignFiles) {
  const std::string data = GIMBAL_SOURCE_DIR "/tests/data/libraries/";
  EXPECT_EQ(checks(validated(data + "expected.json")), "format");
#if defined(__x86_64__)
  EXPECT_EQ(checks(validated(data + "llama-aarch64.so")), "machine");
  EXPECT_EQ(checks(validated(data + "llama-arm64.dylib")), "format machine");
#endif
  EXPECT_EQ(checks(validated(data + "llama-x86_64.dll")), "format");
  EXPECT_EQ(checks(validated(data + "library-x86_64.o")), "format");
}

TEST(LibraryValidation, ADemandedGpuAndOtherFailuresAtOnce) {
  const LibraryValidation v = validated(fake_llama("part"), "CUDA");
  EXPECT_EQ(checks(v), "functions gpu");
  EXPECT_EQ(v.failures[1].found, "CPU only");
  const Error e = error_of(v);
  EXPECT_EQ(e.code, Code::Unsupported);
  EXPECT_NE(e.message.find("required symbols are missing"), std::string::npos);
  EXPECT_NE(e.message.find("it has no code for CUDA (expected CUDA, found CPU only)"), std::string::npos)
      << e.message;
}

#if defined(__x86_64__)

TEST(LibraryValidation, AGpuBesideTheLibraryCounts) {
  const fs::path folder = fs::path(test::temporary_path("with-cuda"));
  fs::create_directories(folder);
  fs::copy_file(fake_llama("whole"), folder / "libllama.so", fs::copy_options::overwrite_existing);
  EXPECT_EQ(checks(validated((folder / "libllama.so").string(), "CUDA")), "gpu");
  fs::copy_file(GIMBAL_SOURCE_DIR "/tests/data/libraries/gpu.so", folder / "libggml-cuda.so",
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(checks(validated((folder / "libllama.so").string(), "CUDA")), "");
}

TEST(LibraryValidation, UnknownGenerationsAndInstructions) {
  const std::string path = test::temporary_path("libllama.so");
  test::ElfRecipe recipe;
  for (const auto& names : llama_interface().functions) recipe.exported.push_back(names.front());
  std::erase(recipe.exported, "llama_model_load_from_file");
  recipe.exported.push_back("llama_load_model_from_file");
  ASSERT_TRUE(write_file(path, test::made_elf(recipe)));
  LibraryDemand demand;
  demand.load = false;
  LibraryInterface future = llama_interface();
  future.generations = {{"b99999", "llama_of_the_future"}};
  demand.interface = &future;
  const LibraryValidation v = validate_library(path, demand);
  EXPECT_EQ(checks(v), "generation");
  EXPECT_TRUE(v.warnings.empty());
  recipe.code.clear();
  for (int i = 0; i < 20; i++) recipe.code += std::string("\xc4\xe2\x6a\x5c\xc1", 5);  // tdpbf16ps: AMX
  ASSERT_TRUE(write_file(path, test::made_elf(recipe)));
  bool amx = false;
  for (const std::string& line : lines_of("/proc/cpuinfo"))
    amx |= line.find(" amx_tile") != std::string::npos;
  EXPECT_EQ(validate_library(path, demand).warnings.size(), amx ? 0u : 1u);
  demand.cpu_flags = "fpu sse2 amx_bf16 avx2 amx_int8 amx_tile";
  EXPECT_TRUE(validate_library(path, demand).warnings.empty());
  demand.cpu_flags = "fpu sse2 avx2";
  const auto lacking = validate_library(path, demand).warnings;
  ASSERT_EQ(lacking.size(), 1u);
  EXPECT_NE(lacking[0].find("instructions that this CPU lacks (AMX)"), std::string::npos) << lacking[0];
  // A single one, beside a byte that is no instruction, may be data.
  recipe.code = std::string("\xc4\xe2\x6a\x5c\xc1\x06", 6) + std::string(2000, '\xc3');
  ASSERT_TRUE(write_file(path, test::made_elf(recipe)));
  EXPECT_TRUE(validate_library(path, demand).warnings.empty());
}

#endif

}  // namespace
}  // namespace gimbal
