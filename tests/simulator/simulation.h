// One schedule: clients, a front, and its workers in one thread, under a clock and a network that a seed
// decides. Whatever fails, each answer is the one that its request has alone, token by token.
//
// FoundationDB and TigerBeetle are tested like this: W. Wilson, "Testing distributed systems with
// deterministic simulation", Strange Loop 2014.
#pragma once
#include <numeric>

#include "simulator/simulated_worker.h"
#include "workers/remote_service.h"

namespace gimbal::test {

struct ScheduleResult {
  std::string violation;  // empty: none
  FaultCounts faults;
  TroubleCounts troubles;
  PageStoreNumbers stored;  // of pages alone
  int requests = 0, whole = 0, cancelled = 0, given_up = 0, workers = 0;
  int constrained = 0;               // of the whole ones, with a grammar
  uint64_t steps = 0, compared = 0;  // steps of models; tokens compared
  uint64_t drafted = 0, accepted = 0;

  void operator+=(const ScheduleResult& r) {
    for (size_t f = 0; f < faults.counts.size(); f++) faults.counts[f] += r.faults.counts[f];
    for (size_t t = 0; t < troubles.counts.size(); t++) troubles.counts[t] += r.troubles.counts[t];
    for (auto n :
         {&PageStoreNumbers::pages_read, &PageStoreNumbers::pages_written, &PageStoreNumbers::pages_damaged,
          &PageStoreNumbers::pages_dropped, &PageStoreNumbers::pages_evicted})
      stored.*n += r.stored.*n;
    requests += r.requests, whole += r.whole, cancelled += r.cancelled, given_up += r.given_up;
    workers += r.workers, constrained += r.constrained, steps += r.steps, compared += r.compared;
    drafted += r.drafted, accepted += r.accepted;
  }
};

class Simulation {
 public:
  // `everything`: with disks, drivers, grammars and drafts; false: front and workers alone.
  Simulation(uint64_t seed, SimulatedModels& models, const Answers& answers, bool everything = true)
      : models_(models),
        answers_(answers),
        everything_(everything),
        machine_(seed, everything, models, answers),
        random_(uint32_t(seed ^ seed >> 32)) {
    for (int i = 0; i < 20; i++) random_();
    // A few kinds of faults at a time, some of them often; one schedule in eight has none.
    if (random_() % 8)
      for (int& rate : rates_.per_mille)
        if (random_() % 3 == 0) rate = std::array{1, 3, 10}[random_() % 3];
    rates_.slow = std::array{0, 30, 90}[random_() % 3];
    poison_ = random_() % 6 == 0;
    memory_.asks = everything && seed % 3 == 0;
    if (memory_.asks) others_->plans({{{"", SimulatedMemory::kOthers, 0, 0, 0}}});
  }

  ScheduleResult run() {
    const size_t before = models_.free_pages();
    start();
    const int wanted = 1 + int(random_() % 14);
    constexpr int kMost = 200'000;
    int turns = 0;
    for (; turns < kMost && result_.violation.empty(); turns++) {
      const bool faulty = result_.requests < wanted || turns < 400;
      if (!faulty && all_over()) break;
      turn(faulty, wanted);
    }
    if (turns == kMost) violated("a request does not end although nothing fails any more");
    check_ends();
    service_.reset();
    for (const auto& w : workers_) result_.steps += w->steps();
    workers_.clear();
    result_.troubles = machine_.troubles, result_.stored = machine_.stored;
    if (result_.violation.empty() && models_.free_pages() != before)
      violated("pages of the cache are not given back");
    return result_;
  }

 private:
  struct Asked {
    size_t form;
    bool poison;
    uint64_t id;
    Spoken spoken = {};
    int losses = 0;         // of workers since it heard something; not those that other requests ended
    int failed_starts = 0;  // of the service, when it failed
    std::optional<int> cancelled_at = {};  // the number of workers until then
  };

  void violated(const std::string& what) {
    if (result_.violation.empty()) result_.violation = what;
  }

  void start() {
    WorkerSettings s;
    s.command = {"simulated"}, s.load.model = "simulated";
    s.vocabulary = models_.plain.model().config().vocabulary;
    if (memory_.asks) s.asks_for_memory = true, s.memory = reservations_->worker("simulated", false);
    s.replaced = [this](const std::string& why) {
      if (++losses_ > all_faults()) violated("a worker was replaced although nothing failed: " + why);
      failed_starts_ = std::exchange(started_, false) ? 0 : failed_starts_ + 1;
      for (auto& a : asked_)
        if (!a->spoken.over() && (a->poison || !workers_.back()->poisoned())) a->losses++;
    };
    auto made = RemoteService::start_stepped(
        std::move(s),
        {[this] { return now_; },
         [this](const std::vector<std::string>&, std::span<const int>) -> Result<WorkerProcess> {
           started_ = false;
           if (std::exchange(exchanged_, false)) failed_starts_ = 0;
           workers_.push_back(std::make_unique<SimulatedWorker>(machine_, answers_, random_, rates_,
                                                                result_.faults, memory_, result_.workers++));
           return workers_.back()->process();
         }});
    EXPECT_TRUE(made) << made.error().message;
    service_ = std::move(*made);
  }

