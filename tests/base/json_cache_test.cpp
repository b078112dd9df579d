// What a cache file keeps and for how long, and that nothing in it is trusted.
#include "base/json_cache.h"

#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>

#include "base/file.h"
#include "support/golden.h"

namespace gimbal {
namespace {

std::string fresh(const char* name) {
  const std::string folder = test::temporary_path(name);
  std::filesystem::remove_all(folder);
  return folder + "/made/on/demand/cache.json";
}

TEST(JsonCache, KeepsEntriesForTheNextProgram) {
  const std::string file = fresh("keeps");
  const Json key{"metal", "\t#1\n"}, other{"metal", "2"};
  {
    JsonCache c(file, "things", 8);
    EXPECT_TRUE(c.find(key).is_null());
    EXPECT_TRUE(c.erase(key));
    EXPECT_FALSE(std::filesystem::exists(file)) << "nothing was kept, nothing is written";
    ASSERT_TRUE(c.put(key, {{"text", "a\tb\n\"\\"}, {"list", {"x", "y"}}}));
    ASSERT_TRUE(c.put(other, {{"text", "other"}}));
    ASSERT_TRUE(c.put(key, {{"text", "a\tb\n\"\\"}, {"list", {"x", "z"}}}));
  }
  JsonCache c(file, "things", 8);
  EXPECT_EQ(c.path(), file);
  EXPECT_EQ(c.damage(), "");
  EXPECT_EQ(text_in(c.find(key), "text"), "a\tb\n\"\\");
  EXPECT_EQ(c.find(key)["list"][1], "z") << "the later one";
  EXPECT_EQ(text_in(c.find(other), "text"), "other");
  EXPECT_EQ(text_in(c.find(other), "list"), "");
  EXPECT_EQ(text_in(c.find({"metal"}), "text"), "");
  ASSERT_TRUE(c.erase(key));
  EXPECT_TRUE(JsonCache(file, "things", 8).find(key).is_null());
  EXPECT_FALSE(JsonCache(file, "things", 8).find(other).is_null());
  EXPECT_TRUE(JsonCache(file, "limits", 8).find(other).is_null()) << "another list";
}

TEST(JsonCache, OfTooManyTheOldestGoes) {
  JsonCache c(fresh("bounded"), "things", 3);
  for (int i = 0; i < 5; i++) ASSERT_TRUE(c.put(i, {{"n", i}}));
  for (int i = 0; i < 5; i++) EXPECT_EQ(c.find(i).is_null(), i < 2) << i;
  ASSERT_TRUE(c.put(2, {{"n", 2}}));
  ASSERT_TRUE(c.put(5, {{"n", 5}}));
  EXPECT_FALSE(c.find(2).is_null()) << "it was written again";
  EXPECT_TRUE(c.find(3).is_null());
}

TEST(JsonCache, EntriesGrowOld) {
  const std::string file = fresh("dated");
  const long now = std::time(nullptr);
  ASSERT_TRUE(JsonCache(file, "things", 8, 1000).put("k", {{"n", 1}}));
  const Json good = Json::parse(*read_file(file));
  EXPECT_LE(std::abs(good["things"][0]["when"].get<long>() - now), 60);
  auto counts = [&](const Json& when) {
    Json changed = good;
    changed["things"][0]["when"] = when;
    EXPECT_TRUE(write_file(file, changed.dump()));
    return !JsonCache(file, "things", 8, 1000).find("k").is_null();
  };
  EXPECT_TRUE(counts(now - 900));
  EXPECT_FALSE(counts(now - 1200));
  EXPECT_FALSE(counts(now + 600)) << "from the future";
  for (const Json& bad : {Json(), Json("yesterday"), Json(1e300), Json(-5), Json(Json::array())})
    EXPECT_FALSE(counts(bad)) << bad;
  EXPECT_FALSE(JsonCache(file, "things", 8).find("k").is_null()) << "where time does not count";
}

TEST(JsonCache, IsReadAsHostileInput) {
  const std::string file = fresh("hostile");
  ASSERT_TRUE(JsonCache(file, "things", 8).put("k", {{"n", 1}}));
  const std::string good = *read_file(file);
  auto holds = [&](const std::string& text) {
    EXPECT_TRUE(write_file(file, text));
    JsonCache c(file, "things", 8);
    const bool found = !c.find("k").is_null();
    if (found) { EXPECT_EQ(c.damage(), ""); }
    return found;
  };
  EXPECT_TRUE(holds(good));
  for (size_t n = 0; n + 1 < good.size(); n++) EXPECT_FALSE(holds(good.substr(0, n))) << n;
  for (const char* bad : {"x", "[]", "{}", "7", "{\"things\":7}", "{\"things\":{\"k\":1}}",
                          "{\"things\":[1,null,[2]]}", "{\"things\":[{\"key\":[\"k\"]}]}"})
    EXPECT_FALSE(holds(bad)) << bad;
  EXPECT_FALSE(holds(std::string(100'000, '[')));
  EXPECT_FALSE(holds(good + std::string(5 << 20, ' '))) << "more than anybody wrote";
  EXPECT_NE(JsonCache(file, "things", 8).damage(), "");
  JsonCache repaired(file, "things", 8);
  ASSERT_TRUE(repaired.put("k", {{"n", 2}}));
  EXPECT_EQ(JsonCache(file, "things", 8).damage(), "");
}

TEST(JsonCache, WithoutAFileThisProcessRemembers) {
  JsonCache memory("", "things", 8), nowhere("/proc/nothing/here", "things", 8);
  EXPECT_TRUE(memory.put("k", {{"n", 1}}));
  EXPECT_FALSE(memory.find("k").is_null());
  EXPECT_FALSE(nowhere.put("k", {{"n", 1}})) << "and says so";
  EXPECT_FALSE(nowhere.find("k").is_null());
  // Bytes that no JSON text can hold, as drivers may say them.
  const std::string file = fresh("bytes");
  ASSERT_TRUE(JsonCache(file, "things", 8).put("k", {{"text", "\xff\xfe"}}));
  EXPECT_FALSE(JsonCache(file, "things", 8).find("k").is_null());
}

}  // namespace
}  // namespace gimbal
