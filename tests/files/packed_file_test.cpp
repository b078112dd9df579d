// Files of packed weights, made here byte by byte: what their table may say, and who may write to them.
#include "files/packed_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <functional>

#include "base/file.h"
#include "base/hash.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kFile = 8192;  // bytes
const FileIdentity kSource{123, 456, 789};

template <class T>
Bytes raw(const T* data, size_t n) {
  return std::as_bytes(std::span(data, n));
}

// The head and the table of a file. `change`: of the head, before its hash is made.
std::string packed(
    const std::vector<PackedWeight>& table,
    const std::function<void(PackedHead&)>& change = [](PackedHead&) {}) {
  PackedHead h{};
  std::memcpy(h.magic, "gimbal-packed\n\0", 16);
  h.version = 1, h.weights = uint32_t(table.size()), h.bytes = kFile, h.source = kSource;
  std::memcpy(h.layout, "cpu", 3);
  h.table = hash_of(raw(table.data(), table.size()));
  change(h);
  h.before = hash_of(raw(&h, 1).first(offsetof(PackedHead, before)));
  std::string out(reinterpret_cast<const char*>(&h), sizeof h);
  if (!table.empty()) out.append(reinterpret_cast<const char*>(table.data()), table.size() * sizeof table[0]);
  return out;
}
std::string verdict(const std::string& text, uint64_t bytes = kFile) {
  const auto all = PackedFile::parse(raw(text.data(), text.size()), bytes);
  if (all) return "right";
  EXPECT_EQ(all.error().code, Code::Malformed);
  EXPECT_EQ(all.error().remedy, "pack the model again, or remove the file");
  return all.error().message;
}

TEST(PackedFile, EntriesLieBehindTheTableAndWithinTheFile) {
  const PackedWeight first{5, 4096, 64, 1};
  const auto second = [&](PackedWeight w) { return verdict(packed({first, w})); };
  EXPECT_EQ(verdict(packed({})), "right");
  EXPECT_EQ(verdict(packed({first})), "right");
  const std::string damaged = "entry 1 of its table is damaged";
  EXPECT_EQ(second({6, kFile - 64, 64, 0}), "right") << "up to the last byte";
  EXPECT_EQ(second({6, kFile - 64, 65, 0}), damaged);
  EXPECT_EQ(second({6, kFile, 0, 0}), "right") << "nothing, at the end";
  EXPECT_EQ(second({6, kFile + 64, 0, 0}), damaged);
  EXPECT_EQ(second({6, 4096, ~uint64_t(0), 0}), damaged) << "their sum is above 2^64";
  EXPECT_EQ(second({6, ~uint64_t(63), 64, 0}), damaged);
  static_assert(sizeof(PackedHead) + 2 * sizeof(PackedWeight) == 152);
  EXPECT_EQ(second({6, 192, 8, 0}), "right") << "the first place behind the table";
  EXPECT_EQ(second({6, 128, 8, 0}), damaged) << "within the table";
  EXPECT_EQ(second({6, 4096 + 32, 8, 0}), damaged) << "no multiple of 64";
  EXPECT_EQ(second({5, 4096, 64, 0}), damaged) << "twice the same weight";
  EXPECT_EQ(second({4, 4096, 64, 0}), damaged) << "not in order";
}

TEST(PackedFile, HeadsThatAreRefused) {
  const std::vector<PackedWeight> table = {{5, 4096, 64, 1}};
  const std::string good = packed(table);
  EXPECT_EQ(verdict(good, kFile - 1), "it is incomplete: 8192 bytes expected, 8191 found");
  EXPECT_EQ(verdict(""), "it is not a file of packed weights");
  EXPECT_EQ(verdict(good.substr(0, 15)), "it is not a file of packed weights");
  EXPECT_EQ(verdict(good.substr(0, 16)), "it ends within its header");
  EXPECT_EQ(verdict(good.substr(0, sizeof(PackedHead) - 1)), "it ends within its header");
  EXPECT_EQ(verdict(good.substr(0, good.size() - 1)), "its table is incomplete");
  EXPECT_EQ(verdict(good + "more"), "right") << "the bytes of the weights follow";
  for (uint32_t version : {0u, 2u})
    EXPECT_EQ(
        verdict(packed(table, [&](PackedHead& h) { h.version = version; })),
        "it has version " + std::to_string(version) + " of the format, and this program reads version 1");
  EXPECT_EQ(verdict(packed(table, [](PackedHead& h) { h.weights = 2; })), "its table is incomplete");
  EXPECT_EQ(verdict(packed(table, [](PackedHead& h) { h.weights = 0; })), "its table is damaged");
  EXPECT_EQ(verdict(packed(table, [](PackedHead& h) { h.table ^= 1; })), "its table is damaged");
  EXPECT_EQ(verdict(packed(table, [](PackedHead& h) { h.magic[0] = 'G'; })),
            "it is not a file of packed weights");
  // Up to a million weights, whose table has a hash.
  const auto with_weights = [](uint32_t n) {
    return packed({}, [&](PackedHead& h) { h.weights = n; }) + std::string(n * sizeof(PackedWeight), '\0');
  };
  EXPECT_EQ(verdict(with_weights(1 << 20)), "its table is damaged");
  EXPECT_EQ(verdict(with_weights((1 << 20) + 1)), "its table is incomplete");
  std::string damaged = good;
  damaged[20] ^= 1;  // the number of weights, with the old hash
  EXPECT_EQ(verdict(damaged), "its header is damaged");
}

