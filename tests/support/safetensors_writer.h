// A safetensors file, written for a test from its description.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gimbal::test {

class SafetensorsWriter {
 public:
  void add(const std::string& name, const char* type, std::vector<int64_t> shape, const std::string& bytes) {
    header_[name] = {
        {"dtype", type}, {"shape", shape}, {"data_offsets", {data_.size(), data_.size() + bytes.size()}}};
    data_ += bytes;
  }
  std::string text() const {
    const std::string json = header_.dump();
    const uint64_t size = json.size();
    return std::string(reinterpret_cast<const char*>(&size), sizeof size) + json + data_;
  }

 private:
  nlohmann::ordered_json header_ = nlohmann::ordered_json::object();
  std::string data_;
};

}  // namespace gimbal::test
