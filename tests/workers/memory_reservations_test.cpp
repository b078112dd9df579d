// Memory that workers planned and did not touch yet is not free for others.
#include "workers/memory_reservations.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>

namespace gimbal {
namespace {

wire::Planned need(uint64_t total, uint64_t mapped = 0) {
  return {{{"cuda:0", 1000, 900, 0, 5000}, {"", total, mapped, mapped, 5000}}};
}

struct Machine {
  std::map<pid_t, uint64_t> resident;
  std::shared_ptr<MemoryReservations> all =
      std::make_shared<MemoryReservations>([this](pid_t pid) { return resident.at(pid); });
};

TEST(MemoryReservations, IsWhatWasPlannedAndIsNotThereYet) {
  Machine m;
  const auto a = m.all->worker("a", false), b = m.all->worker("b", false);
  m.resident[1] = 70;
  a->is_process(1);
  EXPECT_EQ(b->of_others(), 0u);
  a->plans(need(500));
  EXPECT_EQ(b->of_others(), 500u);
  EXPECT_EQ(a->of_others(), 0u) << "a reservation does not count against its owner";
  m.resident[1] = 370;
  EXPECT_EQ(b->of_others(), 200u) << "300 are there, and not free any more";
  a->plans(need(40));  // of a second model
  EXPECT_EQ(b->of_others(), 240u);
  m.resident[1] = 2000;
  EXPECT_EQ(b->of_others(), 0u) << "more than was planned is no room for others";
}

TEST(MemoryReservations, IsKeptForTheProcessThatReplacesAnotherOne) {
  Machine m;
  const auto a = m.all->worker("a", false), b = m.all->worker("b", false);
  m.resident[1] = 70, m.resident[2] = 80;
  a->is_process(1);
  a->plans(need(500));
  m.resident[1] = 370;
  a->is_process(0);
  EXPECT_EQ(b->of_others(), 500u) << "all of it is free again, and will be wanted";
  a->is_process(2);
  EXPECT_EQ(b->of_others(), 500u);
  EXPECT_EQ(a->of_others(), 0u) << "not refused because of the one before it";
  a->plans(need(300));
  EXPECT_EQ(b->of_others(), 300u) << "in place of the plan before";
  a->gives_up();
  EXPECT_EQ(b->of_others(), 0u);
}

TEST(MemoryReservations, SeveralModelsMayBeOneProcess) {
  Machine m;
  m.resident[1] = 70;
  const auto itself = m.all->worker("", false), c = m.all->worker("c", false);
  auto a = m.all->worker("a", false);
  itself->is_process(1), a->is_process(1), c->is_process(1);
  itself->plans({});
  a->plans(need(500));
  m.resident[1] = 170;
  {
    const auto b = m.all->worker("b", false);
    b->is_process(1);
    EXPECT_EQ(b->of_others(), 400u) << "100 are there";
    b->plans(need(300));
    m.resident[1] = 370;
    EXPECT_EQ(c->of_others(), 500u) << "of 800, 300 are there, whosever they are";
    a = nullptr;
    m.resident[1] = 270;
    EXPECT_EQ(c->of_others(), 100u) << "of 300, 200 are there, also where the first model is gone";
  }
  m.resident[1] = 70;
  EXPECT_EQ(c->of_others(), 0u);
}

TEST(MemoryReservations, EndsWithTheWorker) {
  Machine m;
  const auto b = m.all->worker("b", false);
  {
    const auto a = m.all->worker("a", false);
    m.resident[1] = 0;
    a->is_process(1);
    a->plans(need(500));
    EXPECT_EQ(b->of_others(), 500u);
  }
  EXPECT_EQ(b->of_others(), 0u);
}

TEST(MemoryReservations, MappedWeightsCountOnceForAllWorkersOfAModel) {
  Machine m;
  const auto one = m.all->worker("a", true), two = m.all->worker("a", true),
             embedder = m.all->worker("a", false), other = m.all->worker("b", false);
  m.resident[1] = m.resident[2] = 0;
  one->is_process(1), two->is_process(2);
  one->plans(need(500, 400));
  two->plans(need(500, 400));
  EXPECT_EQ(other->of_others(), 400u + 2 * 100u);
  m.resident[1] = 100;
  EXPECT_EQ(other->of_others(), 400u + 100u)
      << "a page of a file can be dropped, so the system calls it free";
  EXPECT_EQ(embedder->of_others(), 100u) << "which has these weights in its own plan";
  EXPECT_EQ(one->of_others(), 0u) << "they divide what is free among them";
  EXPECT_EQ(two->of_others(), 0u);
}

TEST(MemoryReservations, NumbersThatCannotBeAreNoWayIn) {
  Machine m;
  const auto a = m.all->worker("a", false), b = m.all->worker("b", false);
  m.resident[1] = 1;
  a->is_process(1);
  wire::Planned lies = need(UINT64_MAX);
  for (int i = 0; i < 3; i++) a->plans(lies);
  lies.needs[1].shared = UINT64_MAX, lies.needs[1].weights = 7, lies.needs[1].total = 5;
  a->plans(lies);
  EXPECT_GE(b->of_others(), uint64_t(1) << 50);
  EXPECT_LE(b->of_others(), uint64_t(INT64_MAX)) << "the protocol sends it as a number of 63 bits";
}

TEST(MemoryReservations, WhatAProcessTouchedIsSeen) {
  constexpr size_t kBytes = size_t(64) << 20;
  const uint64_t before = anonymous_bytes(getpid());
  EXPECT_GT(before, 0u);
  void* p = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(p, MAP_FAILED);
  EXPECT_LT(anonymous_bytes(getpid()), before + kBytes / 4);
  std::fill_n(static_cast<char*>(p), kBytes, 'x');
  EXPECT_GE(anonymous_bytes(getpid()), before + kBytes / 4 * 3);
  munmap(p, kBytes);
  EXPECT_EQ(anonymous_bytes(1 << 30), 0u) << "there is no such process";
}

}  // namespace
}  // namespace gimbal
