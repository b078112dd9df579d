// For backend authors: write one C++ class, get the C table. Included by backends only.
#pragma once
#include <new>
#include <string>
#include <string_view>

#include "device/abi.h"

namespace gimbal {

// Why something failed, kept per thread. Has no destructor: objects of a thread that have one keep a plugin
// in memory until the thread ends. Cut off where it is too long.
class ErrorText {
 public:
  ErrorText& operator=(std::string_view text) {
    const size_t n = text.size() < sizeof text_ ? text.size() : sizeof text_ - 1;
    text.copy(text_, n);
    text_[n] = 0;
    return *this;
  }
  const char* c_str() const { return text_; }

 private:
  char text_[1024] = {};
};

// Impl must offer
//   static int count();
//   static gimbal_code open(int, const char* options, Impl**);   static ErrorText& error();  // of the
//   calling thread void describe(gimbal_device_info&);   const gimbal_kernel_info* rows(size_t* count,
//   size_t* stride); alloc, release, write, read, packed_bytes, pack, cache_bytes, compile, discard, submit,
//   wait, as in abi.h without the device; and may offer measure, run_counts, scratch_bytes and
//   static const char* depends_on().
// Exceptions do not cross the C boundary: std::bad_alloc becomes GIMBAL_OUT_OF_MEMORY, others GIMBAL_INVALID
// with their text.
template <class Impl>
struct BackendTable {
  static Impl& self(gimbal_device* d) { return *reinterpret_cast<Impl*>(d); }

  template <class F>
  static gimbal_code guarded(F f) {
    try {
      return f();
    } catch (const std::bad_alloc&) {
      Impl::error() = "not enough memory";
      return GIMBAL_OUT_OF_MEMORY;
    } catch (const std::exception& e) {
      Impl::error() = e.what();
      return GIMBAL_INVALID;
    }
  }

  static constexpr auto measure() -> decltype(gimbal_backend::measure) {
    if constexpr (requires(Impl & i, gimbal_limits & l) { i.measure(l); })
      return [](gimbal_device* d, gimbal_limits* l) { return guarded([&] { return self(d).measure(*l); }); };
    else return nullptr;
  }

  static constexpr auto run_counts() -> decltype(gimbal_backend::run_counts) {
    if constexpr (requires(Impl & i, gimbal_executable * e, uint64_t * c) { i.run_counts(e, c, 0); })
      return [](gimbal_device* d, gimbal_executable* e, uint64_t* counts, size_t n) {
        return guarded([&] { return self(d).run_counts(e, counts, n); });
      };
    else return nullptr;
  }

  static constexpr auto scratch_bytes() -> decltype(gimbal_backend::scratch_bytes) {
    if constexpr (requires(Impl & i, const gimbal_program& p, uint64_t* n) { i.scratch_bytes(p, n); })
      return [](gimbal_device* d, const gimbal_program* p, uint64_t* out) {
        return guarded([&] { return self(d).scratch_bytes(*p, out); });
      };
    else return nullptr;
  }

  static constexpr auto depends_on() -> decltype(gimbal_backend::depends_on) {
    if constexpr (requires { Impl::depends_on(); })
      return []() -> const char* {
        try {
          return Impl::depends_on();
        } catch (const std::exception&) { return nullptr; }
      };
    else return nullptr;
  }

  static constexpr gimbal_backend make(const char* name) {
    return {
        GIMBAL_ABI_VERSION,
        sizeof(gimbal_backend),
        name,
        [] { return Impl::count(); },
        [](int i, const char* options, gimbal_device** out) {
          return guarded([&] { return Impl::open(i, options, reinterpret_cast<Impl**>(out)); });
        },
        [](gimbal_device* d) { delete &self(d); },
        [](gimbal_device* d, gimbal_device_info* i) { self(d).describe(*i); },
        [](gimbal_device* d, size_t* n, size_t* stride) { return self(d).rows(n, stride); },
        [](gimbal_device* d, size_t n, gimbal_buffer** out) {
          return guarded([&] { return self(d).alloc(n, out); });
        },
        [](gimbal_device* d, gimbal_buffer* b) { self(d).release(b); },
        [](gimbal_device* d, gimbal_buffer* b, size_t o, const void* p, size_t n) {
          return self(d).write(b, o, p, n);
        },
        [](gimbal_device* d, gimbal_buffer* b, size_t o, void* p, size_t n) {
          return self(d).read(b, o, p, n);
        },
        [](gimbal_device* d, uint8_t t, int32_t columns, int32_t rows) {
          return self(d).packed_bytes(t, columns, rows);
        },
        [](gimbal_device* d, gimbal_buffer* b, const gimbal_value* v, const void* p, int32_t begin,
           int32_t end) { return guarded([&] { return self(d).pack(b, *v, p, begin, end); }); },
        [](gimbal_device* d, uint8_t t, uint8_t is_key, int32_t hd, int32_t heads, int32_t page,
           int32_t pages) { return self(d).cache_bytes(t, is_key, hd, heads, page, pages); },
        [](gimbal_device* d, const gimbal_program* p, gimbal_executable** out) {
          return guarded([&] { return self(d).compile(*p, out); });
        },
        [](gimbal_device* d, gimbal_executable* e) { self(d).discard(e); },
        [](gimbal_device* d, gimbal_executable* e, gimbal_buffer* const* s, size_t n, gimbal_step step) {
          return guarded([&] { return self(d).submit(e, s, n, step); });
        },
        [](gimbal_device* d) { return self(d).wait(); },
        [](gimbal_device*) { return Impl::error().c_str(); },
        measure(),
        run_counts(),
        scratch_bytes(),
        depends_on(),
    };
  }
};

}  // namespace gimbal

#define GIMBAL_CAT2(a, b) a##b
#define GIMBAL_CAT(a, b) GIMBAL_CAT2(a, b)
#define GIMBAL_STR2(a) #a
#define GIMBAL_STR(a) GIMBAL_STR2(a)
// The one registration symbol. The name comes from the build, so the same source can be two backends (CUDA,
// ROCm).
#define GIMBAL_EXPORT_BACKEND(Impl)                                                   \
  extern "C" __attribute__((visibility("default"))) const gimbal_backend* GIMBAL_CAT( \
      gimbal_backend_, GIMBAL_BACKEND_NAME)(void) {                                   \
    static constexpr gimbal_backend table =                                           \
        gimbal::BackendTable<Impl>::make(GIMBAL_STR(GIMBAL_BACKEND_NAME));            \
    return &table;                                                                    \
  }

// What a plugin exports, in a file of its own (cmake/plugins.cmake), so that the backend's objects serve
// both.
#define GIMBAL_EXPORT_PLUGIN(name)                                                                       \
  extern "C" const gimbal_backend* GIMBAL_CAT(gimbal_backend_, name)(void);                              \
  extern "C" __attribute__((visibility("default"))) const gimbal_plugin* gimbal_plugin_entry(void) {     \
    static constexpr gimbal_plugin plugin = {sizeof(gimbal_plugin), GIMBAL_ABI_VERSION, GIMBAL_BUILD_ID, \
                                             GIMBAL_COMPILER, GIMBAL_CAT(gimbal_backend_, name)};        \
    return &plugin;                                                                                      \
  }
