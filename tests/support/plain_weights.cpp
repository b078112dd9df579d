#include "support/plain_weights.h"

#include "support/gguf_writer.h"
#include "tensor/dtype.h"

namespace gimbal::test {
namespace {

void put_key(GgufWriter& w, const std::string& key, const nlohmann::ordered_json& value) {
  if (value.is_string()) w.string(key, value.get<std::string>());
  else if (value.is_boolean()) w.boolean(key, value.get<bool>());
  else if (value.is_number_integer()) w.u32(key, value.get<uint32_t>());
  else if (value.is_number_float()) w.f32(key, value.get<float>());
  else {
    const bool floats = !value.empty() && value[0].is_number_float();
    std::string list = le<uint32_t>(floats ? kF32 : kI32) + le<uint64_t>(value.size());
    for (const auto& element : value)
      if (floats) list += le(element.get<float>());
      else list += le(element.is_boolean() ? int32_t(element.get<bool>()) : element.get<int32_t>());
    w.raw(key, kArray, list);
  }
}

std::string values_of(const std::string& name, uint64_t count, double middle, double spread) {
  uint64_t state = 0xCBF29CE484222325;
  for (char c : name) state = (state ^ uint8_t(c)) * 0x100000001B3;
  std::string data;
  data.reserve(count * 4);
  for (uint64_t i = 0; i < count; i++) {
    uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    z ^= z >> 31;
    data += le(float(middle + spread * (double(z >> 40) / (1 << 23) - 1)));
  }
  return data;
}

}  // namespace

std::string plain_values(const nlohmann::ordered_json& tensor) {
  uint64_t count = 1;
  for (const auto& d : tensor[1]) count *= d.get<uint64_t>();
  return values_of(tensor[0].get<std::string>(), count, tensor[2].get<double>(), tensor[3].get<double>());
}

std::string plain_model(const nlohmann::ordered_json& golden,
                        const std::map<std::string, std::vector<int64_t>>& lists) {
  GgufWriter w;
  for (const auto& [key, value] : golden["metadata"].items()) put_key(w, key, value);
  for (const auto& t : golden["tensors"]) {
    w.tensor(t[0].get<std::string>(), t[1].get<std::vector<uint64_t>>(), 0, plain_values(t));
  }
  for (const auto& [name, numbers] : lists) {
    std::string data;
    for (int64_t n : numbers) data += le(n);
    if (!numbers.empty()) w.tensor(name, {numbers.size()}, info(DType::I64).gguf, data);
  }
  return w.build();
}

}  // namespace gimbal::test
