// Where fetched models lie, how they are found again, and what goes with them when they are removed. The
// layout is that of Hugging Face's own cache ("Understand caching" in the documentation of huggingface_hub).
#include "fetch/store.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "fetch/address.h"
#include "fetch/choice.h"
#include "fetch/part_file.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

namespace fs = std::filesystem;

const std::string kCommit(40, 'c'), kOther(40, 'd');

class FetchedModels : public testing::Test {
 protected:
  void SetUp() override {
    root_ = temporary_path("store");
    fs::remove_all(root_);
    fs::create_directories(root_);
    for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) unsetenv(name);
    setenv("HF_HOME", root_.c_str(), 1);
    setenv("XDG_CACHE_HOME", (root_ + "/cache").c_str(), 1);
    folder_ = root_ + "/hub/models--Org--Tiny-GGUF";
  }
  static ModelAddress address(const std::string& text = "hf.co/Org/Tiny-GGUF") {
    auto a = parse_address(text);
    EXPECT_TRUE(a) << a.error().message;
    return a ? *a : ModelAddress{};
  }
  // As a download ends: the blob, and the link of the commit.
  static std::string put(const std::string& file, const std::string& blob,
                         const std::string& commit = kCommit, const std::string& bytes = "weights") {
    const auto place = hub_place(address(), commit, file, blob);
    EXPECT_TRUE(place) << place.error().message;
    EXPECT_TRUE(make_folder(fs::path(place->blob).parent_path().string()));
    EXPECT_TRUE(write_file(place->blob, bytes));
    EXPECT_TRUE(link_blob(*place));
    return place->path;
  }
  static std::string found(const std::string& text) {
    const auto at = find_fetched(address(text));
    return !at ? at.error().message : *at ? **at : "";
  }
  static void remove_model(const std::string& path) {
    const auto what = removal_of(path);
    ASSERT_TRUE(what) << what.error().message;
    const Status ok = gimbal::remove(*what);
    EXPECT_TRUE(ok) << ok.error().message;
  }
  static bool is_there(const std::string& path) { return fs::exists(fs::symlink_status(path)); }
  std::string blob(const char* name) const { return folder_ + "/blobs/" + name; }

  std::string root_, folder_;
};

TEST_F(FetchedModels, PlacesOfHuggingFace) {
  const auto p = hub_place(address(), kCommit, "sub/a.gguf", "hash");
  ASSERT_TRUE(p) << p.error().message;
  EXPECT_EQ(p->path, folder_ + "/snapshots/" + kCommit + "/sub/a.gguf");
  EXPECT_EQ(p->blob, folder_ + "/blobs/hash");
  EXPECT_EQ(p->lock, root_ + "/hub/.locks/models--Org--Tiny-GGUF/hash.lock");
  unsetenv("HF_HOME");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "relative", 1);
  const auto none = hub_place(address(), kCommit, "a.gguf", "hash");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("neither HF_HOME"), std::string::npos) << none.error().message;
  EXPECT_FALSE(url_place(*Url::parse("https://a.org/b.gguf")));
  EXPECT_EQ(found("hf.co/Org/Tiny-GGUF"), "");
}

TEST_F(FetchedModels, PlacesOfUrls) {
  const std::string folder = root_ + "/cache/gimbal/models";
  EXPECT_EQ(url_models_folder(), folder);
  const auto place = [](const char* url) { return *url_place(*Url::parse(url)); };
  const Place plain = place("https://a.org:8443/x/b.gguf");
  EXPECT_EQ(plain.path, folder + "/a.org_8443/x/b.gguf");
  EXPECT_EQ(plain.blob, plain.path);
  EXPECT_TRUE(plain.lock.starts_with(folder + "/.locks/")) << plain.lock;
  const Place one = place("https://a.org:8443/x/b.gguf?v=1"), two = place("https://a.org:8443/x/b.gguf?v=2");
  EXPECT_NE(one.path, plain.path);
  EXPECT_NE(one.path, two.path) << "another query may be another file";
  EXPECT_NE(one.lock, two.lock);
  EXPECT_TRUE(one.path.starts_with(folder + "/a.org_8443/x/@")) << one.path;
  EXPECT_TRUE(one.path.ends_with("/b.gguf")) << one.path;
  EXPECT_EQ(one.path.find("v=1"), std::string::npos) << "it may be a secret";
}

