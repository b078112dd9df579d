// Streams with a text and calls of tools: each part is a block of its own, which ends before the next begins.
#include "server/api_server.h"
#include "support/remade.h"

namespace gimbal::test {
namespace {

class CallBlocks : public ApiTest {
 protected:
  void SetUp() override {
    const auto file = parse_gguf(embedded_model(), "the built-in model");
    ASSERT_TRUE(file) << file.error().message;
    bytes_ = remade(*file, template_with("<tool_call>{\"name\": ..., \"arguments\": ...}</tool_call>"),
                    {{"<tool_call>"}, {"</tool_call>"}});
    models.model = OneModel::shared(
        new ScriptedModel({reinterpret_cast<const std::byte*>(bytes_.data()), bytes_.size()}));
    service().says(
        "Sure.<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"Paris\"}}</tool_call>"
        "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}</tool_call>");
    ApiTest::SetUp();
  }

  std::string bytes_;
};

TEST_F(CallBlocks, OfAnthropicsStream) {
  const Json schema = {{"type", "object"}, {"properties", {{"city", {{"type", "string"}}}}}};
  const HttpAnswer a = ask("/v1/messages", {{"model", "stories"},
                                            {"max_tokens", 200},
                                            {"stream", true},
                                            {"messages", {{{"role", "user"}, {"content", "Hi"}}}},
                                            {"tools", {{{"name", "weather"}, {"input_schema", schema}}}}});
  std::vector<std::string> blocks;
  for (const std::string& event : events(a)) {
    const Json e = Json::parse(event);
    if (e["type"] == "content_block_start") blocks.push_back(e["content_block"]["type"]);
    if (e["type"] == "content_block_stop") blocks.push_back("end " + e["index"].dump());
  }
  EXPECT_EQ(blocks, (std::vector<std::string>{"text", "end 0", "tool_use", "end 1", "tool_use", "end 2"}))
      << a.body;
}

}  // namespace
}  // namespace gimbal::test
