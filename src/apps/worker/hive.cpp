#include "apps/worker/hive.h"

#include <algorithm>
#include <random>

#include "base/clock.h"
#include "base/format.h"
#include "base/json.h"
#include "fetch/small_file.h"
#include "server/api/text.h"

namespace gimbal::worker {
namespace {

constexpr double kForTheLastWord = 1;  // seconds

bool succeeded(long status) { return status >= 200 && status < 300; }

}  // namespace

bool is_worker_id(const std::string& id) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !id.empty() && id.size() <= 128 && plain(id[0]) && std::all_of(id.begin(), id.end(), [&](char c) {
    return plain(c) || c == '-' || c == '_' || c == '.';
  });
}

Result<std::unique_ptr<Hive>> Hive::create(HiveOptions o) {
  auto base = Url::parse(o.url);
  if (!base || !base->query.empty())
    return Error{Code::Usage, "--hive-url is not an http or https URL",
                 "give one such as http://127.0.0.1:9200"};
  while (base->path.ends_with('/')) base->path.pop_back();
  if (auto ok = can_fetch(); !ok) return ok.error();
  return std::unique_ptr<Hive>(new Hive(std::move(o), std::move(*base)));
}

void Hive::ready(const std::string& address) {
  address_ = address;
  thread_ = std::thread([this] { run(); });
}

void Hive::draining() {
  {
    const std::lock_guard lock(mutex_);
    last_word_by_ = now() + kForTheLastWord;
  }
  changed_.notify_one();
}

Hive::~Hive() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

// Whether the current message may continue.
bool Hive::go_on() {
  const std::lock_guard lock(mutex_);
  return last_word_by_ > 0 ? now() < last_word_by_ : !stopping_;
}

// False: no further messages, or only the last one.
bool Hive::pause(double seconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                    [&] { return stopping_ || last_word_by_ > 0; });
  return !stopping_ && last_word_by_ == 0;
}

Result<long> Hive::post(const char* path, const std::string& json) {
  Url url = base_;
  url.path += path;
  return post_json(url, json, o_.patience, [this] { return go_on(); });
}

// The first time that it fails; then not until it has worked again.
void Hive::failed(const std::string& why) {
  if (!go_on() || std::exchange(said_failed_, true) || !o_.log) return;
  o_.log(format("contact with the hive at {} failed: {}. This worker tries again, and answers requests",
                base_.shown(), why));
}

// A hive of a version without registration still gets heartbeats.
bool Hive::registered() {
  const auto status = post("/v1/workers/ready", dump({{"worker_id", o_.worker_id},
                                                      {"url", address_},
                                                      {"model_ref", o_.model},
                                                      {"backend", o_.backend},
                                                      {"device", o_.device}}));
  if (status && (succeeded(*status) || *status == 404 || *status == 405)) return true;
  failed(status ? format("it answers {}", *status) : status.error().message);
  return false;
}

bool Hive::heartbeat(bool healthy) {
  const auto status = post("/v1/heartbeat", dump({{"worker_id", o_.worker_id},
                                                  {"timestamp", api::time_text()},
                                                  {"health_status", healthy ? "healthy" : "degraded"}}));
  if (!status || !succeeded(*status)) {
    failed(status ? format("it answers {}", *status) : status.error().message);
    return false;
  }
  if (o_.log && (std::exchange(said_failed_, false) || !std::exchange(said_known_, true)))
    o_.log(format("the hive at {} has accepted this worker, {}", base_.shown(), o_.worker_id));
  said_known_ = true;
  return true;
}

// A hive that failed may have restarted and forgotten its workers.
void Hive::run() {
  std::minstd_rand random(static_cast<unsigned>(api::random_seed()));  // not all workers at the same moment
  bool known = false;
  for (double wait = o_.first_pause;;) {
    if (!known) known = registered();
    known = known && heartbeat(true);
    if (known) wait = o_.first_pause;
    if (!pause(known ? o_.interval : wait * std::uniform_real_distribution<>(0.5, 1)(random))) break;
    if (!known) wait = std::min(2 * wait, o_.longest_pause);
  }
  if (known && go_on()) heartbeat(false);
}

}  // namespace gimbal::worker
