// The plan for experts on disk, some of them in memory (RunOptions::experts_from_disk): the matrices of each
// router, the most bytes of a step, and the division of programs, so that routes are known before an op reads
// experts. runtime/expert_cache.h reads them.
#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "files/file_pages.h"

namespace gimbal {

struct Bucket;
struct Stage;

// The expert matrices whose products take the routes of one router.
struct ExpertGroup {
  struct Matrix {
    size_t weight;  // index into Program::weights of every program of the stage
    int64_t rows;   // of one expert
  };
  std::vector<Matrix> matrices;
  int experts = 0, chosen = 0;  // in all; by a row
};

// The experts of one part of a program.
struct PartExperts {
  int group = -1;       // -1: it reads none
  uint16_t routes = 0;  // the value in the program that has them
};

struct DiskExperts {
  std::vector<ExpertGroup> groups;  // none: all weights are in memory
  // Bytes of memory, in whole pages:
  uint64_t in_memory = 0;  // of the other weights
  uint64_t budget = 0;     // of experts at one time
  uint64_t all = 0;        // of all experts
  uint64_t least = 0;      // of experts that one part of a step can choose
  uint64_t of_token = 0;   // of the experts that a token chooses, in all layers
  uint64_t tables = 0;     // of the records about pages and experts
};

// Divides the parts of a bucket: each has experts of one router at most, and begins behind that router. Fills
// Bucket::experts, and adds the groups that it finds. Experts that no router chooses stay in memory.
void divide_at_experts(Bucket&, std::vector<ExpertGroup>&);

// Where an expert of a stage's weights begins and ends, in the order of the matrices.
FilePages::Range range_of(const Stage&, const ExpertGroup::Matrix&, int expert);

// The pages of the weights but those left out (by index into Program::weights), by rising offset and
// disjoint.
std::vector<FilePages::Range> pages_of(const Stage&, const std::vector<bool>& left_out);
// The pages of the weights that stay in memory.
std::vector<FilePages::Range> pages_in_memory(const Stage&);

// Fills in the bytes, for the places that the weights have now, and the stage's memory. `wish`: of the
// budget. Errors: Usage if it is too small for a step.
Status plan_disk_experts(Stage&, uint64_t wish);

}  // namespace gimbal
