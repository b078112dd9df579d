// hot: every logit
// A vocabulary may have 150,000 tokens, of which a few dozen survive: nothing here sorts more than it must.
#include "runtime/sampler_filters.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/fixed_math.h"

namespace gimbal {
namespace {

bool more_probable(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

float largest_logit(const Candidates& list) {
  float max = list.front().logit;
  for (const Candidate& c : list) max = std::max(max, c.logit);
  return max;
}

// Sets unnormalized probabilities relative to the best candidate's 1, and returns their sum.
double set_weights(Candidates& list, double max, double temperature) {
  double sum = 0;
  for (Candidate& c : list) sum += c.probability = fixed::exp((c.logit - max) / temperature);
  return sum;
}

// Puts the `count` first candidates from `begin` on in order; the order of the rest is left open.
template <class Before>
void sort_front(Candidates& list, size_t begin, size_t count, Before before) {
  auto first = list.begin() + ptrdiff_t(begin), middle = first + ptrdiff_t(count);
  // A heap of a few is the quickest way to them; for many it is slower than quickselect.
  if (count <= 256) {
    std::partial_sort(first, middle, list.end(), before);
  } else {
    if (middle != list.end()) std::nth_element(first, middle, list.end(), before);
    std::sort(first, middle, before);
  }
}

// Shortens the list to its first candidates in the given order whose probabilities reach mass. Sorts in
// growing portions, because most often the first few dozen are enough.
template <class Before>
void keep_mass(Candidates& list, double mass, Before before) {
  double reached = 0;
  for (size_t sorted = 0; sorted < list.size();) {
    size_t count = std::min(list.size() - sorted, std::max<size_t>(64, 3 * sorted));
    sort_front(list, sorted, count, before);
    for (size_t end = sorted + count; sorted < end;) {
      reached += list[sorted++].probability;
      if (reached >= mass) {
        list.erase(list.begin() + ptrdiff_t(sorted), list.end());
        return;
      }
    }
  }
}

}  // namespace

void set_probabilities(Candidates& list, double temperature) {
  double sum = set_weights(list, largest_logit(list), temperature);
  for (Candidate& c : list) c.probability /= sum;
}

void keep_top_k(Candidates& list, int k) {
  size_t count = std::min(list.size(), size_t(k));
  sort_front(list, 0, count, more_probable);
  list.erase(list.begin() + ptrdiff_t(count), list.end());
}

void keep_top_p(Candidates& list, double mass) {
  set_probabilities(list, 1);
  keep_mass(list, mass, more_probable);
}

void keep_min_p(Candidates& list, double ratio) {
  double least = largest_logit(list) + fixed::log(ratio);
  std::erase_if(list, [&](const Candidate& c) { return c.logit < least; });
}

void keep_top_n_sigma(Candidates& list, double n) {
  double sum = 0, squares = 0;
  for (const Candidate& c : list) sum += c.logit;
  const double mean = sum / double(list.size());
  for (const Candidate& c : list) squares += (c.logit - mean) * (c.logit - mean);
  const double least = largest_logit(list) - n * std::sqrt(squares / double(list.size()));
  std::erase_if(list, [&](const Candidate& c) { return c.logit < least; });
}

void drop_top_choices(Candidates& list, double threshold) {
  set_probabilities(list, 1);
  const Candidate* kept = nullptr;  // the last of those that reach the threshold
  size_t reach = 0;
  for (const Candidate& c : list) {
    if (c.probability < threshold) continue;
    reach++;
    if (!kept || more_probable(*kept, c)) kept = &c;
  }
  if (reach < 2) return;
  const int32_t id = kept->id;
  std::erase_if(list, [&](const Candidate& c) { return c.probability >= threshold && c.id != id; });
}

void keep_surprise(Candidates& list, double bits, double temperature) {
  set_probabilities(list, temperature);
  const Candidate best = *std::min_element(list.begin(), list.end(), more_probable);
  const double least = fixed::exp(-bits * kNatsPerBit);
  std::erase_if(list, [&](const Candidate& c) { return c.probability < least; });
  if (list.empty()) list.push_back(best);
  std::sort(list.begin(), list.end(), more_probable);
  set_probabilities(list, temperature);
}

// Section 4.1 of S. Basu et al., "Mirostat", arXiv:2007.14966: Zipf's exponent from the 100 most probable
// tokens, and from it the number of tokens to keep.
void keep_mirostat(Candidates& list, double bits, double temperature, size_t vocabulary) {
  constexpr size_t kEstimated = 100;
  set_probabilities(list, temperature);
  sort_front(list, 0, std::min(kEstimated, list.size()), more_probable);
  double tb = 0, tt = 0;
  for (size_t i = 0; i + 1 < std::min(kEstimated, list.size()); i++) {
    const double t = fixed::log(double(i + 2) / double(i + 1));
    if (list[i + 1].probability > 0)
      tb += t * fixed::log(list[i].probability / list[i + 1].probability), tt += t * t;
  }
  const double s = tt > 0 ? tb / tt : 1, epsilon = s - 1, n = double(vocabulary);
  const double spread =
      epsilon == 0 ? 1 / fixed::log(n) : epsilon / (1 - fixed::exp(-epsilon * fixed::log(n)));
  const double k =
      s > 0 && spread > 0 ? fixed::exp((bits * kNatsPerBit + fixed::log(spread)) / s) : double(list.size());
  keep_top_k(list, int(std::clamp(k, 1.0, double(list.size()))));
  set_probabilities(list, temperature);
}

double dynamic_temperature(Candidates& list, double temperature, double range, double exponent) {
  if (list.size() < 2) return temperature;
  set_probabilities(list, 1);
  double entropy = 0;
  for (const Candidate& c : list)
    if (c.probability > 0) entropy -= c.probability * fixed::log(c.probability);
  const double share = std::max(0.0, entropy / fixed::log(double(list.size())));
  const double low = std::max(0.0, temperature - range);
  const double raised = fixed::pow(share, exponent);
  return std::max(low + (temperature + range - low) * raised, 1e-6);
}

void draw_to_target(Candidates& list, double target) {
  constexpr double kWidth = 0.3, kSharpness = 10;
  // Their logits: largest at the target, falling as a square near it and as a line far from it.
  double sum = 0;
  for (Candidate& c : list) {
    const double d = std::abs(c.probability - target) / kWidth;
    sum += c.probability = fixed::exp(-kSharpness * d * d / (1 + d));
  }
  for (Candidate& c : list) c.probability /= sum;
}

void keep_typical(Candidates& list, double mass) {
  double max = largest_logit(list);
  double sum = set_weights(list, max, 1);
  double log_sum = fixed::log(sum), entropy = 0;
  // -log p is taken from the logit, so that it is right where p itself is too small for a double.
  auto surprise = [&](const Candidate& c) { return log_sum + (max - c.logit); };
  for (Candidate& c : list) {
    c.probability /= sum;
    entropy += c.probability * surprise(c);
  }
  auto distance = [&](const Candidate& c) {
    double d = surprise(c) - entropy;
    return d < 0 ? -d : d;
  };
  keep_mass(list, mass, [&](const Candidate& a, const Candidate& b) {
    double da = distance(a), db = distance(b);
    return da != db ? da < db : more_probable(a, b);
  });
}

}  // namespace gimbal
