#include "huggingface/metadata_builder.h"

namespace gimbal {

void MetadataBuilder::array(const std::string& key, MetadataType type, uint64_t count, std::string encoded) {
  const std::string_view kept = keep(std::move(encoded));
  put(key,
      {MetadataType::Array, MetadataArray{type, count, std::as_bytes(std::span(kept.data(), kept.size()))}});
}

// As in a GGUF file: each string behind its length in 64 bits.
void MetadataBuilder::strings(const std::string& key, std::span<const std::string> values) {
  std::string encoded;
  size_t bytes = 0;
  for (const std::string& v : values) bytes += sizeof(uint64_t) + v.size();
  encoded.reserve(bytes);
  for (const std::string& v : values) {
    const uint64_t size = v.size();
    encoded.append(reinterpret_cast<const char*>(&size), sizeof size).append(v);
  }
  array(key, MetadataType::String, values.size(), std::move(encoded));
}

}  // namespace gimbal
