// State and services shared by the handlers of all APIs.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "scheduler/numbers.h"
#include "server/api/adapters.h"
#include "server/api/certificates.h"
#include "server/api/jobs.h"
#include "server/api/picture_fetches.h"
#include "server/api/pulls.h"
#include "server/api/receipts.h"
#include "server/api/renderings.h"
#include "server/api/request_counts.h"
#include "server/api/request_log.h"
#include "server/api/slots.h"
#include "server/model.h"
#include "store/page_store.h"

namespace gimbal::api {

class Answer;

// The answers in progress.
class RunningAnswers {
 public:
  void add(const std::shared_ptr<Answer>&);
  // Ends each with an error in its API's form, for a shutdown that cannot wait longer.
  void end();

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<Answer>> answers_;  // includes some that have ended
  size_t tidied_ = 0;                           // number left after the last removal of ended ones
};

struct Services {
  Models& models;
  std::string version;                    // of gimbal
  std::function<std::string()> backends;  // as `gimbal backends --json` prints them
  std::string worker_id = {};             // if this server is a worker of a hive; else empty
  // Reloads the backends' code and reports them in the same format.
  std::function<Result<std::string>()> reload_backends = {};
  std::atomic<bool> reloading{false};  // one at a time

  std::atomic<bool> ready{false}, draining{false};
  std::atomic<int> running{0};  // answers in progress
  std::atomic<uint64_t> tokens_generated{0}, prompt_tokens{0}, drafted{0}, accepted{0}, worker_restarts{0};
  Receipts receipts = {};
  CertificatePolicy certificates = {};  // constant while requests are answered
  Jobs jobs = {};
  Pulls pulls{draining};
  RunningAnswers answers = {};
  Slots slots = {};
  AdapterScales adapters = {};
  Renderings renderings = {};
  PictureFetches picture_fetches = {};
  RequestLog log = {};                         // constant while requests are answered
  std::string slot_save_path = {};             // the folder of saved slots; empty: there are none
  std::shared_ptr<PageStore> pages = nullptr;  // of the prefix store; constant, too
  // Of requests that do not say; constant, too.
  int reasoning_budget = -1;
  TemplateSettings template_settings = {};
  bool keeps_reasoning = false;  // "reasoning_format"
  RequestCounts counts = {};

  std::mutex waiting_mutex = {};
  std::vector<std::shared_ptr<http::Exchange>> waiting = {};  // for `ready`
  void set_ready();
};

}  // namespace gimbal::api
