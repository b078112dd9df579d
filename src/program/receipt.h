// Execution receipts: op -> device -> kernel -> reason, from the backends' run counters rather than from the
// plan.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "program/place.h"
#include "program/program.h"

namespace gimbal {

struct ReceiptLine {                            // ops of one kind with the same kernel and reason
  std::string op, format, device, kernel, why;  // "mat_mul", "q8_0", "cpu:0", "cpu.vnni.mat_mul.q8_0", ...
  int ops = 0;                                  // number in the program
  uint64_t runs = 0;                            // counted executions of all of them
  std::string not_counted = {};  // why `runs` is unknown and the kernel only planned; empty if counted
};

// Adds the ops of a program, or a part of them, that ran as `executable` on `device` to a receipt. If the
// device does not count, or counting fails, the lines state it: no op is ever missing.
void add_to_receipt(std::vector<ReceiptLine>& receipt, const Device& device, const Executable& executable,
                    const Program& program, const std::vector<Choice>& choices, const KernelPreference& wish,
                    std::optional<OpRange> part = {});

// The distinct reasons of uncounted lines.
std::vector<std::string> not_counted(const std::vector<ReceiptLine>& receipt);

// The runs since `before`, an earlier receipt of the same programs.
std::vector<ReceiptLine> since(std::vector<ReceiptLine> now, const std::vector<ReceiptLine>& before);

// Ops that ran, or may have run, on another device than `device`, where all should have run. One line each:
// "2 ops mat_mul q8_0 ran on cpu:0 (...)".
std::vector<std::string> elsewhere(const std::vector<ReceiptLine>& receipt, const std::string& device);

}  // namespace gimbal
