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
  std::string not_counted = {};  // why `runs` is not known, and the kernel only the one chosen; empty: it is
};

// Adds the ops of a program that ran as `executable` on `device` to a receipt. Where the device does not
// count, or fails to, the lines say so: no op is ever missing.
void add_to_receipt(std::vector<ReceiptLine>& receipt, const Device& device, const Executable& executable,
                    const Program& program, const std::vector<Choice>& choices, const KernelPreference& wish);

// Each reason of the lines that are not counted, once.
std::vector<std::string> not_counted(const std::vector<ReceiptLine>& receipt);

// What was run since `before`, an earlier receipt of the same.
std::vector<ReceiptLine> since(std::vector<ReceiptLine> now, const std::vector<ReceiptLine>& before);

// What should not be in a receipt: an op that ran, or may have, on another device than `device`, which the
// rest ran on. One line each: "2 ops mat_mul q8_0 ran on cpu:0 (...)".
std::vector<std::string> elsewhere(const std::vector<ReceiptLine>& receipt, const std::string& device);

}  // namespace gimbal
