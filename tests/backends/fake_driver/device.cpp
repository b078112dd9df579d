#include "backends/fake_driver/device.h"

#include <cstdlib>
#include <utility>

namespace gimbal::test {
namespace {

constexpr int kInvalidValue = 1, kOutOfMemory = 2, kLaunchFailed = 719, kCaptureUnsupported = 900,
              kCaptureUnmatched = 903, kCaptureUnjoined = 904;

}  // namespace

PretendedDevice& PretendedDevice::the() {
  static PretendedDevice* device = [] {
    auto* d = new PretendedDevice;
    d->reset();
    return d;
  }();
  return *device;
}

void PretendedDevice::reset() {
  // For programs, which no test controls: the number of devices, a function whose first call fails, and the
  // number of launches after which the device is lost.
  const char *several = std::getenv("FAKE_DRIVER_DEVICES"), *fails = std::getenv("FAKE_DRIVER_FAILS"),
             *launches = std::getenv("FAKE_DRIVER_LOST_AFTER");
  devices = several ? std::atoi(several) : 1, unified = 0, major = 9, minor = 0, handles = 0, ran = 0,
  lose_after = launches ? std::atoi(launches) : -1, lost_error = launches ? kLaunchFailed : 0, lost = 0;
  version = FAKE_IS_HIP ? 60241133 : 12040;
  memory = uint64_t(1) << 30, seed = 0, architecture = "gfx90a:sramecc+:xnack-";
  calls.clear(), failing.clear(), pending_.clear();
  if (fails) failing[fails] = {kLaunchFailed, 0};
  streams_.clear(), events_.clear();  // of the session that lost the device
  for (auto& [at, bytes] : blocks_) free(reinterpret_cast<void*>(at));
  blocks_.clear(), allocated_ = 0;
}

int PretendedDevice::enter(const std::string& symbol) {
  calls[symbol]++;
  if (lost) return lost;
  auto it = failing.find(symbol);
  if (it == failing.end() || it->second.after-- > 0) return 0;
  const int error = it->second.error;
  failing.erase(it);
  return error;
}

int PretendedDevice::enqueue(Stream& s, std::function<int()> run) {
  std::vector<Work>& list = s.capture ? s.capture->work : pending_;
  list.push_back({std::move(run), s.last});
  s.last = {list.size() - 1};
  return 0;
}

int PretendedDevice::wait_for_all() {
  for (Stream* s : streams_)
    if (s->origin) return kCaptureUnsupported;
  std::mt19937_64 random(seed);
  std::vector<bool> done(pending_.size());
  for (size_t left = pending_.size(); left && !lost; left--) {
    std::vector<size_t> ready;
    for (size_t i = 0; i < pending_.size(); i++) {
      bool can = !done[i];
      for (size_t a : pending_[i].after) can = can && done[a];
      if (can) ready.push_back(i);
    }
    const size_t i = seed ? ready[random() % ready.size()] : ready.back();
    if (int error = pending_[i].run()) lost = error;  // as on the real thing: nothing works any more
    done[i] = true;
  }
  pending_.clear();
  for (Stream* s : streams_) s->last.clear();
  for (Event* e : events_) e->last.clear();
  return lost;
}

int PretendedDevice::record(Event& e, Stream& s) {
  e.last = s.last, e.capture = s.capture;
  return 0;
}

int PretendedDevice::wait(Stream& s, Event& e) {
  if (e.capture && s.capture != e.capture) {
    if (s.capture) return kCaptureUnsupported;
    s.capture = e.capture, s.before = std::exchange(s.last, {});  // it joins the capture
  } else if (!e.capture && s.capture) {
    return 0;  // recorded before the capture began
  }
  s.last.insert(s.last.end(), e.last.begin(), e.last.end());
  return 0;
}

int PretendedDevice::begin_capture(Stream& s) {
  if (s.capture) return kInvalidValue;
  s.capture = new Graph, s.origin = true, s.before = std::exchange(s.last, {});
  return 0;
}

int PretendedDevice::end_capture(Stream& s, Graph** out) {
  if (!s.origin) return kCaptureUnmatched;
  Graph* g = s.capture;
  std::vector<bool> reached(g->work.size());
  std::vector<size_t> open = s.last;
  while (!open.empty()) {
    const size_t i = open.back();
    open.pop_back();
    if (reached[i]) continue;
    reached[i] = true;
    open.insert(open.end(), g->work[i].after.begin(), g->work[i].after.end());
  }
  for (Stream* each : streams_)
    if (each->capture == g)
      each->capture = nullptr, each->origin = false, each->last = std::exchange(each->before, {});
  for (Event* each : events_)
    if (each->capture == g) each->capture = nullptr, each->last.clear();
  for (bool r : reached)
    if (!r) return delete g, kCaptureUnjoined;
  *out = keep(g);
  return 0;
}

int PretendedDevice::launch(const Graph& g, Stream& s) {
  const size_t first = pending_.size();
  const std::vector<size_t> before = s.last;
  for (const Work& w : g.work) {
    pending_.push_back({w.run, before});
    for (size_t a : w.after) pending_.back().after.push_back(first + a);
  }
  for (size_t i = 0; i < g.work.size(); i++) s.last.push_back(first + i);
  return 0;
}

int PretendedDevice::allocate(uint64_t* out, uint64_t bytes) {
  if (!bytes) return kInvalidValue;
  if (bytes > memory - allocated_) return kOutOfMemory;
  // Filled with NaN: no code may rely on new memory being zero.
  void* p = malloc(bytes);
  if (!p) return kOutOfMemory;
  for (uint64_t i = 0; i < bytes; i++) static_cast<uint8_t*>(p)[i] = 0xff;
  *out = reinterpret_cast<uint64_t>(p);
  blocks_[*out] = bytes, allocated_ += bytes;
  return 0;
}

int PretendedDevice::release(uint64_t at) {
  auto it = blocks_.find(at);
  if (it == blocks_.end()) return kInvalidValue;
  if (int error = wait_for_all()) return error;  // as the drivers do
  allocated_ -= it->second;
  free(reinterpret_cast<void*>(at));
  blocks_.erase(it);
  return 0;
}

bool PretendedDevice::has(uint64_t at, uint64_t bytes) const {
  auto it = blocks_.upper_bound(at);
  if (it == blocks_.begin()) return false;
  --it;
  return at - it->first <= it->second && bytes <= it->second - (at - it->first);
}

}  // namespace gimbal::test
