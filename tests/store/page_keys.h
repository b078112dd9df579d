// Keys of pages, told apart by a number.
#pragma once
#include <cstring>

#include "store/page_place.h"

namespace gimbal::test {

inline PageKey page_key(int n) {
  PageKey k{};
  std::memcpy(k.data(), &n, sizeof n);
  return k;
}

}  // namespace gimbal::test
