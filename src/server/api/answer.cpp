#include "server/api/answer.h"

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/format.h"
#include "base/json.h"
#include "engine/explanation.h"
#include "server/api/services.h"
#include "server/api/text.h"

namespace gimbal::api {
namespace {

// Tokens that wait for a client to read. Behind these, texts of several tokens become one piece; where they
// may not, because each has an event of its own, the answer ends.
constexpr size_t kFewWait = 512, kManyWait = 16384;

ApiError of_prompt(const Error& e) {
  ApiError made = of(e);
  if (made.code == "context_length_exceeded") made.param = "messages";
  return made;
}

}  // namespace

void RunningAnswers::add(const std::shared_ptr<Answer>& answer) {
  const std::lock_guard lock(mutex_);
  if (answers_.size() > 2 * tidied_ + 64) {
    std::erase_if(answers_, [](const std::weak_ptr<Answer>& a) { return a.expired(); });
    tidied_ = answers_.size();
  }
  answers_.push_back(answer);
}

void RunningAnswers::end() {
  std::vector<std::weak_ptr<Answer>> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(answers_);
  }
  for (const std::weak_ptr<Answer>& one : all)
    if (const auto answer = one.lock())
      answer->end({503, "the server ends, and this answer with it", "", "", 1});
}

const char* finish_word(const Choice& c) {
  if (c.end.finish == Finish::Length || c.end.finish == Finish::ContextFull) return "length";
  return c.calls.empty() ? "stop" : "tool_calls";
}

std::shared_ptr<Answer> Answer::start(Services& services, Plan plan,
                                      std::shared_ptr<http::Exchange> exchange) {
  const auto self = std::make_shared<Answer>(services, std::move(plan), exchange);
  GenerationService* engine = self->plan_.model->generation();
  self->error_ = self->plan_.refused;
  self->certify();
  for (size_t i = 0; !self->error_ && i < self->plan_.choices.size(); i++) {
    const uint64_t id = new_request_id();
    GenerationRequest& request = self->plan_.choices[i];
    GenerationSink sink = self->sink(i, id, int(request.prompt.size()), request.max_tokens);
    const Status queued = engine->submit(id, std::move(request), std::move(sink));
    const std::lock_guard lock(self->mutex_);
    if (!queued) {
      if (!self->error_) self->error_ = of_prompt(queued.error());
      break;
    }
    self->lines_[i].submitted = true;
    self->open_++;
  }
  services.answers.add(self);
  exchange->stream(self);
  return self;
}

Answer::Answer(Services& services, Plan plan, std::shared_ptr<http::Exchange> exchange)
    : services_(services),
      plan_(std::move(plan)),
      exchange_(std::move(exchange)),
      lines_(plan_.choices.size()),
      parsers_(plan_.choices.size(), ReplyParser(plan_.model->tokenizer(), plan_.task)) {
  choices_.resize(plan_.choices.size());
  for (size_t i = 0; i < lines_.size(); i++)
    lines_[i].limits = plan_.limits, lines_[i].prompt_tokens = plan_.choices[i].prompt.size();
  for (size_t i = 0; i < lines_.size(); i += std::max<size_t>(1, lines_.size() / size_t(plan_.prompts)))
    prompt_tokens_ += int(plan_.choices[i].prompt.size());
  services_.running++;
}

Answer::~Answer() { services_.running--; }

GenerationSink Answer::sink(size_t choice, uint64_t id, int prompt_tokens, int max_tokens) {
  const auto self = shared_from_this();
  lines_[choice].moments.begun = now();
  lines_[choice].id = id;
  std::vector<Token> prompt;
  if (services_.slots.keeps_texts()) prompt = plan_.choices[choice].prompt;
  return {[self, choice](const TokenEvent& t) { self->told(choice, t); },
          [self, choice](const GenerationEnd& e) { self->ended(choice, e); },
          [self](const Error& e) { self->failed(of_prompt(e)); },
          [=, prompt = std::move(prompt)] {
            SlotPtr slot = self->services_.slots.take(self->plan_.model->id(), id, prompt_tokens, max_tokens);
            slot->text = prompt;
            self->began(choice, std::move(slot));
          },
          [self, choice](const TokenEvent& t) { self->scored(choice, t); }};
}

