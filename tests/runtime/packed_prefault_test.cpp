// Packed weights that are brought into memory while a model is loaded: which of them, and files and systems
// that do not allow it.
#include <gtest/gtest.h>
#ifdef __linux__
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif
#include <unistd.h>

#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include "files/packed_file.h"
#include "runtime/packed_weights.h"
#include "support/cli.h"
#include "support/placed.h"

namespace gimbal {
namespace {

using test::contains;
namespace fs = std::filesystem;

class PackedPrefaultTest : public testing::Test {
 protected:
  ModelPlan plan(bool packed) {
    RunOptions run;
    run.context = 128, run.batch = 32, run.logit_rows = 32;
    auto plan = make_model_plan(*file_, *device_, run);
    EXPECT_TRUE(plan) << plan.error().message;
    if (packed) {
      auto from = PackedFile::open(packed_, file_->reader().identity());
      EXPECT_TRUE(from) << from.error().message;
      EXPECT_TRUE(use_packed(*plan, 0, file_->tensors(), *from));
    }
    return std::move(*plan);
  }
  Result<std::unique_ptr<Model>> load(ModelPlan&& plan) { return Model::load(std::move(plan), *file_); }
  static std::vector<float> logits(Model& m) {
    return test::logits_of(m, test::any_tokens(40, m.config().vocabulary), 32);
  }
  // A golden model; its logits without the packed file.
  std::vector<float> pack(const std::string& golden) {
    file_ = std::make_unique<ModelSource>(test::open_file(test::golden_dir() + "/" + golden + ".gguf"));
    auto m = load(plan(false));
    EXPECT_TRUE(m) << m.error().message;
    EXPECT_FALSE((*m)->prefaulted()) << "nothing is mapped";
    EXPECT_TRUE(write_packed(packed_, (*m)->plan(), *file_, {}));
    return logits(**m);
  }

  const std::string packed_ = test::temporary_path("prefault.packed");
  std::unique_ptr<ModelSource> file_;
  const std::unique_ptr<Device> device_ = test::open_one("cpu", 0, "threads=2");
};

TEST_F(PackedPrefaultTest, BringsAllPagesAndChangesNoBit) {
  const auto want = pack("stories/stories260K-f32");
  auto m = load(plan(true));
  ASSERT_TRUE(m) << m.error().message;
  const auto& r = (*m)->prefaulted();
  ASSERT_TRUE(r);
  EXPECT_EQ(r->stopped, "");
  EXPECT_EQ(r->bytes, r->wanted);
  EXPECT_GT(r->bytes, 0u);
  EXPECT_LE(r->bytes, fs::file_size(packed_) + kPackedPage);
  EXPECT_LE(r->threads, 2u);
  EXPECT_GE(r->threads, 1u);
  EXPECT_EQ(test::bits_differ(logits(**m), want), "");
}

// By the names in the model's file: tables that are only looked up, and experts. All others are there to the
// byte.
TEST_F(PackedPrefaultTest, WhatAStepReadsInPartIsLeftOut) {
  for (const char* golden : {"arch/gpt-oss", "arch/qwen2", "arch/llama-mha-tied"}) {
    SCOPED_TRACE(golden);
    pack(golden);
    const ModelPlan mapped = plan(true);
    const Stage& stage = mapped.stages[0];
    std::set<const std::byte*> pages;
    std::mutex mutex;
    const auto ahead = prefault(mapped, [&](Bytes b) {
      const std::lock_guard lock(mutex);
      for (size_t at = 0; at < b.size(); at += kPackedPage) pages.insert(b.data() + at);
      return 0;
    });
    ASSERT_TRUE(ahead);
    const uint64_t brought = ahead->finish().bytes;  // joins the threads
    EXPECT_EQ(brought, pages.size() * kPackedPage);
    const Program& p = stage.buckets[0].program;
    std::set<const std::byte*> whole, part;  // pages
    bool tied = true;
    for (uint16_t w : p.weights) tied &= !p.info[w].name.starts_with("output.weight");
    for (uint16_t w : p.weights) {
      const std::string& name = p.info[w].name;
      const bool in_part =
          name.find("_exps.weight") != std::string::npos || (name.starts_with("token_embd") && !tied);
      const uint64_t past = p.values[w].offset + p.values[w].bytes;
      for (uint64_t at = p.values[w].offset / kPackedPage * kPackedPage; at < past; at += kPackedPage)
        (in_part ? part : whole).insert(stage.packed->bytes().data() + at);
    }
    EXPECT_EQ(pages, whole);
    std::erase_if(part, [&](const std::byte* page) { return whole.contains(page); });
    EXPECT_EQ(part.empty(), tied) << "the test needs pages that are left out";
  }
}

// Only rows are lost that the load does not compare with those of the model's file.
TEST_F(PackedPrefaultTest, AFileThatIsCutMeanwhile) {
  pack("arch/llama-gqa");
  const uint64_t whole = fs::file_size(packed_), cut = (whole - 1) / kPackedPage * kPackedPage;
  ModelPlan mapped = plan(true);
  const Program& p = mapped.stages[0].buckets[0].program;
  for (uint16_t w : p.weights) {
    const gimbal_value& v = p.values[w];
    EXPECT_LE(v.offset + sample_bytes(v, kSampleRows), cut) << p.info[w].name;
  }
  fs::resize_file(packed_, cut);
  auto m = load(std::move(mapped));
  ASSERT_FALSE(m);
  EXPECT_STREQ(m.error().reason, reason::kPackedUnusable);
  EXPECT_SAYS(m.error().message, format("it had {} bytes and now has {}", whole, cut));
}

TEST_F(PackedPrefaultTest, BytesThatTheDiskDoesNotGive) {
  pack("arch/llama-gqa");
  const ModelPlan mapped = plan(true);
  const auto ahead = prefault(mapped, [](Bytes) { return EFAULT; });
  const Status ok = check_readable(mapped, ahead->finish());
  ASSERT_FALSE(ok);
  EXPECT_STREQ(ok.error().reason, reason::kPackedUnusable);
  EXPECT_EQ(ok.error().value, packed_);
  EXPECT_SAYS(ok.error().message, "cannot be read");
  const auto refused = prefault(mapped, [](Bytes) { return EINVAL; });
  EXPECT_TRUE(check_readable(mapped, refused->finish())) << "not the file's fault";
}

#if defined(__linux__) && defined(__x86_64__)
// The system as it was before it had the call: of this thread and those that it starts.
bool forget_populate() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 22, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{uint16_t(std::size(program)), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}

TEST_F(PackedPrefaultTest, OnASystemWithoutTheCall) {
  const auto want = pack("stories/stories260K-f32");
  std::thread([&] {
    ASSERT_TRUE(forget_populate());
    auto m = load(plan(true));
    ASSERT_TRUE(m) << m.error().message;
    const auto& r = (*m)->prefaulted();
    ASSERT_TRUE(r);
    EXPECT_EQ(r->bytes, 0u);
    EXPECT_SAYS(r->stopped, "as Linux does since 5.14");
    EXPECT_EQ(test::bits_differ(logits(**m), want), "");
  }).join();
}
#endif

}  // namespace
}  // namespace gimbal
