// The reference of mixtures of experts and of ops with a state, worked out by hand.
#include "support/reference.h"

namespace gimbal::reference {
namespace {

// Worked out by hand. Equal logits: the lower number first.
TEST(Reference, RoutesAreTheBestExperts) {
  Tensor logits = floats({4, 1}, {0, std::log(2.0), std::log(2.0), std::log(5.0)}),
         bias = floats({4}, {0.5, 0, 0, -0.5});
  auto of = [&](OpParams p, bool biased) {
    std::vector<const Tensor*> in = {&logits};
    if (biased) in.push_back(&bias);
    return run_op(OpKind::Route, p, in, Shape(DType::F32, {2 * p.i[0], 1}), 1).out.values;
  };
  near(of({{}, {2}}, false), {0.5, 0.2, 3, 1});
  near(of({{}, {3, 0, 1}}, false), {5 / 9., 2 / 9., 2 / 9., 3, 1, 2});
  near(of({{3}, {1, 1}}, false), {2.5, 3});
  // Sigmoids of 1/2, 2/3, 2/3, 5/6; with the bias 1, 2/3, 2/3, 1/3. The weights are without it.
  near(of({{}, {2, 1}}, true), {1 / 2., 2 / 3., 0, 1});
  near(of({{}, {2, 1, 1}}, true), {3 / 7., 4 / 7., 0, 1});
  // Groups of two: the sums are 5/3 and 1.
  near(of({{}, {1, 1, 0, 2, 1}}, true), {1 / 2., 0});
  near(of({{}, {2, 1, 0, 2, 1}}, true), {1 / 2., 2 / 3., 0, 1});
}

TEST(Reference, ExpertsAreChosenByTheirNumbers) {
  // Three matrices of 1 x 2: the last one, and the first one.
  Tensor w = floats({2, 3}, {1, 2, 10, 20, 100, 200}), x = floats({2, 1, 1}, {3, 1}),
         routes = floats({4, 1}, {0.5, 2, 2, 0}), bias = floats({3}, {0.25, 7, -1}),
         each = floats({2, 3, 1}, {1, 0, 0, 1, 1, 1}), scales = floats({3}, {4, 5, 6});
  OpParams p;
  p.i[0] = 1;
  near(run_op(OpKind::ExpertMatMul, p, {&w, &x, &routes}, Shape(DType::F32, {1, 2, 1}), 1).out.values,
       {500, 5});
  near(run_op(OpKind::ExpertMatMul, p, {&w, &x, &routes, &bias}, Shape(DType::F32, {1, 2, 1}), 1).out.values,
       {499, 5.25});
  near(run_op(OpKind::ExpertMatMul, p, {&w, &each}, Shape(DType::F32, {1, 3, 1}), 1).out.values,
       {1, 20, 300});
  Tensor slots = floats({2, 2, 1}, {1, 2, 10, 20});
  near(run_op(OpKind::Combine, {}, {&slots, &routes}, Shape(DType::F32, {2, 1}), 1).out.values, {20.5, 41});
  near(run_op(OpKind::Combine, {}, {&slots, &routes, &scales}, Shape(DType::F32, {2, 1}), 1).out.values,
       {83, 166});
}

// Two sequences in turns: 0 has page 1, 1 has page 0.
TEST(Reference, StatesGoFromRowToRow) {
  Tensor sequence = ints({3}, {0, 1, 0}), pages = ints({1, 2}, {1, 0});
  auto of = [&](OpKind kind, std::vector<const Tensor*> in, Tensor& state, Shape out) {
    Tensor y{out, std::vector<double>(size_t(out.count()))};
    run(kind, {}, in, y, 3, nullptr, &state);
    return y.values;
  };
  Tensor x = floats({1, 3}, {1, 2, 3}), taps = floats({3}, {100, 10, 1}), bias = floats({1}, {0.5}),
         conv = floats({2, 2}, {4, 5, 6, 7});  // of page 0: 4, then 5
  near(of(OpKind::ShortConv, {&x, &taps, &conv, &sequence, &pages, &bias}, conv, x.shape),
       {671.5, 452.5, 713.5});
  near(conv.values, {5, 2, 1, 3});

  // exp(step * a) is a half: s = s / 2 + step * x * b.
  const double step = std::log(2.0);
  Tensor v = floats({1, 1, 3}, {1, 2, 3}), steps = floats({1, 3}, {step, step, step}), a = floats({1}, {-1}),
         b = floats({2, 1, 3}, {1, 0, 1, 1, 0, 1}), c = floats({2, 1, 3}, {1, 1, 1, 0, 0, 1}),
         state = floats({2, 2}, {8, 6, 4, 2});
  near(of(OpKind::SelectiveScan, {&v, &steps, &a, &b, &c, &state, &sequence, &pages}, state, v.shape),
       {2 + step + 1, 4 + 2 * step, 0.5 + 3 * step});
  near(state.values, {4 + 2 * step, 3 + 2 * step, (2 + step) / 2, 0.5 + 3 * step});

  // A head of two keys and one value: s = s / 2; e = rate * (v - s k); s = s + k e.
  Tensor q = floats({2, 1, 3}, {1, 1, 1, 0, 0, 1}), k = floats({2, 1, 3}, {1, 0, 0, 1, 1, 0}),
         rate = floats({1, 3}, {1, 0.5, 1}), fade = floats({1, 3}, {-step, -step, -step}),
         memory = floats({2, 2}, {8, 6, 4, 2});
  // Row 0: s = 2, 1 -> e = 1 - 2: s = 1, 1. Row 1: s = 4, 3 -> e = (2 - 3) / 2: s = 4, 2.5. Row 2: s = 1/2,
  // 1/2 -> 3, 1/2.
  near(of(OpKind::DeltaRule, {&q, &k, &v, &rate, &fade, &memory, &sequence, &pages}, memory, v.shape),
       {2, 4, 0.5});
  near(memory.values, {4, 2.5, 3, 0.5});
}

// A head of two keys and one value; two sequences in turns, as above.
TEST(Reference, AGatedRuleForgetsByKey) {
  Tensor sequence = ints({3}, {0, 1, 0}), pages = ints({1, 2}, {1, 0}),
         q = floats({2, 1, 3}, {1, 1, 1, 0, 0, 1}), k = floats({2, 1, 3}, {1, 0, 0, 1, 1, 0}),
         decay = floats({2, 1, 3}, {0.5, 1, 0.25, 0.5, 1, 0}), v = floats({1, 1, 3}, {1, 2, 3}),
         erase = floats({4, 1, 3}, {1, 1, -1, 0, 0, 1, 0, 1, 1, 0, 1, 2}),
         state = floats({2, 2}, {8, 6, 4, 2});
  auto of = [&](OpParams p, bool erases) {
    state.values = {8, 6, 4, 2};
    std::vector<const Tensor*> in = {&q, &decay, &k, &v, &state, &sequence, &pages};
    if (erases) in.push_back(&erase);
    Tensor y{v.shape, std::vector<double>(3)};
    run(OpKind::GatedRule, p, in, y, 3, nullptr, &state);
    return y.values;
  };
  // Row 0: s = 4 / 2 + 1, 2. Row 1: s = 8 / 4, 6 / 2 + 2. Row 2: s = 3 + 3, 0.
  near(of({}, false), {5, 2, 0});
  near(state.values, {2, 5, 6, 0});
  near(of({{}, {1}}, false), {6, 8, 2});  // of the state before the row
  near(state.values, {2, 5, 6, 0});
  near(of({{}, {0, 1}}, false), {4.5, 2, 0});  // keys of 1/2; 1/2; 0
  near(state.values, {2, 4, 2.5, 0});
  // Found: 4 + 2; 6; -3. Added back: -1 times it to the first key; 1 to the second; 1 and 2.
  near(of({}, true), {-1, 2, -6});
  near(state.values, {2, 11, -3, -6});
}

}  // namespace
}  // namespace gimbal::reference
