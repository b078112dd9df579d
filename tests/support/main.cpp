// main() of every test. `--file=NAME`, where several files are one program (tests/merged.cmake), runs the
// tests of NAME.cpp and reports under that name.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace {

// What --gtest_filter takes: the tests of one file.
std::string filter_of(const std::string& file) {
  std::string filter;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      if (std::string_view(test.file()).ends_with("/" + file + ".cpp"))
        filter += std::string(suite.name()) + "." + test.name() + ":";
    }
  }
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  std::string file;
  if (constexpr std::string_view kOption = "--file=";
      argc > 1 && std::string_view(argv[1]).starts_with(kOption)) {
    file = std::string_view(argv[1]).substr(kOption.size());
    argv[1] = argv[0], ++argv, --argc;
    std::string& report = testing::GTEST_FLAG(output);  // GTEST_OUTPUT=xml:FOLDER/
    if (report.ends_with('/')) report += file + ".xml";
  }
  testing::InitGoogleTest(&argc, argv);
  if (!file.empty()) {
    const std::string filter = filter_of(file);
    if (filter.empty()) {
      std::fprintf(stderr, "%s has no test of a file %s.cpp\n", argv[0], file.c_str());
      return 1;
    }
    if (testing::GTEST_FLAG(filter) == "*") testing::GTEST_FLAG(filter) = filter;
  }
  return RUN_ALL_TESTS();
}
