// Which inverse scales the encoders of K formats and IQ4_XS try for a group: multiples of the one that covers
// the group exactly. Above 1, the extreme value is clipped.
#pragma once

namespace gimbal::encoding {

inline constexpr float kFactors6[] = {1.0f, 0.925f, 0.955f, 0.975f, 0.985f, 0.995f, 1.008f, 1.02f};
inline constexpr float kFactors3[] = {1.0f, 0.7f, 0.8f, 0.87f, 0.94f, 1.07f, 1.15f, 1.24f, 1.35f, 1.5f};
inline constexpr float kFactorsNonLinear[] = {1.0f, 0.83f, 0.89f, 0.93f, 0.965f, 1.03f, 1.07f, 1.14f};

}  // namespace gimbal::encoding
