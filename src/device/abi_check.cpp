// The sizes and offsets that plugins were built with. A change of one of them breaks the contract: raise
// GIMBAL_ABI_VERSION, or append new fields at the end.
#include <type_traits>

#include "device/values.h"

namespace gimbal {
namespace {

#define AT(type, field, bytes) static_assert(offsetof(type, field) == (bytes))
#define SIZE(type, bytes) static_assert(sizeof(type) == (bytes) && std::is_trivially_copyable_v<type>)

SIZE(gimbal_value, 152);
AT(gimbal_value, dtype, 4);
AT(gimbal_value, offset, 8);
AT(gimbal_value, bytes, 16);
AT(gimbal_value, dim, 24);
AT(gimbal_value, stride, 88);

SIZE(gimbal_op, 192);
AT(gimbal_op, kernel, 2);
AT(gimbal_op, inputs, 4);
AT(gimbal_op, outputs, 6);
AT(gimbal_op, in, 8);
AT(gimbal_op, out, 24);
AT(gimbal_op, param, 32);

SIZE(gimbal_program, 32);
SIZE(gimbal_step, 8);
SIZE(gimbal_operand, 16);
SIZE(gimbal_limit, 32);
AT(gimbal_limit, multiple, 12);
AT(gimbal_limit, min, 16);

SIZE(gimbal_kernel_info, 208);
AT(gimbal_kernel_info, needs, 4);
AT(gimbal_kernel_info, name, 8);
AT(gimbal_kernel_info, op, 16);
AT(gimbal_kernel_info, numerics, 20);
AT(gimbal_kernel_info, in, 24);
AT(gimbal_kernel_info, out, 152);
AT(gimbal_kernel_info, params, 184);
AT(gimbal_kernel_info, limits, 192);
AT(gimbal_kernel_info, tolerance, 200);

SIZE(gimbal_device_info, 80);
AT(gimbal_device_info, name, 8);
AT(gimbal_device_info, features, 32);
AT(gimbal_device_info, driver, 56);
SIZE(gimbal_limits, 48);

SIZE(gimbal_plugin, 64);
AT(gimbal_plugin, abi_version, 4);
AT(gimbal_plugin, backend, 24);
AT(gimbal_plugin, ops, 32);

AT(gimbal_backend, struct_size, 4);
AT(gimbal_backend, device_count, 16);
AT(gimbal_backend, last_error, 144);
AT(gimbal_backend, measure, 152);
AT(gimbal_backend, adopt, 184);
AT(gimbal_backend, host_pointer, 192);
AT(gimbal_backend, add_kernel, 200);
SIZE(gimbal_backend, 208);

}  // namespace
}  // namespace gimbal
