#include "program/receipt.h"

#include <algorithm>
#include <tuple>

#include "base/format.h"

namespace gimbal {

void add_to_receipt(std::vector<ReceiptLine>& receipt, const Device& device, const Executable& executable,
                    const Program& program, const std::vector<Choice>& choices, const KernelPreference& wish,
                    std::optional<OpRange> part) {
  const OpRange ops = part.value_or(OpRange{0, program.ops.size()});
  const auto counts = device.run_counts(executable, ops.end - ops.begin);
  const std::string id = device.id();
  for (size_t i = ops.begin; i < ops.end; i++) {
    const gimbal_op& op = program.ops[i];
    const char* kernel = device.kernel(choices[i].kernel).name;
    const char* in = info(DType(program.values[op.in[0]].dtype)).name;
    // The speed ratio differs between shapes: `gimbal explain` prints it.
    const std::string why = choices[i].why == Choice::Measured ? "measured" : why_chosen(choices[i], wish);
    auto line = std::find_if(receipt.begin(), receipt.end(), [&](const ReceiptLine& l) {
      return l.kernel == kernel && l.device == id && l.format == in && l.why == why;
    });
    if (line == receipt.end())
      line = receipt.insert(receipt.end(), {info(OpKind(op.kind)).name, in, id, kernel, why, 0, 0});
    line->ops++;
    if (counts) line->runs += (*counts)[i - ops.begin];
    else line->not_counted = counts.error().message;
  }
}

std::vector<std::string> not_counted(const std::vector<ReceiptLine>& receipt) {
  std::vector<std::string> all;
  for (const ReceiptLine& l : receipt)
    if (!l.not_counted.empty() && std::find(all.begin(), all.end(), l.not_counted) == all.end())
      all.push_back(l.not_counted);
  return all;
}

std::vector<ReceiptLine> since(std::vector<ReceiptLine> now, const std::vector<ReceiptLine>& before) {
  for (size_t i = 0; i < std::min(now.size(), before.size()); i++) now[i].runs -= before[i].runs;
  return now;
}

std::vector<std::string> elsewhere(const std::vector<ReceiptLine>& receipt, const std::string& device) {
  std::vector<std::string> all;
  for (const ReceiptLine& l : receipt)
    if (l.device != device && (l.runs || !l.not_counted.empty()))
      all.push_back(format("{} op{} {} {} {} {} ({}, {}: {})", l.ops, l.ops == 1 ? "" : "s", l.op, l.format,
                           l.not_counted.empty() ? "ran on" : "planned for", l.device,
                           l.not_counted.empty() ? format("{} times", l.runs) : "not counted", l.kernel,
                           l.why));
  return all;
}

}  // namespace gimbal
