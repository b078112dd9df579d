// The word for a file's quantization: what users look for.
#include "files/model_source.h"

#include "files/gguf.h"
#include "support/made_gguf.h"

namespace gimbal::test {
namespace {

// Bytes of `rows` rows of 256 values.
std::string zero_rows(DType type, int64_t rows) {
  return std::string(size_t(rows * 256 / info(type).block * info(type).bytes), '\0');
}

std::string quantization_of_file(std::optional<uint32_t> file_type, bool large_table) {
  MadeGguf file;
  file.string("general.architecture", "llama");
  if (file_type) file.u32("general.file_type", *file_type);
  file.tensor("token_embd.weight", {256, large_table ? 64 : 1}, DType::Q8_0,
              zero_rows(DType::Q8_0, large_table ? 64 : 1));
  file.tensor("blk.0.attn_q.weight", {256, 16}, DType::Q4_K, zero_rows(DType::Q4_K, 16));
  file.tensor("output_norm.weight", {256}, DType::F32, zero_rows(DType::F32, 1));
  const std::string bytes = file.build();
  auto source = parse_gguf({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, "made");
  EXPECT_TRUE(source) << source.error().message;
  return source ? quantization_of(*source) : "";
}

TEST(Quantization, TheFileTypeSaysIt) {
  EXPECT_EQ(quantization_of_file(15, true), "Q4_K_M");
  EXPECT_EQ(quantization_of_file(14, true), "Q4_K_S");
  EXPECT_EQ(quantization_of_file(15 + 1024, true), "Q4_K_M");
  EXPECT_EQ(quantization_of_file(7, false), "Q8_0");
}

TEST(Quantization, AWrongNumberDoesNotCount) {
  EXPECT_EQ(quantization_of_file({}, true), "Q8_0");
  EXPECT_EQ(quantization_of_file({}, false), "Q4_K");
  EXPECT_EQ(quantization_of_file(0, true), "Q8_0");   // F32, as converters leave it behind
  EXPECT_EQ(quantization_of_file(18, true), "Q8_0");  // Q6_K, of which there is nothing
  EXPECT_EQ(quantization_of_file(999, true), "Q8_0");
}

}  // namespace
}  // namespace gimbal::test
