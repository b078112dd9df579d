// The parameters of the search for codebook formats: codebooks, levels, sizes and first scales, for CPUs and
// for the kernels of GPUs.
#pragma once
#include <span>

#include "tensor/encode/codebook.h"

namespace gimbal::encoding {

// Levels, as multiples of unit * scale, and the middles between them.
struct Levels3 {
  float at[3];
};
struct Levels8 {
  float at[8];
};
inline constexpr Levels3 kIq2Levels{{8, 25, 43}}, kShiftedDown{{-9, -1, 7}}, kShiftedUp{{-7, 1, 9}};
inline constexpr Levels8 kIq3XxsLevels{{4, 12, 20, 28, 36, 44, 52, 62}},
    kIq3SLevels{{1, 3, 5, 7, 9, 11, 13, 15}};

// The scales that a search begins with: multiples of the scale that covers the group, tried with values
// rounded alone; multiples of the best of these; and of the first again, where codebooks with few points fit
// some scales badly.
struct FirstScales {
  std::span<const float> rough, of_rough, of_covering;
};
inline constexpr float kRough2[] = {0.55f, 0.65f, 0.74f, 0.82f, 0.9f, 1.0f, 1.1f, 1.22f},
                       kRough3[] = {0.80f, 0.86f, 0.92f, 0.97f, 1.02f, 1.08f},
                       kRough1[] = {0.45f, 0.55f, 0.65f, 0.75f, 0.85f, 1.0f, 1.15f};
inline constexpr float kNearby2[] = {0.92f, 1.0f, 1.08f}, kNearby3[] = {0.95f, 1.0f, 1.05f}, kOnce[] = {1.0f};
inline constexpr float kCovering2[] = {0.7f, 0.85f, 1.0f},
                       kCovering3[] = {0.80f, 0.86f, 0.92f, 0.97f, 1.03f, 1.1f, 1.17f, 1.25f, 1.34f};
// Even signs make values of the wrong sign, which move the best scale.
inline constexpr FirstScales kFirst2{kRough2, kNearby2, {}}, kFirstEven2{kRough2, kNearby2, kCovering2},
    kFirst3{kRough3, kNearby3, {}}, kFirstEven3{kRough3, kOnce, kCovering3}, kFirst1{kRough1, kOnce, {}};

template <class Levels>
struct CodedFormat {
  const Codebook& (*book)();
  const Levels* levels[2];  // nullptr: there is one choice of levels
  bool each_part;           // parts choose their levels, or the group does
  int size;                 // values of a group
  int most;                 // the largest scale, an odd number
  float divisor;            // a block stores the unit times this
  FirstScales first;
};
inline constexpr CodedFormat<Levels3> kIq2Xxs{codebook_of_iq2_xxs, {&kIq2Levels, nullptr}, false, 32, 31, 8,
                                              kFirstEven2},
    kIq2Xs{codebook_of_iq2_xs, {&kIq2Levels, nullptr}, false, 16, 31, 8, kFirst2},
    kIq2S{codebook_of_iq2_s, {&kIq2Levels, nullptr}, false, 16, 31, 8, kFirst2},
    kIq1S{codebook_of_iq1, {&kShiftedUp, &kShiftedDown}, false, 32, 15, 8, kFirst1},
    kIq1M{codebook_of_iq1, {&kShiftedUp, &kShiftedDown}, true, 16, 15, 8, kFirst1};
inline constexpr CodedFormat<Levels8> kIq3Xxs{
    codebook_of_iq3_xxs, {&kIq3XxsLevels, nullptr}, false, 32, 31, 4, kFirstEven3},
    kIq3S{codebook_of_iq3_s, {&kIq3SLevels, nullptr}, false, 32, 31, 1, kFirst3};

}  // namespace gimbal::encoding
