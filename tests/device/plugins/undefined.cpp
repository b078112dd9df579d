// A plugin that was built against a library with a function that the one at hand does not have.
#include "device/abi.h"

extern "C" int function_that_nobody_has(void);
extern "C" __attribute__((visibility("default"))) const gimbal_plugin* gimbal_plugin_entry(void) {
  return function_that_nobody_has() ? nullptr : nullptr;
}
