// A chat that sees: --image with --chat, /image in a conversation, pictures of forgotten questions.
#include "media/golden_pictures.h"
#include "support/cli.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

std::vector<std::string> chat_of_shapes(std::vector<std::string> more) {
  const std::string folder = golden_dir() + "/vision/";
  std::vector<std::string> all = {"run",
                                  folder + "text-shapes.gguf",
                                  "--mmproj",
                                  folder + "mmproj-shapes.gguf",
                                  "--chat",
                                  "--chat-template",
                                  "{{ bos_token }}{{ messages[-1].content }}",
                                  "--greedy",
                                  "-n",
                                  "48",
                                  "--kv-type",
                                  "f32"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(CliChatPictures, SeesThePictureOfAQuestion) {
  const auto golden = nlohmann::ordered_json(read_json(golden_dir() + "/vision/shapes.json"))["answers"];
  for (size_t i = 0; i < 2; i++) {
    const std::string picture = golden_picture(golden[i]["image"]),
                      answer = golden[i]["answer"].get<std::string>().substr(1);
    const Ran one = gimbal(chat_of_shapes({"--image", picture, "-p", "What is in the picture?"}));
    EXPECT_EQ(one.code, 0) << one.err;
    EXPECT_NE(one.out.find(answer), std::string::npos) << one.out << one.err;
    const Ran marked =
        gimbal(chat_of_shapes({"--image", picture, "-p", "<__media__>What is in the picture?"}));
    EXPECT_NE(marked.out.find(answer), std::string::npos) << marked.out << marked.err;
  }
}

TEST(CliChatPictures, APictureGoesWithOneQuestion) {
  const auto golden = nlohmann::ordered_json(read_json(golden_dir() + "/vision/shapes.json"))["answers"][0];
  const std::string question = "What is in the picture?", saved = temporary_path("conversation.json");
  std::vector<std::string> command = chat_of_shapes({});
  for (std::string& word : command)
    if (word.starts_with("{{"))
      word = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}";  // with earlier questions
  const std::string picture = golden_picture(golden["image"]);
  const Ran r = gimbal(command, {.input = "/image " + picture + "\n" + question + "\n" + question +
                                          "\n/save " + saved + "\n"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find(golden["answer"].get<std::string>().substr(1)), std::string::npos) << r.out << r.err;
  const auto messages = nlohmann::ordered_json(read_json(saved))["messages"];
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[0]["content"].get<std::string>(), "<__media_0__>" + question);
  EXPECT_EQ(messages[2]["content"].get<std::string>(), question);
}

// The words of a mark, typed where there is no picture of that number, are words.
TEST(CliChatPictures, AMarkWithoutItsPictureIsText) {
  for (const char* mark : {"<__media_0__>", "<__media_7__>"}) {
    const Ran none = gimbal(chat_of_shapes({"-p", std::string("What is ") + mark + "?"}));
    EXPECT_EQ(none.code, 0) << mark << none.err;
    EXPECT_FALSE(none.out.empty()) << mark;
  }
  const auto golden = nlohmann::ordered_json(read_json(golden_dir() + "/vision/shapes.json"))["answers"][0];
  const Ran beside = gimbal(chat_of_shapes(
      {"--image", golden_picture(golden["image"]), "-p", "<__media__>What is in <__media_1__>?"}));
  EXPECT_EQ(beside.code, 0) << beside.err;
  EXPECT_FALSE(beside.out.empty());
}

}  // namespace
}  // namespace gimbal::test
