// gimbal replay: writes the answer of a certificate again, and branches from it (docs/audit.md).
#include "apps/commands/certificate_input.h"
#include "apps/commands/certificate_options.h"
#include "apps/commands/command.h"
#include "apps/commands/run.h"
#include "apps/reports/prompt_progress.h"
#include "apps/reports/run_report.h"
#include "apps/reports/stderr_sink.h"
#include "apps/reports/verdict_reports.h"
#include "apps/toolkit/terminal.h"
#include "audit/branch.h"
#include "base/json.h"
#include "chat/chat_prompt.h"

namespace gimbal {
namespace {

class Replay final : public Command {
 public:
  void declare(Arguments& a) override {
    a.positional("CERTIFICATE", "a file of `gimbal run --certificate`, or a receipt of `gimbal serve`",
                 file_);
    a.positional("MODEL", "the same as -m MODEL", input_.model());
    a.whole("--choice", "N", "the answer's number in a receipt with several", choice_, 1, 1 << 20);
    a.whole("--until", "TOKEN", "stop behind this number of tokens of the answer (default: all)", until_, 0,
            INT_MAX);
    a.section("Branch");
    a.whole("--seed", "N", "continue from there with another seed", seed_, uint64_t(0), UINT64_MAX);
    a.text("-p,--message", "TEXT", "add this text there; the model answers it with the same settings",
           message_);
    a.flag("--chat", "the message is a question: put it into the model's chat template", chat_);
    a.flag("--continue", "continue from there line by line: the model continues each line of input",
           continues_);
    a.whole("-n,--max-tokens", "N",
            "the most tokens of the branch's answer, with those that it keeps (default: as before)",
            max_tokens_, 0, INT_MAX);
    certificate_.declare(a, "-o,--certificate");
    input_.declare(a);
    a.example("gimbal run -p \"Once upon a time\" --certificate answer.json");
    a.example("gimbal replay answer.json");
    a.example("gimbal replay answer.json --until 20 --seed 8 -o branch.json");
    a.example("gimbal replay answer.json --until 20 -p \" Suddenly\"");
  }

  Result<int> run() override {
    if (auto ok = check_options(); !ok) return ok.error();
    if (auto ok = read(); !ok) return ok.error();
    auto plan = input_.plan(quiet);
    if (!plan) return plan.error();
    prompt_ = certificate().prompt.tokens.empty() ? plan->prompt : certificate().prompt.tokens;
    plan->how.until = until_;
    plan->how.text = [this](std::string_view piece) {
      text_ += piece;
      if (!json) print_text(piece), flush_output();
    };
    if (branches())
      plan->then = [this](Engine& e, const LoadedModelPtr& on, const Tokenizer& t) {
        if (const auto& r = all_[0].result; *r && (*r)->verdict == AuditResult::Verdict::Same)
          branch_ = continues_ ? continue_lines(e, on, t) : write_branch(e, on, t);
      };
    AuditMany(backend_registry(), std::move(*plan), stderr_sink(quiet)).run(all_);
    if (!json && !branch_ && !text_.empty() && text_.back() != '\n') print("\n");
    flush_output();
    note_unchecked_signatures(all_);
    const Result<AuditResult>& result = *all_[0].result;
    if (!result) return input_.worded(result.error());
    const bool same = result->verdict == AuditResult::Verdict::Same;
    if (!json && !(same && quiet)) note(audit_text(all_[0]));
    if (branch_ && !*branch_) return branch_->error();
    if (json) {
      Json j = audit_json(all_[0]);
      j["text"] = text_;
      if (branch_) j["branch"] = report_;
      print_json(j);
    }
    return branch_ ? **branch_ : exit_code(result->verdict);
  }

 private:
  bool branches() const { return seed_ || message_ || continues_; }
  const Certificate& certificate() const { return *all_[0].certificate; }

  Status check_options() const {
    if (!file_)
      return Error{Code::Usage, "there is no certificate", "give a file: gimbal replay answer.json"};
    if (seed_.has_value() + message_.has_value() + continues_ > 1)
      return Error{Code::Usage, "--seed, --message and --continue are different branches",
                   "give only one of them"};
    if (seed_ && !until_)
      return Error{Code::Usage, "--seed begins a branch, and its place is missing", "add --until TOKEN"};
    if (chat_ && !message_) return Error{Code::Usage, "--chat is for a message", "add --message TEXT"};
    if (continues_ && json)
      return Error{Code::Usage, "--continue is interactive, and --json is not", "give only one of them"};
    if ((certificate_.given() || max_tokens_) && !seed_ && !message_)
      return Error{
          Code::Usage,
          format("{} is for a branch, and there is none", max_tokens_ ? "--max-tokens" : "--certificate"),
          "add --seed N or --message TEXT"};
    return certificate_.check();
  }

