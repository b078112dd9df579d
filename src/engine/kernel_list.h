// The kernels of all devices as plain data, from the same rows that the kernel choice reads.
#pragma once
#include <string>
#include <vector>

#include "discovery/registry.h"
#include "tensor/dtype.h"

namespace gimbal {

struct ListedKernel {
  std::string name, device, variant;
  int op = 0;  // OpKind
  int rank = 0;
  bool exact = false;
  DTypeSet first = 0, second = 0, output = 0;          // formats of inputs and output
  int64_t k_multiple = 0, min_rows = 0, max_rows = 0;  // 0: any
  std::string limits;                                  // for people: "k a multiple of 32, rows from 8"
  std::string needs, missing;                          // kernel_registry.h
};

struct KernelList {
  std::vector<ListedKernel> kernels;  // by op, then by device and in the order of its table
  std::vector<std::string> notes;     // unavailable devices and backends, with reasons
};
KernelList list_kernels(Registry&);

}  // namespace gimbal
