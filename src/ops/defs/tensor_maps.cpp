// map: a function of one or two numbers at the same place. ops/maps.def lists the functions, ops/formulas/
// has their arithmetic.
#include "ops/defs/tensor_parts.h"
#include "ops/maps.h"

namespace gimbal::ops {
namespace {

Result<Shape> shape_of_map(const ShapeCall& c) {
  const MapFacts* f = map_facts(MapFunction(c.params.i[0]));
  if (!f) return c.refuse("there is no such function");
  if (!has(formats_of(*f), c.in[0].type))
    return c.refuse(format("{} is not defined for {}", f->name, info(c.in[0].type).name));
  const bool number = Operands(c.params.i[1]) != Operands::Values;
  if (int(c.in.size()) + number != f->inputs)
    return c.refuse(format("{} takes {} operands", f->name, f->inputs));
  if (c.in.size() > 1 && c.in[0] != c.in[1])
    return c.refuse("both must have one dtype and the same dimensions");
  Shape to = c.in[0];
  to.type = result_of(*f, to.type);
  return to;
}

}  // namespace

constinit const OpDef Map = {.inputs = {{"a", Role::Whole}, {"b", Role::Whole}},
                             .floats = {"number", "second"},
                             .integers = {"function", "operands", "integer"},
                             .operations = 10,
                             .shape = shape_of_map};
constinit const OpCheck MapCheck = kUnchecked;

}  // namespace gimbal::ops
