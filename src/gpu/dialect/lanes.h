// Reductions over lanes, in the same tree on every target, so the bits are equal. TREE_n(T, name, JOIN, value, memory) reduces each
// block of n lanes: lane i first joins its value with that of lane i ^ n/2, then the result with lane i ^ n/4, down to i ^ 1. Every
// lane gets the result in `name`; if JOIN is commutative, all n lanes get the same bits.
// A target with sub-groups defines before: SUBGROUP_LANES, a u32, the number of lanes that can exchange values (1, 4, 8, 16, ...; 1: none),
// and FROM_LANE(T, v, d), the v of lane LANE ^ d, for d below that number. Wider steps, or all, use the shared `memory`, with one barrier.
#define PLUS(a, b) ((a) + (b))

// The reduction of words of shared memory, in a tree of n lanes, from the widest distance down to the one in the name.
#define JOIN_32(n, J, m, i) J(m[i], m[(i) ^ 32u])
#define JOIN_16(n, J, m, i) J(JOIN_32(n, J, m, i), JOIN_32(n, J, m, (i) ^ 16u))
#define JOIN_8(n, J, m, i) J(ABOVE_8_OF_##n(J, m, i), ABOVE_8_OF_##n(J, m, (i) ^ 8u))
#define JOIN_4(n, J, m, i) J(ABOVE_4_OF_##n(J, m, i), ABOVE_4_OF_##n(J, m, (i) ^ 4u))
#define JOIN_2(n, J, m, i) J(JOIN_4(n, J, m, i), JOIN_4(n, J, m, (i) ^ 2u))
#define JOIN_1(n, J, m, i) J(JOIN_2(n, J, m, i), JOIN_2(n, J, m, (i) ^ 1u))
// The operands of JOIN_8 and JOIN_4: a tree of few lanes begins with plain words.
#define ABOVE_8_OF_64(J, m, i) JOIN_16(64, J, m, i)
#define ABOVE_8_OF_16(J, m, i) m[i]
#define ABOVE_4_OF_64(J, m, i) JOIN_8(64, J, m, i)
#define ABOVE_4_OF_16(J, m, i) JOIN_8(16, J, m, i)
#define ABOVE_4_OF_8(J, m, i) m[i]

#ifndef SUBGROUP_LANES
#define TREE(n, T, name, J, value, m) \
  m[LANE] = value;                    \
  BARRIER;                            \
  LET(T, name) = JOIN_1(n, J, m, LANE)
#else
// The steps in shared memory, down to the width of a sub-group. Each tree contains the cases and steps of the smaller ones.
#define IF_LANES(lanes, n, name, J, m) \
  if (SUBGROUP_LANES == lanes##u) { name = JOIN_##lanes(n, J, m, LANE); } else
#define SHARED_8(n, name, J, m) IF_LANES(4, n, name, J, m) { name = JOIN_1(n, J, m, LANE); }
#define SHARED_16(n, name, J, m) IF_LANES(8, n, name, J, m) SHARED_8(n, name, J, m)
#define SHARED_64(n, name, J, m) IF_LANES(32, n, name, J, m) IF_LANES(16, n, name, J, m) SHARED_16(n, name, J, m)
// The steps inside a sub-group.
#define STEP(T, name, J, d) \
  if (SUBGROUP_LANES > d) { name = J(name, FROM_LANE(T, name, d)); }
#define STEPS_8(T, name, J) STEP(T, name, J, 4u) STEP(T, name, J, 2u) STEP(T, name, J, 1u)
#define STEPS_16(T, name, J) STEP(T, name, J, 8u) STEPS_8(T, name, J)
#define STEPS_64(T, name, J) STEP(T, name, J, 32u) STEP(T, name, J, 16u) STEPS_16(T, name, J)
#define TREE(n, T, name, J, value, m) \
  VAR(T, name) = value;               \
  if (SUBGROUP_LANES < n##u) {        \
    m[LANE] = name;                   \
    BARRIER;                          \
    SHARED_##n(n, name, J, m)         \
  }                                   \
  STEPS_##n(T, name, J)
#endif
#define TREE_64(T, name, J, value, m) TREE(64, T, name, J, value, m)
#define TREE_16(T, name, J, value, m) TREE(16, T, name, J, value, m)
#define TREE_8(T, name, J, value, m) TREE(8, T, name, J, value, m)
