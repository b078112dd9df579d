// The environment of a kernel that is compiled as C++ for the emulator: one lane of one group. Plain structs
// only, so that a hundred kernel files compile fast. There are two forms of each kernel: `fast` accesses
// memory directly; `checked` has the emulator check every access.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace gimbal::emulator {

class Checks;  // src/backends/emulator/checks.h

struct Lane {
  uint32_t lane, group[3];
  void* const* data;      // by binding
  const uint64_t* words;  // sizes, by binding
  const void* params;
  const int32_t* step;
  void* shared;
  void (*arrive)(Lane&, int line);  // a barrier: returns when all lanes of the group have arrived
  uint32_t subgroup;                // number of lanes that can exchange values; 1: none
  // Returns the `value` of lane ^ distance, a lane of the same sub-group.
  uint32_t (*exchange)(Lane&, uint32_t value, uint32_t distance, int line);
  Checks* checks;
};
using LaneFunction = void (*)(Lane&);

// One row of the generated table; KernelCode::code points at it.
struct Compiled {
  LaneFunction fast, checked;
  uint32_t shared_bytes;
  bool barriers;
};

using f32 = float;
using u32 = uint32_t;
using i32 = int32_t;

// An array that a checked kernel accesses: a buffer, shared memory, a table, or a private array.
struct Array {
  const char* name;
  enum Kind : uint8_t { Input, Output, SharedMemory, Private, Table } kind;
  void* data;
  uint64_t words;
  uint32_t binding;  // its number among the kernel's buffers; shared memory: its first word
};
// The word at `index`. If `index` is out of bounds, records a defect and returns a dummy word.
uint32_t* checked_word(const Array&, uint64_t index, bool write);
// The same for an array that only has the name of its words: apart, so that kernels do not hold this code.
[[gnu::noinline, gnu::cold]] inline void* outside(const Array& a, uint64_t index, bool write) {
  return checked_word(a, index, write);
}

namespace fast {
template <class T>
using In = const T*;
template <class T>
using Out = T*;
template <class T>
using Shared = T*;
template <class T, unsigned n>
using Private = T[n];
template <class T, unsigned n>
using Table = const T[n];
template <class A>
A array(const char*, Array::Kind, void* data, uint64_t, uint32_t) {
  return static_cast<A>(data);
}
}  // namespace fast

namespace checked {
// The word at `index` of an array of the type A, which may be written.
template <class A>
class Word {
 public:
  using T = typename A::Element;
  Word(const A& a, u32 index) : array_(a), index_(index) {}
  Word(const Word&) = default;
  operator T() const {
    T v;
    __builtin_memcpy(&v, array_.word(index_, false), 4);
    return v;
  }
  void operator=(T v) const { __builtin_memcpy(array_.word(index_, true), &v, 4); }
  void operator=(const Word& o) const { *this = T(o); }
  void operator+=(T v) const { *this = T(*this) + v; }
  void operator-=(T v) const { *this = T(*this) - v; }
  void operator*=(T v) const { *this = T(*this) * v; }
  void operator|=(T v) const { *this = T(*this) | v; }
  void operator&=(T v) const { *this = T(*this) & v; }
  void operator^=(T v) const { *this = T(*this) ^ v; }

 private:
  const A& array_;
  u32 index_;
};

template <class T>
struct Out : Array {
  using Element = T;
  void* word(u32 index, bool write) const { return checked_word(*this, index, write); }
  Word<Out> operator[](u32 i) const { return {*this, i}; }
};
template <class T>
struct In : Out<T> {
  T operator[](u32 i) const { return Word<Out<T>>(*this, i); }
};
template <class T>
using Shared = Out<T>;

// Arrays of one lane: no other lane can touch them, so an index within them needs no call.
template <class T, unsigned n>
class Private {
 public:
  using Element = T;
  Private() { __builtin_memset(at_, 0xff, sizeof at_); }
  Private(const Private&) = delete;
  void* word(u32 i, bool write) const {
    return i < n ? at_ + i : outside({"private array", Array::Private, nullptr, n, 0}, i, write);
  }
  Word<Private> operator[](u32 i) const { return {*this, i}; }

 private:
  mutable T at_[n];
};

template <class T, unsigned n>
struct Table {
  T at[n];
  T operator[](u32 i) const {
    if (i < n) return at[i];
    T v;
    __builtin_memcpy(&v, outside({"table", Array::Table, nullptr, n, 0}, i, false), 4);
    return v;
  }
};

template <class A>
A array(const char* name, Array::Kind kind, void* data, uint64_t words, uint32_t binding) {
  A a;
  static_cast<Array&>(a) = {name, kind, data, words, binding};
  return a;
}
}  // namespace checked

// ---- the functions of the dialect ----------------------------------------------------------------------
inline f32 fma_(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }
inline f32 max_(f32 a, f32 b) { return a > b ? a : b; }
inline f32 min_(f32 a, f32 b) { return a < b ? a : b; }
inline u32 max_u(u32 a, u32 b) { return a > b ? a : b; }
inline u32 min_u(u32 a, u32 b) { return a < b ? a : b; }
inline i32 max_i(i32 a, i32 b) { return a > b ? a : b; }
inline i32 min_i(i32 a, i32 b) { return a < b ? a : b; }
inline f32 bits_to_f32(u32 v) { return __builtin_bit_cast(f32, v); }
inline u32 f32_to_bits(f32 v) { return __builtin_bit_cast(u32, v); }
template <class T>
T from_lane(Lane& lane, T v, u32 distance, int line) {
  return __builtin_bit_cast(T, lane.exchange(lane, __builtin_bit_cast(u32, v), distance, line));
}
inline f32 select(bool c, f32 a, f32 b) { return c ? a : b; }
inline u32 select(bool c, u32 a, u32 b) { return c ? a : b; }
inline i32 select(bool c, i32 a, i32 b) { return c ? a : b; }
inline f32 divide(f32 a, f32 b) { return a / b; }
inline i32 dot4(i32 sum, u32 u, u32 s) {
  for (int i = 0; i < 32; i += 8) sum += int32_t((u >> i) & 255) * int8_t((s >> i) & 255);
  return sum;
}

}  // namespace gimbal::emulator
