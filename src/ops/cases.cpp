#include "ops/cases.h"

#include <cstring>

namespace gimbal {

std::vector<int64_t> places_of(const CaseInput& in) {
  std::vector<int64_t> places(static_cast<size_t>(in.shape.count()));
  int64_t index[kMaxRank] = {}, at = in.offset;
  for (size_t i = 0; i < places.size(); i++) {
    places[i] = in.stride.empty() ? int64_t(i) : at;
    for (int d = 0; d < int(in.stride.size()); d++) {
      at += in.stride[size_t(d)];
      if (++index[d] < in.shape.dim[d]) break;
      at -= in.shape.dim[d] * in.stride[size_t(d)], index[d] = 0;
    }
  }
  return places;
}

std::vector<std::byte> dense_bytes(const CaseInput& in) {
  if (in.stride.empty()) return in.dense;
  const auto size = size_t(info(in.shape.type).bytes);
  std::vector<std::byte> bytes(size_t(in.shape.bytes()));
  size_t to = 0;
  for (int64_t place : places_of(in)) std::memcpy(&bytes[size * to++], &in.dense[size * size_t(place)], size);
  return bytes;
}

}  // namespace gimbal
