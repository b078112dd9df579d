// The files of scripts/check/hostile_files.py: made for a test, or a folder that was made before.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gimbal::test {

struct HostileFile {
  nlohmann::ordered_json about;  // the line of the manifest
  std::string folder;

  std::string kind() const { return about["kind"]; }
  std::string verdict() const { return about["verdict"]; }
  std::string rule() const { return about["rule"]; }
  std::string data() const;  // read from the disk; fails the test if the hash is another
};

// Runs the script with these arguments into a temporary folder. Fails the test if it cannot.
std::vector<HostileFile> make_hostile_files(const std::vector<std::string>& arguments);
// Of a folder's manifest.jsonl.
std::vector<HostileFile> read_manifest(const std::string& folder);

}  // namespace gimbal::test
