// The models of a machine that a server loads by name: files, and what clients described.
#include "server/model_library.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "engine/find_model.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

namespace fs = std::filesystem;

class Library : public testing::Test {
 protected:
  void SetUp() override {
    place = temporary_path("library");
    fs::remove_all(place);
    fs::create_directories(place);
  }
  std::string add(const std::string& name, const char* source, const std::string& file) {
    const std::string path = place + "/" + file;
    std::ofstream(path) << "weights";
    catalog.entries.push_back({name, source, path, 7});
    return path;
  }
  ModelLibrary library() {
    return ModelLibrary(place + "/described", [this] { return catalog; });
  }
  static std::vector<std::string> names(ModelLibrary& l) {
    std::vector<std::string> all;
    for (const LibraryModel& m : l.list()) all.push_back(m.id);
    return all;
  }
  std::string place;
  Catalog catalog;
};

TEST_F(Library, FilesByTheNamesOfTheCommandLine) {
  add("llama3.2:latest", "Ollama", "a.gguf");
  add("Org/Repo/tiny-q8_0", "Hugging Face", "b.gguf");
  ModelLibrary l = library();
  EXPECT_EQ(names(l), (std::vector<std::string>{"Org/Repo/tiny-q8_0", "llama3.2:latest"}));
  EXPECT_EQ(l.find("llama3.2")->id, "llama3.2:latest");
  EXPECT_EQ(l.find("tiny-q8_0")->id, "Org/Repo/tiny-q8_0");
  EXPECT_EQ(l.find("tiny-q8_0:latest")->id, "Org/Repo/tiny-q8_0");
  EXPECT_EQ(l.find("org/repo")->bytes, 7u);
  fs::remove(place + "/a.gguf");  // which the lists may still have
  EXPECT_FALSE(l.find("llama3.2"));
  EXPECT_EQ(l.find("x").error().reason, std::string_view(reason::kNoSuchModel));
  add("tiny-q8_0", "this folder", "c.gguf");
  add("tiny-q8_0", "GIMBAL_MODELS", "d.gguf");
  l.refresh();
  const auto two = l.find("tiny-q8_0");
  EXPECT_EQ(two.error().reason, std::string_view(reason::kAmbiguousModel));
  EXPECT_EQ(two.error().message.find(place), std::string::npos) << "a path leaves this machine";
}

// Whatever a request names, only what the lists have is opened.
TEST_F(Library, NoPathIsAName) {
  const std::string path = add("tiny", "this folder", "a.gguf");
  ModelLibrary l = library();
  for (const std::string& name : {path, std::string("./a.gguf"), std::string("/etc/passwd"), std::string(""),
                                  std::string("http://127.0.0.1:1/../../etc/passwd")})
    EXPECT_FALSE(l.find(name)) << name;
  for (const char* name :
       {"", "/etc/passwd", "../x", "a/../b", "a b", "a\nb", ".hidden", "-x", "a\\b", "\xc3\xa4"})
    EXPECT_TRUE(ModelLibrary::wrong_name(name)) << name;
  EXPECT_TRUE(ModelLibrary::wrong_name(std::string("a\0b", 3))) << "a zero byte";
  EXPECT_FALSE(ModelLibrary::wrong_name(std::string(250, 'x')));
  EXPECT_TRUE(ModelLibrary::wrong_name(std::string(251, 'x')));
  for (const char* name : {"mario", "llama3.2:1b", "hf.co/Org/Repo:Q4_K_M", "a_b-c.d"})
    EXPECT_FALSE(ModelLibrary::wrong_name(name)) << name;
}

