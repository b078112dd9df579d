// e^x for 16 lanes: x = n ln 2 + r with |r| <= ln 2 / 2 (two-part constant of Cody and Waite), then the
// Taylor polynomial of e^r to r^7, whose remainder is below 6e-9. Below -87 the result is e^-87: callers mask
// lanes that must be zero. Same bits everywhere.
#pragma once

inline F exp(F x) {
  x = max(x, splat(-87.f));
  x = sub(splat(0.f), max(sub(splat(0.f), x), splat(-88.f)));
  F n = round(mul(x, splat(1.44269504f)));
  F r = fma(n, splat(-0.693359375f), x);
  r = fma(n, splat(2.12194440e-4f), r);
  F p = splat(1.f / 5040);
  p = fma(p, r, splat(1.f / 720));
  p = fma(p, r, splat(1.f / 120));
  p = fma(p, r, splat(1.f / 24));
  p = fma(p, r, splat(1.f / 6));
  p = fma(p, r, splat(0.5f));
  p = fma(p, r, splat(1.f));
  p = fma(p, r, splat(1.f));
  return scale_by_power(p, n);
}
