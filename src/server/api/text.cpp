#include "server/api/text.h"

#include <chrono>
#include <ctime>
#include <random>

#include "base/format.h"
#include "base/json.h"
#include "base/text.h"

namespace gimbal::api {

std::string json_text(std::string_view s) { return dump(Json(s)); }
std::string quoted_briefly(std::string_view s) { return quoted(s); }

uint64_t random_seed() {
  std::random_device system;
  return uint64_t(system()) << 32 | system();
}

std::string new_id(const char* prefix) {
  static constexpr char kLetters[] = "0123456789abcdefghijklmnopqrstuv";
  std::string id = prefix;
  for (int part = 0; part < 2; part++) {
    uint64_t bits = random_seed();
    for (int i = 0; i < 12; i++, bits >>= 5) id += kLetters[bits & 31];
  }
  return id;
}

int64_t unix_time() { return std::time(nullptr); }

std::string iso_time(int64_t t) {
  const std::time_t at = t;
  std::tm utc{};
  gmtime_r(&at, &utc);
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc));
}

std::string time_text() {
  const int64_t ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count();
  std::string text = iso_time(ms / 1000);
  text.insert(text.size() - 1, format(".{:03}", ms % 1000));
  return text;
}

void add_event(std::string& out, std::string_view event, std::string_view data) {
  if (!event.empty()) out.append("event: ").append(event).append("\n");
  out.append("data: ").append(data).append("\n\n");
}

}  // namespace gimbal::api