TEST_F(FetchedModels, ALinkLeadsToTheBlobByARelativePath) {
  const std::string path = put("sub/a.gguf", "one");
  EXPECT_EQ(fs::read_symlink(path), "../../../blobs/one");
  EXPECT_EQ(*read_file(path), "weights");
  EXPECT_EQ(put("sub/a.gguf", "one"), path) << "again";
  put("sub/a.gguf", "two", kCommit, "others");
  EXPECT_EQ(*read_file(path), "others") << "replaced";
  EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(path).parent_path()), fs::directory_iterator()), 1);
  ASSERT_TRUE(write_file(root_ + "/file", ""));
  EXPECT_FALSE(link_blob({root_ + "/file/a", root_ + "/b", ""}));
  EXPECT_TRUE(link_blob({root_ + "/none/a", root_ + "/none/a", ""})) << "a file by itself";
  EXPECT_FALSE(fs::exists(root_ + "/none"));
}

TEST_F(FetchedModels, FoundByBranchCommitAndQuantization) {
  EXPECT_EQ(found("hf.co/Org/Tiny-GGUF"), "");
  const std::string q4 = put("tiny-Q4_0.gguf", "one"), q8 = put("tiny-Q8_0.gguf", "two");
  EXPECT_EQ(found("hf.co/Org/Tiny-GGUF"), "") << "no branch leads there";
  ASSERT_TRUE(note_commit(address(), kCommit));
  EXPECT_EQ(*read_file(folder_ + "/refs/main"), kCommit);
  EXPECT_EQ(found("hf.co/Org/Tiny-GGUF"), q4) << "the default order";
  EXPECT_EQ(found("hf.co/Org/Tiny-GGUF:Q8_0"), q8);
  EXPECT_EQ(found("hf.co/Org/Tiny-GGUF/tiny-Q8_0.gguf"), q8);
  EXPECT_EQ(found("hf.co/Org/Tiny-GGUF:Q2_K"), "");
  ModelAddress a = address();
  a.revision = kCommit;
  EXPECT_EQ(**find_fetched(a), q4);
  ASSERT_TRUE(note_commit(a, kOther));
  EXPECT_FALSE(fs::exists(folder_ + "/refs/" + kCommit)) << "a commit is no branch";
  for (const char* branch : {"v2", "deadbeef"}) {
    a.revision = branch;
    EXPECT_FALSE(*find_fetched(a));
    ASSERT_TRUE(note_commit(a, kCommit));
    EXPECT_EQ(**find_fetched(a), q4) << branch;
  }
  ASSERT_TRUE(note_commit(address(), kOther));
  EXPECT_EQ(found("hf.co/Org/Tiny-GGUF"), "") << "the branch is elsewhere now";
  for (const std::string& no : {std::string("../../x"), kCommit + "\n", std::string(40, 'G')}) {
    ASSERT_TRUE(write_file(folder_ + "/refs/main", no));
    EXPECT_EQ(found("hf.co/Org/Tiny-GGUF"), "") << no;
  }
  ASSERT_TRUE(note_commit(address(), kCommit));
  fs::remove(blob("one"));
  EXPECT_EQ(found("hf.co/Org/Tiny-GGUF"), q8) << "a link without its blob is no model";
}

