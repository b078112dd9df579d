// A plugin that is linked with a vendor's library, as ours never are: where that is not installed, the loader
// refuses.
#include "device/abi.h"

extern "C" int foreign_library(void);
extern "C" __attribute__((visibility("default"))) const gimbal_plugin* gimbal_plugin_entry(void) {
  return foreign_library() ? nullptr : nullptr;
}
