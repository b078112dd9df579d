// What a simulated worker runs on: models with and without drafts, a device whose driver can be lost, and a
// disk with a prefix store that is full, slow, or lies about what it wrote.
#pragma once
#include <sys/resource.h>
#include <sys/socket.h>

#include <condition_variable>
#include <csignal>
#include <filesystem>

#include "base/file.h"
#include "runtime/scripted_drafter.h"
#include "simulator/answers.h"
#include "store/page_client.h"
#include "store/page_server.h"
#include "support/placed.h"

namespace gimbal::test {

enum class Trouble : uint8_t {
  DriverLost,
  DiskFull,
  DiskSlow,
  ByteChanged,
  CutShort,
  PagesExchanged,
  PageGone,
  SocketsLost,
  kCount
};
constexpr const char* kTroubleNames[] = {"driver lost", "disk full",       "disk slow", "byte changed",
                                         "cut short",   "pages exchanged", "page gone", "page sockets lost"};

struct TroubleCounts {
  std::array<uint64_t, size_t(Trouble::kCount)> counts = {};
  uint64_t& operator[](Trouble t) { return counts[size_t(t)]; }
};

// The CPU under a driver that is lost at the next step, once, after lose().
class LosableCpu {
 public:
  static const gimbal_backend& table() {
    static const gimbal_backend made = [] {
      gimbal_backend t = cpu();
      t.submit = submit;
      return t;
    }();
    return made;
  }
  static void lose() { lost_ = true; }
  // Whether lose() had no effect yet. It has none from now on.
  static bool keep() { return std::exchange(lost_, false); }

 private:
  static const gimbal_backend& cpu() {
    for (LinkedBackends entry = linked_backends(); *entry; ++entry)
      if (std::string((*entry)()->name) == "cpu") return *(*entry)();
    std::abort();
  }
  static gimbal_code submit(gimbal_device* d, gimbal_executable* e, gimbal_buffer* const* slots, size_t n,
                            gimbal_step step) {
    if (std::exchange(lost_, false)) return GIMBAL_DEVICE_LOST;
    return cpu().submit(d, e, slots, n, step);
  }
  static inline bool lost_ = false;
};

// The models of all schedules, loaded once.
struct SimulatedModels {
  static RunOptions with_drafts() {
    RunOptions o = serving_run(Answers::kContext, 8, 8);
    o.drafts = 3;
    return o;
  }
  static std::shared_ptr<Model> on(const Device& device, const ModelSource& file) {
    auto made = load_placed(file, {{&device, configure(file)->layers, ""}}, with_drafts());
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }

  OnCpu plain{kStories, serving_run(Answers::kContext, 4, 8)};
  const ModelSource file = open_file(golden_dir() + "/" + kStories + ".gguf");
  const std::unique_ptr<Device> losable = std::move(*Device::open(LosableCpu::table(), 0, "threads=1")),
                                other = open_one("cpu", 0, "threads=1");
  const std::shared_ptr<Model> first = on(*losable, file), second = on(*other, file);

  size_t free_pages() {
    size_t all = 0;
    for (Model* m : {&plain.model(), first.get(), second.get()})
      for (size_t p = 0; p < m->sequences().pools().size(); p++) all += size_t(m->sequences().free_pages(p));
    return all;
  }
};

// What a worker's process has of its own. The service goes first. A worker without a folder of its own has
// servers of pages in the front.
struct SimulatedProcess {
  std::shared_ptr<PageStore> of_front;
  std::vector<std::unique_ptr<PageServer>> servers;
  std::shared_ptr<PageStore> pages;
  std::unique_ptr<PrefixStore> store;
  std::unique_ptr<SteppedService> service;
};

class SimulatedMachine {
 public:
  // `everything`: false for the schedules of front and workers alone, on the plain model.
  SimulatedMachine(uint64_t seed, bool everything, SimulatedModels& models, const Answers& answers)
      : models_(models), answers_(answers), random_(uint32_t(seed * 0x9e3779b97f4a7c15 >> 32)) {
    for (int i = 0; i < 20; i++) random_();
    everything_ = everything && random_() % 4;
    if (!everything_) return;
    drafts_ = random_() % 2, stores_ = random_() % 2;
    for (int& rate : per_mille_)
      if (random_() % 3 == 0) rate = std::array{10, 40, 160}[random_() % 3];
    // Room for thousands of pages, for three, one or none: pages of this model take 61 kB, and 64 on disk.
    most_bytes_ = std::array{1'000'000, 240, 100, 60}[random_() % 4] * uint64_t(1000);
    slow_ = random_() % 4 == 0;
    // A damaged page is reported on the socket of the written ones, which a slow disk would hold for ever.
    sockets_ = !slow_ && random_() % 2;
    if (stores_) std::filesystem::remove_all(folder());
  }
  SimulatedMachine(const SimulatedMachine&) = delete;
  ~SimulatedMachine() { LosableCpu::keep(); }

