// Scalar parts of the f64 maps: what few lanes need, or no instruction computes. Compiled once for all
// variants.
#pragma once

namespace gimbal::cpu_maps {

// a = (4 i + q) pi/2 + r + low for finite a above 2^30, with |r| <= pi/4 and a little; returns q.
int large_angle(double a, double* r, double* low);

// The exact x - y * floor(x / y), whose sign is y's, and floor(x / y), as NumPy and Python define them for
// floats.
double floor_remainder(double x, double y);
double floor_quotient(double x, double y);

}  // namespace gimbal::cpu_maps