  // The certificate of the file. Errors: Usage for a choice or a place that it does not have.
  Status read() {
    std::vector<Audited> all;
    read_certificates(*file_, all);
    if (all.size() > 1 && !choice_)
      return Error{Code::Usage, format("{} has {} certificates", gimbal::quoted(*file_), all.size()),
                   format("name one of them: --choice 1 to --choice {}", all.size())};
    const auto at = size_t(choice_.value_or(1));
    if (at > all.size())
      return Error{Code::Usage,
                   format("--choice: expected 1 to {}, the certificates of {}, got {}", all.size(),
                          gimbal::quoted(*file_), at),
                   ""};
    all_.push_back(std::move(all[at - 1]));
    if (all_[0].result) return all_[0].result->error();
    const size_t tokens = certificate().answer.tokens.size();
    if (until_ && size_t(*until_) > tokens)
      return Error{Code::Usage, format("--until: the answer has {} tokens, got {}", tokens, *until_),
                   format("give at most {}", tokens)};
    return Done{};
  }

  int place() const { return until_.value_or(int(certificate().answer.tokens.size())); }

  Result<Branch> branch(const LoadedModel& on, const Tokenizer& tokenizer) const {
    if (seed_) return branch_with_seed(certificate(), prompt_, place(), *seed_);
    if (!chat_)
      return branch_with_message(certificate(), prompt_, place(),
                                 tokenizer.encode(*message_, {.add_bos = false}));
    auto chat = ChatTemplate::of(on.source.file->metadata(), tokenizer);
    if (!chat) return chat.error();
    if (const std::string n = note_of(*chat); !n.empty() && !quiet) note(n);
    auto turn = next_turn(*chat, tokenizer, *message_, local_time());
    if (!turn) return turn.error();
    return branch_with_message(certificate(), prompt_, place(), *turn);
  }

  Result<int> write_branch(Engine& engine, LoadedModelPtr on, const Tokenizer& tokenizer) {
    auto b = branch(*on, tokenizer);
    if (!b) return b.error();
    if (max_tokens_) b->text.max_tokens = *max_tokens_;
    std::optional<Constraint> constraint;
    if (!b->grammar.empty()) {
      auto grammar = Grammar::gbnf(b->grammar);
      if (!grammar) return grammar.error();
      auto made = Constraint::create(*grammar, TokenTree::create(tokenizer, on->model->config().vocabulary));
      if (!made) return made.error();
      constraint.emplace(std::move(*made));
    }
    auto session = Session::create(*on->model);
    if (!session) return session.error();
    (*session)->on_device_lost(engine.on_device_lost(on));
    InterruptGuard guard;
    PromptProgress progress(!quiet);
    GenerateSettings settings = b->settings(constraint ? &*constraint : nullptr);
    settings.on_prompt = [&](size_t done, size_t total) { return progress(done, total); };
    if (message_ && !json) print_text(chat_ ? "\n\n> " + *message_ + "\n\n" : *message_);
    auto answer = write_answer(**session, tokenizer, b->prompt, settings, !json);
    if (!answer) return answer.error();
    if (auto ok =
            certificate_.write(certificate_of(*b, certificate(), answer->generated), *on, answer->generated);
        !ok)
      return ok.error();
    report_ = run_json(*on, answer->generated, answer->text, b->text.sampler.seed);
    if (auto why = explain_finish(answer->generated.finish, *on->model); !why.empty() && !quiet) note(why);
    return InterruptGuard::interrupted() ? kInterrupted : kDone;
  }

  Result<int> continue_lines(Engine& engine, const LoadedModelPtr& on, const Tokenizer& tokenizer) const {
    ContinuationSettings s;
    s.quiet = quiet, s.text = prompt_;
    static_cast<TextSettings&>(s.generate) = certificate().text;
    const auto kept = std::span(certificate().answer.tokens).first(size_t(place()));
    s.text.insert(s.text.end(), kept.begin(), kept.end());
    print("\n");
    return continue_texts(engine, on, tokenizer, s);
  }

  std::optional<std::string> file_, message_;
  std::optional<int> choice_, until_, max_tokens_;
  std::optional<uint64_t> seed_;
  bool chat_ = false, continues_ = false;
  CertificateInput input_;
  CertificateOptions certificate_;

  std::vector<Audited> all_;   // the certificate
  std::vector<Token> prompt_;  // the certificate's, or that of --tokens
  std::string text_;           // of the answer, as far as it is checked
  std::optional<Result<int>> branch_;
  Json report_;  // of the branch
};

}  // namespace

std::unique_ptr<Command> make_replay() { return std::make_unique<Replay>(); }

}  // namespace gimbal
