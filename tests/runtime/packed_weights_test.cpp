// The file of packed weights, byte by byte as files/packed_file.h describes it; plans that it fits and does
// not fit; the sample of weights that loading compares. Whole programs with it: packed_test.
#include "runtime/packed_weights.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <map>

#include "base/file.h"
#include "base/hash.h"
#include "device/values.h"
#include "support/engine.h"
#include "support/golden.h"
#include "support/placed.h"

namespace gimbal::test {
namespace {

template <class T>
T at(const std::string& file, size_t offset) {
  T value{};
  EXPECT_LE(offset + sizeof value, file.size());
  if (offset + sizeof value <= file.size()) std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}
template <class T>
void set(std::string& file, size_t offset, T value) {
  std::memcpy(file.data() + offset, &value, sizeof value);
}
Bytes bytes_of(const std::string& s, size_t from, size_t n) {
  return {reinterpret_cast<const std::byte*>(s.data()) + from, n};
}

// Where the fields are.
constexpr size_t kVersion = 16, kWeights = 20, kLayout = 24, kBytes = 40, kSource = 48, kTable = 72,
                 kBefore = 80, kHead = 88, kEntry = 32;

// The hashes of the table and the head, for a file that was changed on purpose.
void make_hashes(std::string& file) {
  set(file, kTable, hash_of(bytes_of(file, kHead, at<uint32_t>(file, kWeights) * kEntry)));
  set(file, kBefore, hash_of(bytes_of(file, 0, kBefore)));
}

RunOptions short_run() {
  RunOptions o;
  o.context = 64, o.batch = o.logit_rows = 8;
  return o;
}

// What make_model_plan() gives for this file on one CPU thread.
class PackedWeightsTest : public testing::Test {
 protected:
  void open(const std::string& golden) {
    auto engine = open_engine(golden_dir() + "/" + golden + ".gguf", {.run = short_run()});
    ASSERT_TRUE(engine) << engine.error().message;
    engine_ = std::make_unique<Engine>(std::move(*engine));
    path_ = temporary_path("weights.packed");
    const Status ok = write_packed(path_, engine_->model->plan(), *engine_->file, {});
    ASSERT_TRUE(ok) << ok.error().message;
    auto written = read_file(path_);
    ASSERT_TRUE(written) << written.error().message;
    file_ = *written;
  }
  ModelPlan plan(const Device& device) {
    auto made = make_model_plan(*engine_->file, device, short_run());
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }
  const Program& program() const { return engine_->model->plan().stages[0].buckets[0].program; }
  std::shared_ptr<const PackedFile> packed() {
    auto opened = PackedFile::open(path_, engine_->file->reader().identity());
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? *opened : nullptr;
  }
  // The bytes of the w-th weight of the program, packed on its own.
  std::vector<std::byte> laid_out(size_t w) const {
    const Device& device = *engine_->device;
    const uint16_t value = program().weights[w];
    gimbal_value v = program().values[value];
    v.offset = 0;
    auto buffer = device.allocate(v.bytes);
    EXPECT_TRUE(buffer) << buffer.error().message;
    std::vector<WeightSlice> slices;
    add_slices(slices, 0, program(), w, engine_->file->tensors());
    std::vector<std::byte> room, bytes(v.bytes);
    for (const WeightSlice& s : slices) {
      const Status placed =
          place_weight(device, *buffer, v, program().info[value].shape, *engine_->file, s, room);
      EXPECT_TRUE(placed) << placed.error().message;
    }
    EXPECT_TRUE(device.read(*buffer, 0, bytes.data(), bytes.size()));
    return bytes;
  }
  // It cannot be used, and the plan is as it was.
  Error refused(const std::string& file) {
    EXPECT_TRUE(write_file(path_, file));
    ModelPlan p = plan(*engine_->device);
    std::vector<uint64_t> before, after;
    const auto offsets = [&](std::vector<uint64_t>& to) {
      for (const Bucket& b : p.stages[0].buckets)
        for (const gimbal_value& v : b.program.values) to.push_back(v.offset);
    };
    offsets(before);
    const Status used = use_packed(p, 0, engine_->file->tensors(), packed());
    offsets(after);
    EXPECT_EQ(before, after);
    EXPECT_FALSE(p.stages[0].packed);
    EXPECT_FALSE(used);
    return used ? Error{} : used.error();
  }

