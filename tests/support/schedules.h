// Random schedules of sequences that share a model: they join, leave, are truncated and forked, and each step
// computes some rows of some of them. What each row gives must be what its text gives alone, bit for bit.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include "runtime/session.h"

namespace gimbal::test {

using Text = std::vector<int32_t>;

struct ScheduleOptions {
  unsigned seed = 1;
  int steps = 200;
  int most_rows = 12;  // of one sequence in one step
};

// What happened, so that a test can tell that it saw what it is about.
struct ScheduleCounts {
  int rows = 0, forks = 0, truncations = 0, left = 0, exhausted = 0, full = 0, mixed_steps = 0, compared = 0;
};

class Schedule {
 public:
  // `many` is asked for several rows of logits and several sequences; `alone` is the same model for one.
  Schedule(Model& many, Model& alone, const ScheduleOptions& o)
      : many_(many), alone_(alone), o_(o), r_(o.seed) {}

  ScheduleCounts run() {
    for (int i = 0; i < o_.steps && !testing::Test::HasFailure(); i++) {
      change();
      step();
    }
    live_.clear();
    compare();
    return n_;
  }

 private:
  struct Asked {
    Text text;
    bool top;
  };

  int any(size_t n) { return int(r_() % unsigned(n)); }
  Text some_tokens(int n) {
    Text t;
    for (int i = 0; i < n; i++) t.push_back(any(size_t(many_.config().vocabulary)));
    return t;
  }
  void join(std::unique_ptr<Sequence> s) { live_.push_back(std::move(s)); }

  // Sequences join, leave, fork, and forget.
  void change() {
    const int what = any(10), sequences = many_.plan().options.sequences;
    if (live_.empty() || what < 3) {
      auto s = many_.new_sequence();
      ASSERT_EQ(bool(s), int(live_.size()) < sequences);
      if (s) join(std::move(*s));
    } else if (what < 5) {
      auto s = live_[size_t(any(live_.size()))]->fork();
      ASSERT_EQ(bool(s), int(live_.size()) < sequences);
      if (s) join(std::move(*s)), n_.forks++;
    } else if (what < 6) {
      leave();
    } else if (what < 8) {
      Sequence& s = *live_[size_t(any(live_.size()))];
      const int length = any(s.tokens().size() + 1);
      Text kept(s.tokens().begin(), s.tokens().begin() + length);
      EXPECT_LE(s.truncate(length), length);
      EXPECT_EQ(Text(s.tokens().begin(), s.tokens().end()), kept);
      n_.truncations++;
    }
  }
  void leave() {
    live_.erase(live_.begin() + any(live_.size()));
    n_.left++;
  }

  // Rows of some sequences, in turns.
  void step() {
    const RunOptions& o = many_.plan().options;
    std::vector<Text> rest(live_.size());
    size_t left = 0;
    for (size_t i = 0; i < live_.size() && left < size_t(o.batch); i++) {
      const Sequence& s = *live_[i];
      const auto missing = s.tokens().subspan(size_t(s.computed()));
      const int room = o.context - int(s.tokens().size());
      n_.full += room == 0;
      if (any(3) == 0) continue;
      int rows = any(4) ? 1 : 1 + any(size_t(o_.most_rows));
      rows = std::min(rows, o.batch - int(left));
      Text t(missing.begin(), missing.begin() + std::min<long>(rows, long(missing.size())));
      const Text more = some_tokens(std::min(rows - int(t.size()), room));
      if (t.size() == missing.size()) t.insert(t.end(), more.begin(), more.end());
      left += t.size(), rest[i] = t;
    }
    if (!left) return;
    Batch batch;
    batch.top = 1 + any(3);
    std::vector<Asked> asked;
    std::vector<size_t> at(live_.size());
    int sequences = 0;
    for (const Text& t : rest) sequences += !t.empty();
    while (left) {
      const auto i = size_t(any(live_.size()));
      if (at[i] == rest[i].size()) continue;
      Sequence& s = *live_[i];
      const int position = s.computed() + int(at[i]);
      Wants wants;
      if (int(asked.size()) < o.logit_rows && any(3) == 0) {
        wants.top = many_.plan().max_top() > 0 && any(2);
        wants.logits = !wants.top || any(2);
        Text text(s.tokens().begin(), s.tokens().begin() + s.computed());
        text.insert(text.end(), rest[i].begin(), rest[i].begin() + long(at[i]) + 1);
        asked.push_back({std::move(text), wants.top});
      }
      batch.rows.push_back({&s, rest[i][at[i]], position, wants});
      at[i]++, left--;
    }
    compute(batch, asked, sequences);
  }

