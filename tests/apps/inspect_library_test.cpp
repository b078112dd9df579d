// `gimbal inspect-library` as a user runs it: the roadmap's text, JSON, exit codes, limits.
#include <gtest/gtest.h>

#include <unistd.h>

#include "support/cli.h"
#include "support/made_elf.h"

namespace gimbal {
namespace {

using test::Json;
using test::made_elf;

std::string library_with(const std::string& name, const test::ElfRecipe& recipe) {
  const std::string folder = test::temporary_path("libraries");
  std::filesystem::create_directories(folder);
  const std::string path = folder + "/" + name;
  EXPECT_TRUE(write_file(path, made_elf(recipe)));
  return path;
}

std::vector<std::string> numbered(const char* begin, int count) {
  std::vector<std::string> all;
  for (int i = 0; i < count; i++) all.push_back(format("{}{:02}", begin, i));
  return all;
}

// The library of the dual-backend roadmap: 5, 42, 0 and 8 symbols.
test::ElfRecipe roadmap() {
  std::vector<std::string> exported = {"bitnet_model_new_from_file",
                                       "bitnet_context_new",
                                       "bitnet_tokenize",
                                       "bitnet_eval",
                                       "bitnet_decode_greedy",
                                       "llama_load_model_from_file",
                                       "llama_new_context_with_model"};
  for (const std::string& s : numbered("llama_z", 40)) exported.push_back(s);
  for (const std::string& s : numbered("dequantize_row_iq2_s_", 8)) exported.push_back(s);
  return {.exported = exported, .needed = {"libc.so.6"}, .soname = "libllama.so"};
}

TEST(InspectLibrary, PrintsTheTextOfTheRoadmap) {
  const std::string path = library_with("libllama.so", roadmap());
  const auto ran = test::gimbal({"inspect-library", path}, {.environment = {{"PATH", "/nowhere"}}});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, format(R"(Library: libllama.so
Bitnet symbols:   5 found
  - bitnet_context_new
  - bitnet_decode_greedy
  - bitnet_eval
  - bitnet_model_new_from_file
  - bitnet_tokenize

Llama symbols:    42 found
  - llama_load_model_from_file
  - llama_new_context_with_model
  ...

CUDA symbols:     0 found
  Inference: CPU-only backend

Quantization:     8 found
  - Detected: IQ2S_GGML (CPU)

File:             {}, {}
  type      ELF shared library, x86-64
  name      libllama.so
  needs     libc.so.6
  symbols   55 exported, 0 undefined; stripped of local ones
  GPU code  none found
  CPU code  the machine's basic instructions alone
            all 1 B of code were scanned

Verdict:          bitnet, llama; CPU only
)",
                            path, human_bytes(std::filesystem::file_size(path))));
  const auto alias = test::gimbal({"analyze-library", path});
  EXPECT_EQ(alias.out, ran.out);
}

