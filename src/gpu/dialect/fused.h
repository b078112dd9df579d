// a * b + c with one rounding, from separate additions and multiplications: S. Boldo, G. Melquiond, "Emulation of FMA and
// correctly rounded sums: proved algorithms using rounding to odd", IEEE Trans. Computers 57(4), 2008. Written in the dialect, for
// devices without an FMA. Exact unless a value overflows or the product's low half is subnormal; then the result is the plain sum.
// ROUNDED(x) is x, hidden from compilers that would otherwise simplify across operations.
#ifndef ROUNDED
#define ROUNDED(x) (x)
#endif
FUNCTION(f32, fused, ARG(f32, a), ARG(f32, b), ARG(f32, c))
BEGIN
    // The product in two floats (Dekker, Veltkamp).
    LET(f32, product) = ROUNDED(a * b);
    LET(f32, a_wide) = ROUNDED(a * 4097.0f);
    LET(f32, a_high) = ROUNDED(a_wide - ROUNDED(a_wide - a));
    LET(f32, a_low) = ROUNDED(a - a_high);
    LET(f32, b_wide) = ROUNDED(b * 4097.0f);
    LET(f32, b_high) = ROUNDED(b_wide - ROUNDED(b_wide - b));
    LET(f32, b_low) = ROUNDED(b - b_high);
    LET(f32, rest_high) = ROUNDED(ROUNDED(a_high * b_high) - product);
    LET(f32, rest_middle) = ROUNDED(ROUNDED(rest_high + ROUNDED(a_high * b_low)) + ROUNDED(a_low * b_high));
    LET(f32, rest) = ROUNDED(rest_middle + ROUNDED(a_low * b_low));
    // c + the low half, then that + the high half: each as a float and its rounding error (Knuth).
    LET(f32, first) = ROUNDED(c + rest);
    LET(f32, first_part) = ROUNDED(first - c);
    LET(f32, first_lost) = ROUNDED(ROUNDED(c - ROUNDED(first - first_part)) + ROUNDED(rest - first_part));
    LET(f32, second) = ROUNDED(product + first);
    LET(f32, second_part) = ROUNDED(second - product);
    LET(f32, second_lost) = ROUNDED(ROUNDED(product - ROUNDED(second - second_part)) + ROUNDED(first - second_part));
    // The sum of both errors, rounded to odd: an inexact one gets a last bit of 1, so that the final rounding sees it.
    LET(f32, lost) = ROUNDED(first_lost + second_lost);
    LET(f32, lost_part) = ROUNDED(lost - first_lost);
    LET(f32, error) = ROUNDED(ROUNDED(first_lost - ROUNDED(lost - lost_part)) + ROUNDED(second_lost - lost_part));
    VAR(u32, odd) = F32_TO_BITS(lost);
    if ((error != 0.0f) && ((odd & 1u) == 0u)) {
        if ((error > 0.0f) == (lost > 0.0f)) {
            odd += 1u;
        } else {
            odd -= 1u;
        }
    }
    LET(f32, sum) = second + BITS_TO_F32(odd);
    LET(u32, size_a) = (F32_TO_BITS(a) >> 23u) & 255u;
    LET(u32, size_b) = (F32_TO_BITS(b) >> 23u) & 255u;
    LET(u32, size_c) = (F32_TO_BITS(c) >> 23u) & 255u;
    LET(bool, plain) = ((size_a + size_b) < 160u) || ((size_a + size_b) > 380u) || (size_a > 240u) || (size_b > 240u) || (size_c > 250u);
    return SELECT(plain, product + c, sum);
END
