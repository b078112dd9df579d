// Tensors in files of NumPy, whose bytes are written out here as its format says (NEP 1), and in files of
// several tensors.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "support/golden.h"
#include "tensors/cpu_queue.h"

namespace gimbal::test {
namespace {

class TensorFiles : public OnCpuQueue {};

// Version 1.0: the header's dictionary, with spaces up to a multiple of 64 bytes, and the elements.
std::string npy(const std::string& dictionary, const std::vector<float>& elements) {
  std::string header = dictionary;
  while ((10 + header.size() + 1) % 64) header += ' ';
  header += '\n';
  std::string out = "\x93NUMPY";
  out += '\x01', out += '\0';
  out += char(header.size() % 256), out += char(header.size() / 256);
  out += header;
  out.append(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(float));
  return out;
}
std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST_F(TensorFiles, ArraysInTheOrderOfFortranAreReadByTheirDims) {
  const std::string path = temporary_path("order.npy");
  for (const bool fortran : {false, true}) {
    const std::string dictionary = std::string("{'descr': '<f4', 'fortran_order': ") +
                                   (fortran ? "True" : "False") + ", 'shape': (2, 3), }";
    const std::vector<float> rows = {1, 2, 3, 4, 5, 6}, columns = {1, 4, 2, 5, 3, 6};
    std::ofstream(path, std::ios::binary) << npy(dictionary, fortran ? columns : rows);
    const auto all = load(path, *queue);
    ASSERT_TRUE(all) << all.error().message;
    ASSERT_EQ(all->size(), 1u);
    EXPECT_EQ((*all)[0].name, "");
    EXPECT_EQ((*all)[0].tensor.dims(), (Dims{2, 3}));
    EXPECT_EQ(*(*all)[0].tensor.values<float>(), rows) << (fortran ? "columns first" : "rows first");
  }
}

TEST_F(TensorFiles, OneTensorIsWrittenAsAnArray) {
  const std::string path = temporary_path("one.npy");
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3}, *queue);
  const std::vector<NamedTensor> one = {{"", x}}, turned = {{"", x.t()}}, two = {{"a", x}, {"b", x}};
  ASSERT_TRUE(save(path, one));
  const std::string bytes = contents(path);
  EXPECT_EQ(bytes.substr(0, 6), "\x93NUMPY");
  EXPECT_NE(bytes.find("(2, 3)"), std::string::npos);
  ASSERT_GT(bytes.size(), 24u);
  float elements[6];
  std::memcpy(elements, bytes.data() + bytes.size() - sizeof elements, sizeof elements);
  EXPECT_EQ(std::vector<float>(elements, elements + 6), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  ASSERT_TRUE(save(path, turned));
  const auto again = load(path, *queue);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ((*again)[0].tensor.dims(), (Dims{3, 2}));
  EXPECT_EQ(*(*again)[0].tensor.values<float>(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  for (const char* name : {"two.npy", "two.txt"}) {
    const auto refused = save(temporary_path(name), two);
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code, Code::Usage);
    EXPECT_NE(refused.error().message.find(".safetensors, a single one as .npy"), std::string::npos)
        << refused.error().message;
  }
}

TEST_F(TensorFiles, SeveralTensorsComeBackByTheirNames) {
  const std::string path = temporary_path("several.safetensors");
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3}, *queue);
  const std::vector<NamedTensor> all = {{"b", x}, {"a", x.t()}}, twice = {{"a", x}, {"a", x}};
  ASSERT_TRUE(save(path, all));
  const auto again = load(path, *queue);
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_EQ(again->size(), 2u);
  for (const NamedTensor& t : *again) {
    EXPECT_EQ(t.tensor.dims(), t.name == "a" ? (Dims{3, 2}) : (Dims{2, 3}));
    EXPECT_EQ(*t.tensor.values<float>(), t.name == "a" ? (std::vector<float>{1, 4, 2, 5, 3, 6})
                                                       : (std::vector<float>{1, 2, 3, 4, 5, 6}));
  }
  const auto refused = save(path, twice);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("the name 'a' twice"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace gimbal::test