  std::unique_ptr<Engine> engine_;
  std::string path_, file_;
};

TEST_F(PackedWeightsTest, TheFormat) {
  open("arch/llama-gqa");
  EXPECT_EQ(file_.substr(0, 16), std::string("gimbal-packed\n\0\0", 16));
  EXPECT_EQ(at<uint32_t>(file_, kVersion), 1u);
  const uint32_t weights = at<uint32_t>(file_, kWeights);
  EXPECT_EQ(weights, program().weights.size());
  EXPECT_EQ(file_.substr(kLayout, 16), std::string("cpu") + std::string(13, '\0'));
  EXPECT_EQ(at<uint64_t>(file_, kBytes), file_.size());
  EXPECT_EQ(at<uint64_t>(file_, kSource), std::filesystem::file_size(golden_dir() + "/arch/llama-gqa.gguf"));
  const uint64_t begin = (kHead + weights * kEntry + 4095) / 4096 * 4096;
  std::map<uint64_t, uint64_t> places;  // bytes by offset
  uint64_t last = 0;
  for (uint32_t i = 0; i < weights; i++) {
    const size_t entry = kHead + i * kEntry;
    const uint64_t what = at<uint64_t>(file_, entry), offset = at<uint64_t>(file_, entry + 8),
                   bytes = at<uint64_t>(file_, entry + 16);
    EXPECT_TRUE(i == 0 || what > last) << "found by halving";
    last = what;
    EXPECT_EQ(offset % 64, 0u);
    EXPECT_TRUE(places.emplace(offset, bytes).second);
    ASSERT_LE(offset + bytes, file_.size());
    EXPECT_EQ(at<uint64_t>(file_, entry + 24), hash_of(bytes_of(file_, offset, bytes)));
  }
  uint64_t end = kHead + weights * kEntry;
  EXPECT_EQ(places.begin()->first, begin) << "the next page";
  for (const auto& [offset, bytes] : places) {
    EXPECT_LT(offset - end, end < begin ? 4096u : 64u);
    EXPECT_EQ(file_.substr(end, offset - end), std::string(offset - end, '\0')) << "between weights";
    end = offset + bytes;
  }
  EXPECT_EQ((end + 63) / 64 * 64, file_.size());
}

// Vectors of f32 have the same layout in every place.
TEST_F(PackedWeightsTest, TheBytesOfTheModel) {
  open("arch/llama-gqa");
  int found = 0;
  for (const StoredTensor& t : engine_->file->tensors()) {
    if (t.type != DType::F32 || t.values() != t.dim[0]) continue;
    const auto bytes = engine_->file->read(t);
    ASSERT_TRUE(bytes) << bytes.error().message;
    const std::string text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    bool there = false;
    for (uint32_t i = 0; i < at<uint32_t>(file_, kWeights); i++)
      there |= at<uint64_t>(file_, kHead + i * kEntry + 16) == text.size() &&
               file_.compare(at<uint64_t>(file_, kHead + i * kEntry + 8), text.size(), text) == 0;
    EXPECT_TRUE(there) << t.name;
    found++;
  }
  EXPECT_GE(found, 3) << "norms";
}

// Every program of a stage, and views, read each weight where it is in the file.
TEST_F(PackedWeightsTest, APlanReadsThemInPlace) {
  for (const char* golden : {"arch/llama-gqa", "arch/gpt-oss", "quant/q-q4_0"}) {
    SCOPED_TRACE(golden);
    open(golden);
    ModelPlan p = plan(*engine_->device);
    ASSERT_GT(p.stages[0].buckets.size(), 1u);
    const auto file = packed();
    const Status used = use_packed(p, 0, engine_->file->tensors(), file);
    ASSERT_TRUE(used) << used.error().message;
    EXPECT_EQ(p.stages[0].packed, file);
    const Bytes all = file->bytes();
    for (const Bucket& b : p.stages[0].buckets)
      for (uint16_t w : b.program.weights) {
        const gimbal_value& v = b.program.values[w];
        ASSERT_LE(v.offset + v.bytes, all.size());
        // The loaded model has the same weights, by name and size.
        const Program& loaded = program();
        bool there = false;
        for (size_t other = 0; other < loaded.weights.size(); other++) {
          const uint16_t value = loaded.weights[other];
          if (loaded.info[value].name != b.program.info[w].name || loaded.values[value].bytes != v.bytes)
            continue;
          const std::vector<std::byte> want = laid_out(other);
          there |= std::equal(want.begin(), want.end(), all.begin() + ptrdiff_t(v.offset));
        }
        EXPECT_TRUE(there) << b.program.info[w].name;
      }
    auto model = Model::load(std::move(p), *engine_->file);
    ASSERT_TRUE(model) << model.error().message;
    const auto tokens = any_tokens(20, (*model)->config().vocabulary);
    EXPECT_EQ(bits_differ(logits_of(**model, tokens, 8), logits_of(*engine_->model, tokens, 8)), "");
  }
}

TEST_F(PackedWeightsTest, AFileThatLacksAWeightOrHasAnotherSize) {
  open("arch/llama-gqa");
  const auto is_refused = [&](const std::string& file) {
    const Error e = refused(file);
    EXPECT_EQ(e.code, Code::Unsupported);
    EXPECT_STREQ(e.reason, reason::kPackedUnusable);
    EXPECT_EQ(e.value, path_);
    EXPECT_TRUE(e.message.starts_with("it has no '")) << e.message;
    EXPECT_TRUE(e.message.ends_with("' in the format that cpu:0 needs")) << e.message;
    EXPECT_EQ(e.remedy, "pack the model again, or remove the file");
  };
  const uint32_t weights = at<uint32_t>(file_, kWeights);
  for (const uint32_t i : {0u, weights / 2, weights - 1}) {
    const size_t entry = kHead + i * kEntry;
    std::string other = file_;
    set(other, entry, at<uint64_t>(other, entry) + 1);  // of something else
    make_hashes(other);
    is_refused(other);
    other = file_;
    set(other, entry + 16, at<uint64_t>(other, entry + 16) - 4);
    make_hashes(other);
    is_refused(other);
  }
  std::string cuda = file_;
  std::memcpy(cuda.data() + kLayout, "cuda", 4);
  make_hashes(cuda);
  EXPECT_EQ(refused(cuda).message, "it has the layout of cuda, not of cpu");
  EXPECT_TRUE(write_file(path_, file_));
  ModelPlan p = plan(*engine_->device);
  EXPECT_TRUE(use_packed(p, 0, engine_->file->tensors(), packed())) << "as it was";
}

// The CPU backend, but for host memory.
TEST_F(PackedWeightsTest, ADeviceWithMemoryOfItsOwn) {
  open("arch/llama-gqa");
  gimbal_backend table{};
  for (LinkedBackends e = linked_backends(); *e; ++e)
    if (std::string((*e)()->name) == "cpu") table = *(*e)();
  table.adopt = nullptr;
  const auto device = Device::open(table, 0, "threads=1");
  ASSERT_TRUE(device) << device.error().message;
  ModelPlan p = plan(**device);
  const Status used = use_packed(p, 0, engine_->file->tensors(), packed());
  ASSERT_FALSE(used);
  EXPECT_EQ(used.error().message, "cpu:0 cannot compute from host memory");
  EXPECT_FALSE(p.stages[0].packed);
  auto model = Model::load(std::move(p), *engine_->file);
  ASSERT_TRUE(model) << model.error().message;
  const Status written = write_packed(path_ + "2", (*model)->plan(), *engine_->file, {});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::Unsupported);
  EXPECT_EQ(written.error().message,
            "cpu:0 cannot compute from host memory: its weights are loaded again at each start");
  EXPECT_FALSE(std::filesystem::exists(path_ + "2"));
}

TEST_F(PackedWeightsTest, AModelOnSeveralDevicesIsNotPacked) {
  open("arch/llama-gqa");
  const auto one = open_one("cpu", 0, "threads=1"), other = open_one("cpu", 0, "threads=1");
  auto model =
      load_placed(*engine_->file,
                  {{one.get(), 1, ""}, {other.get(), engine_->model->config().layers - 1, ""}}, short_run());
  ASSERT_TRUE(model) << model.error().message;
  const Status written = write_packed(path_ + "3", (*model)->plan(), *engine_->file, {});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, "the model lies on several devices, and weights are packed for one");
  EXPECT_FALSE(write_packed("/proc/none/x.packed", engine_->model->plan(), *engine_->file, {}));
}

