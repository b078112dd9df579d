// exp, log, pow, sin and cos with the same bits on every CPU, compiler and C library. User-visible results
// (sampled tokens, rotary tables) must not depend on the machine's libm, so these functions use only IEEE
// double +, -, *, / and integer operations: no libm calls, no fused multiply-add.
//
// They assume the default environment of every supported platform: round to nearest, subnormals not flushed,
// and -ffp-contract=off. NaN results are always the same quiet NaN.
#pragma once

namespace gimbal::fixed {

// e^x. Relative error below 2e-16 for results of at least 2^-1022; below that, one unit of 2^-1074. Overflows
// to +infinity above 709.78, underflows to 0 below -745.13.
double exp(double x);
// Eight values at once: the same bits as exp(double), in half the time.
inline constexpr int kLanes = 8;
void exp(const double (&x)[kLanes], double (&out)[kLanes]);

// Natural logarithm; relative error below 2e-16 for every positive x. log(0) is -infinity, log of a negative
// number is NaN.
double log(double x);

// a^b for a > 0; relative error below 2e-16 (same limits as exp for tiny results). As in C, pow(1, b) and
// pow(a, 0) are 1; pow(0, b) is 0 or infinity. Unlike C, a negative `a` gives NaN even for integral b.
double pow(double a, double b);

// Sine and cosine of radians; absolute error below 2e-16 for |x| <= 2^30 (about 1.07e9). NaN outside that
// range: a wrong angle must not look like a correct one.
double sin(double x);
double cos(double x);

}  // namespace gimbal::fixed
