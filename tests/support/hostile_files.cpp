#include "support/hostile_files.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/file.h"
#include "support/golden.h"
#include "support/run_program.h"
#include "support/sha256.h"

namespace gimbal::test {

std::string HostileFile::data() const {
  const std::string path = folder + "/" + about["file"].get<std::string>();
  auto read = read_file(path);
  if (!read) {
    ADD_FAILURE() << read.error().message;
    return "";
  }
  EXPECT_EQ(sha256(*read), about["sha256"].get<std::string>()) << path;
  return *std::move(read);
}

std::vector<HostileFile> make_hostile_files(const std::vector<std::string>& arguments) {
  const std::string folder = temporary_path("hostile");
  std::vector<std::string> command = {
      "/usr/bin/env", "python3", std::string(GIMBAL_SOURCE_DIR) + "/scripts/check/hostile_files.py", folder};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const Ran made = run_program(command);
  EXPECT_EQ(made.code, 0) << made.err;
  return read_manifest(folder);
}

std::vector<HostileFile> read_manifest(const std::string& folder) {
  std::vector<HostileFile> files;
  std::ifstream lines(folder + "/manifest.jsonl");
  for (std::string line; std::getline(lines, line);)
    files.push_back({nlohmann::ordered_json::parse(line), folder});
  EXPECT_FALSE(files.empty()) << folder << " has no manifest.jsonl";
  return files;
}

}  // namespace gimbal::test
