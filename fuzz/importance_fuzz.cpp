// libFuzzer over importance matrices, in the GGUF form and the older binary one: for any bytes the reader
// gives an error with a message, or weights that an encoder can use. The same bytes are read as the rules of
// a quantized file: accepted rules, written as text, are read as the same rules.

#include "quantize/importance.h"
#include "quantize/importance_sums.h"
#include "quantize/mixture.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gimbal;
  const Bytes whole(reinterpret_cast<const std::byte*>(data), size);
  const auto parsed = Importance::parsed(whole, "fuzzed.imatrix");
  if (parsed) require(parsed->size() > 0);
  else require(!parsed.error().message.empty());
  const auto sums = ImportanceSums::parsed(whole, "fuzzed.imatrix");
  require(bool(sums) == bool(parsed));
  if (sums) {
    ImportanceSums twice = *sums;
    require(bool(twice.add(*sums, "itself")) == sums->counted);
  }
  const auto rules = QuantizeRules::parsed({reinterpret_cast<const char*>(data), size});
  if (!rules) return 0;
  const auto again = QuantizeRules::parsed(rules->text());
  require(again && again->text() == rules->text());
  return 0;
}
