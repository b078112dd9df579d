// Serialization of a BackendReport, sent by a probing process. The sender runs a driver that may be broken,
// so the bytes are treated as hostile input.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "discovery/report.h"

namespace gimbal {

inline constexpr size_t kMaxReportBytes = 1 << 20;
inline constexpr size_t kMaxProbedDevices = 256;
inline constexpr size_t kMaxDepends = 2048;  // longer lists are not sent at all

std::string encode(const BackendReport&);

// The size of the message with this beginning; 0: not known yet; nullopt if it is no message.
std::optional<size_t> message_bytes(std::string_view begin);
// nullopt if the message is incomplete, has trailing bytes, or contradicts itself. Control characters in
// texts become spaces; ids are derived from name and index rather than read.
std::optional<BackendReport> decode(std::string_view message);

}  // namespace gimbal
