// The generations of libllama's C interface. Releases change the parameter structs, which are passed by
// value, and no function returns their sizes. So a library's generation is measured: the bytes that its
// functions of default parameters write, and the defaults found at the places where a generation has its
// fields.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace gimbal::llama {

inline constexpr int kNewest = 8;  // the largest index of a generation
inline constexpr int kGenerations = kNewest + 1;

enum class ModelField : uint8_t {
#define GIMBAL_LLAMA_MODEL(name, kind, first, last) name,
#include "llama/fields.def"
  kCount
};
enum class ContextField : uint8_t {
#define GIMBAL_LLAMA_CONTEXT(name, kind, first, last) name,
#include "llama/fields.def"
  kCount
};

// Where a generation has the fields of a struct, in bytes.
template <class Field>
struct Layout {
  int size = 0;
  std::array<int, size_t(Field::kCount)> at{};  // -1: it has no such field
  constexpr bool has(Field f) const { return at[size_t(f)] >= 0; }
};

struct Generation {
  const char* release;  // a release that has it: "b8390"
  const char* exports;  // a function that tells it from the generations before
  const char* lacks;    // a function that tells it from those after; empty: the sizes do
  Layout<ModelField> model;
  Layout<ContextField> context;
};

std::span<const Generation, kGenerations> generations();

// Storage that is larger than any known struct. A function that returns a large struct gets the address of
// the storage, and a caller may pass a larger struct as the last argument than the function reads: the C
// conventions of x86-64 and AArch64 allow both. So one type stands for the structs of all generations.
struct alignas(8) AnyStruct {
  std::array<std::byte, 1024> bytes;
};

// A struct as a function returned it twice, into storage that had two different patterns.
struct MeasuredStruct {
  int size = 0;  // written bytes, rounded up to 8
  AnyStruct value;
  std::array<bool, sizeof(AnyStruct)> written{};
};
MeasuredStruct measure(AnyStruct (*returns)());

// Finds the generation by sizes, exported functions, written fields, and defaults that all generations share.
// Errors: Unsupported if none has all of these, with everything expected and found.
Result<const Generation*> identify(const MeasuredStruct& model, const MeasuredStruct& context,
                                   const std::function<bool(const char* function)>& exported);

template <class Field>
void set_bytes(AnyStruct& s, const Layout<Field>& layout, Field f, const void* from, size_t bytes) {
  if (layout.has(f)) std::memcpy(s.bytes.data() + layout.at[size_t(f)], from, bytes);
}
template <class Field, class T>
void set(AnyStruct& s, const Layout<Field>& layout, Field f, T value) {
  set_bytes(s, layout, f, &value, sizeof value);
}
template <class T, class Field>
T get(const AnyStruct& s, const Layout<Field>& layout, Field f) {
  return read_le<T>(s.bytes.data() + layout.at[size_t(f)]);
}

}  // namespace gimbal::llama
