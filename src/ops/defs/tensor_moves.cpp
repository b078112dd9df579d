// Ops of the tensor library that move numbers and compute none: cast (each value rounded once, from the exact
// one; to integers truncated within their range, NaN gives 0; to smaller integers wrapped; to bool: not 0),
// assign, select, gather, scatter (in rising order of the places: the last one wins, or each is added),
// check_ids.
#include "ops/defs/tensor_cases.h"

namespace gimbal::ops {
namespace {

Result<Shape> shape_of_cast(const ShapeCall& c) {
  Shape to = c.in[0];
  to.type = DType(c.params.i[0]);
  if (!has(kNumbers, to.type)) return c.refuse("the dtype must be one of plain numbers");
  return to;
}
Result<Shape> shape_of_assign(const ShapeCall& c) {
  if (c.in[0] != c.in[1]) return c.refuse("both must have one dtype and the same dimensions");
  return c.in[0];
}
Result<Shape> shape_of_select(const ShapeCall& c) {
  if (c.in[0].type != DType::Bool) return c.refuse("the condition must be bool");
  if (c.in[1] != c.in[2] || !same_dims(c.in[0], c.in[1]))
    return c.refuse("both choices must have one dtype, and all the same dimensions");
  return c.in[1];
}
bool is_dim(const Shape& s, int64_t dim) { return dim >= 0 && dim < s.rank; }

Result<Shape> shape_of_gather(const ShapeCall& c) {
  const int64_t dim = c.params.i[0];
  if (!is_ids(c.in[1])) return c.refuse("the ids must be integers");
  if (!is_dim(c.in[0], dim) || !same_but(c.in[0], c.in[1], dim))
    return c.refuse("the ids must have the dimensions of x, but for the one along which they choose");
  Shape to = c.in[1];
  to.type = c.in[0].type;
  return to;
}
Result<Shape> shape_of_scatter(const ShapeCall& c) {
  const int64_t dim = c.params.i[0];
  if (!is_ids(c.in[1])) return c.refuse("the ids must be integers");
  if (c.in[0].type != c.in[2].type) return c.refuse("both must have one dtype");
  if (!is_dim(c.in[0], dim) || !same_but(c.in[0], c.in[1], dim) || !same_dims(c.in[1], c.in[2]))
    return c.refuse(
        "ids and x must have the same dimensions, those of the target but for the one along which they "
        "choose");
  return c.in[0];
}

// ---- references
void cast_numbers(const reference::Call& c) {
  const DType from = c.in[0]->shape.type, to = c.out.shape.type;
  const bool from_whole = !c.whole().empty(), to_whole = !c.out.whole.empty();
  for (size_t i = 0; i < c.computed; i++) {
    if (from == to) c.move(i, 0, i);
    else if (from_whole && to_whole) c.put_whole(i, wrapped(to, c.whole()[i]));
    else if (from_whole) c.put_exact(i, rounded(to, c.whole()[i], from == DType::U64));
    else if (to_whole) c.put_whole(i, truncated(to, c.x()[i]));
    else c.put_exact(i, rounded(to, c.x()[i]));
  }
}
void select_numbers(const reference::Call& c) {
  for (size_t i = 0; i < c.computed; i++) c.move(i, c.whole()[i] ? 1 : 2, i);
}
void gather_numbers(const reference::Call& c) {
  const Along along(c.out.shape, c.params.i[0]);
  const auto of = size_t(c.in[0]->shape.dim[c.params.i[0]]);
  for (size_t i = 0; i < c.computed; i++)
    c.move(i, 0, along.line(i, of) + size_t(c.whole(1)[i]) * along.inner);
}
// Places in rising order: elements of a line lie behind each other.
void scatter_numbers(const reference::Call& c) {
  const Along along(c.in[1]->shape, c.params.i[0]);
  const DType type = c.out.shape.type;
  const auto of = size_t(c.out.shape.dim[c.params.i[0]]);
  for (size_t i = 0; i < c.computed; i++) c.move(i, 0, i);
  for (size_t i = 0; i < c.whole(1).size(); i++) {
    const size_t to = along.line(i, of) + size_t(c.whole(1)[i]) * along.inner;
    if (c.params.i[1] == 0) {
      c.move(to, 2, i);
    } else if (!c.out.whole.empty()) {
      c.put_whole(to, wrapped(type, int64_t(uint64_t(c.out.whole[to]) + uint64_t(c.whole(2)[i]))));
    } else {  // small floats are added in f32, and rounded once more
      const double sum = c.out.values[to] + c.x(2)[i];
      c.put_exact(to, rounded(type, type == DType::F64 ? sum : rounded(DType::F32, sum)));
    }
  }
}
void count_wrong_ids(const reference::Call& c) {
  int64_t found[3] = {};
  for (size_t i = 0; i < c.whole().size(); i++)
    if (const int64_t id = c.whole()[i]; id < 0 || id >= c.params.i[0])
      if (found[0]++ == 0) found[1] = int64_t(i), found[2] = id;
  for (size_t i = 0; i < 3; i++) c.put_whole(i, found[i]);
}

// ---- cases: sizes around vectors, cache lines and parts of 1,024 elements
constexpr DType kIds[] = {DType::I32, DType::I64, DType::U8, DType::I16, DType::U32};

const char* added(bool adds) { return adds ? "added" : "replaced"; }

std::vector<Case> cast_cases(DType from) {
  std::vector<Case> all;
  Numbers n = numbers_for(OpKind::Cast, from);
  auto add = [&](DType to, CaseInput x, const std::string& text) {
    OpParams p;
    p.i[0] = int64_t(to);
    all.push_back(
        tensor_case(OpKind::Cast, from, format("to {} {}", info(to).name, text), {std::move(x)}, p));
  };
  if (!has(kNumbers, from)) {
    const int64_t block = info(from).block;
    for (DType to : {DType::F32, DType::F16, DType::I16})
      add(to, weights(Shape(from, {3 * block, 2}), n), "of blocks");
    return all;
  }
  size_t next = size_t(from);
  for (DType to : kAllDTypes) {
    if (!has(kNumbers, to)) continue;
    const Lies how = nth(kViews, next++);
    add(to, numbers(Shape(from, {37, 5}), n, Fill::Wide, how), name_of(how));
  }
  for (const auto& [size, how] : {std::pair(Shape(from, {70, 66}), Lies::Turned),
                                  {Shape(from, {66, 3, 65}), Lies::Turned},
                                  {Shape(from, {1025, 2}), Lies::Stepped},
                                  {Shape(from, {1, 31, 3}), Lies::Flipped},
                                  {Shape(from, {1027}), Lies::Offset}})
    add(from, numbers(size, n, Fill::Wide, how), format("{} values {}", size.count(), name_of(how)));
  return all;
}

std::vector<Case> assign_cases(DType t) {
  std::vector<Case> all;
  Numbers n = numbers_for(OpKind::Assign, t);
  size_t next = size_t(t);
  auto add = [&](const Shape& s, Lies to, Lies x) {
    all.push_back(tensor_case(OpKind::Assign, t,
                              format("{} values {} = {}", s.count(), name_of(to), name_of(x)),
                              {numbers(s, n, Fill::Wide, to), numbers(s, n, Fill::Wide, x)}));
  };
  for (Lies to : kApart) add(Shape(t, {7, 5, 3}), to, nth(kViews, next++));
  for (int64_t count : {1, 2, 3, 1025}) add(Shape(t, {count}), nth(kApart, next), nth(kViews, next)), next++;
  return all;
}

std::vector<Case> select_cases(DType t) {
  std::vector<Case> all;
  Numbers n = numbers_for(OpKind::Select, t);
  for (size_t i = 0; i < std::size(kViews); i++) {
    const Shape s(t, {i == size_t(t) % 7 ? 1025 : 9, 3}), truths(DType::Bool, {s.dim[0], s.dim[1]});
    const Lies first = nth(kViews, i), second = nth(kViews, i + 1 + size_t(t) % 5),
               third = nth(kViews, 3 * i + 2);
    all.push_back(
        tensor_case(OpKind::Select, t,
                    format("{} values {} {} {}", s.count(), name_of(first), name_of(second), name_of(third)),
                    {numbers(truths, n, Fill::Normal, first), numbers(s, n, Fill::Wide, second),
                     numbers(s, n, Fill::Wide, third)}));
  }
  return all;
}

// x[5, 4, 3], with more ids along one dim, or fewer.
std::vector<Case> gather_cases(DType t) {
  std::vector<Case> all;
  Numbers n = numbers_for(OpKind::Gather, t);
  auto add = [&](Shape x, int64_t dim, int64_t chosen, Lies from, Lies of_ids) {
    const DType type = kIds[(all.size() + size_t(t)) % std::size(kIds)];
    Shape which = x;
    which.type = type, which.dim[dim] = chosen;
    OpParams p;
    p.i[0] = dim;
    all.push_back(tensor_case(
        OpKind::Gather, t, format("dim {} {} by {} {}", dim, name_of(from), info(type).name, name_of(of_ids)),
        {numbers(x, n, Fill::Wide, from), ids(which, n, int(x.dim[dim]), of_ids)}, p));
  };
  size_t next = size_t(t);
  for (int64_t dim : {0, 1, 2, 0})
    add(Shape(t, {5, 4, 3}), dim, all.size() < 3 ? 7 : 2, nth(kViews, next), nth(kViews, 2 * next)), next++;
  for (Lies from : {Lies::Dense, Lies::Stepped, Lies::Offset})  // rows, by one id each
    add(Shape(t, {19, 4}), 1, 9, from, Lies::Repeated);
  add(Shape(t, {1030}), 0, 1025, Lies::Flipped, Lies::Stepped);
  return all;
}

std::vector<Case> scatter_cases(DType t) {
  std::vector<Case> all;
  Numbers n = numbers_for(OpKind::Scatter, t);
  size_t next = size_t(t);
  for (int adds : {0, 1})
    for (int64_t dim : {0, 1, 2, 0}) {
      const DType type = kIds[next % std::size(kIds)];
      Shape to(t, {5, 4, 3}), which = to, x = to;
      which.type = type, which.dim[dim] = x.dim[dim] = 9;
      // GPUs scatter into dense values alone, which are copies and begin at a word.
      const Lies into = dim == 1 ? Lies::Dense : kApart[next % 4], of_ids = nth(kViews, next),
                 from = nth(kViews, 2 * next);
      OpParams p;
      p.i[0] = dim, p.i[1] = adds;
      all.push_back(tensor_case(
          OpKind::Scatter, t,
          format("{} dim {} {} by {} {} of {}", added(adds != 0), dim, name_of(into), info(type).name,
                 name_of(of_ids), name_of(from)),
          {numbers(to, n, adds ? Fill::Normal : Fill::Wide, into), ids(which, n, int(to.dim[dim]), of_ids),
           numbers(x, n, adds && next % 2 ? Fill::Few : Fill::Normal, from)},
          p));
      next++;
    }
  return all;
}

std::vector<Case> check_ids_cases(DType t) {
  std::vector<Case> all;
  Numbers n = numbers_for(OpKind::CheckIds, t);
  for (Lies how : kViews)
    for (int below : {100, 90}) {
      OpParams p;
      p.i[0] = below;
      const Shape s(t, {how == Lies::Stepped ? 1025 : 6, 5});
      // Wrong ones are rare, and below 0 if they can be.
      CaseInput in = ids(s, n, 90, how);
      if (below == 90) {
        std::vector<double> v = reference::decode(s, dense_bytes(in).data()).values;
        for (size_t i = size_t(n.below(20)); i < v.size(); i += 7)
          v[i] = is_signed(t) ? -1 - n.below(100) : 90 + n.below(100);
        in = numbers_of(s, v, how);
      }
      all.push_back(tensor_case(OpKind::CheckIds, t, format("below {} {}", below, name_of(how)), {in}, p));
    }
  return all;
}

}  // namespace

constinit const OpDef Cast = {
    .inputs = {{"x", Role::Whole}}, .integers = {"dtype"}, .operations = 1, .shape = shape_of_cast};
constinit const OpDef Assign = {
    .inputs = {{"to", Role::Written}, {"x", Role::Whole}}, .operations = 1, .shape = shape_of_assign};
constinit const OpDef Select = {
    .inputs = {{"condition", Role::Whole}, {"a", Role::Whole}, {"b", Role::Whole}},
    .operations = 1,
    .shape = shape_of_select};
constinit const OpDef Gather = {.inputs = {{"x", Role::Whole}, {"ids", Role::Whole}},
                                .integers = {"dim"},
                                .operations = 1,
                                .shape = shape_of_gather};
constinit const OpDef Scatter = {.inputs = {{"to", Role::Written}, {"ids", Role::Whole}, {"x", Role::Whole}},
                                 .integers = {"dim", "added"},
                                 .operations = 1,
                                 .shape = shape_of_scatter};
constinit const OpDef CheckIds = {
    .inputs = {{"ids", Role::Whole}},
    .integers = {"below"},
    .shape = [](const ShapeCall& c) -> Result<Shape> {
      if (!is_ids(c.in[0])) return c.refuse("the ids must be integers");
      return Shape(DType::I64, {3});
    },
    .cost = [](Cost& c, std::span<const Shape> in, const Shape&,
               int64_t) { c.operations = double(in[0].count()); },
};

constinit const OpCheck CastCheck = {
    .reference = cast_numbers, .tolerance = roundings<0>, .cases = cast_cases};
constinit const OpCheck AssignCheck = {.reference =
                                           [](const reference::Call& c) {
                                             for (size_t i = 0; i < c.computed; i++) c.move(i, 1, i);
                                           },
                                       .tolerance = roundings<0>,
                                       .cases = assign_cases};
constinit const OpCheck SelectCheck = {
    .named_by = 1, .reference = select_numbers, .tolerance = roundings<0>, .cases = select_cases};
constinit const OpCheck GatherCheck = {
    .reference = gather_numbers, .tolerance = roundings<0>, .cases = gather_cases};
constinit const OpCheck ScatterCheck = {
    .reference = scatter_numbers, .tolerance = roundings<0>, .cases = scatter_cases};
constinit const OpCheck CheckIdsCheck = {
    .reference = count_wrong_ids, .tolerance = roundings<0>, .cases = check_ids_cases};

}  // namespace gimbal::ops
