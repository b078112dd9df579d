// For backend authors: write one C++ class, get the C table. Included by backends only.
#pragma once
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

#include "device/abi.h"
#include "device/error_text.h"
#include "device/meanings.h"

namespace gimbal {

// clang-format off
// Impl must offer:
//   static int count();                                          // devices
//   static gimbal_code open(int index, const char* options, Impl** out);
//   static ErrorText& error();                                   // of the calling thread
//   void describe(gimbal_device_info&);                          // all is 0 before
//   const gimbal_kernel_info* rows(size_t* count, size_t* stride);
//   gimbal_code alloc(size_t bytes, gimbal_buffer** out);        // from here on as in abi.h, without the device
//   void release(gimbal_buffer*);
//   gimbal_code write(gimbal_buffer*, size_t offset, const void*, size_t);
//   gimbal_code read(gimbal_buffer*, size_t offset, void*, size_t);
//   uint64_t packed_bytes(uint8_t dtype, int64_t columns, int64_t rows);
//   gimbal_code pack(gimbal_buffer*, const gimbal_value&, const void* source, int64_t begin, int64_t end);
//   uint64_t cache_bytes(uint8_t dtype, uint8_t is_key, int64_t head_dim, int64_t heads, int64_t page, int64_t pages);
//   gimbal_code compile(const gimbal_program&, gimbal_executable** out);
//   void discard(gimbal_executable*);
//   gimbal_code submit(gimbal_executable*, gimbal_buffer* const* slots, size_t n_slots, gimbal_step);
//   gimbal_code wait();
// and may offer:
//   gimbal_code measure(gimbal_limits&);
//   gimbal_code run_counts(gimbal_executable*, uint64_t* counts, size_t n_ops);
//   gimbal_code scratch_bytes(const gimbal_program&, uint64_t* out);
//   static const char* depends_on();
//   gimbal_code adopt(const void* data, size_t bytes, gimbal_buffer** out);
//   void* host_pointer(gimbal_buffer*);
//   gimbal_code add_kernel(const gimbal_host_kernel&);
// It may throw: exceptions do not cross the C boundary. std::bad_alloc becomes GIMBAL_OUT_OF_MEMORY, anything
// else GIMBAL_INVALID with its text. Where an entry gives no code, the answer is that of a device that has
// nothing (no devices, no kernels, no such layout), and the text is kept for last_error().
// clang-format on
template <class Impl>
struct BackendTable {
  static Impl& self(gimbal_device* d) { return *reinterpret_cast<Impl*>(d); }

  // Returns f(), or otherwise(code) for the code of a thrown exception.
  template <class F, class Otherwise>
  static auto guarded(F f, Otherwise otherwise) -> decltype(otherwise(GIMBAL_OK)) {
    try {
      return f();
    } catch (const std::bad_alloc&) {
      Impl::error() = "not enough memory";
      return otherwise(GIMBAL_OUT_OF_MEMORY);
    } catch (const std::system_error& e) {
      const bool threads = e.code() == std::errc::resource_unavailable_try_again;  // no memory for its stack
      Impl::error() = threads ? "the system cannot create more threads" : e.what();
      return otherwise(threads ? GIMBAL_OUT_OF_MEMORY : GIMBAL_INVALID);
    } catch (const std::exception& e) {
      Impl::error() = e.what();
      return otherwise(GIMBAL_INVALID);
    } catch (...) {
      Impl::error() = "an exception of an unknown kind";
      return otherwise(GIMBAL_INVALID);
    }
  }
  template <class F>
  static gimbal_code guarded(F f) {
    return guarded(f, [](gimbal_code code) { return code; });
  }
  template <class T, class F>
  static T guarded_or(T nothing, F f) {
    return guarded(f, [&](gimbal_code) { return nothing; });
  }
  template <class F>
  static void guarded_void(F f) {
    guarded([&] { return f(), GIMBAL_OK; });
  }

  // Copies as much of the struct as the host's version has room for.
  template <class Info>
  static void give(const Info& all, Info* out) {
    const uint32_t room = out->struct_size, n = room < sizeof all ? room : uint32_t(sizeof all);
    std::memcpy(out, &all, n);
    out->struct_size = n;
  }

  static constexpr auto measure() -> decltype(gimbal_backend::measure) {
    if constexpr (requires(Impl & i, gimbal_limits & l) { i.measure(l); })
      return [](gimbal_device* d, gimbal_limits* out) {
        return guarded([&] {
          gimbal_limits l{};
          const gimbal_code code = self(d).measure(l);
          return give(l, out), code;
        });
      };
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
      return [] { return guarded_or<const char*>(nullptr, [] { return Impl::depends_on(); }); };
    else return nullptr;
  }

  static constexpr auto adopt() -> decltype(gimbal_backend::adopt) {
    if constexpr (requires(Impl & i, gimbal_buffer * *out) { i.adopt(nullptr, 0, out); })
      return [](gimbal_device* d, const void* data, size_t n, gimbal_buffer** out) {
        return guarded([&] { return self(d).adopt(data, n, out); });
      };
    else return nullptr;
  }

  static constexpr auto host_pointer() -> decltype(gimbal_backend::host_pointer) {
    if constexpr (requires(Impl & i, gimbal_buffer * b) { i.host_pointer(b); })
      return [](gimbal_device* d, gimbal_buffer* b) {
        return guarded_or<void*>(nullptr, [&] { return self(d).host_pointer(b); });
      };
    else return nullptr;
  }