void Answer::began(size_t choice, SlotPtr slot) {
  const std::lock_guard lock(mutex_);
  Line& line = lines_[choice];
  line.moments.begun = now();
  line.number = slot->number;
  line.slot = std::move(slot);
}

void Answer::scored(size_t choice, const TokenEvent& t) {
  const std::lock_guard lock(mutex_);
  if (gone_ || error_) return;
  Line& line = lines_[choice];
  if (size_t(t.index) < line.prompt_tokens) line.prompt.push_back(t);
  else line.stop = t;
}

void Answer::told(size_t choice, const TokenEvent& t) {
  services_.tokens_generated++;
  uint64_t cancelled = 0;
  {
    const std::lock_guard lock(mutex_);
    if (sent_tokens_++ == 0) first_token_ = now();
    Line& line = lines_[choice];
    if (line.moments.first == 0) line.moments.first = now();
    if (line.slot) line.slot->told = t.index + 1;
    if (line.slot && services_.slots.keeps_texts()) line.slot->text.push_back(t.token);
    if (gone_ || error_ || line.cut) return;
    if (line.certified) line.certified->add(t);
    std::vector<TokenEvent>& waiting = line.told;
    std::string kept;
    if (line.limits && line.limits->ends(kept = t.text, now() - line.moments.first))
      line.cut = line.enough = true, cancelled = line.id;
    const std::string& text = line.limits ? kept : t.text;
    const bool apart = plan_.every_token || plan_.logprobs;
    // A mark comes behind the text that its event has, so nothing is added to it.
    const auto is_mark = [&](const TokenEvent& e) { return plan_.model->tokenizer().is_control(e.token); };
    if (!apart && waiting.size() >= kFewWait && !is_mark(t) && !is_mark(waiting.back())) {
      waiting.back().text += text;
      if (!cancelled) return;
    } else if (plan_.stream && waiting.size() >= kManyWait) {
      error_ = ApiError{503, "the answer is not read: it ends here"};
    } else {
      waiting.push_back(t);
      if (line.limits) waiting.back().text = text;
    }
  }
  if (cancelled) plan_.model->generation()->cancel(cancelled);
  if (plan_.stream) exchange_->wake();
}

void Answer::ended(size_t choice, const GenerationEnd& e) {
  services_.drafted += e.drafted;
  services_.accepted += e.accepted;
  bool wake = plan_.stream;
  {
    const std::lock_guard lock(mutex_);
    lines_[choice].end = e;
    lines_[choice].moments.end = now();
    lines_[choice].slot = nullptr;
    wake |= --open_ == 0;
    if (choice % (lines_.size() / size_t(plan_.prompts)) == 0) {
      services_.prompt_tokens += uint64_t(e.prompt_tokens);
      // The rows of pictures were unknown before.
      prompt_tokens_ += std::max(0, e.prompt_tokens - int(lines_[choice].prompt_tokens));
    }
    if (e.finish == Finish::Cancelled && !lines_[choice].enough && !gone_ && !error_)
      error_ = ApiError{503, "the server ends, and this answer with it"};
  }
  if (wake) exchange_->wake();
}

void Answer::failed(const ApiError& e) {
  {
    const std::lock_guard lock(mutex_);
    open_--;
    if (!error_) error_ = e;
  }
  exchange_->wake();
}

void Answer::gone() {
  {
    const std::lock_guard lock(mutex_);
    gone_ = true;
  }
  cancel();
  record("client-left");
}

void Answer::end(const ApiError& e) {
  {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = e;
  }
  exchange_->wake();
}

void Answer::cancel() {
  std::vector<uint64_t> ids;
  {
    const std::lock_guard lock(mutex_);
    for (Line& l : lines_) {
      l.told = {}, l.prompt = {};
      if (l.submitted && !l.end) ids.push_back(l.id);
    }
  }
  for (uint64_t id : ids) plan_.model->generation()->cancel(id);
}

