// What really ran, as rows of --stats: the same in every program that generates.
#pragma once
#include "apps/shared/terminal.h"
#include "program/receipt.h"

namespace gimbal {

// A row for each kernel that ran, or was chosen on a device that does not count; and what is unusual: devices
// that do not count, and ops that ran on another device than `device`.
void add_receipt(Table&, const std::vector<ReceiptLine>& receipt, const std::string& device);

}  // namespace gimbal
