// Tensors in files of NumPy, whose bytes are written out here as its format says (NEP 1), and in files of
// several tensors.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

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

Tensor named(const std::vector<NamedTensor>& all, const std::string& name) {
  for (const NamedTensor& n : all)
    if (n.name == name) return n.tensor;
  ADD_FAILURE() << "no tensor " << name;
  return all[0].tensor;
}

TEST_F(TensorFiles, MappedTensorsAreThePagesOfTheirFile) {
  const std::string model = golden_dir() + "/stories/stories260K-q8_0.gguf";
  const auto copied = load(model, *queue);
  ASSERT_TRUE(copied) << copied.error().message;
  const uint64_t before = queue->memory().live, uploads = queue->counts().uploads;
  const auto mapped = load(model, *queue, {.mapped = true});
  ASSERT_TRUE(mapped) << mapped.error().message;
  EXPECT_EQ(queue->memory().live, before) << "nothing is copied";
  EXPECT_EQ(queue->counts().uploads, uploads);
  ASSERT_EQ(mapped->size(), copied->size());
  std::set<DType> seen;
  for (size_t i = 0; i < mapped->size(); i++) {
    const Tensor &here = (*mapped)[i].tensor, &there = (*copied)[i].tensor;
    EXPECT_TRUE(here.is_read_only()) << (*mapped)[i].name;
    EXPECT_FALSE(there.is_read_only());
    EXPECT_EQ(here.dims(), there.dims());
    EXPECT_EQ(*here.bytes(), *there.bytes()) << (*mapped)[i].name;
    EXPECT_EQ(*here.to(DType::F64).sum().values<double>(), *there.to(DType::F64).sum().values<double>());
    seen.insert(here.dtype());
  }
  EXPECT_TRUE(seen.contains(DType::F32) && seen.contains(DType::Q8_0));
  const Tensor norm = named(*mapped, "output_norm.weight");
  EXPECT_FALSE(norm.fill_(0)) << "its memory is the file's";
}

// The floats of `b` begin at no multiple of 4.
TEST_F(TensorFiles, MappedTensorsThatAreNotAlignedAreCopied) {
  const std::string path = temporary_path("odd.safetensors");
  const std::string header =
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}})";
  std::string file(8, '\0');
  file[0] = char(header.size());
  file += header + '\x07';
  const float values[] = {1.5f, -2};
  file.append(reinterpret_cast<const char*>(values), sizeof values);
  std::ofstream(path, std::ios::binary) << file;
  const auto all = load(path, *queue, {.mapped = true});
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_TRUE(named(*all, "a").is_read_only());
  const bool odd = (8 + header.size() + 1) % 4 != 0;
  EXPECT_EQ(named(*all, "b").is_read_only(), !odd);
  EXPECT_TRUE(odd) << header.size();
  EXPECT_EQ(*named(*all, "a").values<uint8_t>(), std::vector<uint8_t>{7});
  EXPECT_EQ(*named(*all, "b").values<float>(), (std::vector<float>{1.5f, -2}));
}

TEST_F(TensorFiles, AMappedFileThatBecomesShorterIsAnError) {
  const std::string path = temporary_path("cut.npy");
  const Tensor x = Tensor::full({1 << 16}, 2.0f, DType::F32, *queue);
  const std::vector<NamedTensor> one = {{"", x}};
  for (const bool dropped : {false, true}) {
    ASSERT_TRUE(save(path, one));
    OnCpuQueue::SetUp();  // the error stays with its queue
    auto all = load(path, *queue, {.mapped = true});
    ASSERT_TRUE(all) << all.error().message;
    std::filesystem::resize_file(path, 4096);
    const Tensor sum = (*all)[0].tensor.sum();
    if (dropped) all->clear();
    const auto values = sum.values<float>();
    ASSERT_FALSE(values) << "zeros were added";
    EXPECT_EQ(values.error().code, Code::Malformed);
    EXPECT_NE(values.error().message.find("cut.npy"), std::string::npos) << values.error().message;
    EXPECT_FALSE(queue->wait()) << "from then on";
  }
}

}  // namespace
}  // namespace gimbal::test
