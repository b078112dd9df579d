#include "audit/audit.h"

#include <algorithm>
#include <deque>

#include "audit/auditor.h"
#include "base/format.h"
#include "runtime/model.h"

namespace gimbal {
namespace {

using Verdict = AuditResult::Verdict;
using Subject = AuditResult::Subject;

constexpr int kRowsPerStep = 128;     // with logits: more take memory and are hardly faster
constexpr size_t kAnswersAtOnce = 8;  // enough that short answers fill a step

// Recomputes many answers, a few at once.
class Audits {
 public:
  Audits(std::span<const AuditJob> jobs, Model& model, const Tokenizer& tokenizer,
         const AuditOptions& options, const OnDeviceLost& lost)
      : jobs_(jobs),
        model_(&model),
        tokenizer_(tokenizer),
        options_(options),
        lost_(lost),
        results_(jobs.size()),
        at_once_(size_t(model.plan().options.sequences)) {
    for (size_t i = 0; i < jobs.size(); i++) {
      waiting_.push_back(i);
      total_ += prompt_of(i).size() + jobs[i].certificate->answer.tokens.size();
    }
  }

  std::vector<Result<AuditResult>> run() {
    for (;;) {
      admit();
      if (running_.empty()) break;
      if (auto ok = step(); !ok) give_up(ok.error());
      report();
    }
    std::vector<Result<AuditResult>> all;
    for (auto& r : results_) all.push_back(std::move(*r));
    return all;
  }

 private:
  struct Running {
    size_t job;
    std::unique_ptr<Auditor> auditor;
  };

  const std::vector<Token>& prompt_of(size_t job) const {
    const Certificate& c = *jobs_[job].certificate;
    return c.prompt.tokens.empty() ? jobs_[job].prompt : c.prompt.tokens;
  }

  // The result that needs no computation.
  std::optional<Result<AuditResult>> checked_prompt(size_t job) const {
    const std::vector<Token>& prompt = prompt_of(job);
    if (prompt.empty())
      return Error{Code::Usage, "the certificate holds its prompt's digest only", "give the prompt's tokens"};
    if (const std::string found = prompt_digest(prompt); found != jobs_[job].certificate->prompt.sha256)
      return differs(Subject::Prompt, -1, jobs_[job].certificate->prompt.sha256, found,
                     "the prompt is another one");
    return {};
  }

  void admit() {
    while (running_.size() < at_once_ && !waiting_.empty()) {
      const size_t job = waiting_.front();
      waiting_.pop_front();
      if (auto known = checked_prompt(job)) {
        finish(job, std::move(*known));
        continue;
      }
      if (!tree_ && !jobs_[job].certificate->grammar.empty())
        tree_ = TokenTree::create(tokenizer_, model_->config().vocabulary);
      auto made = Auditor::create(jobs_[job], model_->plan(), tokenizer_, tree_, options_);
      if (!made) {
        finish(job, made.error());
        continue;
      }
      if (auto ok = (*made)->begin(*model_); !ok) {
        finish(job, ok.error());
        continue;
      }
      running_.push_back({job, std::move(*made)});
      tidy();
    }
  }

  // A step for all that run. Errors: those that end them all.
  Status step() {
    const RunOptions& o = model_->plan().options;
    batch_.rows.clear(), batch_.top = 0;
    Auditor::Room room{o.batch, o.logit_rows};
    for (Running& r : running_) r.auditor->add(*model_, batch_, room);
    auto out = model_->forward(batch_);
    if (!out) return recover(out.error());
    size_t k = 0;
    for (Running& r : running_)
      if (auto ok = r.auditor->take(*model_, *out, k); !ok) {
        if (ok.error().code == Code::DeviceLost) return recover(ok.error());
        finish(r.job, ok.error());
        r.auditor.reset();
      }
    tidy();
    return Done{};
  }

  // Removes those that have ended.
  void tidy() {
    for (Running& r : running_)
      if (r.auditor && r.auditor->done()) {
        finish(r.job, r.auditor->result());
        r.auditor.reset();
      }
    std::erase_if(running_, [](const Running& r) { return !r.auditor; });
  }

  Status recover(const Error& failed) {
    if (failed.code == Code::OutOfMemory && running_.size() > 1) {
      at_once_ = running_.size() - 1;  // the last one waits for the pages of others
      waiting_.push_front(running_.back().job);
      running_.pop_back();
      return Done{};
    }
    if (failed.code != Code::DeviceLost || !lost_) return failed;
    return lost_(failed, [&](const ModelPtr& next) -> Result<std::string> {
      for (Running& r : running_)
        if (auto ok = r.auditor->begin(*next); !ok) return ok.error();
      model_ = next.get(), kept_ = next;
      return format("{} answers", running_.size());
    });
  }