TEST_F(Library, DescriptionsOutliveTheServer) {
  const std::string path = add("tiny", "this folder", "a.gguf");
  auto preset = std::make_shared<ModelPreset>();
  preset->system = "You are Mario.", preset->chat_template = "{{ x }}";
  preset->options = {{"temperature", 0.5}, {"num_ctx", 100}, {"stop", {"a", "b"}}};
  {
    ModelLibrary l = library();
    ASSERT_TRUE(l.describe({.id = "mario", .path = path, .source = "", .preset = preset}));
    EXPECT_EQ(l.describe({.id = "../mario", .path = path, .source = ""}).error().code, Code::Usage);
  }
  ModelLibrary l = library();
  EXPECT_EQ(names(l), (std::vector<std::string>{"mario", "tiny"}));
  const auto m = l.find("mario:latest");
  ASSERT_TRUE(m);
  EXPECT_EQ(m->path, path);
  EXPECT_EQ(m->preset->system, preset->system);
  EXPECT_EQ(m->preset->chat_template, preset->chat_template);
  EXPECT_EQ(m->preset->options, preset->options);
  EXPECT_EQ(m->preset->context(), 100);
  // What is no description counts for nothing; neither does one whose file is gone.
  std::ofstream(place + "/described/x.json") << "{\"name\":";
  std::ofstream(place + "/described/y.json") << R"({"name":"../x","path":""})";
  std::ofstream(place + "/described/z.json") << R"({"name":"z","path":"/no/such/file"})";
  l.refresh();
  EXPECT_EQ(names(l).size(), 2u);
}

// Ollama's clients add ":latest" to names without a tag.
TEST_F(Library, TheVeryNameGoesBeforeOneThatIsLikeIt) {
  const std::string one = add("one", "this folder", "a.gguf"), two = add("two", "this folder", "b.gguf");
  ModelLibrary l = library();
  ASSERT_TRUE(l.describe({.id = "m", .path = one, .source = ""}));
  EXPECT_EQ(l.find("m:latest")->path, one);
  ASSERT_TRUE(l.describe({.id = "m:latest", .path = two, .source = ""}));
  EXPECT_EQ(l.find("m")->path, one);
  EXPECT_EQ(l.find("m:latest")->path, two);
  ASSERT_TRUE(l.remove("m"));
  EXPECT_EQ(l.find("m")->path, two) << "the other name, while no model has the exact one";
}

TEST_F(Library, OnlyFilesOfGimbalsAreRemoved) {
  const std::string users = add("users", "GIMBAL_MODELS", "a.gguf"),
                    ours = add("host/ours", "gimbal", "b.gguf"),
                    fetched = add("Org/Repo/c", "Hugging Face", "c.gguf");
  ModelLibrary l = library();
  ASSERT_TRUE(l.describe({.id = "hf.co/Org/Repo", .path = fetched, .source = "", .pulled = true}));
  EXPECT_EQ(names(l), (std::vector<std::string>{"hf.co/Org/Repo", "host/ours", "users"}));
  EXPECT_EQ(l.remove("users").error().reason, std::string_view(reason::kNotOurs));
  EXPECT_TRUE(fs::exists(users));
  ASSERT_TRUE(l.describe({.id = "copy", .path = ours, .source = ""}));
  ASSERT_TRUE(l.describe({.id = "other", .path = users, .source = ""}));
  EXPECT_EQ(l.remove("host/ours").error().reason, std::string_view(reason::kNotOurs)) << "a copy needs it";
  EXPECT_TRUE(fs::exists(ours));
  ASSERT_TRUE(l.remove("copy"));
  ASSERT_TRUE(l.remove("other"));
  EXPECT_TRUE(fs::exists(ours) && fs::exists(users)) << "a name goes, and its file stays";
  ASSERT_TRUE(l.remove("host/ours"));
  EXPECT_FALSE(fs::exists(ours));
  ASSERT_TRUE(l.remove("hf.co/Org/Repo"));
  EXPECT_FALSE(fs::exists(fetched)) << "a client had it fetched";
  EXPECT_EQ(l.remove("nothing").error().code, Code::NotFound);
}

}  // namespace
}  // namespace gimbal::test
