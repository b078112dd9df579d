// The rows of the CPU backend with their private half, which the engine does not see.
#pragma once
#include <span>

#include "backends/cpu/kernel_abi.h"
#include "device/device.h"

namespace gimbal::test {

// Of a device of that backend opened for this alone; as many, and in the same order, as any device of it has.
class CpuRows {
 public:
  explicit CpuRows(const gimbal_backend& backend) : backend_(backend) {
    if (backend.open(0, nullptr, &device_) != GIMBAL_OK) return;
    size_t count = 0, stride = 0;
    const auto* first = backend.kernels(device_, &count, &stride);
    // The public half is the first member of the row.
    if (stride == sizeof(CpuKernel)) rows_ = {reinterpret_cast<const CpuKernel*>(first), count};
  }
  ~CpuRows() {
    if (device_) backend_.close(device_);
  }
  CpuRows(const CpuRows&) = delete;
  explicit CpuRows(const Device& d) : CpuRows(d.library()->table()) {}
  const CpuKernel& operator[](size_t i) const { return rows_[i]; }
  size_t size() const { return rows_.size(); }

 private:
  const gimbal_backend& backend_;
  gimbal_device* device_ = nullptr;
  std::span<const CpuKernel> rows_;
};

}  // namespace gimbal::test