  // A new process: it finds the disk as earlier ones left it.
  SimulatedProcess process(int prompt_rows) {
    SimulatedProcess made;
    SchedulerOptions o{prompt_rows, 100};
    if (drafts_) {
      o.drafts.length = Drafting::Length::Most;
      o.drafts.drafter = [this](const ScheduledRequest& g) -> std::unique_ptr<Drafter> {
        const auto text = of_.find(g.id);
        if (text == of_.end() || g.id % 5 == 0) return nullptr;
        return std::make_unique<ScriptedDrafter>(answers_.text(text->second), 0.7, 512, g.id);
      };
    }
    if (stores_) {
      auto folder =
          PageFolder::open({SimulatedMachine::folder(), most_bytes_, false, [this] { return tick(); }});
      EXPECT_TRUE(folder) << folder.error().message;
      made.pages = pages_in(std::move(*folder));
      if (sockets_) {
        made.of_front = std::move(made.pages);
        int ends[2][2];
        for (auto& [front, worker] : ends) {
          int both[2];
          EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both), 0);
          front = both[0], worker = both[1];
          made.servers.push_back(std::make_unique<PageServer>(front, made.of_front));
        }
        made.pages = pages_in(std::make_unique<PageClient>(ends[0][1], ends[1][1]));
      }
      auto store = PrefixStore::create(made.pages, "simulated", *models_.first);
      EXPECT_TRUE(store) << store.error().message;
      made.store = std::move(*store), o.prefixes = made.store.get();
    }
    const OnDeviceLost to_another = [this](const Error&, const MoveTo& move) -> Status {
      auto moved = move(models_.second);
      return moved ? Status(Done{}) : Status(moved.error());
    };
    made.service =
        std::make_unique<SteppedService>(everything_ ? models_.first : models_.plain.shared(),
                                         everything_ ? to_another : models_.plain.on_device_lost(), o);
    return made;
  }
  void end(SimulatedProcess& process) {
    if (process.service) process.service->end_all();
    process.service = nullptr;
    if (process.pages) {
      process.pages->wait();
      const PageStoreNumbers n = process.pages->numbers();
      stored.pages_read += n.pages_read, stored.pages_written += n.pages_written;
      stored.pages_damaged += n.pages_damaged, stored.pages_dropped += n.pages_dropped;
      stored.pages_evicted += (process.of_front ? process.of_front->numbers() : n).pages_evicted;
    }
    process.store = nullptr, process.pages = nullptr;
    process = {};
  }
  void begins(uint64_t id, size_t form) { of_[id] = form; }

  void before_step(SimulatedProcess& process, bool faulty) {
    if (!everything_) return;
    if (process.pages) process.pages->wait();
    if (process.pages && slow_) hold_the_disk(true), troubles[Trouble::DiskSlow]++;
    if (!faulty) return;
    if ((loses_ = by_chance(Trouble::DriverLost))) LosableCpu::lose();
    if (!process.pages) return;
    if (!process.servers.empty() && by_chance(Trouble::SocketsLost))
      troubles[Trouble::SocketsLost]++, process.servers.clear();
    // After this many bytes no file grows, as on a full disk: in the head of a page, or behind it.
    if (by_chance(Trouble::DiskFull)) limit_files(random_() % 2 ? random_() % 64 : 64 + random_() % 40'000);
  }
  void after_step(SimulatedProcess& process, bool faulty) {
    if (!everything_) return;
    if (!LosableCpu::keep() && std::exchange(loses_, false)) troubles[Trouble::DriverLost]++;
    if (!process.pages) return;
    hold_the_disk(false);
    process.pages->wait();
    limit_files(RLIM_INFINITY);
    for (Trouble t : {Trouble::ByteChanged, Trouble::CutShort, Trouble::PagesExchanged, Trouble::PageGone})
      if (faulty && by_chance(t)) damage(t);
  }

  TroubleCounts troubles;
  PageStoreNumbers stored;  // of all its processes that have ended

 private:
  static const std::string& folder() {
    static const std::string path = std::filesystem::is_directory("/dev/shm")
                                        ? "/dev/shm/gimbal-simulated-" + std::to_string(getpid())
                                        : temporary_path("simulated");
    static const struct Removed {
      ~Removed() { std::filesystem::remove_all(path); }
    } at_exit;
    return path;
  }
  std::shared_ptr<PageStore> pages_in(std::unique_ptr<PagePlace> place) const {
    auto pages = PageStore::create(std::move(place), {}, slow_ ? uint64_t(70'000) : PageStore::kMostWaiting);
    EXPECT_TRUE(pages) << pages.error().message;
    return std::move(*pages);
  }
  // A slow disk finishes no page during a step: the writing thread waits here, behind each page.
  void hold_the_disk(bool held) {
    {
      const std::lock_guard lock(mutex_);
      held_ = held;
    }
    released_.notify_all();
  }
  int64_t tick() {
    std::unique_lock lock(mutex_);
    released_.wait(lock, [&] { return !held_; });
    return ++ticks_;
  }
  bool by_chance(Trouble t) {
    const bool now = int(random_() % 1000) < per_mille_[size_t(t)];
    if (now && t == Trouble::DiskFull) troubles[t]++;
    return now;
  }
  static void limit_files(rlim_t bytes) {
    static const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
    (void)ignored;
    static const rlimit before = [] {
      rlimit l{};
      getrlimit(RLIMIT_FSIZE, &l);
      return l;
    }();
    rlimit now = before;
    now.rlim_cur = std::min(bytes, before.rlim_cur);
    setrlimit(RLIMIT_FSIZE, &now);
  }
  void damage(Trouble t) {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder()))
      if (entry.is_regular_file()) files.push_back(entry.path());
    if (files.size() < 2) return;
    std::sort(files.begin(), files.end());
    const std::string &one = files[random_() % files.size()], &other = files[random_() % files.size()];
    if (one == other) return;
    troubles[t]++;
    if (t == Trouble::PageGone) std::filesystem::remove(one);
    if (t == Trouble::CutShort) std::filesystem::resize_file(one, std::filesystem::file_size(one) / 2);
    if (t == Trouble::PagesExchanged) {
      std::filesystem::rename(one, one + ".aside");
      std::filesystem::rename(other, one);
      std::filesystem::rename(one + ".aside", other);
    }
    if (t == Trouble::ByteChanged) {
      std::string bytes = *read_file(one);
      if (!bytes.empty()) bytes[random_() % bytes.size()] ^= char(1 << random_() % 8);
      EXPECT_TRUE(write_file(one, bytes));
    }
  }

  SimulatedModels& models_;
  const Answers& answers_;
  std::mt19937 random_;
  bool everything_ = false, drafts_ = false, stores_ = false;
  std::array<int, size_t(Trouble::kCount)> per_mille_ = {};
  uint64_t most_bytes_ = 0;
  bool slow_ = false, sockets_ = false, loses_ = false;
  std::mutex mutex_;  // guards the next ones
  std::condition_variable released_;
  bool held_ = false;
  int64_t ticks_ = 0;              // of the store's clock
  std::map<uint64_t, size_t> of_;  // forms of requests
};

}  // namespace gimbal::test
