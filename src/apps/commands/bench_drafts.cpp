#include "apps/commands/bench_drafts.h"

#include <charconv>

#include "apps/reports/run_report.h"
#include "apps/reports/spread.h"
#include "apps/reports/stderr_sink.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "runtime/generate.h"
#include "runtime/scripted_drafter.h"

namespace gimbal {
namespace {

using Ids = std::vector<int32_t>;

struct Timed {
  Ids text;  // after the prompt
  double seconds;
};

// The steps of the `n` tokens after the first one, which comes with the prompt.
Result<Timed> timed(Session& session, const Ids& prompt, int n, Drafting* drafting) {
  GenerateSettings s;
  s.sampler.greedy = true, s.max_tokens = n + 1, s.drafting = drafting;
  const auto rest = std::span(prompt).subspan(size_t(session.keep_common(prompt)));
  auto g = generate(session, nullptr, rest, s, [](std::string_view, Token) { return true; });
  if (!g) return g.error();
  return Timed{std::move(g->tokens), g->generate_seconds};
}

}  // namespace

Result<DraftSource> open_draft_source(const std::string& word, EngineOptions& options, const ModelFile& model,
                                      bool quiet) {
  DraftSource source;
  if (constexpr std::string_view kScripted = "scripted:"; word.starts_with(kScripted)) {
    double right = -1;
    const auto [stop, wrong] =
        std::from_chars(word.data() + kScripted.size(), word.data() + word.size(), right);
    if (wrong != std::errc() || stop != word.data() + word.size() || !(right >= 0 && right <= 1))
      return Error{Code::Usage,
                   format("--draft {}: the text after the colon is not a probability", gimbal::quoted(word)),
                   "for example: --draft scripted:0.8"};
    source.scripted = right;
    options.run.drafts = drafts_at_most(word);
    return source;
  }
  auto drafts = open_drafts(backend_registry(), options, model, word, stderr_sink(quiet));
  if (!drafts) return drafts.error();
  source.drafts = std::move(*drafts);
  return source;
}

Result<DraftSpeed> bench_drafts(Model& model, const DraftSource& source, int n, int repetitions) {
  auto session = Session::create(model);
  if (!session) return session.error();
  const int vocabulary = model.config().vocabulary;
  Random random(1);  // the same tokens every time
  Ids prompt;
  for (int i = 0; i < kDraftPrompt / 4; i++) prompt.push_back(int32_t(random.next() % uint64_t(vocabulary)));
  for (int i = kDraftPrompt / 4; i < kDraftPrompt; i++)
    prompt.push_back(prompt[size_t(i) - kDraftPrompt / 4]);
  const auto first = timed(**session, prompt, n, nullptr);
  if (!first) return first.error();

  std::unique_ptr<Drafting> scripted;
  if (source.scripted) {
    Ids all = prompt;
    all.insert(all.end(), first->text.begin(), first->text.end());
    scripted = std::make_unique<Drafting>(
        std::make_unique<ScriptedDrafter>(std::move(all), *source.scripted, vocabulary));
  }
  Drafting* drafting = scripted ? scripted.get() : source.drafts->drafting.get();
  DraftSpeed speed{drafting->name(), {}, {}, {}, {}};
  DraftCounts before;
  for (int r = -1; r < repetitions; r++) {
    const auto plain = timed(**session, prompt, n, nullptr);
    if (!plain) return plain.error();
    const auto drafted = timed(**session, prompt, n, drafting);
    if (!drafted) return drafted.error();
    if (drafting->ended())
      return Error{Code::Failed, "drafting stopped, so it cannot be measured", "see the note above"};
    if (plain->text != first->text || drafted->text != first->text)
      return Error{Code::Failed,
                   "the text with drafts differs from the text without: this is a bug of gimbal",
                   "please report it with the model"};
    if (r < 0) before = drafting->counts();
    else {
      speed.plain.push_back(n / plain->seconds), speed.drafted.push_back(n / drafted->seconds);
      speed.ratio.push_back(plain->seconds / drafted->seconds);
    }
  }
  speed.counts = drafting->counts() - before;
  return speed;
}

Json as_json(const DraftSpeed& s) {
  Json j = drafts_json(s.from, s.counts);
  j["plain_tokens_per_second"] = spread_json(s.plain);
  j["tokens_per_second"] = spread_json(s.drafted);
  j["ratio"] = spread_json(s.ratio);
  return j;
}

void add_rows(Table& t, const DraftSpeed& s) {
  auto speed = [&](const std::string& what, const std::vector<double>& v) {
    const Spread of = spread(v);
    t.row({what, format("{:.2f} tokens/s", of.median), format("({:.2f} to {:.2f})", of.least, of.most)});
  };
  speed("text without drafts", s.plain);
  speed(format("text with drafts from {}", printable(s.from)), s.drafted);
  const Spread ratio = spread(s.ratio);
  t.row({"  gain", format("{:.2f} times", ratio.median),
         format("({:.2f} to {:.2f}); {}", ratio.least, ratio.most, drafts_text(s.counts))});
}

}  // namespace gimbal