void Answer::write(size_t choice, std::string text, const TokenEvent* told, bool last, std::string& out) {
  Choice& c = choices_[choice];
  Piece piece{int(choice), {}, {}, {}, told, &c};
  if (plan_.splits_reasoning) {
    ReplyParser& parser = parsers_[choice];
    auto part = last ? parser.finish(text) : parser.push(text, told ? told->token : -1);
    piece.text = std::move(part.text), piece.reasoning = std::move(part.reasoning);
    for (ToolCall& call : part.calls)
      piece.calls.push_back({std::move(call), new_id("call_"), int(c.calls.size() + piece.calls.size())});
    if (parser.enough()) end_early(choice);
  } else {
    piece.text = std::move(text);
  }
  c.text += piece.text;
  c.reasoning += piece.reasoning;
  c.calls.insert(c.calls.end(), piece.calls.begin(), piece.calls.end());
  const bool shown = told && (plan_.every_token || plan_.logprobs);
  const bool any = !piece.text.empty() || !piece.reasoning.empty() || !piece.calls.empty();
  if (plan_.stream && (shown || any)) plan_.writer->piece(out, piece);
  if (!plan_.stream && shown) c.tokens.push_back(*told);
}

void Answer::end_early(size_t choice) {
  uint64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    Line& line = lines_[choice];
    if (line.end || !line.submitted || line.enough) return;
    line.enough = true;
    id = line.id;
  }
  plan_.model->generation()->cancel(id);
}

void Answer::take_lines(std::string& out) {
  for (size_t i = 0; i < choices_.size(); i++) {
    std::vector<TokenEvent> told;
    std::optional<GenerationEnd> end;
    {
      const std::lock_guard lock(mutex_);
      told.swap(lines_[i].told);
      end = lines_[i].end;
      choices_[i].moments = lines_[i].moments, choices_[i].slot = lines_[i].number;
      choices_[i].cut = lines_[i].cut;
      choices_[i].stop = lines_[i].stop;
      if (!choices_[i].begun && (!told.empty() || end)) choices_[i].prompt = std::move(lines_[i].prompt);
    }
    if (plan_.stream && !choices_[i].begun && (!told.empty() || end)) {
      plan_.writer->prompt(out, choices_[i], int(i));
      choices_[i].begun = true;
      choices_[i].prompt = {};
    }
    for (const TokenEvent& t : told) write(i, t.text, &t, false, out);
    if (!end || choices_[i].ended) continue;
    write(i, choices_[i].cut ? "" : end->text, nullptr, true, out);
    choices_[i].ended = true;
    choices_[i].end = *end;
    if (plan_.stream) plan_.writer->end(out, choices_[i], int(i));
  }
}

Usage Answer::usage() const {
  Usage u;
  const size_t each = choices_.size() / size_t(plan_.prompts);
  for (size_t i = 0; i < choices_.size(); i++) {
    const GenerationEnd& e = choices_[i].end;
    if (i % each == 0) u.prompt_tokens += e.prompt_tokens, u.shared_tokens += e.shared_tokens;
    u.completion_tokens += e.tokens;
  }
  return u;
}

// The choices that get a certificate keep their requests.
void Answer::certify() {
  for (size_t i = 0; i < lines_.size(); i++)
    if (plan_.choices[i].certify)
      lines_[i].certified.emplace(*plan_.model, plan_.model_digest, plan_.choices[i]);
}