// The file in a folder, with bytes of weights that fit its table.
class PackedFileTest : public testing::Test {
 protected:
  PackedFileTest() {
    path_ = temporary_path("x.packed");
    std::vector<PackedWeight> table;
    for (uint64_t what : {3, 7, 9}) {
      weights_ += std::string(64, char(what));
      table.push_back(
          {what, 4096 + 64 * table.size(), 64, hash_of(raw(weights_.data() + 64 * table.size(), 64))});
    }
    text_ = packed(table);
    text_.resize(4096);
    text_ += weights_;
    text_.resize(kFile);
    EXPECT_TRUE(write_file(path_, text_));
    chmod(path_.c_str(), 0644);
  }
  std::string refused(const FileIdentity& source = kSource) {
    const auto file = PackedFile::open(path_, source);
    if (file) return "used";
    EXPECT_STREQ(file.error().reason, reason::kPackedUnusable);
    EXPECT_EQ(file.error().value, path_);
    return file.error().message;
  }
  std::string path_, text_, weights_;
};

TEST_F(PackedFileTest, WeightsAreFoundByWhatTheyAre) {
  const auto file = PackedFile::open(path_, kSource);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ((*file)->path(), path_);
  EXPECT_EQ((*file)->layout(), "cpu");
  EXPECT_EQ((*file)->bytes().size(), kFile);
  for (uint64_t what : {3, 7, 9}) {
    const PackedWeight* w = (*file)->find(what);
    ASSERT_TRUE(w) << what;
    EXPECT_EQ(w->what, what);
    EXPECT_EQ((*file)->bytes()[w->offset], std::byte(what));
  }
  for (uint64_t what : {0, 2, 4, 8, 10}) EXPECT_FALSE((*file)->find(what)) << what;
  EXPECT_TRUE((*file)->check_weights());
  EXPECT_TRUE((*file)->unchanged());
}

TEST_F(PackedFileTest, DamagedWeightsAreNamedByTheirPlace) {
  for (size_t at : {size_t(4096), size_t(4096 + 64 * 3 - 1)}) {
    std::string bad = text_;
    bad[at] ^= 1;
    ASSERT_TRUE(write_file(path_, bad));
    const auto file = PackedFile::open(path_, kSource);
    ASSERT_TRUE(file) << "the weights are not read yet";
    const auto ok = (*file)->check_weights();
    ASSERT_FALSE(ok);
    EXPECT_EQ(ok.error().message,
              "the bytes from " + std::to_string(at / 64 * 64) + " on differ from those written");
  }
  text_[4096 + 64 * 3] ^= 1;  // behind the last one
  ASSERT_TRUE(write_file(path_, text_));
  EXPECT_TRUE((*PackedFile::open(path_, kSource))->check_weights());
}

TEST_F(PackedFileTest, ChangesWhileItIsOpen) {
  const auto file = *PackedFile::open(path_, kSource);
  const auto time = fs::last_write_time(path_);
  fs::last_write_time(path_, time + std::chrono::seconds(1));
  EXPECT_EQ(file->unchanged().error().message, "it was modified while in use");
  EXPECT_EQ(file->check_weights().error().message, "it was modified while in use");
  fs::last_write_time(path_, time);
  EXPECT_TRUE(file->unchanged());
  fs::resize_file(path_, kFile + 1);
  EXPECT_EQ(file->unchanged().error().message, "it had 8192 bytes and now has 8193");
}

TEST_F(PackedFileTest, OfAnotherModelOrOfAnotherUser) {
  EXPECT_EQ(refused(), "used");
  EXPECT_EQ(refused({124, 456, 789}), "it was made from a model file of 123 bytes, which now has 124");
  EXPECT_EQ(refused({123, 457, 789}), "the model file has another header");
  EXPECT_EQ(refused({123, 456, 788}), "the model file was modified since");
  EXPECT_EQ(refused({123, 457, 788}), "the model file was modified since");
  for (const auto& [mode, trusted] : {std::pair{0600, true}, {0755, true}, {0664, false}, {0646, false}}) {
    ASSERT_EQ(chmod(path_.c_str(), mode_t(mode)), 0);
    EXPECT_EQ(refused(), trusted ? "used" : "other users may write to it") << mode;
  }
  ASSERT_TRUE(write_file(path_, text_ + "x"));
  chmod(path_.c_str(), 0600);
  EXPECT_EQ(refused(), "it is incomplete: 8192 bytes expected, 8193 found");
  // Only the administrator can give a file away.
  if (geteuid() == 0) {
    ASSERT_EQ(chown(path_.c_str(), 65534, 65534), 0);
    EXPECT_EQ(refused(), "other users may write to it");
  }
  fs::remove(path_);
  EXPECT_NE(refused().find(path_), std::string::npos);
}

}  // namespace
}  // namespace gimbal::test
