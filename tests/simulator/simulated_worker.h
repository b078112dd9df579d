// A worker in this process, and the network between it and its front: bytes wait, come in pieces, and are
// lost with the worker; a faulty worker leaves messages out, repeats or exchanges them, or writes what is
// none.
#pragma once
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "simulator/machine.h"
#include "workers/worker_loop.h"
#include "workers/worker_process.h"

namespace gimbal::test {

using SimulatedTime = std::chrono::steady_clock::time_point;

enum class Fault : uint8_t {
  Killed,
  KilledInAStep,
  Hangs,
  LoadFails,
  LeftOut,
  Repeated,
  Exchanged,
  Garbled,
  Poison,
  kCount
};
constexpr const char* kFaultNames[] = {"killed",     "killed in a step", "hangs",
                                       "load fails", "message left out", "repeated",
                                       "exchanged",  "no message",       "poison"};

// The chance of each in 1,000 turns.
struct FaultRates {
  std::array<int, size_t(Fault::kCount)> per_mille = {};
  int slow = 0;  // percent of the network's turns that deliver nothing
};

struct FaultCounts {
  std::array<uint64_t, size_t(Fault::kCount)> counts = {};
  uint64_t& operator[](Fault f) { return counts[size_t(f)]; }
};

// The memory that a worker requests before it loads, and what the front says of other workers'.
struct SimulatedMemory {
  static constexpr uint64_t kOwn = 600, kMapped = 400, kOthers = 500;
  bool asks = false;      // workers request memory
  bool admitted = false;  // the front's user granted it once
  std::string wrong;      // a broken promise of the front; empty: none
};

// One direction of a connection. The socket at its entrance is emptied at once, so that no writer ever waits.
class Wire {
 public:
  void take(int fd) {
    char piece[1 << 16];
    for (ssize_t n; (n = recv(fd, piece, sizeof piece, MSG_DONTWAIT)) > 0;) bytes_.append(piece, size_t(n));
  }
  // Delivers some bytes, not always whole lines.
  void give(int fd, std::mt19937& random) {
    if (bytes_.empty()) return;
    size_t n = bytes_.size();
    if (random() % 3 == 0) n = 1 + random() % n;
    const ssize_t sent = send(fd, bytes_.data(), n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent <= 0) return;
    begins_line_ = bytes_[size_t(sent) - 1] == '\n';
    bytes_.erase(0, size_t(sent));
  }
  void take_text(std::string_view text) { bytes_ += text; }
  // Damages whole lines that wait; false: there are too few.
  bool damage(Fault how, std::mt19937& random) {
    std::vector<std::string> lines;
    size_t end = bytes_.rfind('\n');
    if (end == std::string::npos || !begins_line_) return false;
    for (size_t at = 0; at <= end;) {
      const size_t next = bytes_.find('\n', at);
      lines.push_back(bytes_.substr(at, next + 1 - at));
      at = next + 1;
    }
    const std::string rest = bytes_.substr(end + 1);
    const size_t i = random() % lines.size();
    if (how == Fault::Exchanged && (lines.size() < 2 || i + 1 == lines.size())) return false;
    if (how == Fault::LeftOut) lines.erase(lines.begin() + ptrdiff_t(i));
    if (how == Fault::Repeated) lines.insert(lines.begin() + ptrdiff_t(i), lines[i]);
    if (how == Fault::Exchanged) std::swap(lines[i], lines[i + 1]);
    if (how == Fault::Garbled) lines[i][lines[i].size() / 2] = '\x01';
    bytes_.clear();
    for (const std::string& line : lines) bytes_ += line;
    bytes_ += rest;
    return true;
  }

