// An open device, when its backend fails: every call gives the backend's own words, and objects may be moved
// about.
#include "device/device.h"

#include <gtest/gtest.h>

#include "device/reason.h"
#include "support/fake_backend.h"

namespace gimbal {
namespace {

using test::FakeDevice;

// The fake, with functions of its table exchanged.
class Failing : public testing::Test {
 protected:
  gimbal_backend table = test::fake_backend();

  void SetUp() override {
    FakeDevice::settings() = {};
    table.last_error = [](gimbal_device*) { return "the cable is out"; };
  }
  std::unique_ptr<Device> open() {
    auto d = Device::open(table, 0);
    return d ? std::move(*d) : nullptr;
  }
  template <class T>
  static void failed(const Result<T>& r, Code code, const char* doing) {
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, code);
    for (const char* word : {"fake:0", doing, "the cable is out"})
      EXPECT_NE(r.error().message.find(word), std::string::npos) << r.error().message;
  }
};

TEST_F(Failing, EveryCallGivesTheBackendsWords) {
  table.write = [](gimbal_device*, gimbal_buffer*, size_t, const void*, size_t) {
    return GIMBAL_DEVICE_LOST;
  };
  table.read = [](gimbal_device*, gimbal_buffer*, size_t, void*, size_t) { return GIMBAL_DEVICE_LOST; };
  table.pack = [](gimbal_device*, gimbal_buffer*, const gimbal_value*, const void*, int64_t, int64_t) {
    return GIMBAL_UNSUPPORTED;
  };
  table.submit = [](gimbal_device*, gimbal_executable*, gimbal_buffer* const*, size_t, gimbal_step) {
    return gimbal_code(77);  // of a later version, or nonsense
  };
  table.wait = [](gimbal_device*) { return GIMBAL_DEVICE_LOST; };
  table.measure = [](gimbal_device*, gimbal_limits*) { return GIMBAL_OUT_OF_MEMORY; };
  table.run_counts = [](gimbal_device*, gimbal_executable*, uint64_t*, size_t) { return GIMBAL_INVALID; };
  table.scratch_bytes = [](gimbal_device*, const gimbal_program*, uint64_t*) { return GIMBAL_UNSUPPORTED; };
  auto d = open();
  auto b = d->allocate(64);
  ASSERT_TRUE(b);
  auto e = d->compile({});
  ASSERT_TRUE(e);
  char bytes[64] = {};
  failed(d->write(*b, 0, bytes, 64), Code::DeviceLost, "write failed");
  failed(d->read(*b, 0, bytes, 64), Code::DeviceLost, "read failed");
  failed(d->pack(*b, {}, bytes, 0, 16), Code::Unsupported, "packing weights");
  failed(d->submit(*e, nullptr, 0, {1, 1}), Code::Failed, "computing failed");
  failed(d->wait(), Code::DeviceLost, "computing failed");
  failed(d->measure(), Code::OutOfMemory, "measuring");
  failed(d->run_counts(*e, 1), Code::Failed, "reading the kernel counts");
  failed(d->scratch_bytes({}), Code::Unsupported, "could not plan a program");
}

TEST_F(Failing, WhatCannotBeHad) {
  table.alloc = [](gimbal_device*, size_t, gimbal_buffer**) { return GIMBAL_OUT_OF_MEMORY; };
  table.compile = [](gimbal_device*, const gimbal_program*, gimbal_executable**) {
    return GIMBAL_UNSUPPORTED;
  };
  auto d = open();
  failed(d->allocate(1000), Code::OutOfMemory, "1.00 kB");
  failed(d->compile({}), Code::Unsupported, "could not prepare a program");
}

TEST_F(Failing, OpeningSaysWhatAndWhatToDo) {
  table.open = [](int, const char*, gimbal_device**) { return GIMBAL_OUT_OF_MEMORY; };
  table.last_error = [](gimbal_device*) { return "no memory on the card\nend other programs"; };
  auto d = Device::open(table, 3);
  ASSERT_FALSE(d);
  EXPECT_EQ(d.error().code, Code::OutOfMemory);
  EXPECT_STREQ(d.error().reason, reason::kNotEnoughMemory);
  EXPECT_NE(d.error().message.find("device 3"), std::string::npos) << d.error().message;
  EXPECT_EQ(d.error().remedy, "end other programs");
}

TEST_F(Failing, OpeningNamesTheBackendsReason) {
  table.open = [](int, const char*, gimbal_device**) { return GIMBAL_UNSUPPORTED; };
  table.last_error = [](gimbal_device*) { return "too old\nupdate it\ndriver-too-old"; };
  auto d = Device::open(table, 0);
  ASSERT_FALSE(d);
  EXPECT_EQ(d.error().code, Code::NoBackend);
  EXPECT_STREQ(d.error().reason, reason::kDriverTooOld);
  EXPECT_EQ(d.error().remedy, "update it");
  table.last_error = [](gimbal_device*) { return "no library\nlibrary-missing"; };
  d = Device::open(table, 0);
  ASSERT_FALSE(d);
  EXPECT_STREQ(d.error().reason, reason::kLibraryMissing);
  EXPECT_EQ(d.error().remedy, "");
}

TEST_F(Failing, ATableAgainstTheContractIsNotCalled) {
  table.wait = nullptr;
  auto d = Device::open(table, 0);
  ASSERT_FALSE(d);
  EXPECT_STREQ(d.error().reason, reason::kBrokenPlugin);
  EXPECT_NE(d.error().message.find("wait"), std::string::npos) << d.error().message;
}

TEST_F(Failing, OptionalFunctionsMayBeMissingOrBehindTheEnd) {
  table.run_counts = [](gimbal_device*, gimbal_executable*, uint64_t*, size_t) -> gimbal_code { abort(); };
  table.scratch_bytes = [](gimbal_device*, const gimbal_program*, uint64_t*) -> gimbal_code { abort(); };
  table.measure = nullptr;
  for (uint32_t size :
       {uint32_t(offsetof(gimbal_backend, measure)), uint32_t(offsetof(gimbal_backend, run_counts))}) {
    table.struct_size = size;
    auto d = open();
    ASSERT_NE(d, nullptr);
    auto e = d->compile({});
    ASSERT_TRUE(e);
    auto counts = d->run_counts(*e, 1);
    ASSERT_FALSE(counts);
    EXPECT_EQ(counts.error().code, Code::Unsupported);
    EXPECT_FALSE(d->measure());
    EXPECT_EQ(*d->scratch_bytes({}), 0u);
  }
  table.struct_size = sizeof table;
  table.scratch_bytes = [](gimbal_device*, const gimbal_program* p, uint64_t* out) {
    return *out = 100 + p->n_ops, GIMBAL_OK;
  };
  EXPECT_EQ(*open()->scratch_bytes({nullptr, 0, nullptr, 7}), 107u);
}

TEST_F(Failing, MemoryOfTheHost) {
  alignas(64) std::byte bytes[64] = {};
  auto d = open();
  EXPECT_FALSE(d->can_adopt());
  auto none = d->adopt(bytes);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::Unsupported);
  table.adopt = [](gimbal_device*, const void*, size_t, gimbal_buffer**) { return GIMBAL_INVALID; };
  d = open();
  EXPECT_TRUE(d->can_adopt());
  failed(d->adopt(bytes), Code::Failed, "could not import host memory");
  table.struct_size = uint32_t(offsetof(gimbal_backend, adopt));
  EXPECT_FALSE(open()->can_adopt());
}

