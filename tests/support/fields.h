// The number of members of a plain struct, at compile time: a table about a struct can be checked for gaps.
#pragma once
#include <cstddef>
#include <type_traits>

namespace gimbal::test {

template <class Struct>
struct AnyMember {
  template <class T>
  requires(!std::is_same_v<std::remove_cvref_t<T>, Struct>) operator T() const;
};

// Of an aggregate without bases or arrays.
template <class Struct, class... Members>
constexpr size_t field_count() {
  static_assert(std::is_aggregate_v<Struct>);
  if constexpr (requires { Struct{Members{}..., AnyMember<Struct>{}}; })
    return field_count<Struct, Members..., AnyMember<Struct>>();
  else return sizeof...(Members);
}

}  // namespace gimbal::test
