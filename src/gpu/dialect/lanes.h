// Values of several lanes joined to one: the same tree on every target, so the same bits. TREE_n(T, name, JOIN, value, memory):
// `name` is, in every lane, the JOIN of the values of its n lanes, those whose numbers differ below n: i with i ^ n/2 first, what comes
// of it with that of i ^ n/4, and so on to i ^ 1. A JOIN that is commutative gives all of them the same bits.
// A target with sub-groups says before: SUBGROUP_LANES, a u32, how many lanes exchange values by themselves (1, 4, 8, 16, ...; 1: none),
// and FROM_LANE(T, v, d), the v of lane LANE ^ d, for d below it. What is wider, or all, goes through `memory`, in one step.
#define PLUS(a, b) ((a) + (b))

// The words of shared memory joined to one, in a tree of n lanes from the widest distance down to that in the name.
#define JOIN_32(n, J, m, i) J(m[i], m[(i) ^ 32u])
#define JOIN_16(n, J, m, i) J(JOIN_32(n, J, m, i), JOIN_32(n, J, m, (i) ^ 16u))
#define JOIN_8(n, J, m, i) J(ABOVE_8_OF_##n(J, m, i), ABOVE_8_OF_##n(J, m, (i) ^ 8u))
#define JOIN_4(n, J, m, i) J(ABOVE_4_OF_##n(J, m, i), ABOVE_4_OF_##n(J, m, (i) ^ 4u))
#define JOIN_2(n, J, m, i) J(JOIN_4(n, J, m, i), JOIN_4(n, J, m, (i) ^ 2u))
#define JOIN_1(n, J, m, i) J(JOIN_2(n, J, m, i), JOIN_2(n, J, m, (i) ^ 1u))
// What is joined there: a smaller tree begins further down.
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
// Through shared memory, down to what a sub-group does itself. Each tree has the cases and steps of those smaller than it.
#define IF_LANES(lanes, n, name, J, m) \
  if (SUBGROUP_LANES == lanes##u) { name = JOIN_##lanes(n, J, m, LANE); } else
#define SHARED_8(n, name, J, m) IF_LANES(4, n, name, J, m) { name = JOIN_1(n, J, m, LANE); }
#define SHARED_16(n, name, J, m) IF_LANES(8, n, name, J, m) SHARED_8(n, name, J, m)
#define SHARED_64(n, name, J, m) IF_LANES(32, n, name, J, m) IF_LANES(16, n, name, J, m) SHARED_16(n, name, J, m)
// Inside a sub-group.
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
