// Pages that one device computed serve the others: the CPU, a GPU's kernels, and a model divided over both.
#include "support/stored.h"

namespace gimbal::test {
namespace {

TEST_F(StoredPrefixes, ServeOtherDevices) {
  const auto text = any_tokens(230, 500);
  for (const char* name : {"arch/llama-gqa", "more/arch/qwen35"}) {
    SCOPED_TRACE(name);
    Loaded without(name, nullptr);
    const StoredAnswer want = answer(without, text, 200);
    const StoringSettings devices[] = {{}, {.device = "emulator"}, {.device = "cpu", .then = "emulator"}};
    for (const StoringSettings& writer : devices) {
      Loaded a(name, open_pages(), writer);
      ASSERT_EQ(a.refused, "");
      EXPECT_EQ(answer(a, text, 200).stored, 0);
      const size_t stored = files().size();
      for (const StoringSettings& reader : devices) {
        Loaded b(name, open_pages(), reader);
        const StoredAnswer got = answer(b, text, 200);
        EXPECT_EQ(got.stored, 192) << writer.device << writer.then << " " << reader.device << reader.then;
        EXPECT_EQ(bits_differ(got.logits, want.logits), "");
      }
      EXPECT_EQ(files().size(), stored) << "pages of one device are those of the other";
      std::filesystem::remove_all(path_);
    }
  }
}

}  // namespace
}  // namespace gimbal::test
