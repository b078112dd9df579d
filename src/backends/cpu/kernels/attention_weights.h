// Softmax as the pages of a cache come by, with a running maximum and sum (Milakov and Gimelshein, "Online
// normalizer calculation for softmax", 2018).
#pragma once

#include "backends/cpu/kernels/attention_page.h"
#include "backends/cpu/kernels/exp.h"

constexpr int kMostQueries = 32;  // that go over the cache together

// A query is a head of a row. The running softmax of several queries.
struct Queries {
  float highest[kMostQueries + 16], total[kMostQueries + 16];
  float fade[kMostQueries + 16];    // the factor for the sums before the latest page
  float slope[kMostQueries];        // ALiBi: penalty per position of distance
  const float* bias[kMostQueries];  // of a head: of the distances -distances to distances
  // Of a row: added to the scores of all positions, from the first one on; nullptr: nothing is.
  const float* added[kMostQueries];
  int32_t position[kMostQueries];
  int32_t distances;  // 0: there are no biases
  float scale, cap;   // cap: 0: none
};

inline F tanh(F x) { return sub(splat(1.f), div(splat(2.f), add(exp(add(x, x)), splat(1.f)))); }
// Applies cap and ALiBi to the scores of sixteen keys from `distance` positions after the row's own on.
[[gnu::noinline]] inline F shaped(F score, float cap, float slope, int32_t distance) {
  if (cap > 0) score = mul(splat(cap), tanh(div(score, splat(cap))));
  if (slope > 0) {
    static const float kPlaces[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    score = fma(splat(-slope), abs(add(splat(float(distance)), load(kPlaces))), score);
  }
  return score;
}
// Adds the biases of sixteen keys from `distance` positions after the row's own on. One distance to each side
// behind those with a bias of their own has the last one.
[[gnu::noinline]] inline F biased(F score, const float* bias, int32_t distances, int32_t distance) {
  float own[16];
  for (int32_t i = 0; i < 16; i++) {
    const int32_t d = distance + i;
    own[i] = bias[distances + (d < -distances ? -distances : d > distances ? distances : d)];
  }
  return add(score, load(own));
}
// The slope of ALiBi of one of `heads` heads.
inline float alibi_slope(float bias, int32_t head, int32_t heads) {
  int32_t whole = 1;
  while (2 * whole <= heads) whole *= 2;
  const float step = bias * -0.693147181f / float(whole);
  const float exponent = head < whole ? step * float(head + 1) : step * 0.5f * float(2 * (head - whole) + 1);
  float slope[16];
  store(slope, exp(splat(exponent)));
  return slope[0];
}

// Of the page's positions 16 s to 16 s + 15, those that the queries see.
inline F if_seen(F x, const Page& p, int s, float other) {
  if (p.from == 0 && p.to == kPagePositions) return x;
  return keep(x, p.from - 16 * s, p.to - 16 * s, other);
}

// The products of `n` queries from `first` on with the keys of a page, which begins at position `base`, to
// weights under the highest score so far.
[[gnu::noinline]] inline void weights_of_page(const Page& p, int32_t base, Queries& q, int first, int n,
                                              float (*score)[kPagePositions]) {
  float now[kMostQueries + 16], sum[kMostQueries + 16];
  const F scale = splat(q.scale);
  for (int i = 0; i < n; i++) {
    const float slope = q.slope[first + i], highest = q.highest[first + i];
    F x[4], top = splat(-__builtin_inff());
    F part = splat(0.f);  // of the sum of weights; NaN when a score is not finite: exp() and max() lose those
    for (int s = 0; s < 4; s++) {
      x[s] = mul(load(score[i] + 16 * s), scale);
      part = add(part, if_seen(mul(x[s], splat(0.f)), p, s, 0.f));
      const int32_t distance = base + 16 * s - q.position[first + i];
      if (q.cap > 0 || slope > 0) x[s] = shaped(x[s], q.cap, slope, distance);
      if (q.distances > 0) x[s] = biased(x[s], q.bias[first + i], q.distances, distance);
      if (q.added[first + i]) x[s] = add(x[s], load(q.added[first + i] + base + 16 * s));
      x[s] = if_seen(x[s], p, s, -__builtin_inff());
      top = max(top, x[s]);
    }
    const float page_highest = tree_max(top);
    now[i] = page_highest > highest ? page_highest : highest;
    for (int s = 0; s < 4; s++) {
      const F w = if_seen(exp(sub(x[s], splat(now[i]))), p, s, 0.f);
      store(score[i] + 16 * s, w);
      part = add(part, w);
    }
    sum[i] = tree_sum(part);
  }
  for (int i = 0; i < n; i += 16) {
    const int at = first + i, lanes = n - i < 16 ? n - i : 16;
    const F fade = exp(sub(load(q.highest + at), load(now + i)));
    store_part(q.fade + at, fade, lanes);
    store_part(q.total + at, add(mul(load(q.total + at), fade), load(sum + i)), lanes);
    store_part(q.highest + at, load(now + i), lanes);
  }
}
