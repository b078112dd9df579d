#include "llama/protocol.h"

#include "base/bytes.h"
#include "base/format.h"
#include "base/json.h"

namespace gimbal::llama {
namespace {

constexpr uint32_t kMaxName = 256;

void put(std::string& to, uint32_t n) { to.append(reinterpret_cast<const char*>(&n), sizeof n); }
void put(std::string& to, std::span<const float> values) {
  to.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}
Error malformed(std::string message) { return {Code::Malformed, std::move(message), ""}; }

std::vector<float> floats(std::string_view bytes) {
  std::vector<float> out(bytes.size() / sizeof(float));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size() * sizeof(float));
  return out;
}

}  // namespace

std::string encoded(FrameKind kind, std::string_view payload) {
  std::string out;
  put(out, uint32_t(kind)), put(out, uint32_t(payload.size()));
  return out += payload;
}
std::string encoded(const Json& j) { return encoded(FrameKind::Json, dump(j)); }

std::string encoded_row(int position, std::span<const float> logits) {
  std::string payload;
  put(payload, uint32_t(position)), put(payload, logits);
  return encoded(FrameKind::Row, payload);
}

std::string encoded_tensor(const std::string& name, int64_t rows, std::span<const float> values) {
  std::string payload;
  put(payload, uint32_t(name.size())), put(payload, uint32_t(rows));
  put(payload, uint32_t(int64_t(values.size()) / rows));
  payload += name;
  put(payload, values);
  return encoded(FrameKind::Tensor, payload);
}

Result<std::optional<Frame>> FrameReader::next() {
  const std::string_view rest = std::string_view(held_).substr(read_);
  if (rest.size() < 8) return std::optional<Frame>();
  const auto kind = read_le<uint32_t>(rest.data()), bytes = read_le<uint32_t>(rest.data() + 4);
  if (kind < uint32_t(FrameKind::Json) || kind > uint32_t(FrameKind::Tensor))
    return malformed(format("a message of kind {}: expected 1 to 4", kind));
  if (bytes > kMaxFrame) return malformed(format("a message of {} bytes: at most {}", bytes, kMaxFrame));
  if (rest.size() - 8 < bytes) return std::optional<Frame>();
  std::optional<Frame> out = Frame{FrameKind(kind), std::string(rest.substr(8, bytes))};
  read_ += 8 + size_t(bytes);
  if (read_ == held_.size() || read_ > (size_t(1) << 20)) held_.erase(0, read_), read_ = 0;
  return out;
}

Result<RowFrame> read_row(std::string_view p) {
  if (p.size() < 4 || p.size() % 4) return malformed(format("a row of logits of {} bytes", p.size()));
  const auto position = read_le<uint32_t>(p.data());
  if (position > INT32_MAX) return malformed(format("a row of logits at position {}", position));
  return RowFrame{int(position), floats(p.substr(4))};
}

Result<TensorFrame> read_tensor(std::string_view p) {
  if (p.size() < 12) return malformed(format("a tensor of {} bytes", p.size()));
  const uint64_t name = read_le<uint32_t>(p.data()), rows = read_le<uint32_t>(p.data() + 4),
                 columns = read_le<uint32_t>(p.data() + 8);
  if (name > kMaxName || rows > kMaxFrame || columns > kMaxFrame ||
      p.size() != 12 + name + 4 * rows * columns)
    return malformed(format("a tensor of {} bytes with a name of {}, {} rows and {} columns", p.size(), name,
                            rows, columns));
  return TensorFrame{std::string(p.substr(12, name)), int(rows), int(columns), floats(p.substr(12 + name))};
}

}  // namespace gimbal::llama
