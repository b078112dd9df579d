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
  const std::string question = "What is in the picture?\n",
                    answer = golden["answer"].get<std::string>().substr(1);
  const Ran without = gimbal(chat_of_shapes({}), {.input = question});
  ASSERT_EQ(without.code, 0) << without.err;
  ASSERT_EQ(without.out.find(answer), std::string::npos) << "the model sees what is not there";
  const Ran two = gimbal(chat_of_shapes({}),
                         {.input = "/image " + golden_picture(golden["image"]) + "\n" + question + question});
  EXPECT_EQ(two.code, 0) << two.err;
  EXPECT_NE(two.out.find(answer), std::string::npos) << two.out << two.err;
  EXPECT_TRUE(two.out.ends_with(without.out)) << two.out << "\nwithout a picture: " << without.out;
}

}  // namespace
}  // namespace gimbal::test
