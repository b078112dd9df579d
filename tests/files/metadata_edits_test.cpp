// Edits of metadata: the types of values stay, new ones follow from the text, what does not fit is refused.
#include "files/metadata_edits.h"

#include <gtest/gtest.h>

namespace gimbal {
namespace {

Metadata edited_file() {
  Metadata m("m.gguf");
  m.add("general.name", {MetadataType::String, std::string_view("a")});
  m.add("llama.context_length", {MetadataType::U32, uint64_t(512)});
  m.add("llama.scale", {MetadataType::F32, 0.5});
  m.add("tokenizer.ggml.add_bos_token", {MetadataType::Bool, true});
  m.add("tokenizer.ggml.tokens", {MetadataType::Array, MetadataArray{}});
  m.add("small", {MetadataType::I8, int64_t(-3)});
  return m;
}

TEST(MetadataEdits, KeepTypesAndOrder) {
  const Metadata m = edited_file();
  MetadataEdits edits;
  for (const char* text : {"general.name=b=c", "llama.context_length=4096", "llama.scale=2", "small=-128",
                           "tokenizer.ggml.add_bos_token=false", "new.whole=7", "new.large=5000000000",
                           "new.part=1.5", "new.flag=true", "new.text=x", "new.text=y"})
    ASSERT_TRUE(edits.set(m, text)) << text;
  ASSERT_TRUE(edits.remove(m, "tokenizer.ggml.tokens"));
  const auto all = edits.applied(m);
  ASSERT_EQ(all.size(), 10u);
  EXPECT_EQ(all[0].first, "general.name");
  EXPECT_EQ(std::get<std::string_view>(all[0].second.value), "b=c");
  EXPECT_EQ(std::get<uint64_t>(all[1].second.value), 4096u);
  EXPECT_EQ(all[1].second.type, MetadataType::U32);
  EXPECT_EQ(std::get<double>(all[2].second.value), 2.0);
  EXPECT_EQ(std::get<bool>(all[3].second.value), false);
  EXPECT_EQ(std::get<int64_t>(all[4].second.value), -128);
  EXPECT_EQ(all[5].second.type, MetadataType::U32);
  EXPECT_EQ(all[6].second.type, MetadataType::I64);
  EXPECT_EQ(all[7].second.type, MetadataType::F32);
  EXPECT_EQ(all[8].second.type, MetadataType::Bool);
  EXPECT_EQ(std::get<std::string_view>(all[9].second.value), "y");
}

TEST(MetadataEdits, NamesThatAreNumbersToCAreTexts) {
  const Metadata m = edited_file();
  for (const std::string name : {"Nan", "inf", "Infinity", "-inf", "0x10", "1e5x", ".", ""}) {
    MetadataEdits edits;
    ASSERT_TRUE(edits.set(m, "new.name=" + name)) << name;
    const MetadataEntry entry = edits.applied(m).back().second;
    EXPECT_EQ(entry.type, MetadataType::String) << name;
    EXPECT_EQ(std::get<std::string_view>(entry.value), name);
  }
}

TEST(MetadataEdits, RefuseWhatDoesNotFit) {
  const Metadata m = edited_file();
  MetadataEdits edits;
  for (const char* text :
       {"", "=", "=x", "general.name", "llama.context_length=-1", "llama.context_length=5000000000",
        "llama.scale=wide", "llama.scale=inf", "small=128", "tokenizer.ggml.add_bos_token=1",
        "tokenizer.ggml.tokens=x", "general.name=\xff"}) {
    const auto wrong = edits.set(m, text);
    ASSERT_FALSE(wrong) << text;
    EXPECT_EQ(wrong.error().code, Code::Usage);
  }
  EXPECT_FALSE(edits.remove(m, "general.nothing"));
}

}  // namespace
}  // namespace gimbal
