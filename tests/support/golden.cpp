// Finds the reference data and reads its three encodings: JSON, base64 and gzip. A mistake here (no folder, a
// file that cannot be read) ends the test executable with a failure: it must never look like a test that
// passed.
#include "support/golden.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace gimbal::test {
namespace {

namespace fs = std::filesystem;

const char* const kSubset = GIMBAL_SOURCE_DIR "/tests/data";
const char* const kWhole = GIMBAL_SOURCE_DIR "/../shared/golden";

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "reference data: %s\n", why.c_str());
  std::exit(1);
}

struct Choice {
  std::string folder;
  bool whole;
};

// GIMBAL_GOLDEN names a folder; set to nothing or to tests/data it asks for the subset.
Choice choose() {
  if (const char* named = std::getenv("GIMBAL_GOLDEN")) {
    std::string folder = named;
    if (folder.empty() || folder == "tests/data") return {kSubset, false};
    if (!fs::is_directory(folder)) give_up("GIMBAL_GOLDEN names '" + folder + "', which is not a folder");
    std::error_code unused;
    return {folder, !fs::equivalent(folder, kSubset, unused)};
  }
  if (fs::is_directory(kWhole)) return {fs::canonical(kWhole).string(), true};
  return {kSubset, false};
}

const Choice& chosen() {
  static const Choice choice = [] {
    Choice c = choose();
    if (!fs::is_directory(c.folder)) give_up("'" + c.folder + "' is missing; is the checkout complete?");
    if (c.whole) std::printf("reference data: the whole collection at %s\n", c.folder.c_str());
    else
      std::printf(
          "reference data: tests/data (subset); put the whole collection at ../shared/golden to run "
          "everything\n");
    std::fflush(stdout);
    return c;
  }();
  return choice;
}

std::string read_whole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  if (!in) give_up("cannot read '" + path + "'");
  return text;
}

// The folder lives as long as the process; a forked child that exits must not take it away from its parent.
struct TemporaryFolder {
  std::string path = (fs::temp_directory_path() / "gimbal-test-XXXXXX").string();
  pid_t owner = getpid();
  TemporaryFolder() {
    if (!mkdtemp(path.data()))
      give_up("cannot make a temporary folder '" + path + "': " + std::strerror(errno));
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (getpid() == owner) fs::remove_all(path, ignored);
  }
};

}  // namespace

const std::string& golden_dir() { return chosen().folder; }
bool whole_collection() { return chosen().whole; }

bool fewer_cases() { return std::getenv("GIMBAL_FEWER_CASES") != nullptr; }

std::vector<std::string> recurrent_models() {
  if (fewer_cases()) return {"jamba", "qwen35"};
  return {"mamba2", "jamba", "lfm2moe", "qwen35", "granitehybrid-q8"};
}

std::vector<std::string> golden_files(const std::string& folder, const std::string& suffix) {
  fs::path root = fs::path(golden_dir()) / folder;
  std::vector<std::string> files;
  std::error_code missing;  // a missing folder is reported as having no files
  for (const auto& entry : fs::directory_iterator(root, missing))
    if (entry.path().filename().string().ends_with(suffix)) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  if (files.empty())
    ADD_FAILURE() << "no reference data: nothing matches " << root.string() << "/*" << suffix;
  return files;
}

nlohmann::ordered_json read_json(const std::string& path) {
  auto json = nlohmann::ordered_json::parse(read_whole(path), nullptr, false);
  if (json.is_discarded()) give_up("'" + path + "' is not JSON");
  return json;
}

std::string base64_decode(const std::string& text) {
  static const std::array<int8_t, 256> value = [] {
    std::array<int8_t, 256> v;
    v.fill(-1);
    const char* alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int i = 0; i < 64; ++i) v[uint8_t(alphabet[i])] = int8_t(i);
    return v;
  }();
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  int held = 0;
  for (char c : text) {
    if (c == '=') break;
    int v = value[uint8_t(c)];
    if (v < 0) give_up(std::string("a base64 field holds the character '") + c + "'");
    bits = bits << 6 | uint32_t(v);
    if ((held += 6) >= 8) bytes.push_back(char(bits >> (held -= 8)));
  }
  return bytes;
}

std::vector<float> base64_floats(const std::string& text) {
  std::string bytes = base64_decode(text);
  if (bytes.size() % sizeof(float))
    give_up("a base64 field of float32 has " + std::to_string(bytes.size()) + " bytes");
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::string gunzip_file(const std::string& path) {
  gzFile in = gzopen(path.c_str(), "rb");
  if (!in) give_up("cannot open '" + path + "'");
  std::string bytes;
  std::vector<char> piece(1 << 18);
  int n;
  while ((n = gzread(in, piece.data(), unsigned(piece.size()))) > 0) bytes.append(piece.data(), size_t(n));
  int closed = gzclose_r(in);  // reports a file that ends in the middle of its stream
  if (n < 0 || closed != Z_OK) give_up("'" + path + "' does not unpack");
  return bytes;
}

std::string temporary_path(const std::string& name) {
  static const TemporaryFolder folder;
  return (fs::path(folder.path) / name).string();
}

}  // namespace gimbal::test
