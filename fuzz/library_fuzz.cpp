// libFuzzer over libraries: whatever the bytes are, looking into them ends with facts that fit the file, or
// with an error that names the cause. The seeds are small libraries of every format.
#include <string>

#include "inspection/verdict.h"
#include "require.h"

namespace {

using namespace gimbal;

bool sorted(const NameList& names) {
  for (size_t i = 1; i < names.kept(); i++)
    if (names[i] < names[i - 1]) return false;
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Less of everything than for real files, so that each limit is reached, too.
  InspectionLimits limits;
  limits.name_bytes = 64 << 10, limits.records = 20'000, limits.code_bytes = 32 << 10,
  limits.data_bytes = 1 << 20;
  const Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto found = inspect_library(bytes, "fuzz.so", limits);
  if (!found) {
    require(found.error().code == Code::Malformed && found.error().message.starts_with("'fuzz.so' "));
    return 0;
  }
  require(!found->images.empty() && found->bytes == size);
  for (const BinaryImage& i : found->images) {
    require(sorted(i.exported) && sorted(i.undefined));
    require(i.cpu.scanned <= i.cpu.bytes && i.cpu.undecoded <= i.cpu.scanned);
    for (const EmbeddedGpuCode& g : i.gpu_code) require(!g.kind.empty() && g.targets.size() <= 256);
  }
  const LibraryVerdict verdict = judge(*found);
  require(!summary(verdict).empty());
  return 0;
}
