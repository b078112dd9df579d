// What a receipt says of devices that count what they run, and of those that do not: never nothing.
#include "program/receipt.h"

#include <gtest/gtest.h>

#include "files/gguf.h"
#include "support/engine.h"
#include "support/fake_plugins.h"

namespace gimbal {
namespace {

constexpr const char* kModel = GIMBAL_SOURCE_DIR "/assets/stories260K.gguf";

// The toy backend, which counts, unless `spoil` changes its table.
struct Toy {
  explicit Toy(void (*spoil)(gimbal_backend&) = [](gimbal_backend&) {}) {
    auto opened = Library::open(test::toy_plugin());
    EXPECT_TRUE(opened) << opened.error().message;
    library = *opened;
    table = library->table();
    spoil(table);
    device = std::move(*Device::open(table, 0));
  }
  LibraryPtr library;
  gimbal_backend table;
  std::unique_ptr<Device> device;
};

void no_counting(gimbal_backend& t) { t.run_counts = nullptr; }
void failing_to_count(gimbal_backend& t) {
  t.run_counts = [](gimbal_device*, gimbal_executable*, uint64_t*, size_t) { return GIMBAL_INVALID; };
}

// After three tokens in one step, and one more; the first two layers on `first`.
std::vector<ReceiptLine> receipt_on(const Device& first, const Device& rest) {
  auto file = open_gguf(kModel);
  EXPECT_TRUE(file);
  RunOptions options;
  options.context = 64, options.kernels.allow_fast = true;
  const Placement where[] = {{&first, 2, ""}, {&rest, 3, ""}};
  auto b = make_model_plan(*file, where, options);
  EXPECT_TRUE(b) << b.error().message;
  auto model = Model::load(std::move(*b), *file);
  EXPECT_TRUE(model) << model.error().message;
  auto session = Session::create(**model);
  const int32_t tokens[] = {1, 403, 407, 261};
  for (auto part : {std::span(tokens).first(3), std::span(tokens).last(1)}) {
    auto ok = (*session)->advance(part, Session::Wanted::None, {});
    EXPECT_TRUE(ok) << ok.error().message;
  }
  return (*model)->receipt();
}

uint64_t runs(const std::vector<ReceiptLine>& receipt, const std::string& op, const std::string& device) {
  uint64_t n = 0;
  for (const ReceiptLine& l : receipt)
    if (l.op == op && l.device == device) n += l.runs;
  return n;
}

TEST(Receipt, CountsWhatRanOnEachDevice) {
  Toy toy;
  auto cpu = test::open_engine(kModel, {});
  ASSERT_TRUE(cpu);
  const auto all = receipt_on(*cpu->device, *toy.device);
  EXPECT_EQ(runs(all, "attention", "cpu:0"), 2u * 2) << "two steps of two layers";
  EXPECT_EQ(runs(all, "attention", "toy:0"), 2u * 3);
  EXPECT_TRUE(not_counted(all).empty());
  for (const ReceiptLine& l : all) {
    EXPECT_TRUE(l.why == "the highest rank that fits" || l.why == "the only kernel that fits")
        << l.kernel << ": nothing was measured, but it says: " << l.why;
  }
  for (const std::string& line : elsewhere(all, "toy:0")) EXPECT_NE(line.find("ran on cpu:0"), line.npos);
  EXPECT_FALSE(elsewhere(all, "toy:0").empty());
}

TEST(Receipt, ADeviceThatDoesNotCountIsSaidToo) {
  struct {
    void (*spoil)(gimbal_backend&);
    const char* says;
  } const all[] = {{no_counting, "toy:0 does not count kernel runs"},
                   {failing_to_count, "reading the kernel counts"}};
  for (const auto& [spoil, says] : all) {
    Toy toy(spoil);
    auto cpu = test::open_engine(kModel, {});
    ASSERT_TRUE(cpu);
    const auto receipt = receipt_on(*cpu->device, *toy.device);
    EXPECT_EQ(runs(receipt, "attention", "cpu:0"), 2u * 2) << "the other device's counts are not lost";
    int lines = 0;
    for (const ReceiptLine& l : receipt) {
      EXPECT_EQ(l.not_counted.empty(), l.device == "cpu:0") << l.op;
      if (l.device == "cpu:0") continue;
      lines++;
      EXPECT_EQ(l.runs, 0u);
      EXPECT_GT(l.ops, 0);
    }
    EXPECT_GT(lines, 5);
    const auto why = not_counted(receipt);
    ASSERT_EQ(why.size(), 1u) << "once, and not for every op";
    EXPECT_NE(why[0].find(says), std::string::npos) << why[0];
    // Seen from the CPU, these ops are elsewhere, whether they were counted or not.
    const auto away = elsewhere(receipt, "cpu:0");
    ASSERT_FALSE(away.empty());
    EXPECT_NE(away[0].find("planned for toy:0 (not counted"), std::string::npos) << away[0];
  }
}

TEST(Receipt, SinceTakesAwayWhatRanBefore) {
  std::vector<ReceiptLine> before = {{"add", "f32", "cpu:0", "k", "", 1, 3}},
                           now = {{"add", "f32", "cpu:0", "k", "", 1, 5},
                                  {"mul", "f32", "x:0", "k", "", 1, 0, "x:0 does not count"}};
  const auto d = since(now, before);
  EXPECT_EQ(d[0].runs, 2u);
  EXPECT_EQ(d[1].not_counted, "x:0 does not count");
}

}  // namespace
}  // namespace gimbal
