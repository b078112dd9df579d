// 16-bit floats by integer arithmetic, written in the dialect itself, for targets whose own conversions may flush small
// values or round in any direction (WGSL, GLSL). Scales of quantized weights are often below 2^-14 and must be kept.
FUNCTION(f32, half_value, ARG(u32, code))
BEGIN
    LET(u32, magnitude) = code & 0x7fffu;
    VAR(u32, bits) = (magnitude << 13u) + 0x38000000u;
    if (magnitude >= 0x7c00u) { bits += 0x38000000u; }
    if (magnitude < 0x0400u) { bits = F32_TO_BITS(F32(magnitude) * 5.9604644775390625e-8f); }
    return BITS_TO_F32(bits | ((code & 0x8000u) << 16u));
END

// To the nearest, ties to even; from 65520 on infinity.
FUNCTION(u32, half_code, ARG(f32, value))
BEGIN
    LET(u32, bits) = F32_TO_BITS(value);
    LET(u32, magnitude) = bits & 0x7fffffffu;
    VAR(u32, code) = 0u;
    if (magnitude > 0x7f800000u) {
        code = 0x7e00u;
    } else if (magnitude >= 0x477ff000u) {
        code = 0x7c00u;
    } else if (magnitude >= 0x38800000u) {
        code = (((magnitude - 0x38000000u) + 0x0fffu) + ((magnitude >> 13u) & 1u)) >> 13u;
    } else {
        code = U32(ROUND_EVEN(BITS_TO_F32(magnitude) * 16777216.0f));
    }
    return code | ((bits >> 16u) & 0x8000u);
END
