#include "apps/commands/run.h"

#include "apps/commands/command.h"
#include "apps/reports/prompt_progress.h"
#include "apps/reports/run_report.h"
#include "apps/serving/model_path.h"
#include "apps/toolkit/keyboard.h"
#include "apps/toolkit/terminal.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/json.h"

namespace gimbal {
namespace {

std::string stats_of(const Generated& g, const ChosenLibrary& chosen, double load_seconds, uint64_t seed) {
  Table t("ll");
  t.row({"device", format("{}, {} threads", kLibraryBackend, chosen.texts.threads)});
  t.row({"library", printable(chosen.path)});
  t.row({"loading", format("{:.0f} ms", load_seconds * 1e3)});
  t.row({"prompt", format("{} tokens, {:.1f} tokens/s", g.prompt_tokens, prompt_rate(g))});
  t.row({"generation", format("{} tokens, {:.1f} tokens/s", g.tokens.size(), generation_rate(g))});
  t.row({"finish", name_of(g.finish)});
  t.row({"seed", format("{}", seed)});
  return t.text();
}

// The keys of run_json() that a library has.
Json json_of(const ModelFile& source, const Generated& g, const std::string& text, const LibraryRun& run,
             const ChosenLibrary& chosen, const llama::LibraryFacts& facts, double load_seconds) {
  return {{"model", source.name},
          {"text", text},
          {"tokens", g.tokens},
          {"logprobs", logprobs_json(g)},
          {"finish", name_of(g.finish)},
          {"prompt_tokens", g.prompt_tokens},
          {"seed", run.settings.sampler.seed},
          {"context", chosen.texts.context},
          {"device", kLibraryBackend},
          {"library",
           {{"path", facts.path}, {"release", facts.release}, {"why", chosen.why}, {"system", facts.system}}},
          {"timing", timing_json(g, load_seconds)}};
}

}  // namespace

Result<int> run_in_library(const CommonOptions& options, const ModelFile& source, const Tokenizer& tokenizer,
                           const LibraryRun& run) {
  auto chosen = choose_library(options, *source.file);
  if (!chosen) return chosen.error();
  auto path = ModelPath::of(source);
  if (!path) return path.error();
  const double begin = now();
  auto process = start_library(*chosen, path->path());
  if (!process) return process.error();
  const double load_seconds = now() - begin;
  if (!run.quiet) note(describe(*chosen, process->library()));
  llama::LibraryWriter writer(*process, tokenizer, chosen->texts);
  const bool stream = !run.json && !run.print_tokens;
  InterruptGuard guard;
  PromptProgress progress(!run.quiet);
  GenerateSettings settings = run.settings;
  settings.on_prompt = [&](size_t done, size_t total) {
    const bool going = progress(done, total);
    if (going && done == total) print(run.echo);
    return going;
  };
  std::string text, rest;
  auto answer = writer.write(
      run.prompt, settings,
      [&](const TokenEvent& t) {
        text += t.text;
        if (stream) print_text(t.text);
        return (!stream || flush_output()) && !InterruptGuard::interrupted();
      },
      &rest);
  if (!answer) return answer.error();
  text += rest;
  if (stream) print_text(rest);
  if (stream && !text.empty() && text.back() != '\n') print("\n");
  if (run.json) print_json(json_of(source, *answer, text, run, *chosen, process->library(), load_seconds));
  else if (run.print_tokens) print(format("{}\n", fmt::join(answer->tokens, ",")));
  flush_output();
  if (run.stats) note(stats_of(*answer, *chosen, load_seconds, run.settings.sampler.seed));
  return InterruptGuard::interrupted() ? kInterrupted : kDone;
}

}  // namespace gimbal
