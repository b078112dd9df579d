// A BackendReport as bytes: what a probing process sends. Whoever sends them runs a driver that may be
// broken, so they are read as hostile input.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "discovery/report.h"

namespace gimbal {

inline constexpr size_t kMaxReportBytes = 1 << 20;
inline constexpr size_t kMaxProbedDevices = 256;
inline constexpr size_t kMaxDepends = 2048;  // of more than these, none is told

std::string encode(const BackendReport&);

// How many bytes the message is long that begins so; 0: not known yet; nothing when it is no message.
std::optional<size_t> message_bytes(std::string_view begin);
// Nothing when the message is not whole, goes on behind its end, or contradicts itself. Control characters in
// texts become spaces; ids are made of name and index, not taken.
std::optional<BackendReport> decode(std::string_view message);

}  // namespace gimbal
