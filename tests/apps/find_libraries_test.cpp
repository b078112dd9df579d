// `gimbal find-libraries` and `gimbal validate-library` as a user runs them.
#include <gtest/gtest.h>

#include "support/cli.h"

namespace gimbal {
namespace {

namespace fs = std::filesystem;
using test::contains;
using test::Json;

const std::map<std::string, std::string> kNothing = {
    {"BITNET_CPP_DIR", ""}, {"BITNET_CPP_PATH", ""}, {"BITNET_CROSSVAL_LIBDIR", ""}};

std::map<std::string, std::string> with(const std::string& name, const std::string& value) {
  auto all = kNothing;
  all[name] = value;
  return all;
}

// A folder with one of tests/data/libraries as libllama.so.
std::string folder_with(const std::string& file, const std::string& name) {
  const std::string folder = test::temporary_path("found-" + file);
  fs::create_directories(folder);
  fs::copy_file(GIMBAL_SOURCE_DIR "/tests/data/libraries/" + file, folder + "/" + name,
                fs::copy_options::overwrite_existing);
  return fs::canonical(folder).string();
}

TEST(FindLibraries, NothingIsOneLine) {
  const auto ran = test::gimbal({"find-libraries"}, {.environment = kNothing});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "No C++ inference library was found: gimbal's own engine computes everything.\n");
  const auto all = test::gimbal({"find-libraries", "--explain"}, {.environment = kNothing});
  EXPECT_NE(all.out.find("/bitnet_cpp  "), std::string::npos) << all.out;
  EXPECT_NE(all.out.find("/usr/local/lib  "), std::string::npos) << all.out;
  EXPECT_NE(all.out.find("no library in it"), std::string::npos) << all.out;
}

TEST(FindLibraries, AVariableThatLeadsNowhereIsAnError) {
  const auto ran = test::gimbal({"find-libraries"}, {.environment = with("BITNET_CPP_DIR", "/nowhere")});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("Expected library at /nowhere/build/3rdparty/llama.cpp/src/libllama.so"),
            std::string::npos)
      << ran.err;
  const auto all =
      test::gimbal({"find-libraries", "--explain"}, {.environment = with("BITNET_CPP_DIR", "/nowhere")});
  EXPECT_EQ(all.code, 1);
  EXPECT_NE(all.out.find("no such folder"), std::string::npos) << all.out;
  EXPECT_EQ(test::gimbal({"find-libraries", "/nowhere"}, {.environment = kNothing}).code, 1);
}

#if defined(__x86_64__)

TEST(FindLibraries, OneIsShown) {
  const std::string folder = folder_with("llama-x86_64.so", "libllama.so");
  const auto ran =
      test::gimbal({"find-libraries", "--json"}, {.environment = with("BITNET_CROSSVAL_LIBDIR", folder)});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json j = test::json_of(ran);
  ASSERT_EQ(j["found"].size(), 1u);
  EXPECT_EQ(j["found"][0]["path"], folder + "/libllama.so");
  EXPECT_EQ(j["found"][0]["tier"], "BITNET_CROSSVAL_LIBDIR");
  EXPECT_EQ(j["found"][0]["summary"], "bitnet, llama, ggml; CPU only");
  EXPECT_EQ(j["searched"][0]["outcome"], "found");
  const auto old = test::gimbal({"find-libraries"}, {.environment = with("BITNET_CPP_PATH", folder)});
  EXPECT_EQ(old.code, 0);
  EXPECT_NE(old.err.find("BITNET_CPP_PATH is deprecated: use BITNET_CPP_DIR"), std::string::npos) << old.err;
  EXPECT_NE(old.out.find(folder + "/libllama.so"), std::string::npos) << old.out;
}

TEST(ValidateLibrary, ADemandFails) {
  const std::string folder = folder_with("llama-x86_64.so", "libllama.so"), path = folder + "/libllama.so";
  for (const auto& ran :
       {test::gimbal({"validate-library", path}, {.environment = kNothing}),
        test::gimbal({"validate-library"}, {.environment = with("BITNET_CROSSVAL_LIBDIR", folder)})}) {
    EXPECT_EQ(ran.code, 3);
    EXPECT_NE(ran.err.find("required symbols are missing: llama_backend_init"), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find("it needs libother.so, which is not installed"), std::string::npos) << ran.err;
  }
  const auto json = test::gimbal({"validate-library", path, "--json", "--no-load", "--interface", "bitnet"},
                                 {.environment = kNothing});
  EXPECT_EQ(json.code, 3);
  const Json j = test::json_of(json)["libraries"][0];
  EXPECT_EQ(j["usable"], false);
  EXPECT_EQ(j["interface"], "libbitnet");
  EXPECT_EQ(j["failures"][0]["message"],
            "required symbols are missing: bitnet_model_new_from_file, bitnet_context_new, bitnet_tokenize");
}

TEST(ValidateLibrary, AnOldVariableIsNoted) {
  const std::string folder = folder_with("llama-x86_64.so", "libllama.so");
  const test::RunSetup old{.environment = with("BITNET_CPP_PATH", folder)};
  const std::string note = "BITNET_CPP_PATH is deprecated: use BITNET_CPP_DIR";
  EXPECT_SAYS(test::gimbal({"validate-library"}, old).err, note);
  EXPECT_FALSE(test::contains(test::gimbal({"validate-library", "--quiet"}, old).err, note));
}

// A library that merely lies there cannot stop anything.
TEST(ValidateLibrary, AFoundOneFallsBack) {
  const std::string folder = folder_with("llama-x86_64.so", "libllama.so");
  auto environment = kNothing;
  environment["LD_LIBRARY_PATH"] = folder;
  const auto ran = test::gimbal({"validate-library"}, {.environment = environment});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.err.find("WARNING: FFI validation failed: "), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("Falling back to native implementation"), std::string::npos) << ran.err;
}

#endif

TEST(ValidateLibrary, OfTheSystem) {
  const auto missing = test::gimbal({"validate-library", "/nowhere/libllama.so"}, {.environment = kNothing});
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.err.find("Library not found: /nowhere/libllama.so"), std::string::npos) << missing.err;
  EXPECT_EQ(test::gimbal({"validate-library"}, {.environment = kNothing}).out,
            "No C++ inference library was found: gimbal's own engine computes everything.\n");
  EXPECT_EQ(test::json_of(test::gimbal({"validate-library", "--json"}, {.environment = kNothing})),
            (Json{{"libraries", Json::array()}}));
  const std::string fake =
      (fs::read_symlink("/proc/self/exe").parent_path() / "fake-llama/whole/libllama.so").string();
  const auto whole = test::gimbal({"validate-library", fake}, {.environment = kNothing});
  EXPECT_EQ(whole.code, 0) << whole.err;
  EXPECT_EQ(whole.out, "FFI library validated: " + fake + " (libllama, interface of b8390)\n");
}

}  // namespace
}  // namespace gimbal
