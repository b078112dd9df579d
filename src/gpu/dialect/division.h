// Correctly rounded quotients and roots for targets whose own may be off by some units in the last place. An FMA computes the exact
// remainder, which corrects the result (P. Markstein, "IA-64 and Elementary Functions", 2000). Written in the dialect.
FUNCTION(f32, quotient, ARG(f32, a), ARG(f32, b))
BEGIN
    LET(f32, plain) = PLAIN_DIVIDE(a, b);
    LET(u32, size_a) = ((F32_TO_BITS(a) >> 23u) & 255u) - 77u;
    LET(u32, size_b) = ((F32_TO_BITS(b) >> 23u) & 255u) - 77u;
    if ((size_a > 100u) || (size_b > 100u)) { return plain; }  // intermediate results could overflow or lose bits
    LET(f32, rough) = PLAIN_DIVIDE(1.0f, b);
    LET(f32, inverse) = FMA(rough, FMA(0.0f - b, rough, 1.0f), rough);
    LET(f32, near) = FMA(FMA(0.0f - b, plain, a), inverse, plain);
    return FMA(FMA(0.0f - b, near, a), inverse, near);
END

FUNCTION(f32, root, ARG(f32, x))
BEGIN
    LET(f32, plain) = PLAIN_SQRT(x);
    LET(u32, size) = ((F32_TO_BITS(x) >> 23u) & 511u) - 77u;  // with the sign: negative numbers are not corrected
    if (size > 100u) { return plain; }
    LET(f32, rough) = PLAIN_DIVIDE(0.5f, plain);
    LET(f32, inverse) = FMA(rough, FMA(-2.0f * rough, plain, 1.0f), rough);
    LET(f32, near) = FMA(FMA(0.0f - plain, plain, x), inverse, plain);
    return FMA(FMA(0.0f - near, near, x), inverse, near);
END
