#include "apps/reports/verdict_reports.h"

#include <algorithm>

#include "apps/toolkit/exit_code.h"
#include "apps/toolkit/terminal.h"
#include "base/fixed_math.h"
#include "base/format.h"
#include "base/json.h"

namespace gimbal {

using namespace crossval;

namespace {

std::string share_text(const Difference& d) {
  if (d.same_bits) return "the same bits";
  std::string text = format("root mean square {:.2g} (of {:.3g}), largest {:.2g}", d.mean, d.size, d.largest);
  if (d.share) text += format("; {:.2g} of what rounding explains", *d.share);
  if (d.our_share) text += format(" (here {:.2g}, library {:.2g})", *d.our_share, *d.their_share);
  return text;
}

std::string layers_text(const CrossvalReport& r) {
  if (r.layers.empty()) return "not compared: " + r.no_layers;
  const auto worse = [](const Difference& a, const Difference& b) {
    return a.share.value_or(a.mean) < b.share.value_or(b.mean);
  };
  const Difference& worst = *std::max_element(r.layers.begin(), r.layers.end(), worse);
  return format("{} of {} compared; the worst is {}: {}", r.layers.size(), r.model.layers, worst.what,
                share_text(worst));
}

Json difference_json(const Difference& d) {
  Json j{{"what", d.what},       {"rows", d.rows},        {"width", d.width},     {"same_bits", d.same_bits},
         {"size", d.size},       {"difference", d.mean},  {"largest", d.largest}, {"token", d.row},
         {"value", d.column},    {"ours", d.ours},        {"theirs", d.theirs},   {"share", nullptr},
         {"our_share", nullptr}, {"their_share", nullptr}};
  if (d.share) j["share"] = *d.share, j["explained"] = *d.explained;
  if (d.our_share) j["our_share"] = *d.our_share, j["their_share"] = *d.their_share;
  return j;
}

std::string greedy_text(const GreedyCompared& g) {
  if (g.same == g.tokens) return format("{} tokens, all the same", g.tokens);
  std::string text =
      format("{} of {} tokens the same, then {} here and {} there", g.same, g.tokens, g.our_id, g.their_id);
  if (g.tie) text += *g.tie ? ": a tie within rounding" : ": no tie";
  return text;
}

}  // namespace

int exit_code(crossval::Verdict v) {
  using enum crossval::Verdict;
  return v == Different ? kFailed : v == Unknown ? kBadModel : kDone;
}

std::string crossval_text(const CrossvalReport& r, bool layers) {
  Table t("ll");
  t.row({"library", printable(format("{} (interface of {})", r.library.path, r.library.release))});
  t.row({"its model", printable(format("{}; {} layers, {} tokens", r.model.description, r.model.layers,
                                       r.model.vocabulary))});
  t.row({"here", r.device});
  if (r.ids)
    t.row({"token ids", r.ids->same ? format("{}, all the same", r.ids->ours)
                                    : format("different from number {} on", r.ids->at)});
  if (r.logits.rows > 0) {
    t.row({"reference", r.no_reference.empty()
                            ? format("double precision, {} tokens, {} runs with rounding errors",
                                     r.reference_tokens, kMovedRuns)
                            : "none: " + r.no_reference});
    t.row({"layers", layers_text(r)});
    if (layers)
      for (const Difference& d : r.layers) t.row({"  " + d.what, share_text(d)});
    t.row({"logits", format("{} rows: {}", r.logits.rows, share_text(r.logits))});
  }
  if (r.scored > 0)
    t.row({"perplexity", format("{:.4f} here, {:.4f} in the library, over {} tokens", fixed::exp(r.our_loss),
                                fixed::exp(r.their_loss), r.scored)});
  if (r.greedy) {
    t.row({"greedy", greedy_text(*r.greedy)});
    t.row(
        {"tokens/s", format("prompt {:.1f} here, {:.1f} in the library; generation {:.1f} here, {:.1f} there",
                            r.ours.prompt, r.theirs.prompt, r.ours.generation, r.theirs.generation)});
  }
  return t.text() + format("{}: {}\n", bold(name_of(r.verdict)), printable(r.reason));
}

Json crossval_json(const CrossvalReport& r) {
  Json j{{"verdict", name_of(r.verdict)},
         {"reason", r.reason},
         {"device", r.device},
         {"library",
          {{"path", r.library.path},
           {"release", r.library.release},
           {"model_struct", r.library.model_struct},
           {"context_struct", r.library.context_struct},
           {"system", r.library.system}}},
         {"model",
          {{"description", r.model.description},
           {"layers", r.model.layers},
           {"vocabulary", r.model.vocabulary}}},
         {"sandbox", r.model.sandbox},
         {"ids", nullptr},
         {"reference_tokens", r.reference_tokens},
         {"no_reference", r.no_reference},
         {"layers", Json::array()},
         {"no_layers", r.no_layers},
         {"logits", nullptr},
         {"perplexity", nullptr},
         {"greedy", nullptr},
         {"tokens_per_second", nullptr}};
  if (r.ids)
    j["ids"] = {{"same", r.ids->same}, {"ours", r.ids->ours},     {"theirs", r.ids->theirs},
                {"at", r.ids->at},     {"our_id", r.ids->our_id}, {"their_id", r.ids->their_id}};
  for (const Difference& d : r.layers) j["layers"].push_back(difference_json(d));
  if (r.logits.rows > 0) j["logits"] = difference_json(r.logits);
  if (r.scored > 0)
    j["perplexity"] = {
        {"ours", fixed::exp(r.our_loss)}, {"theirs", fixed::exp(r.their_loss)}, {"tokens", r.scored}};
  if (r.greedy) {
    const GreedyCompared& g = *r.greedy;
    j["greedy"] = {{"tokens", g.tokens},     {"same", g.same}, {"our_id", g.our_id},
                   {"their_id", g.their_id}, {"gap", g.gap},   {"allowed", g.allowed},
                   {"tie", nullptr}};
    if (g.tie) j["greedy"]["tie"] = *g.tie;
    j["tokens_per_second"] = {{"prompt", {{"ours", r.ours.prompt}, {"theirs", r.theirs.prompt}}},
                              {"generation", {{"ours", r.ours.generation}, {"theirs", r.theirs.generation}}}};
  }
  return j;
}

}  // namespace gimbal