  // One of those who take part does something.
  void turn(bool faulty, int wanted) {
    switch (random_() % 8) {
      case 0:
        if (result_.requests < wanted) ask();
        else if (faulty && random_() % 10 == 0) cancel_one();
        break;
      case 1:
      case 2:
        started_ |= service_->facts().ready && !all_over();  // it gets a request now
        service_->turn();
        check_cancelled();
        break;
      case 3:  // mostly moments; sometimes longer than any patience
        now_ += std::chrono::milliseconds(random_() % 20);
        if (faulty && random_() % 400 == 0) now_ += std::chrono::seconds(random_() % 40), stalls_++;
        if (!faulty) now_ += std::chrono::milliseconds(500);
        break;
      case 4:
        if (faulty && random_() % 300 == 0) service_->replace(), exchanged_ = true;
        else if (random_() % 20 == 0) service_->ask_numbers();
        else if (memory_.asks && random_() % 4 == 0) service_->admit(), memory_.admitted = true;
        break;
      default: workers_.back()->turn(faulty); break;
    }
    check_numbers();
    if (memory_.asks) check_memory();
  }

  void ask() {
    if (random_() % 4) return;
    auto a = std::make_unique<Asked>(random_() % unsigned(everything_ ? Answers::kForms : Answers::kFree),
                                     poison_ && random_() % 4 == 0, uint64_t(++ids_));
    GenerationRequest r = answers_.form(a->form);
    if (a->poison) r.client = "poison";
    Asked* const it = a.get();
    const bool leaves = random_() % 12 == 0;  // cancels as it hears a token
    result_.requests++;
    asked_.push_back(std::move(a));
    GenerationSink sink = it->spoken.sink([this, it, leaves] {
      it->losses = 0, result_.compared++;
      if (leaves) cancel(*it);
    });
    sink.failed = [this, it, failed = std::move(sink.failed)](const Error& e) {
      failed(e), it->failed_starts = failed_starts_;
    };
    const auto refused = sink.failed;
    if (const auto ok = service_->submit(it->id, std::move(r), std::move(sink)); !ok) refused(ok.error());
  }

  void cancel_one() {
    if (!asked_.empty()) cancel(*asked_[random_() % asked_.size()]);
  }
  void cancel(Asked& a) {
    if (!a.cancelled_at) a.cancelled_at = result_.workers;
    service_->cancel(a.id);
  }

  // A worker that starts after the cancel computes nothing for it.
  void check_cancelled() {
    for (const auto& a : asked_)
      if (a->cancelled_at && !a->spoken.over() && result_.workers > *a->cancelled_at)
        violated(format("request {} is open although it was cancelled before its worker started", a->id));
  }

  // Each may cost a worker; a clock that jumps may, too.
  uint64_t all_faults() const {
    return std::accumulate(result_.faults.counts.begin(), result_.faults.counts.end(), stalls_);
  }

  bool all_over() const {
    return std::all_of(asked_.begin(), asked_.end(), [](const auto& a) { return a->spoken.over(); });
  }

  // Counters of a service never fall, whichever worker they come from.
  void check_numbers() {
    const SchedulerNumbers n = service_->facts().numbers;
    if (n.tokens_generated < last_.tokens_generated || n.steps < last_.steps || n.requests < last_.requests)
      violated("a counter became less");
    last_ = n;
  }

  // A ready worker's memory counts once, whichever processes it had before.
  void check_memory() {
    const uint64_t reserved = others_->of_others(), whole = SimulatedMemory::kOwn + SimulatedMemory::kMapped;
    if (!memory_.wrong.empty()) violated(memory_.wrong);
    if (service_->facts().ready ? reserved != whole : reserved != 0 && reserved != whole)
      violated(format("{} bytes are reserved for a worker that takes {}", reserved, whole));
  }

  void check_ends() {
    for (const auto& a : asked_) {
      const Spoken& s = a->spoken;
      if (auto why = answers_.difference(a->form, s); !why.empty())
        violated(format("request {} (form {}): {}", a->id, a->form, why));
      if (!result_.violation.empty()) return;
      if (s.end) {
        const bool whole = s.end->finish != Finish::Cancelled;
        (whole ? result_.whole : result_.cancelled)++;
        if (whole && !answers_.form(a->form).grammar.empty()) result_.constrained++;
        result_.drafted += uint64_t(s.end->drafted), result_.accepted += uint64_t(s.end->accepted);
      }
      if (!s.failed) continue;
      result_.given_up++;
      // It is given up after three workers that were lost with it alone, or, after three failed starts, with
      // the whole service (docs/serving.md, "Workers").
      if (a->losses < 3 && a->failed_starts < 3)
        violated(format("request {} failed after {} lost workers and {} failed starts: {}", a->id, a->losses,
                        a->failed_starts, s.failed->message));
    }
    for (const auto& a : asked_)
      if (a->poison && a->spoken.end && a->spoken.end->finish != Finish::Cancelled &&
          !a->spoken.tokens.empty())
        violated(format("request {} ended, although every worker ends with it", a->id));
  }

  SimulatedModels& models_;
  const Answers& answers_;
  const bool everything_;
  SimulatedMachine machine_;
  std::mt19937 random_;
  FaultRates rates_;
  bool poison_ = false;
  SimulatedTime now_{std::chrono::hours(1)};
  ScheduleResult result_;
  SimulatedMemory memory_;
  const std::shared_ptr<MemoryReservations> reservations_ =
      std::make_shared<MemoryReservations>([](pid_t) { return uint64_t(0); });
  const std::unique_ptr<MemoryReservations::Worker> others_ = reservations_->worker("another", false);
  std::vector<std::unique_ptr<SimulatedWorker>> workers_;  // the last one is the front's
  std::vector<std::unique_ptr<Asked>> asked_;
  int ids_ = 0;
  uint64_t losses_ = 0, stalls_ = 0;
  // Workers in a row that were lost before they had a request. An answer to a ping would make a loss no
  // failed start, too, but is not visible here: the service may count fewer, never more.
  int failed_starts_ = 0;
  bool started_ = false, exchanged_ = false;
  SchedulerNumbers last_;
  std::unique_ptr<RemoteService> service_;
};

}  // namespace gimbal::test
