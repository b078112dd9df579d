// What backend authors get from device/backend_impl.h: a table that lets no exception through.
#include "device/backend_impl.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace gimbal {
namespace {

// Each method throws what the test says.
struct Thrower {
  enum What { Nothing, Memory, Text, Number };
  static inline What what = Nothing;
  template <class T = gimbal_code>
  static T fail() {
    if (what == Memory) throw std::bad_alloc();
    if (what == Text) throw std::runtime_error("the cable is out");
    if (what == Number) throw 42;
    return T();
  }
  static ErrorText& error() {
    thread_local ErrorText text;
    return text;
  }
  ~Thrower() noexcept(false) { fail(); }

  static int count() { return fail(), 1; }
  static gimbal_code open(int, const char*, Thrower** out) { return *out = new Thrower, fail(); }
  void describe(gimbal_device_info& i) { i.name = "thrower", fail(); }
  const gimbal_kernel_info* rows(size_t* n, size_t*) { return *n = 3, fail<const gimbal_kernel_info*>(); }
  gimbal_code alloc(size_t, gimbal_buffer**) { return fail(); }
  void release(gimbal_buffer*) { fail(); }
  gimbal_code write(gimbal_buffer*, size_t, const void*, size_t) { return fail(); }
  gimbal_code read(gimbal_buffer*, size_t, void*, size_t) { return fail(); }
  uint64_t packed_bytes(uint8_t, int64_t, int64_t) { return fail(), 7; }
  gimbal_code pack(gimbal_buffer*, const gimbal_value&, const void*, int64_t, int64_t) { return fail(); }
  uint64_t cache_bytes(uint8_t, uint8_t, int64_t, int64_t, int64_t, int64_t) { return fail(), 7; }
  gimbal_code compile(const gimbal_program&, gimbal_executable**) { return fail(); }
  void discard(gimbal_executable*) { fail(); }
  gimbal_code submit(gimbal_executable*, gimbal_buffer* const*, size_t, gimbal_step) { return fail(); }
  gimbal_code wait() { return fail(); }
  gimbal_code measure(gimbal_limits&) { return fail(); }
  gimbal_code run_counts(gimbal_executable*, uint64_t*, size_t) { return fail(); }
  gimbal_code scratch_bytes(const gimbal_program&, uint64_t*) { return fail(); }
  static const char* depends_on() { return fail<const char*>(); }
  gimbal_code adopt(const void*, size_t, gimbal_buffer**) { return fail(); }
};

TEST(BackendTable, LetsNoExceptionThroughAnyEntry) {
  const gimbal_backend t = BackendTable<Thrower>::make("thrower");
  struct Expected {
    Thrower::What what;
    gimbal_code code;
    std::string text;
  };
  for (const Expected& e : {Expected{Thrower::Memory, GIMBAL_OUT_OF_MEMORY, "not enough memory"},
                            {Thrower::Text, GIMBAL_INVALID, "the cable is out"},
                            {Thrower::Number, GIMBAL_INVALID, "an exception of an unknown kind"}}) {
    Thrower::what = Thrower::Nothing;
    gimbal_device* d = nullptr;
    ASSERT_EQ(t.open(0, nullptr, &d), GIMBAL_OK);
    Thrower::what = e.what;
    int entries = 0;
    // What an entry answers, and that it left the reason.
    auto check = [&](const char* entry, auto answer, auto expected) {
      EXPECT_EQ(answer, expected) << entry;
      EXPECT_EQ(t.last_error(d), e.text) << entry;
      Thrower::error() = "";
      entries++;
    };
    auto left_alone = [&](const char* entry) { check(entry, 0, 0); };
    gimbal_value v{};
    gimbal_program p{};
    gimbal_limits limits{};
    limits.struct_size = sizeof limits;
    gimbal_device_info info{};
    info.struct_size = sizeof info;
    size_t n = 1, stride = 1;
    uint64_t bytes = 0;
    gimbal_buffer* b = nullptr;
    gimbal_executable* x = nullptr;
    gimbal_device* other = nullptr;
    check("device_count", t.device_count(), 0);
    check("open", t.open(0, nullptr, &other), e.code);
    t.describe(d, &info), left_alone("describe");
    EXPECT_EQ(info.name, nullptr);
    check("kernels", t.kernels(d, &n, &stride), static_cast<const gimbal_kernel_info*>(nullptr));
    check("alloc", t.alloc(d, 1, &b), e.code);
    t.release(d, b), left_alone("release");
    check("write", t.write(d, b, 0, nullptr, 0), e.code);
    check("read", t.read(d, b, 0, nullptr, 0), e.code);
    check("packed_bytes", t.packed_bytes(d, 0, 1, 1), 0u);
    check("pack", t.pack(d, b, &v, nullptr, 0, 0), e.code);
    check("cache_bytes", t.cache_bytes(d, 0, 0, 1, 1, 1, 1), 0u);
    check("compile", t.compile(d, &p, &x), e.code);
    t.discard(d, x), left_alone("discard");
    check("submit", t.submit(d, x, nullptr, 0, {1, 1}), e.code);
    check("wait", t.wait(d), e.code);
    check("measure", t.measure(d, &limits), e.code);
    check("run_counts", t.run_counts(d, x, nullptr, 0), e.code);
    check("scratch_bytes", t.scratch_bytes(d, &p, &bytes), e.code);
    check("depends_on", t.depends_on(), static_cast<const char*>(nullptr));
    check("adopt", t.adopt(d, nullptr, 0, &b), e.code);
    t.close(d), left_alone("close");
    EXPECT_EQ(entries, 21) << "all but last_error, which is asked after each";
    Thrower::what = Thrower::Nothing;
    if (other) t.close(other);
  }
}

// A host that is older or newer than the backend gives another size of room.
TEST(BackendTable, WritesNoMoreThanThereIsRoomFor) {
  Thrower::what = Thrower::Nothing;
  const gimbal_backend t = BackendTable<Thrower>::make("thrower");
  gimbal_device* d = nullptr;
  ASSERT_EQ(t.open(0, nullptr, &d), GIMBAL_OK);
  struct {
    gimbal_device_info known;
    unsigned char later[64];
  } room;
  std::memset(&room, 0xab, sizeof room);
  room.known.struct_size = offsetof(gimbal_device_info, memory_total);
  t.describe(d, &room.known);
  EXPECT_STREQ(room.known.name, "thrower");
  EXPECT_EQ(room.known.memory_total, 0xababababababababu);
  std::memset(&room, 0xab, sizeof room);
  room.known.struct_size = sizeof room;
  t.describe(d, &room.known);
  EXPECT_EQ(room.known.struct_size, sizeof(gimbal_device_info)) << "as much as was written";
  EXPECT_EQ(room.known.memory_total, 0u);
  EXPECT_EQ(room.later[0], 0xab);
  t.close(d);
}

}  // namespace
}  // namespace gimbal
