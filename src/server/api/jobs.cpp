// The worker API: POST /v1/jobs starts a text, GET /v1/jobs/ID/stream streams it, DELETE /v1/jobs/ID
// cancels it; and the progress of loading.
#include "server/api/jobs.h"

#include <algorithm>

#include "base/format.h"
#include "server/api/call.h"
#include "server/api/settings.h"

namespace gimbal::api {
namespace {

// A client that reads a job, from its beginning.
class JobStream final : public http::Source, public std::enable_shared_from_this<JobStream> {
 public:
  JobStream(std::shared_ptr<Job> job, std::shared_ptr<http::Exchange> exchange)
      : job_(std::move(job)), exchange_(std::move(exchange)) {}

  void pull(http::Outgoing& out) override {
    if (!begun_) {
      out.head = http::Response{200, "", "text/event-stream", {{"Cache-Control", "no-cache"}}};
      add_event(out.bytes, "", dump({{"type", "started"}, {"job_id", job_->id}}));
      begun_ = true;
    }
    out.end = job_->tell(told_, out.bytes);
  }
  void gone() override { job_->leave(exchange_); }

 private:
  std::shared_ptr<Job> job_;
  std::shared_ptr<http::Exchange> exchange_;
  size_t told_ = 0;
  bool begun_ = false;
};

// Clients that wait until the server is ready.
class LoadingStream final : public http::Source {
 public:
  LoadingStream(Services& services, std::shared_ptr<http::Exchange> exchange)
      : services_(services), exchange_(std::move(exchange)) {}
  void pull(http::Outgoing& out) override {
    if (!begun_) out.head = http::Response{200, "", "text/event-stream", {{"Cache-Control", "no-cache"}}};
    if (!begun_ && !services_.ready) add_event(out.bytes, "", R"({"stage":"loading"})");
    begun_ = true;
    if (!services_.ready) return;
    add_event(out.bytes, "", R"({"stage":"ready"})");
    out.bytes += "data: [DONE]\n\n";
    out.end = true;
  }
  void gone() override {}

 private:
  Services& services_;
  std::shared_ptr<http::Exchange> exchange_;
  bool begun_ = false;
};

// The reasons of the worker API.
const char* reason_of(Finish why) {
  switch (why) {
    case Finish::StopToken: return "EOS";
    case Finish::StopString: return "STOP_SEQUENCE";
    case Finish::Length:
    case Finish::ContextFull: return "MAX_TOKENS";
    case Finish::Cancelled: return "CANCELLED";
  }
  return "ERROR";
}

std::string end_event(int tokens, const char* why) {
  return dump({{"type", "end"}, {"tokens_out", tokens}, {"stop_reason", why}});
}

}  // namespace

GenerationSink Job::sink() {
  const auto self = shared_from_this();
  return {[self](const TokenEvent& t) {
            self->services.tokens_generated++;
            self->add([&](Job& j) { j.texts_.push_back(t.text); });
          },
          [self](const GenerationEnd& e) {
            self->services.prompt_tokens += uint64_t(e.prompt_tokens);
            self->add([&](Job& j) {
              if (!e.text.empty()) j.texts_.push_back(e.text);  // text held back until after the last token
              j.end_ = end_event(e.tokens, reason_of(e.finish));
            });
            self->services.running--;
          },
          [self](const Error& e) {
            self->add([&](Job& j) {
              j.error_ = dump({{"type", "error"}, {"message", of(e).message}});
              j.end_ = end_event(int(j.texts_.size()), "ERROR");
            });
            self->services.running--;
          }};
}

void Job::add(const std::function<void(Job&)>& change) {
  std::vector<std::shared_ptr<http::Exchange>> readers;
  {
    const std::lock_guard lock(mutex_);
    change(*this);
    readers = readers_;
    if (!end_.empty()) readers_.clear();
  }
  for (const auto& r : readers) r->wake();
}

bool Job::tell(size_t& told, std::string& out) {
  const std::lock_guard lock(mutex_);
  for (; told < texts_.size(); told++)
    add_event(out, "", format("{{\"type\":\"token\",\"t\":{},\"i\":{}}}", json_text(texts_[told]), told));
  if (end_.empty()) return false;
  if (!error_.empty()) add_event(out, "", error_);
  add_event(out, "", end_);
  out += "data: [DONE]\n\n";
  return true;
}

void Job::read_by(std::shared_ptr<http::Exchange> exchange) {
  const std::lock_guard lock(mutex_);
  if (end_.empty()) readers_.push_back(std::move(exchange));
}

void Job::leave(const std::shared_ptr<http::Exchange>& exchange) {
  bool last = false;
  {
    const std::lock_guard lock(mutex_);
    std::erase(readers_, exchange);
    last = readers_.empty();
  }
  if (last) cancel();
}

void Job::cancel() { model->generation()->cancel(number); }

void Jobs::keep(std::shared_ptr<Job> job) {
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(job));
  for (auto j = kept_.begin(); kept_.size() > kMost && j != kept_.end();)
    j = (*j)->over() ? kept_.erase(j) : j + 1;
}

