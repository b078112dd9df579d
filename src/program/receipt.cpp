#include "program/receipt.h"

#include <algorithm>
#include <tuple>

#include "base/format.h"

namespace gimbal {

Status add_to_receipt(std::vector<ReceiptLine>& receipt, const Device& device, const Executable& executable,
                      const Program& program, const std::vector<Choice>& choices) {
  auto counts = device.run_counts(executable, program.ops.size());
  if (!counts) return counts.error();
  const std::string id = device.id();
  for (size_t i = 0; i < program.ops.size(); i++) {
    const gimbal_op& op = program.ops[i];
    const char* kernel = device.kernel(choices[i].kernel).name;
    const char* in = info(DType(program.values[op.in[0]].dtype)).name;
    auto line = std::find_if(receipt.begin(), receipt.end(), [&](const ReceiptLine& l) {
      return l.kernel == kernel && l.device == id && l.format == in && l.why == choices[i].why;
    });
    if (line == receipt.end())
      line = receipt.insert(receipt.end(), {kOps[op.kind].name, in, id, kernel, choices[i].why, 0, 0});
    line->ops++;
    line->runs += (*counts)[i];
  }
  return Done{};
}

std::vector<ReceiptLine> since(std::vector<ReceiptLine> now, const std::vector<ReceiptLine>& before) {
  for (size_t i = 0; i < std::min(now.size(), before.size()); i++) now[i].runs -= before[i].runs;
  return now;
}

std::vector<std::string> elsewhere(const std::vector<ReceiptLine>& receipt, const std::string& device) {
  std::vector<std::string> all;
  for (const ReceiptLine& l : receipt)
    if (l.device != device && l.runs)
      all.push_back(format("{} op{} {} {} ran on {} ({} times, {}: {})", l.ops, l.ops == 1 ? "" : "s", l.op,
                           l.format, l.device, l.runs, l.kernel, l.why));
  return all;
}

}  // namespace gimbal