  static constexpr auto add_kernel() -> decltype(gimbal_backend::add_kernel) {
    if constexpr (requires(Impl & i, const gimbal_host_kernel& k) { i.add_kernel(k); })
      return [](gimbal_device* d, const gimbal_host_kernel* k) {
        return guarded([&] { return self(d).add_kernel(*k); });
      };
    else return nullptr;
  }

  static constexpr gimbal_backend make(const char* name) {
    return {
        GIMBAL_ABI_VERSION,
        sizeof(gimbal_backend),
        name,
        [] { return guarded_or(0, [] { return Impl::count(); }); },
        [](int i, const char* options, gimbal_device** out) {
          return guarded([&] { return Impl::open(i, options, reinterpret_cast<Impl**>(out)); });
        },
        [](gimbal_device* d) { guarded_void([&] { delete &self(d); }); },
        [](gimbal_device* d, gimbal_device_info* out) {
          guarded_void([&] {
            gimbal_device_info i{};
            self(d).describe(i);
            give(i, out);
          });
        },
        [](gimbal_device* d, size_t* n, size_t* stride) {
          const auto* rows =
              guarded_or<const gimbal_kernel_info*>(nullptr, [&] { return self(d).rows(n, stride); });
          if (!rows) *n = *stride = 0;
          return rows;
        },
        [](gimbal_device* d, size_t n, gimbal_buffer** out) {
          return guarded([&] { return self(d).alloc(n, out); });
        },
        [](gimbal_device* d, gimbal_buffer* b) { guarded_void([&] { self(d).release(b); }); },
        [](gimbal_device* d, gimbal_buffer* b, size_t o, const void* p, size_t n) {
          return guarded([&] { return self(d).write(b, o, p, n); });
        },
        [](gimbal_device* d, gimbal_buffer* b, size_t o, void* p, size_t n) {
          return guarded([&] { return self(d).read(b, o, p, n); });
        },
        [](gimbal_device* d, uint8_t t, int64_t columns, int64_t rows) {
          return guarded_or<uint64_t>(0, [&] { return self(d).packed_bytes(t, columns, rows); });
        },
        [](gimbal_device* d, gimbal_buffer* b, const gimbal_value* v, const void* p, int64_t begin,
           int64_t end) { return guarded([&] { return self(d).pack(b, *v, p, begin, end); }); },
        [](gimbal_device* d, uint8_t t, uint8_t is_key, int64_t hd, int64_t heads, int64_t page,
           int64_t pages) {
          return guarded_or<uint64_t>(0,
                                      [&] { return self(d).cache_bytes(t, is_key, hd, heads, page, pages); });
        },
        [](gimbal_device* d, const gimbal_program* p, gimbal_executable** out) {
          return guarded([&] { return self(d).compile(*p, out); });
        },
        [](gimbal_device* d, gimbal_executable* e) { guarded_void([&] { self(d).discard(e); }); },
        [](gimbal_device* d, gimbal_executable* e, gimbal_buffer* const* s, size_t n, gimbal_step step) {
          return guarded([&] { return self(d).submit(e, s, n, step); });
        },
        [](gimbal_device* d) { return guarded([&] { return self(d).wait(); }); },
        [](gimbal_device*) {
          return guarded_or<const char*>("no reason given", [] { return Impl::error().c_str(); });
        },
        measure(),
        run_counts(),
        scratch_bytes(),
        depends_on(),
        adopt(),
        host_pointer(),
        add_kernel(),
    };
  }
};

}  // namespace gimbal

#define GIMBAL_CAT2(a, b) a##b
#define GIMBAL_CAT(a, b) GIMBAL_CAT2(a, b)
#define GIMBAL_STR2(a) #a
#define GIMBAL_STR(a) GIMBAL_STR2(a)
// The only exported symbol. The name comes from the build, so one source can be two backends (CUDA, ROCm).
// GIMBAL_DEVICE_TITLE: its name for users, if a build has several backends of one name.
#ifndef GIMBAL_DEVICE_TITLE
#define GIMBAL_DEVICE_TITLE GIMBAL_BACKEND_NAME
#endif
#define GIMBAL_EXPORT_BACKEND(Impl)                                                   \
  extern "C" __attribute__((visibility("default"))) const gimbal_backend* GIMBAL_CAT( \
      gimbal_backend_, GIMBAL_BACKEND_NAME)(void) {                                   \
    static constexpr gimbal_backend table =                                           \
        gimbal::BackendTable<Impl>::make(GIMBAL_STR(GIMBAL_DEVICE_TITLE));            \
    return &table;                                                                    \
  }

// The plugin's entry point, in a file of its own (cmake/plugins.cmake), so that the same objects serve linked
// backends and plugins.
#define GIMBAL_EXPORT_PLUGIN(name)                                                                   \
  extern "C" const gimbal_backend* GIMBAL_CAT(gimbal_backend_, name)(void);                          \
  extern "C" __attribute__((visibility("default"))) const gimbal_plugin* gimbal_plugin_entry(void) { \
    static constexpr gimbal_plugin plugin = {sizeof(gimbal_plugin),                                  \
                                             GIMBAL_ABI_VERSION,                                     \
                                             GIMBAL_BUILD_ID,                                        \
                                             GIMBAL_COMPILER,                                        \
                                             GIMBAL_CAT(gimbal_backend_, name),                      \
                                             gimbal::kOpMeaningsHere,                                \
                                             gimbal::kDTypeMeaningsHere};                            \
    return &plugin;                                                                                  \
  }
