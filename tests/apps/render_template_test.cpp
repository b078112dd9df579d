// gimbal render-template: the program from outside.
#include <gtest/gtest.h>

#include <ctime>

#include "support/cli.h"

namespace gimbal::test {
namespace {

std::string written(const std::string& name, const std::string& contents) {
  const std::string path = temporary_path(name);
  EXPECT_TRUE(write_file(path, contents));
  return path;
}

const char* const kHello =
    R"({"messages": [{"role": "user", "content": "Hello!"}], "add_generation_prompt": true})";

TEST(RenderTemplate, PrintsTheGoldenBytes) {
  const Json file = read_json(golden_dir() + "/chat/openai-gpt-oss-120b.json");
  const std::string source = written("t.jinja", file["template"]);
  for (const Json& c : file["cases"]) {
    const std::string input = written("v.json", c["context"].dump());
    const Ran r = gimbal({"render-template", "--template", source, "--input", input, "--now", file["now"]});
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.out, c["expected"].get<std::string>()) << c["name"];
    EXPECT_EQ(r.err, "");
  }
}

TEST(RenderTemplate, ReadsStdinAndWritesJson) {
  const std::string source = written("t.jinja", "{{ messages[0].content }}\n");
  const Ran r =
      gimbal({"render-template", "--template", source, "--input", "-", "--json"}, {.input = kHello});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(json_of(r), Json({{"prompt", "Hello!"}}));
}

TEST(RenderTemplate, WhatATemplateRaisesIsExitCode1) {
  const std::string source = written("t.jinja", "a\n{{ raise_exception('Roles must alternate') }}");
  Ran r = gimbal({"render-template", "--template", source, "-i", "-"}, {.input = kHello});
  EXPECT_EQ(r.code, 1);
  EXPECT_EQ(r.out, "");
  EXPECT_SAYS(r.err, "line 2, in {{ }}: Roles must alternate");
  r = gimbal({"render-template", "--template", written("t.jinja", "{% if %}"), "-i", "-"}, {.input = kHello});
  EXPECT_EQ(r.code, 1);
  EXPECT_SAYS(r.err, "chat template, line 1: ");
}

TEST(RenderTemplate, AFileWithoutTemplateSaysSo) {
  const Ran r = gimbal({"render-template", "--model", "default", "--input", "-"}, {.input = kHello});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, "Hello!\n");
  EXPECT_SAYS(r.err, "the file has no chat template, and its vocabulary suggests none");
}

TEST(RenderTemplate, BadUsage) {
  const std::string source = written("t.jinja", "x");
  EXPECT_EQ(gimbal({"render-template", "--input", "-"}, {.input = kHello}).code, 2);
  EXPECT_EQ(gimbal({"render-template", "--template", source, "--model", "default", "--input", "-"}).code, 2);
  EXPECT_EQ(gimbal({"render-template", "--template", source}).code, 2);
  EXPECT_EQ(gimbal({"render-template", "--template", source, "--input", "-"}, {.input = "{"}).code, 2);
  EXPECT_EQ(gimbal({"render-template", "--template", source, "--input", "-"}, {.input = "[]"}).code, 2);
  EXPECT_EQ(
      gimbal({"render-template", "--template", source, "--input", "-", "--now", "soon"}, {.input = kHello})
          .code,
      2);
  const Ran none =
      gimbal({"render-template", "--template", "/no/such/file", "--input", "-"}, {.input = kHello});
  EXPECT_EQ(none.code, 1);
  EXPECT_SAYS(none.err, "cannot read '/no/such/file'");
}

TEST(RenderTemplate, TimesMayBeShort) {
  const std::string source = written("t.jinja", "{{ strftime_now('%F %T %a') }}");
  const auto at = [&](const std::string& now) {
    return gimbal({"render-template", "--template", source, "--input", "-", "--now", now}, {.input = kHello})
        .out;
  };
  EXPECT_EQ(at("2024-07-26"), "2024-07-26 00:00:00 Fri");
  EXPECT_EQ(at("2024-07-26 12:30"), "2024-07-26 12:30:00 Fri");
  EXPECT_EQ(at("2024-02-29T23:59:58.25Z"), "2024-02-29 23:59:58 Thu");
  EXPECT_EQ(at("2024-02-29T23:59:58+02:00"), "2024-02-29 23:59:58 Thu");
}

TEST(RenderTemplate, WithoutATimeItIsNow) {
  const std::string source = written("t.jinja", "{{ strftime_now('%Y-%m-%d') }}");
  const auto today = [] {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    return format("{:04}-{:02}-{:02}", local.tm_year + 1900, local.tm_mon + 1, local.tm_mday);
  };
  const std::string before = today();
  const std::string said =
      gimbal({"render-template", "--template", source, "--input", "-"}, {.input = kHello}).out;
  EXPECT_TRUE(said == before || said == today()) << said << ", and it is " << before;
}

}  // namespace
}  // namespace gimbal::test
