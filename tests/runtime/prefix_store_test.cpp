// A text continues with the same bits from stored pages as from computed ones: over restarts, batches,
// devices and all kinds of state. What does not fit is never found.
#include "runtime/prefix_store.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "base/file.h"
#include "support/declared.h"
#include "support/stored.h"

extern "C" const gimbal_backend* gimbal_backend_cpu();

namespace gimbal::test {
namespace {

namespace fs = std::filesystem;

TEST_F(StoredPrefixes, ContinueWithTheSameBitsAfterARestart) {
  // Attention over all; windows of which the cache keeps the last positions; latent attention; recurrent
  // states with attention, of three kinds; recurrent states alone.
  for (const char* name : {"arch/llama-gqa", "arch/gemma3", "arch/gpt-oss", "more/arch/deepseek2",
                           "more/arch/qwen35", "more/arch/jamba", "more/arch/lfm2moe", "more/arch/mamba2"}) {
    SCOPED_TRACE(name);
    const auto text = any_tokens(330, 500);
    const std::vector<int32_t> first(text.begin(), text.begin() + 230);
    Loaded without(name, nullptr);
    const StoredAnswer want = answer(without, text, 300);
    {
      Loaded m(name, open_pages());
      ASSERT_EQ(m.refused, "");
      const StoredAnswer a = answer(m, first, 200);
      EXPECT_EQ(a.stored, 0);
      EXPECT_EQ(m.pages->numbers().misses, 1u);
    }
    // The conversation has grown to 300 tokens; 3 pages of the first turn are whole.
    Loaded m(name, open_pages());
    const StoredAnswer a = answer(m, text, 300);
    EXPECT_EQ(a.stored, 192);
    EXPECT_EQ(bits_differ(a.logits, want.logits), "");
    const PageStoreNumbers n = m.pages->numbers();
    EXPECT_EQ(n.hits, 1u);
    EXPECT_EQ(n.tokens, 192u);
    EXPECT_EQ(n.pages_damaged + n.pages_dropped, 0u);
    // The same again: nothing is computed but the last page and the tokens behind it.
    Loaded again(name, open_pages());
    const StoredAnswer b = answer(again, text, 300);
    EXPECT_EQ(b.stored, 256);
    EXPECT_EQ(bits_differ(b.logits, want.logits), "");
    EXPECT_EQ(again.pages->numbers().pages_written, 0u) << "all pages were there";
    EXPECT_TRUE(notes_.empty());
    fs::remove_all(path_);
  }
}

// A window of several pages, beside attention over all: a text needs the last pages of one, and all of the
// other. Those before the window leave the memory while the text is computed.
const ModelArch kWideWindow{"windowed", [](Recorder& m) {
                              record_blocks(
                                  m, {[](Recorder& m, Value h) { return two_attentions(m, h, true, 150); }});
                            }};

TEST_F(StoredPrefixes, KeepTheWindowOfAText) {
  const std::string path = temporary_path("windowed.gguf");
  ASSERT_TRUE(write_file(path, model_file({})));
  const StoringSettings s{.batch = 24, .context = 1024, .arch = &kWideWindow};
  const auto text = any_tokens(700, kVocabulary);
  Loaded without(path, nullptr, s);
  const StoredAnswer want = answer(without, text, 660);
  {
    Loaded m(path, open_pages(), s);
    ASSERT_EQ(m.model->plan().pools.size(), 2u);
    EXPECT_EQ(answer(m, text, 600).stored, 0);
  }
  EXPECT_EQ(files().size(), 2u * 10);
  Loaded m(path, open_pages(), s);
  const StoredAnswer a = answer(m, text, 660);
  EXPECT_EQ(a.stored, 640);
  EXPECT_EQ(bits_differ(a.logits, want.logits), "");
  EXPECT_EQ(m.pages->numbers().pages_read, 10u + 3) << "the window needs 3 pages";
  // A shorter text needs pages that left the window long before the end of the first.
  Loaded shorter(path, open_pages(), s);
  const std::vector<int32_t> beginning(text.begin(), text.begin() + 330);
  const StoredAnswer want_beginning = answer(without, beginning, 300), b = answer(shorter, beginning, 300);
  EXPECT_EQ(b.stored, 256);
  EXPECT_EQ(bits_differ(b.logits, want_beginning.logits), "");
  EXPECT_EQ(shorter.pages->numbers().pages_read, 4u + 3);
}

TEST_F(StoredPrefixes, ServeOtherBatches) {
  const auto text = any_tokens(230, 500);
  for (const char* name : {"arch/llama-gqa", "more/arch/qwen35"}) {
    SCOPED_TRACE(name);
    Loaded without(name, nullptr);
    const StoredAnswer want = answer(without, text, 200);
    for (const int batch : {5, 64, 256}) {
      Loaded a(name, open_pages(), {.batch = batch});
      EXPECT_EQ(answer(a, text, 200).stored, 0);
      for (const int other : {1, 48, 256}) {
        Loaded b(name, open_pages(), {.batch = other});
        const StoredAnswer got = answer(b, text, 200);
        EXPECT_EQ(got.stored, 192);
        EXPECT_EQ(bits_differ(got.logits, want.logits), "");
      }
      fs::remove_all(path_);
    }
  }
}

TEST_F(StoredPrefixes, EveryCacheFormatHasPagesOfItsOwnRotatedOrNot) {
  const auto text = any_tokens(150, 500);
  size_t files_before = 0;
  for (const char* name : {"f16", "f32", "bf16", "q8_0", "q8_0, rotated", "q5_0", "q5_0, rotated", "q4_1",
                           "q4_0", "q4_0, rotated", "iq4_nl"}) {
    SCOPED_TRACE(name);
    RunOptions run;
    ASSERT_TRUE(read_cache_name(name, run.cache_type, run.cache_rotation));
    StoringSettings s;
    s.cache = run.cache_type, s.rotation = run.cache_rotation;
    Loaded without("arch/llama31-ropefreqs", nullptr, s);
    const StoredAnswer want = answer(without, text, 140);
    Loaded a("arch/llama31-ropefreqs", open_pages(), s);
    ASSERT_EQ(a.refused, "");
    EXPECT_EQ(answer(a, text, 140).stored, 0);
    EXPECT_GT(files().size(), files_before);
    files_before = files().size();
    Loaded b("arch/llama31-ropefreqs", open_pages(), s);
    const StoredAnswer got = answer(b, text, 140);
    EXPECT_EQ(got.stored, 128);
    EXPECT_EQ(bits_differ(got.logits, want.logits), "");
  }
}

// The identity, the tokens, the adapters' scales and the owner are part of each key.
TEST_F(StoredPrefixes, OfAnotherTextOrModelAreNotFound) {
  const auto text = any_tokens(200, 500);
  Loaded m("arch/llama-gqa", open_pages());
  answer(m, text, 190);
  const auto found = [&](Loaded& by, const std::vector<int32_t>& t, const std::vector<float>& scales = {},
                         const std::string& owner = "") {
    return by.store->find(by.store->text(scales, owner), t);
  };
  EXPECT_EQ(found(m, text), 192);
  EXPECT_EQ(found(m, text, {0.5f}), 0);
  EXPECT_EQ(found(m, text, {}, "another key"), 0);
  for (const size_t changed : {0u, 63u, 64u, 150u}) {
    auto other = text;
    other[changed] = (other[changed] + 1) % 500;
    EXPECT_EQ(found(m, other), int(changed / 64 * 64)) << changed;
  }
  Loaded renamed("arch/llama-gqa", open_pages(), {}, "another model");
  EXPECT_EQ(found(renamed, text), 0);
  Loaded longer("arch/llama-gqa", open_pages(), {.context = 300});
  EXPECT_EQ(found(longer, text), 192) << "the context decides no bit";
}

TEST_F(StoredPrefixes, PicturesAreFoundByTheirContents) {
  StoringSettings s;
  s.embeddings = true;
  Loaded m("arch/llama-gqa", open_pages(), s);
  ASSERT_EQ(m.refused, "");
  const int width = m.model->config().width;
  const auto with_picture = [&](float value) {
    std::vector<float> values(size_t(width) * 30);
    for (size_t i = 0; i < values.size(); i++) values[i] = value * float(int(i % 17) - 8);
    std::vector<int32_t> tokens = any_tokens(200, 500);
    std::fill_n(tokens.begin() + 70, 30, kNoToken);
    return Inputs(std::move(tokens), {{70, *Embeddings::create(std::move(values), width), 0, 30}});
  };
  const Inputs a = with_picture(0.01f), b = with_picture(0.02f);
  const auto last = [&](bool stored, const Inputs& inputs, int expected) {
    const auto session = m.session();
    if (!stored) session->use_store(nullptr);
    const auto taken = session->take_stored(inputs);
    EXPECT_TRUE(taken);
    EXPECT_EQ(*taken, expected);
    std::vector<float> logits;
    const auto ok =
        session->advance(InputView(inputs).subview(size_t(*taken)), Session::Wanted::Last,
                         [&](size_t, std::span<const float> l) { logits.assign(l.begin(), l.end()); });
    EXPECT_TRUE(ok) << ok.error().message;
    session->finish_stored();
    m.pages->wait();
    return logits;
  };
  const auto want_a = last(false, a, 0), want_b = last(false, b, 0);
  EXPECT_NE(bits_differ(want_a, want_b), "");
  last(true, a, 0);
  EXPECT_EQ(bits_differ(last(true, a, 192), want_a), "");
  EXPECT_EQ(bits_differ(last(true, b, 64), want_b), "") << "only the page before the picture is shared";
  EXPECT_EQ(bits_differ(last(true, b, 192), want_b), "");
}

TEST_F(StoredPrefixes, DamagedPagesAreComputedAgainAndReported) {
  for (const char* name : {"arch/llama-gqa", "more/arch/qwen35"}) {
    SCOPED_TRACE(name);
    const auto text = any_tokens(330, 500);
    Loaded m(name, open_pages());
    answer(m, text, 320);
    Loaded without(name, nullptr);
    const StoredAnswer want = answer(without, text, 320);
    int damaged = 0;
    for (const std::string& path : files()) {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(std::streamoff(fs::file_size(path) / 2));
      file.put('!');
      file.close();
      Loaded next(name, open_pages());
      const StoredAnswer a = answer(next, text, 320);
      EXPECT_EQ(bits_differ(a.logits, want.logits), "");
      const PageStoreNumbers n = next.pages->numbers();
      EXPECT_EQ(notes_.size(), n.pages_damaged);
      EXPECT_EQ(a.stored == 256, n.pages_damaged == 0) << a.stored;
      damaged += int(n.pages_damaged);
      if (n.pages_damaged == 0) fs::remove(path);  // a state before the last one, which nothing read
      notes_.clear();
    }
    EXPECT_GE(damaged, 4) << "the pages before 256";
    fs::remove_all(path_);
  }
}

TEST_F(StoredPrefixes, ATextThatTurnsBackKeepsItsKeys) {
  Loaded m("arch/llama-gqa", open_pages()), without("arch/llama-gqa", nullptr);
  const auto one = any_tokens(200, 500);
  auto other = one;
  for (size_t i = 100; i < other.size(); i++) other[i] = (other[i] * 3 + 1) % 500;
  const StoredAnswer want = answer(without, other, 199);
  const auto s = m.session();
  ASSERT_TRUE(s->take_stored(one));
  ASSERT_TRUE(s->advance(one, Session::Wanted::None, {}));
  s->finish_stored();
  EXPECT_EQ(s->keep_common(other), 100);
  ASSERT_TRUE(s->advance(std::span(other).subspan(100), Session::Wanted::None, {}));
  s->finish_stored();
  m.pages->wait();
  Loaded next("arch/llama-gqa", open_pages());
  const StoredAnswer a = answer(next, other, 199);
  EXPECT_EQ(a.stored, 192);
  EXPECT_EQ(bits_differ(a.logits, want.logits), "");
  EXPECT_EQ(answer(next, one, 199).stored, 192) << "both branches are there";
}

// A recurrent state is that of the tokens before it: when these are withdrawn, so is a state that waits to be
// stored.
TEST_F(StoredPrefixes, AStateOfWithdrawnTokensIsNotStored) {
  Loaded m("more/arch/jamba", open_pages()), without("more/arch/jamba", nullptr);
  const auto one = any_tokens(200, 500);
  auto other = std::vector<int32_t>(one.begin(), one.begin() + 100);
  for (size_t i = 40; i < other.size(); i++) other[i] = (other[i] * 3 + 1) % 500;
  const StoredAnswer want = answer(without, other, 99);
  const auto s = m.session();
  ASSERT_TRUE(s->take_stored(one));
  ASSERT_TRUE(s->advance(std::span(one).first(64), Session::Wanted::None, {}));
  ASSERT_TRUE(s->advance(std::span(one).subspan(64, 16), Session::Wanted::None, {}));
  const auto kept = size_t(s->keep_common(other));
  ASSERT_LE(kept, 40u);
  const auto rest = std::span<const int32_t>(other);
  ASSERT_TRUE(s->advance(rest.subspan(kept, 64 - kept), Session::Wanted::None, {}));
  ASSERT_TRUE(s->advance(rest.subspan(64), Session::Wanted::None, {}));
  s->finish_stored();
  m.pages->wait();
  Loaded next("more/arch/jamba", open_pages());
  const StoredAnswer a = answer(next, other, 99);
  EXPECT_EQ(a.stored, 64);
  EXPECT_EQ(bits_differ(a.logits, want.logits), "");
}

// After the loss of a device, a session continues on another one, and stores there.
TEST_F(StoredPrefixes, FollowASessionToAnotherDevice) {
  for (const char* name : {"arch/llama-gqa", "more/arch/jamba"}) {
    SCOPED_TRACE(name);
    const auto text = any_tokens(230, 500);
    const auto all = std::span<const int32_t>(text);
    Loaded from(name, open_pages()), to(name, nullptr);
    const StoredAnswer want = answer(to, text, 200);
    const auto s = from.session();
    ASSERT_TRUE(s->take_stored(all.first(200)));
    ASSERT_TRUE(s->advance(all.first(100), Session::Wanted::None, {}));
    ASSERT_TRUE(s->move_to(*to.model));
    ASSERT_TRUE(s->advance(all.subspan(100, 92), Session::Wanted::None, {}));
    ASSERT_TRUE(s->advance(all.subspan(192, 8), Session::Wanted::None, {}));
    s->finish_stored();
    from.pages->wait();
    Loaded next(name, open_pages());
    const StoredAnswer a = answer(next, text, 200);
    EXPECT_EQ(a.stored, 192);
    EXPECT_EQ(bits_differ(a.logits, want.logits), "");
    EXPECT_TRUE(notes_.empty());
  }
}

TEST_F(StoredPrefixes, SmallBoundsCostTimeOnly) {
  const auto text = any_tokens(400, 500);
  Loaded without("arch/llama-gqa", nullptr);
  const StoredAnswer want = answer(without, text, 390);
  for (const uint64_t most : {uint64_t(4096), uint64_t(100000), uint64_t(300000)}) {
    Loaded a("arch/llama-gqa", open_pages(most));
    EXPECT_EQ(bits_differ(answer(a, text, 390).logits, want.logits), "") << most;
    EXPECT_EQ(bits_differ(answer(a, text, 390).logits, want.logits), "") << most;
    EXPECT_LE(a.pages->numbers().bytes, most);
  }
}

// Pages go in the order of their use (page_folder_test): an answer from stored pages makes these the latest.
TEST_F(StoredPrefixes, AnAnswerUsesItsPagesAgain) {
  const auto text = any_tokens(230, 500);
  std::vector<int32_t> other = text;
  other[0] = text[0] == 1 ? 2 : 1;
  for (const char* name : {"arch/llama-gqa", "more/arch/qwen35"}) {
    SCOPED_TRACE(name);
    Loaded m(name, open_pages());
    answer(m, text, 200);
    const auto of_text = files();
    answer(m, other, 200);
    const auto all = files();
    ASSERT_GT(all.size(), of_text.size());
    EXPECT_EQ(answer(m, text, 200).stored, 192);
    EXPECT_EQ(files().size(), all.size()) << "nothing new is written";
    const std::set<std::string> used(of_text.begin(), of_text.end());
    auto latest_of_other = fs::file_time_type::min();
    for (const std::string& file : all)
      if (!used.contains(file)) latest_of_other = std::max(latest_of_other, fs::last_write_time(file));
    size_t later = 0;
    for (const std::string& file : of_text) later += fs::last_write_time(file) > latest_of_other;
    EXPECT_GE(later, 3u) << "of three pages of keys and values";
    fs::remove_all(path_);
  }
}

TEST_F(StoredPrefixes, AFullCacheComputesInstead) {
  const auto text = any_tokens(200, 500);
  StoringSettings s;
  s.positions = 256, s.context = 256;
  Loaded m("arch/llama-gqa", open_pages(), s);
  answer(m, text, 190);
  const auto held = m.session();
  ASSERT_TRUE(held->advance(any_tokens(100, 500), Session::Wanted::None, {}));
  const auto full = m.session();
  const auto taken = full->take_stored(std::span(text).first(190));
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_TRUE(*taken == 0 || *taken == 128);
}

// The CPU, with the double of its bytes for a cache.
const gimbal_backend& other_layout() {
  static const gimbal_backend cpu = *gimbal_backend_cpu();
  static const gimbal_backend table = [] {
    gimbal_backend b = cpu;
    b.cache_bytes = [](gimbal_device* d, uint8_t type, uint8_t is_key, int64_t head_dim, int64_t heads,
                       int64_t page, int64_t pages) {
      return 2 * cpu.cache_bytes(d, type, is_key, head_dim, heads, page, pages);
    };
    return b;
  }();
  return table;
}

TEST_F(StoredPrefixes, AnotherLayoutOfTheCacheIsRefused) {
  const auto device = *Device::open(other_layout(), 0, "threads=1");
  const ModelSource file = open_file(small_model("arch/llama-gqa"));
  const auto model = load_on(*device, file, {});
  ASSERT_TRUE(model);
  const auto store = PrefixStore::create(open_pages(), "a model", *model);
  ASSERT_FALSE(store);
  EXPECT_NE(store.error().message.find("in pages of another size than other devices"), std::string::npos)
      << store.error().message;
}

TEST_F(StoredPrefixes, WhatCannotBeStoredIsSaid) {
  StoringSettings fast;
  fast.fast = true;
  Loaded a("arch/llama-gqa", open_pages(), fast);
  EXPECT_NE(a.refused.find("fast kernels may run"), std::string::npos) << a.refused;
}

}  // namespace
}  // namespace gimbal::test