  void give_up(const Error& why) {
    for (Running& r : running_) finish(r.job, why);
    running_.clear();
  }

  void finish(size_t job, Result<AuditResult> result) {
    results_[job] = std::move(result);
    finished_ += prompt_of(job).size() + jobs_[job].certificate->answer.tokens.size();
  }

  void report() {
    if (!options_.progress) return;
    size_t done = finished_;
    for (const Running& r : running_) done += r.auditor->computed();
    options_.progress(std::min(done, total_), total_);
  }

  const std::span<const AuditJob> jobs_;
  Model* model_;
  ModelPtr kept_;  // after a loss
  const Tokenizer& tokenizer_;
  const AuditOptions& options_;
  const OnDeviceLost& lost_;
  std::shared_ptr<const TokenTree> tree_;
  std::vector<std::optional<Result<AuditResult>>> results_;
  std::deque<size_t> waiting_;
  std::vector<Running> running_;
  Batch batch_;
  size_t at_once_, finished_ = 0, total_ = 0;
};

// Of the cache: whole pages, and one that a step may need beside them.
int64_t positions_of(const AuditJob& job) {
  constexpr int64_t kPage = 64;
  const Certificate& c = *job.certificate;
  const size_t prompt = c.prompt.tokens.empty() ? job.prompt.size() : c.prompt.tokens.size();
  const auto all = int64_t(prompt + c.answer.tokens.size());
  return (std::min<int64_t>(all, c.settings.context) / kPage + 2) * kPage;
}

}  // namespace

const char* name_of(Verdict v) {
  constexpr const char* kNames[] = {"same", "differs", "cannot-tell"};
  return kNames[size_t(v)];
}

const char* name_of(Subject s) {
  constexpr const char* kNames[] = {"nothing", "arithmetic", "fast-kernels", "model", "adapters", "settings",
                                    "prompt",  "signature",  "logits",       "token", "end",      "chain"};
  return kNames[size_t(s)];
}

std::optional<AuditResult> audit_identity(const Certificate& c, const Certificate::Model& model) {
  const auto cannot = [](Subject s, std::string expected, std::string found, std::string why) {
    AuditResult r = differs(s, -1, std::move(expected), std::move(found), std::move(why));
    r.verdict = Verdict::CannotTell;
    return r;
  };
  if (c.arithmetic != kArithmetic)
    return cannot(Subject::Arithmetic, format("{}", c.arithmetic), format("{}", kArithmetic),
                  "the answer was computed by another version of the arithmetic");
  if (c.settings.fast_kernels)
    return cannot(Subject::FastKernels, "exact kernels", "fast ones",
                  "kernels with another order of sums were allowed, so the bits may be others");
  if (c.model.sha256 != model.sha256)
    return differs(Subject::Model, -1, c.model.sha256, model.sha256, "the model's file is another one");
  const auto same = [](const Certificate::Adapter& a, const Certificate::Adapter& b) {
    return a.sha256 == b.sha256 && a.scale == b.scale;
  };
  if (!std::ranges::equal(c.model.adapters, model.adapters, same))
    return differs(Subject::Adapters, -1, format("{} adapters", c.model.adapters.size()),
                   format("{} adapters", model.adapters.size()),
                   "the LoRA adapters or their scales are others");
  return {};
}

Status set_audit_options(std::span<const AuditJob> jobs, RunOptions& o) {
  const Certificate::Settings& s = jobs[0].certificate->settings;
  if (!read_cache_name(s.cache_type, o.cache_type, o.cache_rotation) || s.context < 1)
    return Error{Code::Malformed,
                 format("the certificate has a cache of '{}' for {} positions", s.cache_type, s.context), ""};
  o.context = s.context;
  o.logit_rows = std::min(o.batch, kRowsPerStep);
  std::vector<int64_t> positions;
  for (const AuditJob& job : jobs) positions.push_back(positions_of(job));
  std::ranges::sort(positions, std::greater());
  positions.resize(std::min(positions.size(), kAnswersAtOnce));
  o.sequences = int(positions.size());
  o.cache_positions = 0;
  for (int64_t p : positions) o.cache_positions += p;
  return Done{};
}

std::vector<Result<AuditResult>> audit(std::span<const AuditJob> jobs, Model& model,
                                       const Tokenizer& tokenizer, const AuditOptions& options,
                                       const OnDeviceLost& lost) {
  return Audits(jobs, model, tokenizer, options, lost).run();
}

}  // namespace gimbal
