// The protocol between gimbal and the child with a libllama: what one side writes, the other reads; anything
// else is an error.
#include "llama/protocol.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace gimbal::llama {
namespace {

TEST(LlamaProtocol, ReadsFramesInAnyPieces) {
  const std::vector<float> values{1, -2.5f, 3};
  const std::string sent = encoded(Json{{"do", "open"}}) + encoded_row(7, values) +
                           encoded_tensor("l_out-3", 3, values) + encoded(FrameKind::Text, "");
  for (size_t piece = 1; piece < sent.size(); piece += 5) {
    FrameReader reader;
    std::vector<Frame> frames;
    for (size_t at = 0; at < sent.size(); at += piece) {
      reader.feed(std::string_view(sent).substr(at, piece));
      for (;;) {
        auto frame = reader.next();
        ASSERT_TRUE(bool(frame));
        if (!*frame) break;
        frames.push_back(**frame);
      }
    }
    ASSERT_EQ(frames.size(), 4u);
    EXPECT_EQ(parse_json(frames[0].bytes)["do"], "open");
    auto row = read_row(frames[1].bytes);
    ASSERT_TRUE(bool(row));
    EXPECT_EQ(row->position, 7);
    EXPECT_EQ(row->values, values);
    auto tensor = read_tensor(frames[2].bytes);
    ASSERT_TRUE(bool(tensor));
    EXPECT_EQ(tensor->name, "l_out-3");
    EXPECT_EQ(tensor->rows, 3);
    EXPECT_EQ(tensor->columns, 1);
    EXPECT_EQ(tensor->values, values);
    EXPECT_EQ(frames[3].bytes, "");
  }
}

std::string numbers(std::initializer_list<uint32_t> all) {
  std::string out;
  for (uint32_t n : all) out.append(reinterpret_cast<const char*>(&n), 4);
  return out;
}

TEST(LlamaProtocol, RefusesUnknownKindsAndLongPayloads) {
  for (const std::string& bytes :
       {numbers({0, 4}), numbers({5, 4}), numbers({1, kMaxFrame + 1}), numbers({1, ~0u})}) {
    FrameReader reader;
    reader.feed(bytes);
    EXPECT_FALSE(bool(reader.next()));
  }
}

TEST(LlamaProtocol, RefusesRowsAndTensorsOfOtherSizes) {
  EXPECT_FALSE(bool(read_row("")));
  EXPECT_FALSE(bool(read_row("12345")));
  EXPECT_FALSE(bool(read_row(numbers({~0u, 1}))));
  EXPECT_FALSE(bool(read_tensor(numbers({0, 1}))));
  EXPECT_FALSE(bool(read_tensor(numbers({0, 1, 2, 1}))));  // one number of two
  EXPECT_FALSE(bool(read_tensor(numbers({4, 1, 1, 1}))));  // no name
  EXPECT_FALSE(
      bool(read_tensor(numbers({0, 1u << 31, 1u << 31}))));  // the product overflows 64 bits with the 4
  EXPECT_FALSE(bool(read_tensor(numbers({~0u, 0, 0}))));
  EXPECT_TRUE(bool(read_tensor(numbers({4, 1, 1, 0, 0}))));
}

}  // namespace
}  // namespace gimbal::llama
