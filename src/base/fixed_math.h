// exp, log, pow, sin and cos whose result is the same bits on every CPU, compiler and C library. Whatever a
// user can see (sampled tokens, rotary tables) must not depend on which libm a machine has, so these use IEEE
// double +, -, *, / and integer operations alone: no libm call, no fused multiply-add.
//
// They assume what every platform of gimbal starts with: round to nearest, subnormals not flushed, and
// -ffp-contract=off. A result that is not a number is always the same quiet NaN.
#pragma once

namespace gimbal::fixed {

// e^x. Relative error below 2e-16 for results of at least 2^-1022, one unit of 2^-1074 below that. Overflows
// to +infinity above 709.78, becomes 0 below -745.13.
double exp(double x);
// The same bits for each of these numbers, in half of the time.
inline constexpr int kLanes = 8;
void exp(const double (&x)[kLanes], double (&out)[kLanes]);

// Natural logarithm, relative error below 2e-16 for every positive x. log(0) is -infinity, of a negative
// number NaN.
double log(double x);

// a^b for a > 0, relative error below 2e-16 (same limits as exp for tiny results). As in C, pow(1, b) and
// pow(a, 0) are 1, pow(0, b) is 0 or infinity. A negative a gives NaN, for whole b too.
double pow(double a, double b);

// Sine and cosine of radians, absolute error below 2e-16 for |x| <= 2^30 (about 1.07e9). Outside that range
// NaN: a wrong angle must not look like a right one.
double sin(double x);
double cos(double x);

}  // namespace gimbal::fixed