TEST_F(FetchedModels, SeveralThatFitAreAnErrorAndAFolderIsOne) {
  ASSERT_TRUE(note_commit(address(), kCommit));
  put("a-IQ1_S.gguf", "one"), put("b-IQ1_S.gguf", "two");
  EXPECT_NE(found("hf.co/Org/Tiny-GGUF").find("2 matching models"), std::string::npos);
  fs::remove_all(folder_ + "/snapshots");
  for (const char* file : {"config.json", "tokenizer.json", "model.safetensors"}) put(file, file);
  EXPECT_EQ(found("hf.co/Org/Tiny-GGUF"), folder_ + "/snapshots/" + kCommit);
}

TEST_F(FetchedModels, FilesOfPlainUrls) {
  const Place place = *url_place(*Url::parse("https://a.org/x/b.gguf"));
  EXPECT_EQ(found("https://a.org/x/b.gguf"), "");
  ASSERT_TRUE(make_folder(fs::path(place.path).parent_path().string()));
  ASSERT_TRUE(write_file(place.path, "weights"));
  EXPECT_EQ(found("https://a.org/x/b.gguf"), place.path);
  remove_model(place.path);
  EXPECT_FALSE(fs::exists(root_ + "/cache/gimbal/models/a.org")) << "empty folders go, too";
}

TEST_F(FetchedModels, ALockIsHeldByOne) {
  const std::string path = root_ + "/locks/sub/a.lock";
  auto first = FileLock::try_lock(path);
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_TRUE(*first);
  auto second = FileLock::try_lock(path);
  ASSERT_TRUE(second);
  EXPECT_FALSE(*second);
  { const FileLock moved = std::move(**first); }
  EXPECT_TRUE(*FileLock::try_lock(path)) << "free again";
  ASSERT_TRUE(write_file(root_ + "/file", ""));
  EXPECT_FALSE(FileLock::try_lock(root_ + "/file/a.lock"));
  EXPECT_FALSE(FileLock::try_lock(root_)) << "a folder";
}

TEST_F(FetchedModels, RemovedWithBlobPartsAndEmptyFolders) {
  const std::string path = put("tiny-Q4_0.gguf", "one");
  ASSERT_TRUE(note_commit(address(), kCommit));
  ASSERT_TRUE(write_file(PartFile::path_of(blob("one")), "abc"));
  ASSERT_TRUE(write_file(PartFile::path_of(blob("one")) + ".json", "{}"));
  const auto what = removal_of(path);
  ASSERT_TRUE(what) << what.error().message;
  EXPECT_EQ(what->bytes, 7u + 3 + 2);
  EXPECT_EQ(what->root, root_ + "/hub");
  EXPECT_EQ(what->files, (std::vector<std::string>{path, blob("one"), PartFile::path_of(blob("one")),
                                                   PartFile::path_of(blob("one")) + ".json"}));
  EXPECT_EQ(what->locks, std::vector<std::string>{hub_place(address(), kCommit, "x", "one")->lock});
  {
    const auto other = FileLock::try_lock(what->locks[0]);
    const Status busy = gimbal::remove(*what);
    ASSERT_FALSE(busy);
    EXPECT_NE(busy.error().message.find("another program is fetching"), std::string::npos);
    EXPECT_TRUE(fs::exists(path)) << "nothing is half removed";
  }
  EXPECT_TRUE(gimbal::remove(*what));
  EXPECT_FALSE(fs::exists(folder_)) << "branches of no commit, and all folders";
  EXPECT_TRUE(fs::exists(root_ + "/hub"));
  EXPECT_TRUE(gimbal::remove(*what)) << "it is gone already";
}

TEST_F(FetchedModels, ABlobOfAnotherCommitStays) {
  const std::string old = put("a.gguf", "one"), now = put("a.gguf", "one", kOther),
                    other = put("b.gguf", "two");
  ASSERT_TRUE(note_commit(address(), kOther));
  EXPECT_EQ(removal_of(old)->bytes, 0u);
  remove_model(old);
  EXPECT_FALSE(is_there(old));
  EXPECT_EQ(*read_file(now), "weights");
  EXPECT_TRUE(fs::exists(folder_ + "/refs/main"));
  remove_model(now);
  EXPECT_FALSE(fs::exists(blob("one")));
  EXPECT_EQ(*read_file(other), "weights");
}