std::shared_ptr<Job> Jobs::find(const std::string& id) {
  const std::lock_guard lock(mutex_);
  for (const auto& j : kept_)
    if (j->id == id) return j;
  return {};
}

Refused create_job(Call& call) {
  Fields f(call.body);
  auto name = f.text("model");
  if (!name && !call.services.models.list().empty()) name = call.services.models.list()[0].id;
  if (!name) f.need("model");
  ServedModelPtr model;
  if (!f.ok()) return f.error();
  if (auto no = find_model(call, *name, true, model)) return no;
  f.need("prompt");
  const auto prompt = f.text("prompt");
  f.text("job_id");
  f.flag("stream");  // a job is always streamed at its own address
  Settings settings;
  read_settings(f, *model, settings);
  if (settings.n != 1) f.wrong("n", "'n' must be 1: a job has one text");
  if (certificate_wish(call.request, call.body).value_or(CertificateWish::No) != CertificateWish::No)
    f.wrong("certificate", "a job has no receipt, and so no certificate: ask for one at /v1/completions");
  read_max_tokens(f, "max_tokens", 1, settings);
  if (auto no = f.finish()) return no;
  std::vector<GenerationRequest> requests;
  std::vector<std::vector<Token>> prompts;
  prompts.push_back(model->tokenizer().encode(*prompt));
  if (auto no = requests_of(*model, settings, std::move(prompts), requests)) return no;
  call.fill(requests[0], *model);

  auto job = std::make_shared<Job>(call.services, new_id("job-"), model);
  call.services.running++;
  job->number = new_request_id();
  if (auto ok = model->generation()->submit(job->number, std::move(requests[0]), job->sink()); !ok) {
    call.services.running--;
    return of(ok.error());
  }
  call.services.jobs.keep(job);
  call.answer_json({{"job_id", job->id}, {"sse_url", format("/v1/jobs/{}/stream", job->id)}});
  return {};
}

Refused stream_job(Call& call) {
  constexpr std::string_view kEnd = "/stream";
  std::shared_ptr<Job> job;
  if (call.argument.ends_with(kEnd))
    job = call.services.jobs.find(call.argument.substr(0, call.argument.size() - kEnd.size()));
  if (!job)
    return ApiError{404, format("there is no job {}", quoted_briefly(call.argument)), "", "not_found"};
  job->read_by(call.exchange);
  call.exchange->stream(std::make_shared<JobStream>(job, call.exchange));
  return {};
}

Refused delete_job(Call& call) {
  const auto job = call.services.jobs.find(call.argument);
  if (!job)
    return ApiError{404, format("there is no job {}", quoted_briefly(call.argument)), "", "not_found"};
  job->cancel();
  call.answer_json({{"job_id", job->id}, {"status", "cancelled"}});
  return {};
}

Refused loading_progress(Call& call) {
  {
    const std::lock_guard lock(call.services.waiting_mutex);
    if (!call.services.ready) call.services.waiting.push_back(call.exchange);
  }
  call.exchange->stream(std::make_shared<LoadingStream>(call.services, call.exchange));
  return {};
}

}  // namespace gimbal::api
