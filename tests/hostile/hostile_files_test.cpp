// A corpus of hostile files, made from seeds, and the public proofs of concept against other engines: each
// reader of gimbal gives the verdict that the rules give, in little memory, without a crash.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>

#include "base/format.h"
#include "hostile/readers.h"
#include "support/golden.h"
#include "support/operator_new.h"

namespace {

size_t at_once = SIZE_MAX, in_all = SIZE_MAX;  // may still be allocated
size_t refused_bytes = 0;

}  // namespace

static void allocating(size_t bytes) {
  if (bytes <= at_once && bytes <= in_all) {
    in_all -= in_all == SIZE_MAX ? 0 : bytes;
    return;
  }
  refused_bytes = std::max(refused_bytes, bytes);
  throw std::bad_alloc();
}

namespace gimbal::test {
namespace {

struct Guard {
  explicit Guard(Allowance a) { refused_bytes = 0, at_once = a.at_once, in_all = a.in_all; }
  ~Guard() { at_once = in_all = SIZE_MAX; }
};

// Rules that gimbal keeps in another way, by the table in docs/security.md: "| `rule` | refuse |", or accept.
std::map<std::string, std::string> deliberate_differences() {
  std::map<std::string, std::string> all;
  std::ifstream page(std::string(GIMBAL_SOURCE_DIR) + "/docs/security.md");
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `") || line.find('/') == std::string::npos) continue;
    const size_t end = line.find("` | ", 3), last = line.find(" | ", end + 4);
    if (end == std::string::npos || last == std::string::npos) continue;
    const std::string answer = line.substr(end + 4, last - end - 4);
    if (answer == "refuse" || answer == "accept" || answer == "bounded")
      all[line.substr(3, end - 3)] = answer;
  }
  return all;
}

struct Counts {
  size_t refused = 0, accepted = 0, wrong = 0, no_reader = 0;
};

// Reads all files; fails for each wrong answer, and returns the counts by kind.
std::map<std::string, Counts> read_all(const std::vector<HostileFile>& files) {
  const auto differences = deliberate_differences();
  std::map<std::string, Counts> counts;
  double longest = 0;
  std::string slowest;
  for (const HostileFile& file : files) {
    Counts& of_kind = counts[file.kind()];
    const std::string data = file.data();
    const std::string what = format("{} ({}: {})", file.about["file"].get<std::string>(), file.rule(),
                                    file.about["text"].get<std::string>());
    const auto begin = std::chrono::steady_clock::now();
    std::optional<Answer> answer;
    size_t too_much = 0;
    std::string thrown;
    {
      Guard guard(allowance(file.kind(), data.size()));
      try {
        answer = read_hostile(file, data);
      } catch (const std::exception& e) {
        at_once = in_all = SIZE_MAX;
        thrown = e.what();
      }
      too_much = refused_bytes;
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (seconds > longest) longest = seconds, slowest = what;
    if (!thrown.empty() || too_much) {
      ADD_FAILURE() << what << ": " << thrown << ", an allocation of " << too_much
                    << " bytes was one too many";
      of_kind.wrong++;
      continue;
    }
    if (!answer) {
      of_kind.no_reader++;
      continue;
    }
    (answer->accepted ? of_kind.accepted : of_kind.refused)++;
    std::string verdict = file.verdict();
    if (const auto other = differences.find(file.rule()); other != differences.end()) verdict = other->second;
    if ((verdict == "refuse" && answer->accepted) || (verdict == "accept" && !answer->accepted) ||
        !answer->broken.empty()) {
      ADD_FAILURE() << what << ": expected " << verdict << ", "
                    << (answer->accepted ? "accepted" : "refused: " + answer->error) << " " << answer->broken;
      of_kind.wrong++;
    }
  }
  std::printf("%-12s %8s %8s %8s %10s\n", "kind", "refused", "accepted", "wrong", "no reader");
  for (const auto& [kind, n] : counts)
    std::printf("%-12s %8zu %8zu %8zu %10zu\n", kind.c_str(), n.refused, n.accepted, n.wrong, n.no_reader);
  std::printf("slowest: %.2f s, %s\n", longest, slowest.c_str());
  return counts;
}

// With GIMBAL_HOSTILE_FILES=FOLDER those files, else a small corpus that has each rule once and more.
TEST(HostileFiles, GetTheVerdictOfTheRules) {
  const char* folder = std::getenv("GIMBAL_HOSTILE_FILES");
  const auto files = folder ? read_manifest(folder)
                            : make_hostile_files({"--seed", "1", "--count", fewer_cases() ? "300" : "600"});
  const auto counts = read_all(files);
  for (const char* kind :
       {"gguf", "vocabulary", "template", "grammar", "schema", "safetensors", "npy", "npz"}) {
    ASSERT_TRUE(counts.contains(kind)) << kind;
    EXPECT_GT(counts.at(kind).refused, 0u) << kind;
    EXPECT_GT(counts.at(kind).accepted, 0u) << kind;
  }
  for (const char* kind : {"png", "jpeg", "gif", "webp"})
    EXPECT_GT(counts.at(kind).no_reader, 0u) << kind << " has a reader now: let this test use it";
}

TEST(HostileFiles, AttacksOnOtherEnginesDoNothing) {
  auto files = make_hostile_files({"--attacks"});
  std::erase_if(files,
                [](const HostileFile& f) { return f.kind() == "http"; });  // apps/serve_attacks_test.cpp
  const auto counts = read_all(files);
  size_t in_all = 0;
  for (const auto& [kind, n] : counts) in_all += n.refused + n.accepted;
  EXPECT_EQ(in_all, files.size());
}

// A difference that is written down is one.
TEST(HostileFiles, DifferencesFromTheRulesAreWrittenDown) {
  const auto differences = deliberate_differences();
  EXPECT_FALSE(differences.empty());
  std::map<std::string, std::string> verdicts;
  for (const HostileFile& file : make_hostile_files({"--count", "600"}))
    verdicts[file.rule()] = file.verdict();
  for (const auto& [rule, answer] : differences) {
    ASSERT_TRUE(verdicts.contains(rule)) << rule << " is no rule of the corpus";
    EXPECT_NE(verdicts[rule], answer) << rule << ": no difference";
  }
}

// The guard itself must be able to fail.
TEST(HostileFiles, TheGuardRefusesMemory) {
  Guard guard({1000, 3000});
  EXPECT_THROW(::operator delete(::operator new(2000)), std::bad_alloc);
  for (int i = 0; i < 3; i++) ::operator delete(::operator new(900));
  EXPECT_THROW(::operator delete(::operator new(900)), std::bad_alloc);
  EXPECT_EQ(refused_bytes, 2000u);
}

}  // namespace
}  // namespace gimbal::test
