// A part of a program: neighbouring ops. It can be compiled and run alone, on the buffers of the whole.
#pragma once
#include "program/program.h"

namespace gimbal {

struct OpRange {
  size_t begin, end;
};

// Over all values of the program: devices cut large buffers between values, in each part alike.
inline gimbal_program part_of(const Program& p, OpRange ops) {
  return {p.values.data(), p.values.size(), p.ops.data() + ops.begin, ops.end - ops.begin};
}

}  // namespace gimbal
