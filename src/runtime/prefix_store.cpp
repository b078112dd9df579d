#include "runtime/prefix_store.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/clock.h"
#include "base/format.h"
#include "program/cache_layout.h"

namespace gimbal {
namespace {

constexpr unsigned kReaders = 4;  // threads that read and check pages

Error not_for(const std::string& why) {
  return {Code::Unsupported, "the prefix store cannot hold pages of this model: " + why,
          "leave the prefix store out"};
}

// Calls `each` for every state of the plan, in the order of a page's bytes.
template <class Each>
void states_of(const ModelPlan& plan, Each each) {
  for (const Stage& stage : plan.stages) {
    const Program& p = stage.buckets[0].program;
    for (const StateValue& s : p.states) each(*stage.device, s, p.info[s.value]);
  }
}

// The form of all pages.
PageKey root_of(std::string_view identity, const ModelPlan& plan) {
  std::string form = format("gimbal-prefix-1 {} ", identity);
  if (plan.rotation.rotated) form += "rotated ";
  for (const StatePool& pool : plan.pools) form += format("pool {} {} ", int(pool.kind), pool.window);
  states_of(plan, [&](const Device&, const StateValue& s, const ValueInfo& v) {
    form += format("state {} {} {} {}", v.name, s.pool, int(s.layout), info(v.shape.type).name);
    for (int i = 0; i + 1 < v.shape.rank; i++) form += format(" {}", v.shape.dim[i]);
    form += "\n";
  });
  Sha256 sha;
  sha.add(form);
  return sha.digest();
}

Status check_plan(const ModelPlan& plan) {
  if (plan.options.kernels.allow_fast)
    return not_for("fast kernels may run, and their bits differ from device to device");
  if (plan.whole_texts || plan.pools.empty()) return not_for("it keeps no state of a text's beginning");
  std::optional<Error> failed;
  std::vector<std::string> tried;
  states_of(plan, [&](const Device& device, const StateValue& s, const ValueInfo& v) {
    if (failed || s.layout == StateLayout::Dense) return;
    const bool is_key = s.layout == StateLayout::Keys;
    std::string trial =
        format("{} {} {} {} {}", device.id(), is_key, int(v.shape.type), v.shape.dim[0], v.shape.dim[1]);
    if (std::ranges::find(tried, trial) != tried.end()) return;
    tried.push_back(std::move(trial));
    const auto same =
        check_cache_layout(device, v.shape.type, is_key, int(v.shape.dim[0]), int(v.shape.dim[1]));
    if (!same) failed = same.error();
  });
  if (!failed) return Done{};
  return failed->code == Code::Unsupported ? not_for(failed->message) : *failed;
}

}  // namespace

void StoredText::truncate(int position) {
  const int pages = position / kPagePositions;
  keys_.truncate(pages);
  offered_ = std::min(offered_, pages), tokens_ = std::min(tokens_, position);
  state_at_ = std::min(state_at_, pages * kPagePositions);
  if (held_.position > position) held_.position = 0;
}

PrefixStore::PrefixStore(std::shared_ptr<PageStore> pages, PageKey root, std::vector<StatePool> pools,
                         std::vector<float> adapters)
    : pages_(std::move(pages)), root_(root), pools_(std::move(pools)), adapters_(std::move(adapters)) {
  for (const StatePool& p : pools_) has_states_ |= p.kind == StateKind::Recurrent;
}

Result<std::unique_ptr<PrefixStore>> PrefixStore::create(std::shared_ptr<PageStore> pages,
                                                         std::string_view identity, const Model& model) {
  const ModelPlan& plan = model.plan();
  if (auto ok = check_plan(plan); !ok) return ok.error();
  return std::unique_ptr<PrefixStore>(
      new PrefixStore(std::move(pages), root_of(identity, plan), plan.pools, plan.adapters));
}

Status PrefixStore::fits(const Model& model) const { return check_plan(model.plan()); }

StoredText PrefixStore::text(std::span<const float> adapters, std::string_view owner) const {
  return StoredText(PrefixKeys(root_, adapters.empty() ? adapters_ : adapters, owner));
}

// The first page that a sequence of `position` positions needs of a paged pool.
int PrefixStore::first_page(size_t pool, int position) const {
  return window_begin(pools_[pool], position) / kPagePositions;
}

int PrefixStore::find(const StoredText& text, const InputView& wanted) const {
  PrefixKeys keys = text.keys_;
  return find(keys, wanted);
}

int PrefixStore::find(PrefixKeys& keys, const InputView& wanted) const {
  int most = int(wanted.size()) / kPagePositions;
  keys.truncate(0), keys.extend(wanted, most);
  // A page of a pool without a window is part of every longer prefix.
  for (size_t p = 0; p < pools_.size(); p++) {
    if (pools_[p].kind != StateKind::Paged || pools_[p].window) continue;
    int there = 0;
    while (there < most && pages_->has(keys.key(there, p))) there++;
    most = there;
  }
  const auto has = [&](size_t p, int pages) {
    if (pools_[p].kind == StateKind::Recurrent) return pages_->has(keys.key(pages - 1, p));
    if (!pools_[p].window) return true;
    for (int i = pages - 1; i >= first_page(p, pages * kPagePositions); i--)
      if (!pages_->has(keys.key(i, p))) return false;
    return true;
  };
  for (; most > 0; most--) {
    bool all = true;
    for (size_t p = 0; all && p < pools_.size(); p++) all = has(p, most);
    if (all) return most * kPagePositions;
  }
  return 0;
}

Result<int> PrefixStore::restore(Model& model, Sequence& s, const InputView& wanted, StoredText& text) {
  if (int(wanted.size()) < kPagePositions) return 0;
  const double begin = now();
  PrefixKeys keys = text.keys_;
  for (InputView rest = wanted;;) {
    const int tokens = find(keys, rest);
    if (tokens == 0) {
      pages_->count_text(0, now() - begin, 0);
      return 0;
    }
    std::vector<uint32_t> first;
    for (size_t p = 0; p < pools_.size(); p++)
      first.push_back(pools_[p].kind == StateKind::Paged ? uint32_t(first_page(p, tokens)) : 0);
    if (auto ok = model.adopt(s, rest.first(size_t(tokens)), first); !ok) return ok.error();
    std::vector<Page> pages;
    for (size_t p = 0; p < pools_.size(); p++) {
      const bool paged = pools_[p].kind == StateKind::Paged;
      int index = paged ? int(first[p]) : tokens / kPagePositions - 1;
      for (int32_t number : s.pages(p)) pages.push_back({p, index, number, keys.key(index, p)}), index++;
    }
    double seconds = 0;
    const auto missing = fill(model, pages, seconds);
    if (missing && !*missing) {
      s.checkpoint();
      keys.truncate(tokens / kPagePositions);
      text.keys_ = std::move(keys);
      text.offered_ = tokens / kPagePositions, text.state_at_ = tokens, text.tokens_ = tokens;
      text.last_page_ = name_of(pages.back().key);
      pages_->count_text(tokens, now() - begin, seconds);
      return tokens;
    }
    s.truncate(0);
    if (!missing) return missing.error();
    rest = rest.first(size_t(**missing) * kPagePositions);
  }
}

// Reads, checks and copies pages to the device. Returns nothing, or the index of a page that is not there:
// the least one, so that the prefix before it may be whole. Errors: the device's.
Result<std::optional<int>> PrefixStore::fill(Model& model, const std::vector<Page>& pages, double& seconds) {
  std::mutex mutex;
  std::atomic<size_t> next{0};
  std::optional<Error> failed;
  std::optional<int> missing;
  uint64_t microseconds = 0;
  const auto run = [&] {
    std::vector<std::byte> bytes;
    for (size_t i; (i = next.fetch_add(1)) < pages.size();) {
      const Page& page = pages[i];
      bytes.resize(model.page_bytes(page.pool));
      const auto read = pages_->read(page.key, bytes);
      const std::lock_guard lock(mutex);
      if (!read) {
        missing = std::min(missing.value_or(page.index), page.index);
        next = pages.size();
      } else if (auto ok = model.write_page(page.pool, page.number, bytes); !ok) {
        failed = ok.error(), next = pages.size();
      } else {
        microseconds += *read;
      }
    }
  };
  std::vector<std::thread> helpers;
  const size_t threads = std::min<size_t>({kReaders, std::thread::hardware_concurrency(), pages.size() / 2});
  try {
    for (size_t i = 1; i < threads; i++) helpers.emplace_back(run);
  } catch (const std::system_error&) {
    // The system cannot create more threads: the existing ones do the work.
  }
  run();
  for (std::thread& t : helpers) t.join();
  if (failed) return *failed;
  seconds = double(microseconds) * 1e-6;
  return missing;
}

void PrefixStore::put(Model& model, size_t pool, int32_t number, const PageKey& key) {
  if (pages_->has(key)) return;
  std::vector<std::byte> room = pages_->room_for(model.page_bytes(pool));
  if (room.empty()) return;
  // The next step meets the same failure of the device, and reports it.
  if (!model.read_page(pool, number, room)) return pages_->give_back(std::move(room));
  pages_->write(key, std::move(room), microseconds_of_page());
}

uint64_t PrefixStore::microseconds_of_page() const {
  // A prefix has a page of each pool, and its time counts once.
  return uint64_t(seconds_per_row_ * kPagePositions * 1e6 / double(pools_.size()));
}

void PrefixStore::offer(Model& model, const Sequence& s, StoredText& text) {
  const int pages = s.computed() / kPagePositions;
  text.keys_.extend(s.inputs(), pages);
  for (size_t p = 0; p < pools_.size(); p++) {
    if (pools_[p].kind != StateKind::Paged) continue;
    const auto first = int(s.first_page(p));
    for (int i = std::max(text.offered_, first); i < pages; i++)
      put(model, p, s.pages(p)[size_t(i - first)], text.keys_.key(i, p));
  }
  text.offered_ = std::max(text.offered_, pages);
  if (has_states_ && pages > 0 && s.computed() % kPagePositions == 0) offer_states(model, s, text);
}

// A state is as large as many pages, so not each one is written: those of every kCheckpointEvery positions,
// that at the end of the prompt, and the last one.
void PrefixStore::offer_states(Model& model, const Sequence& s, StoredText& text) {
  const int at = s.computed();
  if (at <= std::max(text.state_at_, text.held_.position)) return;
  const bool now = at == text.keep_at_ || at - text.state_at_ >= kCheckpointEvery;
  text.held_.position = now ? 0 : at;
  text.held_.bytes.resize(pools_.size());
  for (size_t p = 0; p < pools_.size(); p++) {
    if (pools_[p].kind != StateKind::Recurrent || s.pages(p).empty()) continue;
    if (now) {
      put(model, p, s.pages(p)[0], text.keys_.key(at / kPagePositions - 1, p));
      continue;
    }
    text.held_.bytes[p].resize(model.page_bytes(p));
    if (!model.read_page(p, s.pages(p)[0], text.held_.bytes[p])) text.held_.position = 0;
  }
  if (now) text.state_at_ = at;
}

void PrefixStore::finish(Model& model, const Sequence& s, StoredText& text) {
  offer(model, s, text);
  if (const int at = std::exchange(text.held_.position, 0)) {
    for (size_t p = 0; p < pools_.size(); p++) {
      if (pools_[p].kind != StateKind::Recurrent) continue;
      const PageKey key = text.keys_.key(at / kPagePositions - 1, p);
      if (pages_->has(key)) continue;
      std::vector<std::byte> room = pages_->room_for(text.held_.bytes[p].size());
      if (room.empty()) continue;
      std::ranges::copy(text.held_.bytes[p], room.begin());
      pages_->write(key, std::move(room), microseconds_of_page());
    }
    text.state_at_ = at;
  }
  std::vector<PageKey> used;
  const int pages = std::min(text.offered_, text.keys_.pages());
  for (size_t p = 0; p < pools_.size(); p++) {
    if (pools_[p].kind == StateKind::Recurrent) {
      if (text.state_at_ > 0 && text.state_at_ / kPagePositions <= pages)
        used.push_back(text.keys_.key(text.state_at_ / kPagePositions - 1, p));
      continue;
    }
    for (int i = first_page(p, pages * kPagePositions); i < pages; i++) used.push_back(text.keys_.key(i, p));
  }
  if (!used.empty()) pages_->used(std::move(used));
}

void PrefixStore::took(int rows, double seconds) {
  if (rows < kPagePositions / 4) return;  // a step of few rows is slower by row than one of a prompt
  const double each = seconds / rows;
  seconds_per_row_ = seconds_per_row_ > 0 ? (7 * seconds_per_row_ + each) / 8 : each;
}

}  // namespace gimbal
