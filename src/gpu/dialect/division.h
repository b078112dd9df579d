// Correctly rounded quotients and roots for targets whose own may be off by some units in the last place. An FMA computes the exact
// remainder, which corrects the result (P. Markstein, "IA-64 and Elementary Functions", 2000). Exponents are taken away before and
// added afterwards, as bits, so that no step overflows or loses bits. Zeros, subnormals and NaN are
// left to the target's own division. ROUNDED (fused.h) hides from compilers that y times 1 / y is 1. Written in the dialect.
#ifndef ROUNDED
#define ROUNDED(x) (x)
#endif
FUNCTION(f32, quotient, ARG(f32, a), ARG(f32, b))
BEGIN
    LET(u32, size_a) = (F32_TO_BITS(a) >> 23u) & 255u;
    LET(u32, size_b) = (F32_TO_BITS(b) >> 23u) & 255u;
    LET(f32, x) = BITS_TO_F32((F32_TO_BITS(a) & 0x807fffffu) | 0x3f800000u);
    LET(f32, y) = BITS_TO_F32((F32_TO_BITS(b) & 0x807fffffu) | 0x3f800000u);
    LET(f32, plain) = ROUNDED(PLAIN_DIVIDE(x, y));
    LET(f32, rough) = ROUNDED(PLAIN_DIVIDE(1.0f, y));
    LET(f32, inverse) = FMA(rough, FMA(0.0f - y, rough, 1.0f), rough);
    LET(f32, near) = FMA(FMA(0.0f - y, plain, x), inverse, plain);
    LET(f32, right) = FMA(FMA(0.0f - y, near, x), inverse, near);
    LET(u32, size) = (((F32_TO_BITS(right) >> 23u) & 255u) + size_a) - size_b;  // below 0: a large number
    if (((size_a - 1u) > 253u) || (((size_b - 1u) > 253u) || ((size - 1u) > 253u))) { return PLAIN_DIVIDE(a, b); }
    return BITS_TO_F32(F32_TO_BITS(right) + ((size_a - size_b) << 23u));
END

FUNCTION(f32, root, ARG(f32, x))
BEGIN
    LET(u32, size) = F32_TO_BITS(x) >> 23u;  // with the sign: negative numbers are not corrected
    if ((size - 1u) > 253u) { return PLAIN_SQRT(x); }
    LET(u32, odd) = (size + 1u) & 1u;  // of the exponent, which is halved
    LET(f32, v) = BITS_TO_F32((F32_TO_BITS(x) & 0x007fffffu) | ((127u + odd) << 23u));
    LET(f32, plain) = ROUNDED(PLAIN_SQRT(v));
    LET(f32, rough) = ROUNDED(PLAIN_DIVIDE(0.5f, plain));
    LET(f32, inverse) = FMA(rough, FMA(-2.0f * rough, plain, 1.0f), rough);
    LET(f32, near) = FMA(FMA(0.0f - plain, plain, v), inverse, plain);
    LET(f32, right) = FMA(FMA(0.0f - near, near, v), inverse, near);
    return BITS_TO_F32(F32_TO_BITS(right) + (((((size + 129u) - odd) / 2u) - 128u) << 23u));
END