  void compute(const Batch& batch, const std::vector<Asked>& asked, int sequences) {
    std::vector<std::pair<Text, int>> before;
    for (const auto& s : live_)
      before.emplace_back(Text(s->tokens().begin(), s->tokens().end()), s->computed());
    auto out = many_.forward(batch);
    if (!out) {
      ASSERT_EQ(out.error().code, Code::OutOfMemory) << out.error().message;
      EXPECT_NE(out.error().message.find("KV cache is full"), std::string::npos) << out.error().message;
      for (size_t i = 0; i < live_.size(); i++) {
        EXPECT_EQ(Text(live_[i]->tokens().begin(), live_[i]->tokens().end()), before[i].first);
        EXPECT_EQ(live_[i]->computed(), before[i].second);
      }
      n_.exhausted++;
      leave();
      return;
    }
    n_.rows += int(batch.rows.size()), n_.mixed_steps += sequences > 1;
    size_t k = 0;
    for (const Row& row : batch.rows) {
      if (!row.wants.any()) continue;
      Seen& seen = seen_[asked[k].text];
      if (row.wants.logits) seen.logits.emplace_back(out->logits(k).begin(), out->logits(k).end());
      if (row.wants.top) {
        const TopLogits top = out->top(k);
        ASSERT_EQ(top.logits.size(), size_t(batch.top));
        seen.top.emplace_back(Text(), std::vector<float>(top.logits.begin(), top.logits.end()));
        for (float id : top.ids) seen.top.back().first.push_back(int32_t(id));
      }
      k++;
    }
  }

  // Each text alone, the longest first: it says what its beginnings give, too.
  void compare() {
    std::vector<const Text*> texts;
    for (const auto& [text, seen] : seen_) texts.push_back(&text);
    std::stable_sort(texts.begin(), texts.end(), [](auto* a, auto* b) { return a->size() > b->size(); });
    std::map<Text, std::vector<float>> alone;
    for (const Text* text : texts) {
      if (!alone.count(*text)) {
        auto session = Session::create(alone_);
        ASSERT_TRUE(session);
        auto ok = (*session)->advance(*text, Session::Wanted::All, [&](size_t i, std::span<const float> row) {
          Text begin(text->begin(), text->begin() + long(i) + 1);
          if (seen_.count(begin)) alone[begin].assign(row.begin(), row.end());
        });
        ASSERT_TRUE(ok) << ok.error().message;
      }
      const std::vector<float>& want = alone[*text];
      for (const auto& got : seen_[*text].logits) {
        n_.compared++;
        ASSERT_EQ(got.size(), want.size());
        ASSERT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(float)), 0)
            << "seed " << o_.seed << ": other logits than alone behind " << text->size() << " tokens";
      }
      for (const auto& [ids, logits] : seen_[*text].top) {
        n_.compared++;
        Text order(want.size());
        for (size_t i = 0; i < order.size(); i++) order[i] = int32_t(i);
        std::stable_sort(order.begin(), order.end(),
                         [&](int32_t a, int32_t b) { return want[size_t(a)] > want[size_t(b)]; });
        for (size_t i = 0; i < ids.size(); i++) {
          ASSERT_EQ(ids[i], order[i]) << "seed " << o_.seed;
          ASSERT_EQ(std::memcmp(&logits[i], &want[size_t(order[i])], sizeof(float)), 0);
        }
      }
    }
  }

  struct Seen {
    std::vector<std::vector<float>> logits;
    std::vector<std::pair<Text, std::vector<float>>> top;
  };

  Model &many_, &alone_;
  const ScheduleOptions o_;
  std::mt19937 r_;
  std::vector<std::unique_ptr<Sequence>> live_;
  std::map<Text, Seen> seen_;
  ScheduleCounts n_;
};

// Every case happened, and much was compared.
inline void expect_all_of_it(const ScheduleCounts& n) {
  std::printf(
      "%d rows, %d steps of several sequences, %d forks, %d truncations, %d left, %d compared; %d "
      "times the pages ran out, %d times a context was full\n",
      n.rows, n.mixed_steps, n.forks, n.truncations, n.left, n.compared, n.exhausted, n.full);
  EXPECT_GT(n.forks, 0);
  EXPECT_GT(n.truncations, 0);
  EXPECT_GT(n.left, 0);
  EXPECT_GT(n.mixed_steps, 0);
  EXPECT_GT(n.compared, n.rows / 20);
}

}  // namespace gimbal::test
