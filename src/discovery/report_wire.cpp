#include "discovery/report.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/bytes.h"
#include "base/format.h"

namespace gimbal {
namespace {

constexpr std::string_view kMagic = "gimbal-report-3\n";
constexpr size_t kMaxTextBytes = 1 << 14;
constexpr size_t kHead = kMagic.size() + sizeof(uint64_t);

bool is_control(char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }

// One description of the format for both directions.
template <class Stream>
void pass(Stream& s, std::string& t) {
  s.text(t);
}
template <class Stream>
void pass(Stream& s, DeviceReport& d) {
  s.number(d.index), s.text(d.name), s.number(d.memory_total);
  bool known = d.memory_free.has_value();
  uint64_t free = d.memory_free.value_or(0);
  s.number(known), s.number(free);
  d.memory_free = known ? std::optional(free) : std::nullopt;
  s.text(d.compute_capability), s.text(d.pci_id), s.text(d.driver), s.text(d.features);
  s.number(d.unified_memory), s.number(d.software), s.number(d.threads), s.number(d.kernels);
  s.number(d.named_kernels);
}
template <class Stream>
void pass(Stream& s, DeviceRefusal& d) {
  s.number(d.index), s.text(d.reason), s.text(d.message), s.text(d.remedy);
}
template <class Stream>
void pass(Stream& s, BackendReport& r) {
  s.text(r.backend), s.text(r.reason), s.text(r.message), s.text(r.remedy);
  s.list(r.devices, kMaxProbedDevices), s.list(r.refused, kMaxProbedDevices);
  s.list(r.depends, kMaxDepends);
}

struct Writer {
  std::string out;
  template <class T>
  void number(T& v) {
    const uint64_t wide = uint64_t(v);
    out.append(reinterpret_cast<const char*>(&wide), sizeof wide);
  }
  void text(std::string& t) {
    if (t.size() > kMaxTextBytes) t.resize(kMaxTextBytes);
    size_t n = t.size();
    number(n), out += t;
  }
  template <class T>
  void list(std::vector<T>& l, size_t) {
    size_t n = l.size();
    number(n);
    for (T& x : l) pass(*this, x);
  }
};

struct Reader {
  std::string_view in;
  bool bad = false;
  uint64_t word() {
    if (in.size() < sizeof(uint64_t)) return bad = true, 0;
    const uint64_t v = read_le<uint64_t>(in.data());
    in.remove_prefix(sizeof v);
    return v;
  }
  template <class T>
  void number(T& v) {
    const uint64_t wide = word();
    v = T(wide);
    if (uint64_t(v) != wide) bad = true;
  }
  void text(std::string& t) {
    const uint64_t n = word();
    if (n > kMaxTextBytes || n > in.size()) bad = true;
    if (bad) return;
    t = in.substr(0, n);
    in.remove_prefix(n);
    std::replace_if(t.begin(), t.end(), is_control, ' ');
  }
  template <class T>
  void list(std::vector<T>& l, size_t most) {
    const uint64_t n = word();
    if (n > most) bad = true;
    for (uint64_t i = 0; i < n && !bad; i++) pass(*this, l.emplace_back());
  }
};

bool can_be_sent(const std::vector<std::string>& depends) {
  size_t bytes = 0;
  for (const std::string& d : depends) {
    bytes += d.size();
    if (d.size() > kMaxTextBytes || std::any_of(d.begin(), d.end(), is_control)) return false;
  }
  return depends.size() <= kMaxDepends && bytes <= kMaxReportBytes / 4;
}

}  // namespace

std::string encode(const BackendReport& report) {
  BackendReport copy = report;
  // A partial list would be worse than none.
  if (!can_be_sent(copy.depends)) copy.depends.clear();
  Writer w{std::string(kMagic) + std::string(sizeof(uint64_t), '\0')};
  pass(w, copy);
  const uint64_t all = w.out.size();
  std::memcpy(w.out.data() + kMagic.size(), &all, sizeof all);
  return w.out;
}

std::optional<size_t> message_bytes(std::string_view begin) {
  const size_t n = std::min(begin.size(), kMagic.size());
  if (begin.substr(0, n) != kMagic.substr(0, n)) return std::nullopt;
  if (begin.size() < kHead) return 0;
  const uint64_t all = read_le<uint64_t>(begin.data() + kMagic.size());
  return all < kHead || all > kMaxReportBytes ? std::nullopt : std::optional<size_t>(all);
}

std::optional<BackendReport> decode(std::string_view message) {
  const auto bytes = message_bytes(message);
  if (!bytes || *bytes < kHead || *bytes != message.size()) return std::nullopt;
  Reader reader{message.substr(kHead)};
  BackendReport r;
  pass(reader, r);
  if (reader.bad || !reader.in.empty()) return std::nullopt;
  // Each device must occur once, and a backend has either devices or a reason.
  std::set<int> seen;
  for (DeviceReport& d : r.devices) {
    d.id = format("{}:{}", r.backend, d.index);
    if (d.index < 0 || !seen.insert(d.index).second) return std::nullopt;
  }
  for (const DeviceRefusal& d : r.refused)
    if (d.index < 0 || !seen.insert(d.index).second) return std::nullopt;
  r.present = true, r.available = !r.devices.empty();
  if (r.available != r.reason.empty()) return std::nullopt;
  return r;
}

}  // namespace gimbal
