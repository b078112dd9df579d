// Kernel texts that a program brings: words and their arguments, what is refused and with which line, and the
// vendors' compilers at run time (over a stand-in). The texts' results are tested on devices
// (custom_checks.h).
#include "gpu/text/kernel_text.h"

#include <gtest/gtest.h>

#include "gpu/driver_api/text_compiler.h"

namespace gimbal::test {
namespace {

using gpu::Failure;

// A language in which everything can be told apart.
constexpr std::string_view kFrame = R"(head
main { CUSTOM_BODY; }
CUSTOM_WORDS
@ "x_size" 0 SIZE @ @ "LOAD_x" 1 load(CUSTOM_1) @
@ "LOAD_x1" 1 load1(CUSTOM_1 + CUSTOM_1) @
@ "STORE_y" 2 result = CUSTOM_2 @
@ "SELECT" 3 pick((CUSTOM_2), (CUSTOM_3), (CUSTOM_1)) @
@ "LET" 2 let CUSTOM_2: CUSTOM_1 @
@ "f32" 0 float @
)";

std::string completed(const std::string& text) {
  std::string out;
  const Failure f = gpu::complete_text(kFrame, text, &out);
  if (f) return "refused: " + f.text;
  const size_t begin = out.find("{ ") + 2;
  return out.substr(begin, out.rfind("; }") - begin);
}

TEST(KernelTexts, WordsGetTheirArguments) {
  EXPECT_EQ(completed("STORE(y, at, 2.0f * LOAD(x, at))"), "result = 2.0f * load(at)");
  EXPECT_EQ(completed("LET(f32, v) = LOAD(x1, LOAD(x, x_size - 1u));"),
            "let v: float = load1(load(SIZE - 1u) + load(SIZE - 1u));");
  EXPECT_EQ(completed("SELECT(a < b, f(c, d[e, 0]), SELECT(g, h, i))"),
            "pick((f(c, d[e, 0])), (pick((h), (i), (g))), (a < b))");
  EXPECT_EQ(completed("SELECT ( a , b ,\n c )"), "pick((b), (c), (a))");
}

TEST(KernelTexts, NumbersAndOtherNamesStay) {
  for (const char* same : {"1.5e-3f + 0xe1u - 2", "a.f32x + .5f", "my_LOAD(x, at)", "f(x, y)", "x[at]", ""})
    EXPECT_EQ(completed(same), same);
  EXPECT_EQ(completed("0x1e+f32"), "0x1e+float") << "a hexadecimal number has no exponent";
  EXPECT_EQ(completed("a // f32, LOAD(\nb"), "a \nb");
}

TEST(KernelTexts, MistakesAreNamedWithTheirLine) {
  const std::pair<const char*, const char*> kMistakes[] = {
      {"a;\nb;\nSTORE(y, 0u, 1.0f)", "line 3: STORE(y, 0u, ...): a text writes element `at` alone"},
      {"LOAD(x9, at)", "line 1: LOAD(x9, ...): expected x, x0, x1 or x2"},
      {"LOAD", "expected x, x0, x1 or x2"},
      {"STORE(z, at, 1)", "STORE(z, ...): expected y"},
      {"SELECT(a, b)", "SELECT: expected 3 arguments, found 2"},
      {"LOAD(x, a, b)", "LOAD: expected 2 arguments, found 3"},
      {"LET", "LET: expected 2 arguments, found 0"},
      {"\nSELECT(a, (b, c", "line 2: this parenthesis has no end"},
      {"#define at 0", "'#' is no part of the kernel dialect"},
      {"a\\", "'\\' is no part"},
      {"\"text\"", "'\"' is no part"},
      {"@", "'@' is no part"},
      {"custom_result = 1.0f", "the name 'custom_result' is reserved"},
      {"CUSTOM_1", "the name 'CUSTOM_1' is reserved"},
      {"a__b", "the name 'a__b' is reserved"},
      {"P.zero_", "the name 'zero_' is reserved"},
  };
  for (const auto& [text, message] : kMistakes)
    EXPECT_NE(completed(text).find(message), std::string::npos) << text << ": " << completed(text);
}

// Loads within loads double: the text ends before memory does.
TEST(KernelTexts, SizesAreLimited) {
  std::string nested = "at";
  for (int i = 0; i < 40; i++) nested = "LOAD(x1, " + nested + ")";
  EXPECT_NE(completed(nested).find("too long with its words expanded"), std::string::npos);
  std::string deep = "at";
  for (int i = 0; i < 100; i++) deep = "LOAD(x, " + deep + ")";
  EXPECT_NE(completed(deep).find("nested too deeply"), std::string::npos);
  EXPECT_NE(completed(std::string(70000, 'a')).find("at most 65536 bytes, found 70000"), std::string::npos);
  std::string out;
  EXPECT_EQ(gpu::complete_text("no frame", "a", &out).text, "the frame of kernel texts is damaged");
}

constexpr const char* kNoLibraries[] = {"libabsent-compiler.so.1", nullptr};
constexpr gpu::driver_api::TextCompiler kNvrtc = {kNoLibraries, "nvrtc", "PTX", "install it"};

TEST(KernelTexts, AVendorsCompilerGetsTextAndOptions) {
  std::vector<uint8_t> code;
  const Failure f = compile_text(kNvrtc, FAKE_NVRTC, "a text", {"--one", "--two"}, &code);
  ASSERT_FALSE(f) << f.text;
  EXPECT_EQ(std::string(code.begin(), code.end()), std::string("--one\n--two\na text") + '\0');
  const Failure wrong = compile_text(kNvrtc, FAKE_NVRTC, "a wrong text", {}, &code);
  EXPECT_EQ(wrong.code, Failure::Invalid);
  EXPECT_NE(wrong.text.find("refuses the kernel text (error 6):\nline 1: what is wrong?"), std::string::npos)
      << wrong.text;
}

TEST(KernelTexts, AnAbsentCompilerIsNamedWithItsRemedy) {
  std::vector<uint8_t> code;
  const Failure absent = compile_text(kNvrtc, "", "a text", {}, &code);
  EXPECT_EQ(absent.code, Failure::Unsupported);
  EXPECT_EQ(absent.text,
            "kernel texts need libabsent-compiler.so.1, which compiles them and cannot be "
            "loaded\ninstall it");
  auto other = kNvrtc;
  other.prefix = "hiprtc";
  const Failure strange = compile_text(other, FAKE_NVRTC, "a text", {}, &code);
  EXPECT_EQ(strange.code, Failure::Unsupported);
  EXPECT_NE(strange.text.find("has no hiprtcCreateProgram"), std::string::npos) << strange.text;
}

}  // namespace
}  // namespace gimbal::test
