// Packed kernels: what scripts/build/pack_modules.py packs comes out as it was, and damaged bytes are an
// error in words. The emulator is linked for the engine that it brings; its own kernels are not packed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>

#include "base/file.h"
#include "gpu/unpack.h"
#include "support/golden.h"

namespace gimbal::gpu {
namespace {

std::string text(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class Packed : public testing::Test {
 protected:
  // "text", "text.subgroups" and "none" packed by the build's script.
  void SetUp() override {
    const std::string from = test::temporary_path("modules"), to = from + "_packed";
    std::filesystem::create_directories(from);
    for (int i = 0; i < 3000; i++) plain_ += "add.rn.f32 %f" + std::to_string(i * i % 97) + ";\n";
    for (auto [name, content] :
         {std::pair("text", plain_), {"text.subgroups", plain_ + "shfl"}, {"none", ""}})
      std::ofstream(from + "/" + name) << content;
    const std::string script = GIMBAL_SOURCE_DIR "/scripts/build/pack_modules.py";
    const std::string command = "python3 " + script + " " + from + " " + to + " " + to + ".stamp text none";
    ASSERT_EQ(system(command.c_str()), 0);
    packed_ = *read_file(to + "/text"), subgroups_ = *read_file(to + "/text.subgroups");
    EXPECT_EQ(*read_file(to + "/none"), "");
    EXPECT_LT(packed_.size(), plain_.size() / 2);
  }
  static std::span<const uint8_t> bytes(const std::string& s) {
    return {reinterpret_cast<const uint8_t*>(s.data()), s.size()};
  }
  // As a kernel of this code; what is expected of it.
  static void expect_damaged(const std::string& code, const std::string& how) {
    Unpacker unpacker;
    KernelCode out;
    for (int again = 0; again < 2; again++) {
      const Failure f = unpacker.unpack({"k", bytes(code), 1, 1, 1, 4, false, {}, true}, &out);
      EXPECT_EQ(f.code, Failure::Invalid) << how;
      EXPECT_NE(f.text.find("kernel k: "), std::string::npos) << how << ": " << f.text;
      EXPECT_NE(f.text.find("damaged\n"), std::string::npos) << how << ": " << f.text;
    }
  }
  std::string plain_, packed_, subgroups_;
};

TEST_F(Packed, ComesOutAsItWasAndOnce) {
  Unpacker unpacker;
  KernelCode first, second;
  const KernelCode code{"a", bytes(packed_), 64, 3, 4, 8, true, bytes(subgroups_), true};
  ASSERT_FALSE(unpacker.unpack(code, &first));
  EXPECT_EQ(text(first.code), plain_);
  EXPECT_EQ(text(first.subgroup_code), plain_ + "shfl");
  EXPECT_FALSE(first.packed);
  EXPECT_EQ(first.lanes, 64u);
  EXPECT_EQ(first.name, "a");
  ASSERT_FALSE(unpacker.unpack({"b", code.code, 1, 1, 1, 4, false, {}, true}, &second));
  EXPECT_EQ(second.code.data(), first.code.data()) << "runtimes know a shared module by where it lies";
  EXPECT_TRUE(second.subgroup_code.empty());
}

TEST_F(Packed, IsLeftAloneWhereItIsNot) {
  Unpacker unpacker;
  KernelCode out;
  ASSERT_FALSE(unpacker.unpack({"a", bytes(plain_)}, &out));
  EXPECT_EQ(out.code.data(), bytes(plain_).data());
}

TEST_F(Packed, IsRefusedWhereItIsDamaged) {
  expect_damaged("gimbal.z", "the word alone");
  expect_damaged(plain_, "not packed");
  for (size_t left : {size_t(12), size_t(13), packed_.size() / 2, packed_.size() - 1})
    expect_damaged(packed_.substr(0, left), "cut at " + std::to_string(left));
  for (size_t at :
       {size_t(0), size_t(8), size_t(9), size_t(11), size_t(12), packed_.size() / 2, packed_.size() - 1}) {
    std::string damaged = packed_;
    damaged[at] = char(damaged[at] ^ 0x55);
    expect_damaged(damaged, "byte " + std::to_string(at));
  }
}

}  // namespace
}  // namespace gimbal::gpu