TEST(Device, FeaturesAreTheNamesOfTheBitsThatAreSet) {
  test::FakeSettings s;
  s.features = 3;
  EXPECT_EQ(test::open_fake(s)->features(), "wings, wheels");
  s.features = 2;
  EXPECT_EQ(test::open_fake(s)->features(), "wheels");
}

TEST(Device, BuffersAndExecutablesMoveAndAreGivenBackOnce) {
  static int released, discarded;
  released = discarded = 0;
  FakeDevice::settings() = {};
  static constexpr gimbal_backend real = BackendTable<FakeDevice>::make("fake");
  gimbal_backend table = real;
  table.release = [](gimbal_device* d, gimbal_buffer* b) { released++, real.release(d, b); };
  table.discard = [](gimbal_device* d, gimbal_executable* e) { discarded++, real.discard(d, e); };
  auto d = Device::open(table, 0);
  ASSERT_TRUE(d);
  {
    Buffer a = std::move(*(*d)->allocate(64)), b = std::move(*(*d)->allocate(128)), none;
    EXPECT_FALSE(none);
    a = std::move(b);
    EXPECT_EQ(a.size(), 128u);
    Buffer c = std::move(a);
    EXPECT_FALSE(a);
    EXPECT_EQ(a.size(), 0u);
    EXPECT_EQ(c.size(), 128u);
    Executable e = std::move(*(*d)->compile({})), f = std::move(*(*d)->compile({}));
    e = std::move(f);
    Executable g = std::move(e);
    EXPECT_FALSE(e);
    EXPECT_TRUE(g);
  }
  EXPECT_EQ(released, 2);
  EXPECT_EQ(discarded, 2);
}