gimbal_value matrix(int64_t columns, int64_t rows, uint64_t bytes, gimbal_layout layout) {
  gimbal_value v{};
  set_shape(v, Shape(DType::F32, {columns, rows}));
  v.layout = uint8_t(layout), v.bytes = bytes;
  return v;
}

TEST(PackedSample, IsTheFirstRowsOfAWeight) {
  EXPECT_EQ(sample_bytes(matrix(10, 100, 4000, GIMBAL_DENSE), 16), 640u);
  EXPECT_EQ(sample_bytes(matrix(10, 100, 4000, GIMBAL_DENSE), 1), 40u);
  EXPECT_EQ(sample_bytes(matrix(10, 16, 640, GIMBAL_DENSE), 16), 640u) << "all of it";
  EXPECT_EQ(sample_bytes(matrix(10, 17, 680, GIMBAL_DENSE), 16), 640u);
  EXPECT_EQ(sample_bytes(matrix(10, 3, 120, GIMBAL_DENSE), 16), 120u);
  // A packed one has whole tiles of 16 rows.
  EXPECT_EQ(sample_bytes(matrix(10, 100, 7 * 700, GIMBAL_PACKED), 16), 700u);
  EXPECT_EQ(sample_bytes(matrix(10, 96, 6 * 700, GIMBAL_PACKED), 16), 700u);
  gimbal_value vector{};
  set_shape(vector, Shape(DType::F32, {1000}));
  vector.bytes = 4000;
  EXPECT_EQ(sample_bytes(vector, 16), 4000u);
}

TEST(PackedSample, HasEightMegabytesOrSo) {
  Program p;
  EXPECT_EQ(sample_distance(p), 1u) << "of nothing";
  const auto add = [&](gimbal_value v) {
    p.weights.push_back(uint16_t(p.values.size()));
    p.values.push_back(v);
  };
  p.values.push_back(matrix(1 << 20, 16, 64 << 20, GIMBAL_DENSE));  // no weight
  add(matrix(1 << 18, 1000, 1000 << 20, GIMBAL_DENSE));             // whose first rows are 16 MB
  EXPECT_EQ(sample_distance(p), 3u);
  add(matrix(1 << 18, 7, (7 << 20) + 4, GIMBAL_DENSE));
  EXPECT_EQ(sample_distance(p), 3u) << "23 MB and 4 bytes";
  add(matrix(1 << 18, 1, 1 << 20, GIMBAL_DENSE));
  EXPECT_EQ(sample_distance(p), 4u);
}

}  // namespace
}  // namespace gimbal::test
