// Encoders of single blocks, one for each weight format, and of runs of blocks for the short ones.
// `importance` has a weight per value and may be null.
#pragma once
#include <stdint.h>

namespace gimbal::encoding {

using BlockEncoder = void (*)(const float* x, const float* importance, uint8_t* block);

void encode_q2_k(const float* x, const float* importance, uint8_t* block);
void encode_q3_k(const float* x, const float* importance, uint8_t* block);
void encode_q4_k(const float* x, const float* importance, uint8_t* block);
void encode_q5_k(const float* x, const float* importance, uint8_t* block);
void encode_q6_k(const float* x, const float* importance, uint8_t* block);
void encode_iq4_xs(const float* x, const float* importance, uint8_t* block);

void encode_iq2_xxs(const float* x, const float* importance, uint8_t* block);
void encode_iq2_xs(const float* x, const float* importance, uint8_t* block);
void encode_iq2_s(const float* x, const float* importance, uint8_t* block);
void encode_iq3_xxs(const float* x, const float* importance, uint8_t* block);
void encode_iq3_s(const float* x, const float* importance, uint8_t* block);
void encode_iq1_s(const float* x, const float* importance, uint8_t* block);
void encode_iq1_m(const float* x, const float* importance, uint8_t* block);

// Exactly as ggml's reference quantizer; importance plays no part.
void encode_tq1_0(const float* x, const float*, uint8_t* block);
void encode_tq2_0(const float* x, const float*, uint8_t* block);
void encode_mxfp4(const float* x, const float*, uint8_t* block);
void encode_nvfp4(const float* x, const float*, uint8_t* block);
void encode_q1_0(const float* x, const float*, uint8_t* block);
void encode_q2_0(const float* x, const float*, uint8_t* block);

// kLanes blocks of 32 values at once, least weighted error.
void encode_weighted_q4_0(const float* x, const float* importance, uint8_t* blocks);
void encode_weighted_q4_1(const float* x, const float* importance, uint8_t* blocks);
void encode_weighted_q5_0(const float* x, const float* importance, uint8_t* blocks);
void encode_weighted_q5_1(const float* x, const float* importance, uint8_t* blocks);
void encode_weighted_iq4_nl(const float* x, const float* importance, uint8_t* blocks);

}  // namespace gimbal::encoding
