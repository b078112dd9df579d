// libFuzzer over the GGUF reader: whatever the bytes are, parse() answers with an error that says something
// or with an object whose every view lies inside them.
#include <map>
#include <string>

#include "files/gguf.h"
#include "require.h"
#include "tensor/format.h"

namespace {

using namespace gimbal;

// Reads the ends of a view, so that AddressSanitizer sees one that is wrong.
void touch(Bytes whole, Bytes part) {
  require(part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
  if (part.empty()) return;
  volatile auto ends = unsigned(part.front()) + unsigned(part.back());
  (void)ends;
}

Bytes bytes_of(std::string_view s) { return {reinterpret_cast<const std::byte*>(s.data()), s.size()}; }

void use(const ModelSource& gguf, Bytes whole) {
  for (const auto& [key, entry] : gguf.metadata()) {
    touch(whole, bytes_of(key));
    require(gguf.metadata().find(key) == &entry);
    (void)gguf.metadata().unsigned_integer(key);
    (void)gguf.metadata().number(key);
    (void)gguf.metadata().boolean(key);
    if (const auto text = gguf.metadata().string(key)) touch(whole, bytes_of(*text));
    const MetadataArray* array = gguf.metadata().array(key);
    if (!array) continue;
    touch(whole, array->data);
    const auto strings = array->strings();
    for (const auto s : strings) touch(whole, bytes_of(s));
    require(strings.size() + array->integers().size() + array->floats().size() == array->count);
  }
  std::map<const std::byte*, const std::byte*> taken;  // begin to end, so in order of begin
  for (const StoredTensor& t : gguf.tensors()) {
    require(t.bytes > 0 && t.offset <= whole.size() && t.bytes <= whole.size() - t.offset);
    const Bytes data = whole.subspan(t.offset, t.bytes);
    require(taken.emplace(data.data(), data.data() + data.size()).second);
    touch(whole, bytes_of(t.name));
    touch(whole, data);
    require(gguf.tensors().find(t.name) == &t && t.rank >= 1 && t.rank <= 4);
    for (const int64_t d : t.dim) require(d > 0 && d <= INT32_MAX);
    const int64_t rows = t.dim[1] * t.dim[2] * t.dim[3];
    require(int64_t(t.bytes) == rows * row_bytes(t.type, t.dim[0]) + tensor_tail_bytes(t.type));
  }
  const std::byte* free = whole.data();
  for (const auto& [begin, end] : taken) {
    require(begin >= free);
    free = end;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes whole(reinterpret_cast<const std::byte*>(data), size);
  const auto parsed = parse_gguf(whole, "fuzzed.gguf");
  if (parsed) use(*parsed, whole);
  else require(parsed.error().message.find("'fuzzed.gguf' at byte ") == 0);
  return 0;
}