TEST(InspectLibrary, AsJson) {
  const std::string path = library_with("libllama.so", roadmap());
  const auto ran = test::gimbal({"inspect-library", path, "--json", "--symbols"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json j = test::json_of(ran);
  EXPECT_EQ(j["path"], path);
  EXPECT_EQ(j["symbols"]["bitnet"]["count"], 5);
  EXPECT_EQ(j["symbols"]["llama"]["count"], 42);
  EXPECT_EQ(j["symbols"]["cuda"]["count"], 0);
  EXPECT_EQ(j["symbols"]["quantization"]["count"], 8);
  EXPECT_EQ(j["quantization_kernels"], Json::parse(R"([{"name": "IQ2S_GGML", "device": "CPU"}])"));
  EXPECT_EQ(j["verdict"]["cpu_only"], true);
  EXPECT_EQ(j["images"][0]["machine"], "x86-64");
  EXPECT_EQ(j["images"][0]["exported_symbols"].size(), 55u);
  EXPECT_EQ(j["images"][0]["needed"], Json::parse(R"(["libc.so.6"])"));
}

TEST(InspectLibrary, OfAGpu) {
  const std::string path = library_with(
      "libggml-cuda.so", {.exported = {"ggml_backend_cuda_init"}, .needed = {"libcudart.so.12"}});
  const auto ran = test::gimbal({"inspect-library", path});
  EXPECT_NE(ran.out.find("CUDA symbols:     1 found\n  - ggml_backend_cuda_init\n  Needs: libcudart.so.12\n"
                         "  Inference: GPU backend (CUDA)\n"),
            std::string::npos)
      << ran.out;
  EXPECT_NE(ran.out.find("Verdict:          ggml; CUDA\n"), std::string::npos) << ran.out;
}

// The report names the missing parts.
TEST(InspectLibrary, WhatIsMissingIsShownToo) {
  const std::string path = library_with("libplain.so", {.exported = {"compress"}, .needed = {"libc.so.6"}});
  const auto ran = test::gimbal({"inspect-library", path});
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const char* line : {"Bitnet symbols:   0 found\n", "Llama symbols:    0 found\n",
                           "CUDA symbols:     0 found\n", "Quantization:     0 found\n"})
    EXPECT_NE(ran.out.find(line), std::string::npos) << line << ran.out;
}

TEST(InspectLibrary, Demands) {
  const std::string path = library_with("libllama.so", roadmap());
  EXPECT_EQ(test::gimbal({"inspect-library", path, "--require", "llama", "--forbid", "gpu"}).code, 0);
  const auto missing = test::gimbal({"inspect-library", path, "--require", "cuda", "--forbid", "bitnet"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.err.find("it has no cuda; it has bitnet (found: bitnet, llama; CPU only)"),
            std::string::npos)
      << missing.err;
  const auto as_json = test::gimbal({"inspect-library", path, "--require", "cuda", "--json"});
  EXPECT_EQ(as_json.code, 1);
  EXPECT_EQ(test::json_of(as_json)["broken_demands"], Json::parse(R"(["it has no cuda"])"));
  const auto unknown = test::gimbal({"inspect-library", path, "--require", "kuda"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("there is no family 'kuda'"), std::string::npos) << unknown.err;
}

TEST(InspectLibrary, ExitCodes) {
  const auto missing = test::gimbal({"inspect-library", "/does/not/exist/libllama.so"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.err.find("Library not found: /does/not/exist/libllama.so"), std::string::npos)
      << missing.err;
  EXPECT_EQ(test::gimbal({"inspect-library"}).code, 2);
  const std::string path = library_with("libtext.so", {});
  ASSERT_TRUE(write_file(path, "this is no library"));
  const auto text = test::gimbal({"inspect-library", path});
  EXPECT_EQ(text.code, 3);
  EXPECT_NE(text.err.find("is no library: it begins with 'this is '"), std::string::npos) << text.err;
  ASSERT_TRUE(write_file(path, made_elf(roadmap()).substr(0, 2000)));
  const auto cut = test::gimbal({"inspect-library", path, "--json"});
  EXPECT_EQ(cut.code, 3);
  EXPECT_NE((cut.out + cut.err).find("is truncated: the end of its segments is at byte"), std::string::npos)
      << cut.out << cut.err;
}

// Half a gigabyte of data that is not there (a sparse file), in a process that may not map as much. The
// memory of sanitizers is larger than any limit.
TEST(InspectLibrary, ALargeLibraryIsNotMapped) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  const std::string limits;
#else
  const std::string limits = "-v 200000";
#endif
  test::ElfRecipe recipe = roadmap();
  recipe.data_padding = 500'000'000;
  const std::string path = library_with("liblarge.so", recipe);
  ASSERT_EQ(truncate(path.c_str(), off_t(std::filesystem::file_size(path) + 500'000'000)), 0);
  const auto ran = test::gimbal({"inspect-library", path, "--json"}, {.limits = limits});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(test::json_of(ran)["symbols"]["llama"]["count"], 42);
}

}  // namespace
}  // namespace gimbal
