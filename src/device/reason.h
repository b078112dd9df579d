// Reasons why a backend or device is unavailable, as stable identifiers: Error::reason,
// BackendReport::reason; "code" in JSON. Their meaning never changes; docs/cli.md lists them for users.
#pragma once

// X(constant, word): the only list of them.
#define GIMBAL_REASONS(X)                                                                     \
  X(kNotBuilt, "not-built")             /* this program knows it and was built without it */  \
  X(kPluginMissing, "plugin-missing")   /* the file that was asked for is not there */        \
  X(kLibraryMissing, "library-missing") /* a vendor's library: the driver is not installed */ \
  X(kAbiMismatch, "abi-mismatch")       /* built for another version of the contract */       \
  X(kSymbolMissing, "symbol-missing")   /* not exported, or not found by the loader */        \
  X(kBrokenPlugin, "broken-plugin")     /* damaged, foreign, or against the contract */       \
  X(kDriverTooOld, "driver-too-old")                                                          \
  X(kNoDevice, "no-device")                                                                   \
  X(kProbeCrashed, "probe-crashed")                                                           \
  X(kProbeTimeout, "probe-timeout")                                                           \
  X(kOpenFailed, "open-failed")                                                               \
  X(kNotEnoughMemory, "not-enough-memory")                                                    \
  X(kDeviceLost, "device-lost") /* while it computed */                                       \
  X(kVerificationFailed, "verification-failed")                                               \
  X(kSoftwareDevice, "software-device")                                                       \
  X(kDuplicateDevice, "duplicate-device")

namespace gimbal::reason {

#define GIMBAL_REASON(constant, word) inline constexpr const char* constant = word;
GIMBAL_REASONS(GIMBAL_REASON)
#undef GIMBAL_REASON

}  // namespace gimbal::reason
