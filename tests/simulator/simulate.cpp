// simulate --seed N            one schedule, again
// simulate --seconds S [--first N]   schedules from seed N on (default: by the clock), until the time is over
//
// Prints what was simulated; the first violation ends it with exit code 1 and the line that shows it again.
#include <cstdio>
#include <cstring>

#include "simulator/simulation.h"

int main(int argc, char** argv) {
  using namespace gimbal::test;
  uint64_t seed = uint64_t(std::chrono::system_clock::now().time_since_epoch().count());
  double seconds = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--seed") || !std::strcmp(argv[i], "--first")) seed = std::stoull(argv[i + 1]);
    else if (!std::strcmp(argv[i], "--seconds")) seconds = std::stod(argv[i + 1]);
    else return std::fprintf(stderr, "simulate: unknown option %s\n", argv[i]), 2;
  }
  SimulatedModels models;
  const Answers answers(models.plain);
  const auto begin = std::chrono::steady_clock::now();
  const auto spent = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const uint64_t first = seed;
  ScheduleResult all;
  uint64_t schedules = 0;
  do {
    const ScheduleResult r = Simulation(seed, models, answers).run();
    schedules++;
    if (!r.violation.empty())
      return std::printf("violation: %s\nagain: simulate --seed %llu\n", r.violation.c_str(),
                         static_cast<unsigned long long>(seed)),
             1;
    all += r;
    seed++;
  } while (spent() < seconds);
  std::printf(
      "seeds %llu to %llu: %llu schedules in %.0f s, %d requests (%d whole, %d cancelled, %d given up), "
      "%llu tokens compared, %d workers, %llu steps\n",
      static_cast<unsigned long long>(first), static_cast<unsigned long long>(seed - 1),
      static_cast<unsigned long long>(schedules), spent(), all.requests, all.whole, all.cancelled,
      all.given_up, static_cast<unsigned long long>(all.compared), all.workers,
      static_cast<unsigned long long>(all.steps));
  const auto print = [](const char* what, const auto& counts, const auto& names) {
    std::printf("%s:", what);
    for (size_t i = 0; i < counts.size(); i++)
      std::printf("%s %llu %s", i ? "," : "", static_cast<unsigned long long>(counts[i]), names[i]);
    std::printf("\n");
  };
  print("faults", all.faults.counts, kFaultNames);
  print("troubles", all.troubles.counts, kTroubleNames);
  print("pages",
        std::array{all.stored.pages_written, all.stored.pages_read, all.stored.pages_damaged,
                   all.stored.pages_dropped, all.stored.pages_evicted},
        std::array{"written", "read", "found damaged", "dropped", "evicted"});
  print("answers", std::array{uint64_t(all.constrained), all.drafted, all.accepted},
        std::array{"with a grammar", "tokens drafted", "accepted"});
  return testing::Test::HasFailure();
}
