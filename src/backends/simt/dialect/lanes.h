// Values of several lanes joined to one: the same tree on every target, so the same bits. TREE_n(T, name, JOIN, value, memory):
// `name` is, in every lane, the JOIN of the values of its n lanes, those whose numbers differ below n: i with i ^ n/2 first, what comes
// of it with that of i ^ n/4, and so on to i ^ 1. A JOIN that is commutative gives all of them the same bits.
// A target with sub-groups says before: SUBGROUP_LANES, a u32, how many lanes exchange values by themselves (1, 4, 8, 16, ...; 1: none),
// and FROM_LANE(T, v, d), the v of lane LANE ^ d, for d below it. What is wider, or all, goes through `memory`, in one step.
#define PLUS(a, b) ((a) + (b))

// Trees of 64, 16 and 8 words of shared memory, from the widest distance down to that in the name.
#define JOIN_64_32(J, m, i) J(m[i], m[(i) ^ 32u])
#define JOIN_64_16(J, m, i) J(JOIN_64_32(J, m, i), JOIN_64_32(J, m, (i) ^ 16u))
#define JOIN_64_8(J, m, i) J(JOIN_64_16(J, m, i), JOIN_64_16(J, m, (i) ^ 8u))
#define JOIN_64_4(J, m, i) J(JOIN_64_8(J, m, i), JOIN_64_8(J, m, (i) ^ 4u))
#define JOIN_64_2(J, m, i) J(JOIN_64_4(J, m, i), JOIN_64_4(J, m, (i) ^ 2u))
#define JOIN_64_1(J, m, i) J(JOIN_64_2(J, m, i), JOIN_64_2(J, m, (i) ^ 1u))
#define JOIN_16_8(J, m, i) J(m[i], m[(i) ^ 8u])
#define JOIN_16_4(J, m, i) J(JOIN_16_8(J, m, i), JOIN_16_8(J, m, (i) ^ 4u))
#define JOIN_16_2(J, m, i) J(JOIN_16_4(J, m, i), JOIN_16_4(J, m, (i) ^ 2u))
#define JOIN_16_1(J, m, i) J(JOIN_16_2(J, m, i), JOIN_16_2(J, m, (i) ^ 1u))
#define JOIN_8_4(J, m, i) J(m[i], m[(i) ^ 4u])
#define JOIN_8_2(J, m, i) J(JOIN_8_4(J, m, i), JOIN_8_4(J, m, (i) ^ 2u))
#define JOIN_8_1(J, m, i) J(JOIN_8_2(J, m, i), JOIN_8_2(J, m, (i) ^ 1u))

#ifndef SUBGROUP_LANES
#define TREE_OVER(n, T, name, J, value, m) \
  m[LANE] = value;                         \
  BARRIER;                                 \
  LET(T, name) = JOIN_##n##_1(J, m, LANE)
#define TREE_64(T, name, J, value, m) TREE_OVER(64, T, name, J, value, m)
#define TREE_16(T, name, J, value, m) TREE_OVER(16, T, name, J, value, m)
#define TREE_8(T, name, J, value, m) TREE_OVER(8, T, name, J, value, m)
#else
// One step inside a sub-group.
#define TREE_STEP(T, name, J, d) \
  if (SUBGROUP_LANES > d) { name = J(name, FROM_LANE(T, name, d)); }
#define TREE_64(T, name, J, value, m)                    \
  VAR(T, name) = value;                                  \
  if (SUBGROUP_LANES < 64u) {                            \
    m[LANE] = name;                                      \
    BARRIER;                                             \
    if (SUBGROUP_LANES == 32u) {                         \
      name = JOIN_64_32(J, m, LANE);                     \
    } else if (SUBGROUP_LANES == 16u) {                  \
      name = JOIN_64_16(J, m, LANE);                     \
    } else if (SUBGROUP_LANES == 8u) {                   \
      name = JOIN_64_8(J, m, LANE);                      \
    } else if (SUBGROUP_LANES == 4u) {                   \
      name = JOIN_64_4(J, m, LANE);                      \
    } else {                                             \
      name = JOIN_64_1(J, m, LANE);                      \
    }                                                    \
  }                                                      \
  TREE_STEP(T, name, J, 32u)                             \
  TREE_STEP(T, name, J, 16u)                             \
  TREE_STEP(T, name, J, 8u)                              \
  TREE_STEP(T, name, J, 4u)                              \
  TREE_STEP(T, name, J, 2u)                              \
  TREE_STEP(T, name, J, 1u)
#define TREE_16(T, name, J, value, m)                    \
  VAR(T, name) = value;                                  \
  if (SUBGROUP_LANES < 16u) {                            \
    m[LANE] = name;                                      \
    BARRIER;                                             \
    if (SUBGROUP_LANES == 8u) {                          \
      name = JOIN_16_8(J, m, LANE);                      \
    } else if (SUBGROUP_LANES == 4u) {                   \
      name = JOIN_16_4(J, m, LANE);                      \
    } else {                                             \
      name = JOIN_16_1(J, m, LANE);                      \
    }                                                    \
  }                                                      \
  TREE_STEP(T, name, J, 8u)                              \
  TREE_STEP(T, name, J, 4u)                              \
  TREE_STEP(T, name, J, 2u)                              \
  TREE_STEP(T, name, J, 1u)
#define TREE_8(T, name, J, value, m)                     \
  VAR(T, name) = value;                                  \
  if (SUBGROUP_LANES < 8u) {                             \
    m[LANE] = name;                                      \
    BARRIER;                                             \
    if (SUBGROUP_LANES == 4u) {                          \
      name = JOIN_8_4(J, m, LANE);                       \
    } else {                                             \
      name = JOIN_8_1(J, m, LANE);                       \
    }                                                    \
  }                                                      \
  TREE_STEP(T, name, J, 4u)                              \
  TREE_STEP(T, name, J, 2u)                              \
  TREE_STEP(T, name, J, 1u)
#endif
