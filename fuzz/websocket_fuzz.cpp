// libFuzzer over the frames of WebSockets: whatever bytes come, they are read alike in one piece and byte by
// byte, nothing grows beyond the limit, and a text that is taken is UTF-8.
#include <algorithm>
#include <string>

#include "base/text.h"
#include "require.h"
#include "server/http/websocket.h"

namespace {

using namespace gimbal;
using namespace gimbal::http;

constexpr size_t kLimit = 1000;

// The messages, one after the other, and the code of a fault.
std::string read(std::string_view bytes, size_t at_once, MessageReader::From from) {
  MessageReader reader(from, kLimit);
  std::string input, all;
  for (size_t at = 0; at < bytes.size(); at += at_once) {
    input += bytes.substr(at, at_once);
    std::string_view rest = input;
    while (auto m = reader.next(rest)) {
      require(m->kind == Opcode::Text || (m->data.size() <= 125 && uint8_t(m->kind) >= 8));
      require(m->data.size() <= kLimit);
      if (m->kind == Opcode::Text || m->kind == Opcode::Close) require(is_utf8(m->data));
      all += char('a' + int(m->kind));
      all += std::to_string(m->code) + "\1" + m->data + "\2";
      // Written again, it is read as the same.
      if (m->kind == Opcode::Text) {
        const std::string again = frame(Opcode::Text, m->data, 0x12345678);
        MessageReader second(MessageReader::From::Client, kLimit);
        std::string_view left = again;
        const auto same = second.next(left);
        require(same && same->data == m->data && left.empty());
      }
    }
    require(rest.size() <= input.size());
    input.erase(0, input.size() - rest.size());
    if (const auto& fault = reader.fault()) {
      std::string_view more = "\x81\x80\1\1\1\1";
      require(!reader.next(more));
      return all + "fault " + std::to_string(fault->code);
    }
    require(input.size() < 14);  // the longest head: all else was taken
  }
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), std::min<size_t>(size, 8192));
  for (const auto from : {MessageReader::From::Client, MessageReader::From::Server}) {
    const std::string whole = read(bytes, bytes.size() + 1, from);
    require(whole == read(bytes, 1, from));
    require(whole == read(bytes, 7, from));
  }
  return 0;
}
