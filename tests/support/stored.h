// Models with a prefix store, for tests: a text in, and its logits with or without stored pages.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/prefix_store.h"
#include "store/page_folder.h"
#include "support/golden.h"
#include "support/placed.h"

namespace gimbal::test {

// Of tests/data; or a path.
inline std::string small_model(const std::string& name) {
  return name.starts_with('/') ? name : std::string(GIMBAL_SOURCE_DIR "/tests/data/") + name + ".gguf";
}

struct StoringSettings {
  int batch = 32, context = 512;
  DType cache = DType::F16;
  CacheRotation rotation = CacheRotation::Auto;
  std::string device = "cpu", then = "";  // `then`: of the second half of the layers
  bool fast = false, embeddings = false;
  int64_t positions = 0;
  const ModelArch* arch = nullptr;
};

// A process: a loaded model, and the store if `pages`.
struct Loaded {
  std::shared_ptr<PageStore> pages;
  ModelSource file;
  std::unique_ptr<Device> device, then;
  std::unique_ptr<Model> model;
  std::unique_ptr<PrefixStore> store;
  std::string refused;

  Loaded(const std::string& name, std::shared_ptr<PageStore> with, const StoringSettings& s = {},
         const std::string& identity = "a model")
      : pages(std::move(with)), file(open_file(small_model(name))) {
    device = open_one(s.device, 0, s.device == "cpu" ? "threads=1" : "");
    if (!s.then.empty()) then = open_one(s.then);
    const int layers = configure(file)->layers, second = then ? layers / 2 : 0;
    std::vector<Placement> where = {{device.get(), layers - second, ""}};
    if (then) where.push_back({then.get(), second, ""});
    RunOptions run;
    run.context = s.context, run.batch = s.batch, run.sequences = 2, run.cache_type = s.cache;
    run.cache_rotation = s.rotation;
    run.kernels.allow_fast = s.fast, run.embeddings = s.embeddings, run.cache_positions = s.positions;
    run.arch = s.arch;
    auto loaded = load_placed(file, where, run);
    EXPECT_TRUE(loaded) << loaded.error().message;
    model = std::move(*loaded);
    if (!pages) return;
    auto made = PrefixStore::create(pages, identity, *model);
    if (made) store = std::move(*made);
    else refused = made.error().message;
  }
  std::unique_ptr<Session> session() {
    auto s = std::move(*Session::create(*model));
    s->use_store(store.get());
    return s;
  }
};

struct StoredAnswer {
  int stored = 0;
  std::vector<float> logits;  // of the tokens after the prompt
};

// What generate() does: a prompt, then token after token, with the logits of each of these.
inline StoredAnswer answer(Loaded& m, const std::vector<int32_t>& text, int prompt) {
  const auto s = m.session();
  const auto all = std::span<const int32_t>(text);
  StoredAnswer a;
  const auto taken = s->take_stored(all.first(size_t(prompt)));
  EXPECT_TRUE(taken) << taken.error().message;
  a.stored = *taken;
  const auto sink = [&](size_t, std::span<const float> l) {
    a.logits.insert(a.logits.end(), l.begin(), l.end());
  };
  const int held = s->keep_common(all.first(size_t(prompt)));
  EXPECT_GE(held, a.stored);
  for (int at = held; at < prompt;) {
    const int n = s->rows_of_step(prompt - at);
    const auto wanted = at + n == prompt ? Session::Wanted::Last : Session::Wanted::None;
    const auto ok = s->advance(all.subspan(size_t(at), size_t(n)), wanted, sink);
    EXPECT_TRUE(ok) << ok.error().message;
    at += n;
  }
  for (size_t at = size_t(prompt); at < text.size(); at++) {
    const auto ok = s->advance(all.subspan(at, 1), Session::Wanted::Last, sink);
    EXPECT_TRUE(ok) << ok.error().message;
  }
  s->finish_stored();
  if (m.pages) m.pages->wait();
  return a;
}

// A folder of pages, and the store's notes.
class StoredPrefixes : public ::testing::Test {
 protected:
  StoredPrefixes() { std::filesystem::remove_all(path_); }
  ~StoredPrefixes() override { std::filesystem::remove_all(path_); }

  std::shared_ptr<PageStore> open_pages(uint64_t most = uint64_t(1) << 30) {
    auto folder = PageFolder::open({path_, most, false, {}});
    EXPECT_TRUE(folder) << folder.error().message;
    auto pages = PageStore::create(std::move(*folder), [this](const std::string& s) { notes_.push_back(s); });
    return std::shared_ptr<PageStore>(std::move(*pages));
  }
  std::vector<std::string> files() const {
    std::vector<std::string> all;
    for (const auto& e : std::filesystem::recursive_directory_iterator(path_))
      if (e.is_regular_file()) all.push_back(e.path().string());
    return all;
  }

  const std::string path_ = temporary_path("prefixes");
  std::vector<std::string> notes_;
};

}  // namespace gimbal::test
