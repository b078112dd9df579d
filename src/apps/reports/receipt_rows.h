// The kernels that ran, as rows of --stats: the same in every program that generates.
#pragma once
#include "apps/toolkit/terminal.h"
#include "program/receipt.h"

namespace gimbal {

// One row per kernel that ran, or that was chosen on a device that does not count launches; also notes such
// devices, and ops that ran on a device other than `device`.
void add_receipt(Table&, const std::vector<ReceiptLine>& receipt, const std::string& device);

}  // namespace gimbal