 private:
  std::string bytes_;
  bool begins_line_ = true;
};

class SimulatedWorker {
 public:
  SimulatedWorker(SimulatedMachine& machine, const Answers& answers, std::mt19937& random,
                  const FaultRates& rates, FaultCounts& faults, SimulatedMemory& memory, int number)
      : machine_(machine),
        answers_(answers),
        random_(random),
        rates_(rates),
        faults_(faults),
        memory_(memory),
        number_(number) {
    int front[2], worker[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, front), 0);
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, worker), 0);
    front_end_ = front[0], at_front_ = front[1], at_worker_ = worker[0], own_ = worker[1];
  }
  SimulatedWorker(const SimulatedWorker&) = delete;
  ~SimulatedWorker() { die(); }

  // The process as the front has it: once.
  WorkerProcess process() {
    return WorkerProcess(std::exchange(front_end_, -1), 1000 + number_, [this] {
      const std::string how = alive() ? "ended by signal 9" : "ended by signal 11";
      die();
      return how;
    });
  }
  bool alive() const { return at_worker_ >= 0; }
  bool poisoned() const { return dies_now_; }  // a request ended it
  uint64_t steps() const { return steps_; }

  // One of: bytes move, the worker reads, it computes, it fails.
  void turn(bool faulty) {
    if (!alive()) return;
    if (faulty) fail_somehow();
    if (!alive() || hangs_) return;
    move_bytes(faulty);
    if (!session_) return load(faulty);
    auto open = session_->turn();
    if (!open || !*open) return die();
    if (process_.service->idle()) return;
    if (faulty && by_chance(Fault::KilledInAStep)) dies_in_ = 1 + int(random_() % 3);
    machine_.before_step(process_, faulty);
    const auto ok = process_.service->step();
    machine_.after_step(process_, faulty);
    EXPECT_TRUE(ok) << ok.error().message;
    steps_++;
    if (dies_now_) {
      faults_[Fault::Poison]++;
      lose_the_step();
      die();
    } else if (dies_in_ > 0 && --dies_in_ == 0) {
      faults_[Fault::KilledInAStep]++;
      lose_bytes();
      die();
    }
  }
  void move_bytes(bool faulty) {
    to_worker_.take(at_front_), to_front_.take(at_worker_);
    if (faulty) damage();
    if (faulty && int(random_() % 100) < rates_.slow) return;
    to_worker_.give(at_worker_, random_);
    to_front_.give(at_front_, random_);
  }

 private:
  bool by_chance(Fault f) const { return int(random_() % 1000) < rates_.per_mille[size_t(f)]; }

  void fail_somehow() {
    if (by_chance(Fault::Killed)) {
      faults_[Fault::Killed]++;
      lose_bytes();
      die();
    } else if (!hangs_ && by_chance(Fault::Hangs)) {
      faults_[Fault::Hangs]++;
      hangs_ = true;
    }
  }
  void damage() {
    for (Fault f : {Fault::LeftOut, Fault::Repeated, Fault::Exchanged, Fault::Garbled})
      if (by_chance(f) && session_ && (random_() % 4 ? to_front_ : to_worker_).damage(f, random_))
        faults_[f]++;
  }
  // What it wrote last arrives in part.
  void lose_bytes() {
    to_front_.take(at_worker_);
    if (random_() % 2) to_front_.give(at_front_, random_);
  }
  // It ended while it computed: of the step, what it wrote before.
  void lose_the_step() {
    char piece[1 << 16];
    std::string written;
    for (ssize_t n; (n = recv(at_worker_, piece, sizeof piece, MSG_DONTWAIT)) > 0;)
      written.append(piece, size_t(n));
    for (size_t at = 0, end; (end = written.find('\n', at)) != std::string::npos; at = end + 1)
      if (const auto line = std::string_view(written).substr(at, end + 1 - at);
          line.starts_with("{\"begun\""))
        to_front_.take_text(line);
    while (random_() % 8) to_front_.give(at_front_, random_);
  }

  // Waits for the first message, then becomes ready, or not.
  void load(bool faulty) {
    if (!read_line(first_line_)) return;
    if (memory_.asks && !has_memory()) return;
    if (random_() % 3) return send_loading(own_, 1, 3);
    if (faulty && int(random_() % 50) < rates_.per_mille[size_t(Fault::LoadFails)]) {
      faults_[Fault::LoadFails]++;
      return die();
    }
    process_ = machine_.process(std::array{1, 7, 16, 40}[random_() % 4]);
    watched_ = std::make_unique<Watched>(*process_.service, *this);
    wire::Hello hello;
    hello.context = Answers::kContext, hello.pid = 1000 + number_;
    session_ = std::make_unique<FrontSession>(
        WorkerLoop{own_, watched_.get(), [this] { return process_.service->numbers(); }, {}}, hello);
    own_ = -1;
  }

  // False: it has not come whole.
  bool read_line(std::string& line) const {
    while (line.empty() || line.back() != '\n') {
      char byte;
      if (recv(own_, &byte, 1, MSG_DONTWAIT) != 1) return false;
      line += byte;
    }
    return true;
  }
  // Requests memory, then waits for it.
  bool has_memory() {
    using M = SimulatedMemory;
    if (!std::exchange(planned_, true)) {
      const auto first =
          wire::decode_to_worker(std::string_view(first_line_).substr(0, first_line_.size() - 1));
      const auto* load = first ? std::get_if<wire::Load>(&*first) : nullptr;
      if (!load || load->promised != M::kOthers)
        memory_.wrong = "a worker started with other workers' memory";
      const std::string line =
          encode(wire::FromWorker(wire::Planned{{{"", M::kOwn + M::kMapped, M::kMapped, M::kMapped, 0}}})) +
          "\n";
      send(own_, line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    if (!read_line(second_line_)) return false;
    if (second_line_ != encode(wire::ToWorker(wire::Go{})) + "\n") memory_.wrong = "no 'go'";
    if (number_ == 0 && !memory_.admitted) memory_.wrong = "the first worker did not wait for its memory";
    return true;
  }

  void die() {
    session_.reset();
    machine_.end(process_);
    for (int* fd : {&front_end_, &at_front_, &at_worker_, &own_})
      if (*fd >= 0) close(std::exchange(*fd, -1));
  }

  // Sees what the service begins: a poisoned request ends the worker that computes it.
  class Watched final : public GenerationService {
   public:
    Watched(SteppedService& of, SimulatedWorker& worker) : of_(of), worker_(worker) {}
    Status submit(uint64_t id, GenerationRequest r, GenerationSink sink) override {
      if (r.client == "poison") {
        const auto begun = sink.begun;
        sink.begun = [begun, w = &worker_] {
          if (begun) begun();
          w->dies_now_ = true;
        };
      }
      worker_.machine_.begins(id, worker_.answers_.form_of(r));
      return of_.submit(id, std::move(r), std::move(sink));
    }
    void cancel(uint64_t id) override { of_.cancel(id); }

   private:
    SteppedService& of_;
    SimulatedWorker& worker_;
  };

  SimulatedMachine& machine_;
  const Answers& answers_;
  std::mt19937& random_;
  const FaultRates& rates_;
  FaultCounts& faults_;
  SimulatedMemory& memory_;
  const int number_;
  int front_end_ = -1, at_front_ = -1, at_worker_ = -1, own_ = -1;
  Wire to_worker_, to_front_;
  std::string first_line_, second_line_;
  bool planned_ = false;
  bool hangs_ = false, dies_now_ = false;
  int dies_in_ = 0;
  uint64_t steps_ = 0;
  SimulatedProcess process_;
  std::unique_ptr<Watched> watched_;
  std::unique_ptr<FrontSession> session_;
};

}  // namespace gimbal::test
