// GGUF files in memory, made by the engine's own writer. For wrong files there is support/gguf_writer.h.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "files/gguf_writer.h"

namespace gimbal::test {

class MadeGguf : public gimbal::GgufWriter {
 public:
  // A tensor with its data.
  void tensor(std::string_view name, const std::vector<int64_t>& dims, DType type, std::string_view bytes) {
    gimbal::GgufWriter::tensor(name, type, dims);
    data_.emplace_back(bytes);
  }
  void tensor(const StoredTensor& like, std::string_view bytes) {
    tensor(like.name, {like.dim, like.dim + like.rank}, like.type, bytes);
  }
  void floats(std::string_view name, const std::vector<int64_t>& dims, const std::vector<float>& values) {
    tensor(name, dims, DType::F32,
           {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }

  std::string build() const {
    std::string file;
    const auto ok = write(
        [&](size_t i, uint64_t offset, void* to, size_t n) -> Status {
          EXPECT_LE(offset + n, data_[i].size()) << "tensor " << i << " has too few bytes";
          if (offset + n <= data_[i].size()) std::memcpy(to, data_[i].data() + offset, n);
          return Done{};
        },
        [&](const void* from, size_t n) -> Status {
          file.append(static_cast<const char*>(from), n);
          return Done{};
        });
    EXPECT_TRUE(ok) << ok.error().message;
    return file;
  }

 private:
  std::vector<std::string> data_;
};

inline std::string_view text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace gimbal::test
