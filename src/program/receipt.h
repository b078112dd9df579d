// What really ran, and why there: op -> device -> kernel -> reason, from the counters of the backends and not
// from what was meant to run.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "program/place.h"

namespace gimbal {

struct ReceiptLine {                            // ops of one kind that one kernel computes for one reason
  std::string op, format, device, kernel, why;  // "mat_mul", "q8_0", "cpu:0", "cpu.vnni.mat_mul.q8_0", ...
  int ops = 0;                                  // in the program
  uint64_t runs = 0;                            // of all of them together, counted where they ran
};

// Adds the ops of a program that ran as `executable` on `device` to a receipt. Errors: Unsupported when the
// backend does not count.
Status add_to_receipt(std::vector<ReceiptLine>& receipt, const Device& device, const Executable& executable,
                      const Program& program, const std::vector<Choice>& choices);

// What was run since `before`, an earlier receipt of the same.
std::vector<ReceiptLine> since(std::vector<ReceiptLine> now, const std::vector<ReceiptLine>& before);

// What should not be in a receipt: an op that ran on another device than `device`, which the rest ran on. One
// line each: "2 ops mat_mul q8_0 ran on cpu:0 (...)".
std::vector<std::string> elsewhere(const std::vector<ReceiptLine>& receipt, const std::string& device);

}  // namespace gimbal
