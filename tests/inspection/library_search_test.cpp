// The search for C++ inference libraries, in temporary trees: tiers, order, refusals, loops of links.
#include "inspection/library_search.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "support/golden.h"
#include "support/made_elf.h"

namespace gimbal {
namespace {

namespace fs = std::filesystem;

#if defined(__x86_64__)  // which the made libraries are for

class LibraryTree : public testing::Test {
 protected:
  LibraryTree()
      : root_(fs::canonical(fs::path(test::temporary_path("x")).parent_path()) / "trees" /
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  std::string at(const std::string& path) const { return (root_ / path).string(); }
  std::string put(const std::string& path,
                  const test::ElfRecipe& recipe = {.exported = {"llama_decode"}}) const {
    fs::create_directories(fs::path(at(path)).parent_path());
    EXPECT_TRUE(write_file(at(path), test::made_elf(recipe)));
    return at(path);
  }
  static std::string outcome(const LibrarySearch& s, const std::string& path) {
    for (const SearchedPlace& p : s.searched)
      if (p.path == path) return p.outcome;
    return "not searched";
  }
  static std::string llama_of(const LibrarySearch& s) { return s.of("llama") ? s.of("llama")->path : ""; }

  fs::path root_;
};

TEST_F(LibraryTree, NamesOfLibraries) {
  for (const char* llama : {"libllama.so", "libllama.so.1", "libllama.so.1.2.3", "libllama.b8390.so",
                            "libllama.v0.5.0.so", "libllama.dylib", "libllama.a", "llama.dll"})
    EXPECT_EQ(library_kind(llama), "llama") << llama;
  EXPECT_EQ(library_kind("libggml-cpu-haswell.so"), "ggml");
  EXPECT_EQ(library_kind("libbitnet.so"), "bitnet");
  for (const char* none : {"libllama-common.so", "libllamafile.so", "libllama.so.txt", "llama.cpp",
                           "libllama.so.old", "libc.so.6"})
    EXPECT_EQ(library_kind(none), "") << none;
}

TEST_F(LibraryTree, TiersInTheirOrder) {
  LibraryPlaces places;
  places.library_folder = at("exact"), places.root = at("checkout"), places.old_root = at("old"),
  places.cached_root = at("cache");
  places.beside = {at("program")}, places.system = {at("usr/lib")};
  const std::string expected[] = {
      put("exact/libllama.so"),         put("checkout/build/3rdparty/llama.cpp/src/libllama.so"),
      put("old/build/bin/libllama.so"), put("cache/lib/libllama.so"),
      put("program/libllama.so"),       put("usr/lib/libllama.so")};
  std::string* tiers[] = {&places.library_folder, &places.root,      &places.old_root,
                          &places.cached_root,    &places.beside[0], &places.system[0]};
  const char* names[] = {"BITNET_CROSSVAL_LIBDIR", "BITNET_CPP_DIR", "BITNET_CPP_PATH", "cache",
                         "beside the program",     "system"};
  for (size_t t = 0; t < 6; t++) {
    const LibrarySearch s = find_libraries(places);
    ASSERT_EQ(s.found.size(), 1u) << names[t];
    EXPECT_EQ(s.found[0].path, expected[t]);
    EXPECT_EQ(s.found[0].tier, names[t]);
    EXPECT_FALSE(s.failure);
    EXPECT_EQ(s.notes.size(), t <= 2 ? 1u : 0u) << "the old variable is deprecated as long as it is set";
    tiers[t]->clear();
  }
  places.beside.clear(), places.system = {at("empty")};
  const LibrarySearch nothing = find_libraries(places);
  EXPECT_TRUE(nothing.found.empty());
  EXPECT_FALSE(nothing.failure) << "nothing was asked for";
  EXPECT_EQ(outcome(nothing, at("empty")), "no such folder");
}

TEST_F(LibraryTree, AnExplicitRequestThatFailsIsAnError) {
  put("usr/lib/libllama.so");
  fs::create_directories(at("checkout/build"));
  LibraryPlaces places;
  places.system = {at("usr/lib")};
  places.root = at("checkout");
  const LibrarySearch s = find_libraries(places);
  ASSERT_TRUE(s.failure);
  EXPECT_TRUE(s.found.empty()) << "no other tier stands in";
  EXPECT_NE(s.failure->message.find("Expected library at " +
                                    at("checkout/build/3rdparty/llama.cpp/src/libllama.so")),
            std::string::npos)
      << s.failure->message;
  places.root.clear(), places.library_folder = at("nowhere");
  EXPECT_EQ(outcome(find_libraries(places), at("nowhere")), "no such folder");
  EXPECT_TRUE(find_libraries(places).failure);
}

TEST_F(LibraryTree, OldNameOfTheVariable) {
  LibraryPlaces places;
  places.old_root = at("old");
  put("old/build/libllama.so");
  EXPECT_EQ(find_libraries(places).notes,
            std::vector<std::string>{"BITNET_CPP_PATH is deprecated: use BITNET_CPP_DIR"});
  places.root = at("new");
  put("new/libllama.so");
  const LibrarySearch s = find_libraries(places);
  EXPECT_EQ(llama_of(s), at("new/libllama.so"));
  EXPECT_EQ(s.notes,
            std::vector<std::string>{
                "BITNET_CPP_PATH is deprecated and ignored, as BITNET_CPP_DIR is set: use BITNET_CPP_DIR"});
}

TEST_F(LibraryTree, EachRefusalHasItsReason) {
  put("lib/libggml.so", {.exported = {"llama_decode"}});
  put("lib/libllama.so", {.exported = {"other"}});
  ASSERT_TRUE(write_file(at("lib/libllama.so.1"), "text"));
  ASSERT_TRUE(
      write_file(at("lib/libllama.so.2"), test::made_elf({.exported = {"llama_decode"}}).substr(0, 300)));
  std::string other = test::made_elf({.exported = {"llama_decode"}});
  other[18] = char(183);
  ASSERT_TRUE(write_file(at("lib/libllama.so.3"), other));
  fs::create_symlink("nowhere.so", at("lib/libllama.so.4"));
  LibraryPlaces places;
  places.library_folder = at("lib");
  const LibrarySearch s = find_libraries(places);
  EXPECT_EQ(outcome(s, at("lib/libggml.so")),
            "is named ggml, but exports no function of it: found llama; CPU only");
  EXPECT_EQ(outcome(s, at("lib/libllama.so")),
            "is named llama, but exports no function of it: found no inference library; CPU only");
  EXPECT_NE(outcome(s, at("lib/libllama.so.1")).find("is no library"), std::string::npos);
  EXPECT_NE(outcome(s, at("lib/libllama.so.2")).find("is truncated"), std::string::npos);
  EXPECT_EQ(outcome(s, at("lib/libllama.so.3")), "is for another machine: expected x86-64, found arm64");
  EXPECT_NE(outcome(s, at("lib/libllama.so.4")).find("is a link that leads nowhere"), std::string::npos);
  ASSERT_TRUE(s.failure);
  EXPECT_NE(s.failure->message.find("libggml.so' is named ggml"), std::string::npos) << s.failure->message;
}

TEST_F(LibraryTree, LinksAndLoops) {
  put("checkout/build/deep/er/libllama.so");
  fs::create_directory_symlink("..", at("checkout/build/deep/up"));
  fs::create_directory_symlink("self", at("checkout/build/deep/self"));
  fs::create_symlink("libllama.so.2", at("checkout/build/deep/er/libllama.so.1"));
  fs::create_symlink("libllama.so.1", at("checkout/build/deep/er/libllama.so.2"));
  fs::create_symlink("libllama.so", at("checkout/build/deep/er/libllama.so.9"));
  LibraryPlaces places;
  places.root = at("checkout");
  const LibrarySearch s = find_libraries(places);
  ASSERT_EQ(s.found.size(), 1u);
  EXPECT_EQ(s.found[0].path, at("checkout/build/deep/er/libllama.so"));
  EXPECT_EQ(outcome(s, at("checkout/build/deep/er/libllama.so.1")), "is a loop of links");
  EXPECT_EQ(outcome(s, at("checkout/build/deep/er/libllama.so.9")),
            "is the same as " + at("checkout/build/deep/er/libllama.so"));
  EXPECT_EQ(outcome(s, at("checkout/build/deep/self")), "is a loop of links");
  EXPECT_LT(s.searched.size(), 30u);
}

// Ten links in each of two folders lead back: without a memory there were 20 to the power of 6 ways.
TEST_F(LibraryTree, ManyLinksAreOneFolder) {
  for (const char* folder : {"checkout/build/a", "checkout/build/b"}) {
    fs::create_directories(at(folder));
    for (int i = 0; i < 10; i++)
      fs::create_directory_symlink("..", at(folder + std::string("/up") + std::to_string(i)));
  }
  LibraryPlaces places;
  places.root = at("checkout");
  const LibrarySearch s = find_libraries(places);
  EXPECT_TRUE(s.failure);
  EXPECT_LT(s.searched.size(), 10u);
}

TEST_F(LibraryTree, FoldersBeyondTheMostAreNotSearched) {
  LibraryPlaces places;
  for (size_t i = 0; i < kMostFolders + 3; i++) {
    places.system.push_back(at("folder" + std::to_string(i)));
    fs::create_directories(places.system.back());
  }
  put("folder" + std::to_string(kMostFolders + 2) + "/libllama.so");
  const LibrarySearch s = find_libraries(places);
  EXPECT_TRUE(s.found.empty());
  ASSERT_EQ(s.searched.size(), kMostFolders + 1) << "the limit is reported once";
  EXPECT_EQ(outcome(s, places.system[kMostFolders - 1]), "no library in it");
  EXPECT_EQ(outcome(s, places.system[kMostFolders]), "not searched: 2000 folders were");
}

TEST_F(LibraryTree, SharedBeforeStaticAndWholeBeforeParts) {
  put("lib/libggml-base.so", {.exported = {"ggml_init"}});
  put("lib/libggml.so", {.exported = {"ggml_backend_load"}});
  put("lib/libllama.so");
  fs::copy_file(GIMBAL_SOURCE_DIR "/tests/data/libraries/gnu.a", at("lib/libllama.a"));
  LibraryPlaces places;
  places.library_folder = at("lib");
  std::vector<std::string> names;
  for (const FoundLibrary& l : find_libraries(places).found) names.push_back(fs::path(l.path).filename());
  EXPECT_EQ(names, (std::vector<std::string>{"libllama.so", "libllama.a", "libggml.so", "libggml-base.so"}));
}

TEST_F(LibraryTree, AtAPath) {
  const std::string file = put("checkout/build/src/libllama.so");
  for (const std::string& path : {file, at("checkout/build/src"), at("checkout")})
    EXPECT_EQ(llama_of(find_libraries_at(path)), file) << path;
  const LibrarySearch missing = find_libraries_at(at("none"));
  ASSERT_TRUE(missing.failure);
  EXPECT_EQ(missing.failure->message, "Library not found: " + at("none"));
  fs::create_directories(at("empty"));
  EXPECT_TRUE(find_libraries_at(at("empty")).failure);
}

#endif

}  // namespace
}  // namespace gimbal
