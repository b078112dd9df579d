// Models out of other readers than that of GGUF files, and plans that are loaded with the file of another
// one.
#include <gtest/gtest.h>

#include <cstring>

#include "files/gguf.h"
#include "support/golden.h"
#include "support/placed.h"

namespace gimbal::test {
namespace {

// Tensors in memory, in the reverse order of the file: none has the index that it has there.
class InMemory final : public TensorReader {
 public:
  explicit InMemory(const ModelSource& from) : names_(from) {
    for (size_t i = from.tensors().size(); i-- > 0;) all_.push_back(*from.read(from.tensors()[i]));
  }
  ModelSource source() {
    TensorTable tensors;
    for (size_t i = names_.tensors().size(); i-- > 0;) tensors.add(names_.tensors()[i]);
    return {{"memory", 1}, names_.metadata(), tensors, std::make_shared<const InMemory>(*this)};
  }
  Status read(size_t tensor, uint64_t offset, void* to, size_t bytes) const override {
    if (offset + bytes > all_[tensor].size()) return Error{Code::Failed, "outside the tensor", ""};
    std::memcpy(to, all_[tensor].data() + offset, bytes);
    return Done{};
  }
  uint64_t file_bytes() const override { return 0; }
  FileIdentity identity() const override { return {}; }
  bool is(const std::string&) const override { return false; }

 private:
  ModelSource names_;  // keeps the names
  std::vector<std::vector<std::byte>> all_;
};

class Sources : public testing::Test {
 protected:
  static RunOptions options() {
    RunOptions o;
    o.context = 64, o.batch = 16, o.logit_rows = 8;
    return o;
  }
  std::vector<float> logits(const ModelSource& file) {
    auto m = load_placed(file, {{cpu_.get(), configure(file)->layers, ""}}, options());
    EXPECT_TRUE(m) << m.error().message;
    const std::vector<int32_t> tokens = {1, 403, 407, 261};
    return m ? logits_of(**m, tokens) : std::vector<float>();
  }
  const std::unique_ptr<Device> cpu_ = open_one("cpu", 0, "threads=1");
  const ModelSource file_ = open_file(golden_dir() + "/stories/stories260K-q8_0.gguf");
};

TEST_F(Sources, AnotherReaderGivesTheSameModel) {
  InMemory memory(file_);
  const std::vector<float> want = logits(file_);
  ASSERT_FALSE(want.empty());
  EXPECT_EQ(logits(memory.source()), want);
}

TEST_F(Sources, APlanIsLoadedFromItsOwnFileOnly) {
  InMemory memory(file_);
  const ModelSource other = memory.source();
  auto plan = make_model_plan(file_, *cpu_, options());
  ASSERT_TRUE(plan) << plan.error().message;
  const auto no = Model::load(*plan, other);
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, Code::Failed);
  EXPECT_NE(no.error().message.find("the plan was made from"), std::string::npos) << no.error().message;
  EXPECT_TRUE(Model::load(*plan, file_));
}

TEST_F(Sources, JoinedTensorsAreReadFromTheirOwnSource) {
  const ModelSource f32 = open_file(golden_dir() + "/stories/stories260K-f32.gguf");
  ModelSource both = file_;
  ASSERT_TRUE(both.join(f32, {".other", "", 1, 1}));
  ASSERT_EQ(both.tensors().size(), file_.tensors().size() + f32.tensors().size());
  EXPECT_EQ(both.file_bytes(), file_.file_bytes() + f32.file_bytes());
  EXPECT_NE(both.reader().identity(), file_.reader().identity());
  for (const char* name : {"token_embd.weight", "output_norm.weight"}) {
    EXPECT_EQ(*both.read(*both.tensors().find(name)), *file_.read(*file_.tensors().find(name)));
    EXPECT_EQ(*both.read(*both.tensors().find(std::string(name) + ".other")),
              *f32.read(*f32.tensors().find(name)));
  }
  const auto twice = both.join(f32, {".other", "", 1, 1});
  ASSERT_FALSE(twice);
  EXPECT_NE(twice.error().message.find("duplicate tensor 'token_embd.weight.other'"), std::string::npos)
      << twice.error().message;
  EXPECT_EQ(both.tensors().adapters().size(), 1u) << "nothing has changed";
}

}  // namespace
}  // namespace gimbal::test