void Answer::keep_receipt() {
  const Usage u = usage();
  Json certificates = Json::array();
  std::string problem;
  const std::string program = "gimbal " + services_.version;
  for (size_t i = 0; i < lines_.size(); i++) {
    if (!lines_[i].certified) continue;
    if (lines_[i].cut) {
      problem = "a limit of time or layout ended the answer, and no audit can repeat that";
      continue;
    }
    const Moments& m = lines_[i].moments;
    auto made = lines_[i].certified->certificate(
        *plan_.model, choices_[i].end,
        {program, m.first - m.begun, m.end - m.first, plan_.certificate == CertificateWish::Private,
         services_.certificates.key_file});
    if (made) certificates.push_back(std::move(*made));
    else problem = made.error().message;
  }
  uint64_t drafted = 0, accepted = 0;
  for (const Choice& c : choices_) drafted += c.end.drafted, accepted += c.end.accepted;
  Json receipt = {{"id", plan_.id},
                  {"model", plan_.model->id()},
                  {"ops", kernels_json(plan_.model->kernels())},
                  {"prompt_tokens", u.prompt_tokens},
                  {"shared_tokens", u.shared_tokens},
                  {"completion_tokens", u.completion_tokens},
                  {"speculation", {{"drafted", drafted}, {"accepted", accepted}}}};
  if (services_.pages) receipt["prefix_store"] = stored_json();
  const bool any = !certificates.empty();
  if (any) receipt["certificates"] = std::move(certificates);
  if (!problem.empty()) receipt["no_certificate"] = problem;
  services_.receipts.keep(plan_.id, plan_.owner, dump(receipt), any);
}

// By choice: the tokens that were read from the prefix store, and the last page of them.
Json Answer::stored_json() const {
  Json all = Json::array();
  for (const Choice& c : choices_) {
    Json one = {{"tokens", c.end.stored_tokens}};
    if (c.end.stored_tokens) one["page"] = c.end.stored_page;
    all.push_back(std::move(one));
  }
  return all;
}

void Answer::record(const std::string& end) {
  RequestRecord& r = *plan_.record;
  r.model = plan_.model->id();
  r.end = end;
  const std::lock_guard lock(mutex_);
  r.prompt_tokens = prompt_tokens_;
  r.generated_tokens = sent_tokens_;
  if (first_token_ >= 0) r.first_token = first_token_ - r.begin;
}

// "stop", or "length, stop" of several choices.
std::string Answer::finish_words() const {
  std::set<std::string_view> words;
  for (const Choice& c : choices_) words.insert(finish_word(c));
  return format("{}", fmt::join(words, ", "));
}

void Answer::pull(http::Outgoing& out) {
  if (done_) {
    out.end = true;
    return;
  }
  std::optional<ApiError> error;
  bool told = false, any = false, all = true;
  {
    const std::lock_guard lock(mutex_);
    error = error_;
    for (const Line& l : lines_) told |= !l.told.empty(), any |= l.end.has_value(), all &= l.end.has_value();
    any |= told;
  }
  if (error && !(plan_.stream && (begun_ || told))) {  // no output yet: the error is the whole answer
    done_ = true;
    cancel();
    record(error->code);
    out.whole = error_response(plan_.dialect, *error, plan_.request_id);
    out.whole->headers.insert(out.whole->headers.end(), plan_.headers.begin(), plan_.headers.end());
    return;
  }
  if (!plan_.stream) {
    if (!all) return;
    take_lines(out.bytes);
    done_ = true;
    keep_receipt();
    record(finish_words());
    out.whole = http::Response{200, plan_.writer->whole(choices_, usage()), plan_.writer->whole_type()};
    out.whole->headers = plan_.headers;
    return;
  }
  if (!any && !begun_) return;
  if (!begun_) {
    begun_ = true;
    out.head = http::Response{200, "", plan_.writer->stream_type()};
    out.head->headers = plan_.headers;
    out.head->headers.push_back({"Cache-Control", "no-cache"});
    plan_.writer->begin(out.bytes);
  }
  take_lines(out.bytes);
  if (error) {
    cancel();
    plan_.record->broke_off = true;
    record(error->code.empty() ? "failed" : error->code);
    plan_.writer->error(out.bytes, *error);
  } else if (std::all_of(choices_.begin(), choices_.end(), [](const Choice& c) { return c.ended; })) {
    keep_receipt();
    record(finish_words());
    plan_.writer->finish(out.bytes, choices_, usage());
  } else {
    return;
  }
  done_ = true;
  out.end = true;
}

}  // namespace gimbal::api
