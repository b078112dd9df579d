#include "apps/reports/receipt_rows.h"

#include <algorithm>

#include "base/format.h"

namespace gimbal {

void add_receipt(Table& t, const std::vector<ReceiptLine>& receipt, const std::string& device) {
  const bool split = std::any_of(receipt.begin(), receipt.end(),
                                 [&](const ReceiptLine& l) { return l.device != receipt[0].device; });
  for (const ReceiptLine& l : receipt) {
    const bool counted = l.not_counted.empty();
    if (counted && !l.runs) continue;
    t.row({"  " + l.op + " " + l.format, format("{} x {}{}: {}", counted ? format("{}", l.runs) : "?",
                                                l.kernel, split ? " on " + l.device : "", l.why)});
  }
  for (const std::string& why : not_counted(receipt))
    t.row({"not counted", printable(why) + ": these kernels were chosen for it; their runs are not counted"});
  for (const std::string& line : elsewhere(receipt, device)) t.row({"elsewhere", line});
}

}  // namespace gimbal
