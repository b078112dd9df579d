// Why a backend or a device cannot be had, as words for programs: Error::reason, BackendReport::code, JSON.
// They never change their meaning; docs/cli.md lists them for users.
#pragma once

namespace gimbal::reason {

inline constexpr const char* kNotBuilt = "not-built";  // this program knows it and was built without it
inline constexpr const char* kPluginMissing = "plugin-missing";    // the file that was asked for is not there
inline constexpr const char* kLibraryMissing = "library-missing";  // of a vendor: the driver is not installed
inline constexpr const char* kAbiMismatch = "abi-mismatch";      // built for another version of the contract
inline constexpr const char* kSymbolMissing = "symbol-missing";  // not exported, or not found by the loader
inline constexpr const char* kBrokenPlugin = "broken-plugin";    // damaged, foreign, or against the contract
inline constexpr const char* kDriverTooOld = "driver-too-old";
inline constexpr const char* kNoDevice = "no-device";
inline constexpr const char* kProbeCrashed = "probe-crashed";
inline constexpr const char* kProbeTimeout = "probe-timeout";
inline constexpr const char* kOpenFailed = "open-failed";
inline constexpr const char* kNotEnoughMemory = "not-enough-memory";
inline constexpr const char* kVerificationFailed = "verification-failed";
inline constexpr const char* kSoftwareDevice = "software-device";
inline constexpr const char* kDuplicateDevice = "duplicate-device";

}  // namespace gimbal::reason
