// Helpers of the tests that run the program `gimbal` itself.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/format.h"
#include "support/golden.h"
#include "support/run_program.h"

namespace gimbal::test {

using Json = nlohmann::ordered_json;
using Args = std::vector<std::string>;

// The words of a command line, and more.
inline Args with(Args args, const Args& more) {
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

// Nothing outside the tests is found by `gimbal models`.
inline const std::map<std::string, std::string>& quiet_home() {
  static const std::map<std::string, std::string> e = [] {
    const std::string home = temporary_path("home");
    std::filesystem::create_directories(home);
    return std::map<std::string, std::string>{
        {"HOME", home},        {"XDG_CACHE_HOME", ""},      {"XDG_CONFIG_HOME", ""},
        {"GIMBAL_MODELS", ""}, {"GIMBAL_BACKEND_PATH", ""}, {"HF_HOME", ""},
        {"HF_HUB_CACHE", ""},  {"OLLAMA_MODELS", ""},       {"HUGGINGFACE_HUB_CACHE", ""}};
  }();
  return e;
}

inline Ran gimbal(Args args, RunSetup setup = {}) {
  const char* program = std::getenv("GIMBAL");
  if (!program) {
    ADD_FAILURE() << "the environment variable GIMBAL must name the program (ctest sets it)";
    return {};
  }
  for (const auto& [name, value] : quiet_home()) setup.environment.emplace(name, value);
  args.insert(args.begin(), program);
  return run_program(args, setup);
}

inline Json json_of(const Ran& r) {
  Json j = Json::parse(r.out, nullptr, false);
  EXPECT_FALSE(j.is_discarded()) << "not JSON: " << r.out << r.err;
  return j;
}

// Of output that has JSON on each line.
inline std::vector<Json> lines_of(const Ran& r) {
  std::vector<Json> all;
  for (size_t at = 0, end; at < r.out.size(); at = end + 1) {
    end = std::min(r.out.find('\n', at), r.out.size());
    all.push_back(Json::parse(r.out.substr(at, end - at), nullptr, false));
    EXPECT_FALSE(all.back().is_discarded()) << r.out.substr(at, end - at);
  }
  return all;
}

inline void expect_keys(const Json& j, const Args& keys) {
  for (const std::string& k : keys) EXPECT_TRUE(j.contains(k)) << k << " is missing in " << j.dump(2);
}

inline std::string joined(const Json& ids) {
  std::string out;
  for (const Json& id : ids) out += format("{}{}", out.empty() ? "" : ",", id.get<int>());
  return out;
}

inline std::string story_file(const std::string& type) {
  return golden_dir() + "/stories/stories260K-" + type + ".gguf";
}
inline const Json& story() {
  static const Json j = read_json(golden_dir() + "/stories/stories260K-f32.json");
  return j["cases"][0];
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
#define EXPECT_SAYS(text, part) \
  EXPECT_TRUE(contains(text, part)) << "expected '" << (part) << "' in:\n" << (text)

}  // namespace gimbal::test
