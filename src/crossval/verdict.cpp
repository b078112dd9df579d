#include "crossval/crossval.h"

#include "base/format.h"
#include "base/text.h"

namespace gimbal::crossval {
namespace {

std::string ids_text(const IdsCompared& ids) {
  const auto side = [](int32_t id, const std::string& piece) {
    return id < 0 ? std::string("no token") : format("token {} '{}'", id, escaped(piece));
  };
  return format("the text has {} tokens here and {} in the library; number {} is {} here, {} there", ids.ours,
                ids.theirs, ids.at, side(ids.our_id, ids.our_piece), side(ids.their_id, ids.their_piece));
}

// "layer 3: value 17 of token 2 is 0.5 here and 0.7 in the library; ...".
std::string difference_text(const Difference& d) {
  std::string text = format("{}: value {} of token {} is {:.7g} here and {:.7g} in the library", d.what,
                            d.column, d.row, d.ours, d.theirs);
  if (!d.share) return text;
  text += format("; the farthest row is {:.2g} times as far as rounding explains ({:.2g})", *d.share,
                 *d.explained);
  if (d.our_share)
    text += format("; from the reference, this program is {:.2g} times as far, the library {:.2g} times",
                   *d.our_share, *d.their_share);
  return text;
}

std::string greedy_text(const GreedyCompared& g) {
  std::string text =
      format("greedy token {} is {} here and {} in the library; our logits of the two are {:.2g} apart",
             g.same, g.our_id, g.their_id, g.gap);
  if (g.tie) text += format(", and rounding explains {:.2g}", g.allowed);
  return text;
}

}  // namespace

const char* name_of(Verdict v) {
  constexpr const char* kNames[] = {"same", "within rounding", "different", "cannot compare"};
  return kNames[size_t(v)];
}

void decide(CrossvalReport& r) {
  const auto say = [&](Verdict v, std::string reason) { r.verdict = v, r.reason = std::move(reason); };
  if (r.ids && !r.ids->same) return say(Verdict::Different, ids_text(*r.ids));
  const Difference* first = nullptr;  // that rounding explains
  std::vector<const Difference*> all;
  for (const Difference& d : r.layers) all.push_back(&d);
  all.push_back(&r.logits);
  std::string marks;
  for (const Difference* d : all) {
    const bool explained = !d->share || d->explained_by_rounding();
    if (!explained && d != &r.logits && r.logits.explained_by_rounding()) {
      marks += format("; the library marks another value as the output of {}: the logits behind it agree",
                      d->what);
      continue;
    }
    if (!explained) return say(Verdict::Different, difference_text(*d));
    if (!d->same_bits && !first) first = d;
  }
  const bool other_tokens = r.greedy && r.greedy->same < r.greedy->tokens;
  if (other_tokens && r.greedy->tie == false) return say(Verdict::Different, greedy_text(*r.greedy));
  if (!first && !other_tokens) return say(Verdict::Same, "all numbers have the same bits" + marks);
  if (first && !r.logits.share)
    return say(Verdict::Unknown,
               format("there is no reference ({}), so nothing decides about the difference; {}",
                      r.no_reference, difference_text(*first)));
  std::string text = first ? "first difference: " + difference_text(*first) : "";
  if (other_tokens) text += (first ? "; " : "") + greedy_text(*r.greedy);
  say(Verdict::WithinRounding, text + marks);
}

}  // namespace gimbal::crossval