TEST_F(FetchedModels, AllPartsOfASplitModel) {
  std::string first;
  for (int i = 3; i > 0; i--)
    first = put("a-0000" + std::to_string(i) + "-of-00003.gguf", "part" + std::to_string(i));
  EXPECT_EQ(removal_of(first)->bytes, 3u * 7);
  remove_model(first);
  EXPECT_FALSE(fs::exists(folder_));
}

// However the cache is named, its models are the same.
TEST_F(FetchedModels, OfACacheThatIsNamedInRoundaboutWays) {
  const fs::path before = fs::current_path();
  fs::current_path(root_);
  fs::create_directories(root_ + "/elsewhere");
  fs::create_directory_symlink(root_, root_ + "/elsewhere/link");
  for (const std::string& home :
       {root_ + "/", root_ + "/elsewhere/..", root_ + "//", std::string("."), root_ + "/elsewhere/link"}) {
    SCOPED_TRACE(home);
    setenv("HF_HOME", home.c_str(), 1);
    ASSERT_TRUE(note_commit(address(), kCommit));
    put("a.gguf", "one");
    remove_model(found("hf.co/Org/Tiny-GGUF"));
    EXPECT_FALSE(fs::exists(folder_)) << "link, blob and folders";
  }
  fs::current_path(before);
}

// Somebody's own file in place of a download: the link goes, the file stays.
TEST_F(FetchedModels, AFileOutsideTheCacheStays) {
  const std::string mine = root_ + "/mine.gguf", path = folder_ + "/snapshots/" + kCommit + "/a.gguf";
  ASSERT_TRUE(write_file(mine, "my own weights"));
  fs::create_directories(fs::path(path).parent_path());
  fs::create_symlink(mine, path);
  EXPECT_EQ(removal_of(path)->bytes, 0u);
  remove_model(path);
  EXPECT_FALSE(is_there(path));
  EXPECT_TRUE(fs::exists(mine));
}

TEST_F(FetchedModels, FilesElsewhereAndFolders) {
  const std::string mine = root_ + "/a.gguf";
  ASSERT_TRUE(write_file(mine, "weights"));
  const auto what = removal_of(mine);
  ASSERT_TRUE(what);
  EXPECT_EQ(what->root, "");
  EXPECT_EQ(what->bytes, 7u);
  remove_model(mine);
  EXPECT_FALSE(fs::exists(mine));
  EXPECT_TRUE(fs::exists(root_)) << "its folder is not the cache's";
  const auto folder = removal_of(root_);
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, Code::Usage);
  // A cache on a file system without links.
  const std::string path = folder_ + "/snapshots/" + kCommit + "/a.gguf";
  fs::create_directories(fs::path(path).parent_path());
  ASSERT_TRUE(write_file(path, "weights"));
  EXPECT_EQ(removal_of(path)->bytes, 7u);
  remove_model(path);
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(FetchedModels, FoldersAreMadeOrTheReasonIsTold) {
  const std::string folder = root_ + "/a/b/c", file = root_ + "/file";
  ASSERT_TRUE(make_folder(folder));
  EXPECT_TRUE(fs::is_directory(folder));
  EXPECT_TRUE(make_folder(folder)) << "it is there already";
  fs::create_directory_symlink(folder, root_ + "/link");
  EXPECT_TRUE(make_folder(root_ + "/link"));
  ASSERT_TRUE(write_file(file, "text"));
  for (const std::string& wrong : {file, file + "/below"}) {
    const auto made = make_folder(wrong);
    ASSERT_FALSE(made) << wrong;
    EXPECT_NE(made.error().message.find("cannot create '" + wrong + "'"), std::string::npos)
        << made.error().message;
  }
}

}  // namespace
}  // namespace gimbal::test