TEST_F(Failing, WhereTheHostReachesABuffer) {
  table.host_pointer = nullptr;
  auto d = open();
  ASSERT_TRUE(d);
  auto b = d->allocate(64);
  ASSERT_TRUE(b);
  EXPECT_EQ(d->host_pointer(*b), nullptr) << "the backend has no such function";
  table.host_pointer = [](gimbal_device*, gimbal_buffer* buffer) -> void* { return buffer; };
  auto other = open();
  ASSERT_TRUE(other);
  auto c = other->allocate(64);
  ASSERT_TRUE(c);
  EXPECT_EQ(other->host_pointer(*c), c->handle());
}

TEST_F(Failing, KernelsOfTheProgram) {
  table.add_kernel = nullptr;
  auto d = open();
  ASSERT_TRUE(d);
  gimbal_host_kernel kernel{};
  kernel.struct_size = sizeof kernel;
  const Status refused = d->add_kernel(kernel);
  ASSERT_FALSE(refused) << "the backend has no such function";
  EXPECT_EQ(refused.error().code, Code::Unsupported);
  // A table that grows, and moves.
  static std::vector<gimbal_kernel_info> rows;
  rows.assign(3,
              {sizeof(gimbal_kernel_info), 0, "own", uint16_t(OpKind::Add), 0, 0, {}, {}, 0, 0, nullptr, 0});
  table.kernels = [](gimbal_device*, size_t* count, size_t* stride) -> const gimbal_kernel_info* {
    *count = rows.size(), *stride = sizeof rows[0];
    return rows.data();
  };
  table.add_kernel = [](gimbal_device*, const gimbal_host_kernel* k) {
    rows.push_back(k->info);
    return GIMBAL_OK;
  };
  auto other = open();
  ASSERT_TRUE(other);
  kernel.info = rows[0], kernel.info.op = uint16_t(OpKind::Custom), kernel.info.name = "custom.mine";
  ASSERT_TRUE(other->add_kernel(kernel));
  EXPECT_EQ(other->kernel_count(), 4u);
  ASSERT_EQ(other->kernels_for(uint16_t(OpKind::Custom)).size(), 1u);
  EXPECT_STREQ(other->kernel(other->kernels_for(uint16_t(OpKind::Custom))[0]).name, "custom.mine");
  EXPECT_EQ(other->kernels_for(uint16_t(OpKind::Add)).size(), 3u);
}

}  // namespace
}  // namespace gimbal
