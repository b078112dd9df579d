// --split and --gpu-layers from outside. The CPU alone can be given parts, too: what they do is the same.
#include <gtest/gtest.h>

#include "support/cli.h"

namespace gimbal::test {
namespace {

const Args kStory = {"run", "--greedy", "-n", "24", "--print-tokens", "-p", "Once upon a time"};
TEST(Split, PartsOfAModelTellTheStoryOfTheWhole) {
  const Ran whole = gimbal(kStory);
  EXPECT_EQ(whole.code, 0) << whole.err;
  for (const char* split : {"cpu=2,cpu=rest", "cpu:0=0,cpu:0=5", "cpu=1,cpu=1,cpu=3"}) {
    const Ran parts = gimbal(with(kStory, {"--split", split}));
    EXPECT_EQ(parts.code, 0) << parts.err;
    EXPECT_EQ(parts.out, whole.out) << split;
  }
  const Ran stats = gimbal(with(kStory, {"--stats", "--split", "cpu=2,cpu=rest"}));
  EXPECT_SAYS(stats.err, "cpu:0: the embedding and layers 0 to 1 (requested by --split)");
  EXPECT_SAYS(stats.err, "cpu:0: layers 2 to 4 and the output head");
}

TEST(Split, PlanAndExplainSayWhichLayersAreWhere) {
  const Json j = json_of(gimbal({"plan", "--json", "--split", "cpu=2,cpu=rest"}));
  ASSERT_EQ(j["placement"].size(), 2u);
  EXPECT_EQ(j["placement"][0]["layers"], (Json{0, 1}));
  EXPECT_EQ(j["placement"][0]["embedding"], true);
  EXPECT_EQ(j["placement"][0]["head"], false);
  EXPECT_EQ(j["placement"][1]["layers"], (Json{2, 4}));
  EXPECT_EQ(j["placement"][1]["head"], true);
  EXPECT_EQ(j["devices"].size(), 1u) << "one device, whose parts are added up";
  // A row of 64 floats for each token of a batch, in the memory of both.
  EXPECT_EQ(j["devices"][0]["hand_over"].get<int>(), 2 * 64 * 4 * j["batch"].get<int>());
  const std::string text = gimbal({"plan", "--split", "cpu=2,cpu=rest"}).out;
  EXPECT_SAYS(text, "the embedding and layers 0 to 1 on cpu:0 (requested by --split)");
  EXPECT_SAYS(text, "of which transfers");
  const std::string why = gimbal({"explain", "--split", "cpu=2,cpu=rest"}).out;
  EXPECT_SAYS(why, "layers 2 to 4 and the output head, after 256 B per token through the host");
  size_t ops = 0, whole = 0;
  const Json halves = json_of(gimbal({"explain", "--json", "--split", "cpu=2,cpu=rest"})),
             undivided = json_of(gimbal({"explain", "--json"}));
  for (const Json& b : halves["buckets"]) ops += b["ops"].size();
  for (const Json& b : undivided["buckets"]) whole += b["ops"].size();
  EXPECT_EQ(ops, whole) << "every op once";
}

TEST(Split, RefusesWhatMakesNoSense) {
  for (const char* split : {"", "cpu", "=3", "cpu=", "cpu=x", "cpu=-1", "cpu:x=1", "cpu=1,",
                            "cpu=rest,cpu=rest", "cpu=1", "cpu=6", "cpu=5,cpu=1", "nothing=5"}) {
    const Ran r = gimbal({"plan", "--split", split});
    EXPECT_EQ(r.code, 2) << "'" << split << "': " << r.err << r.out;
  }
  EXPECT_EQ(gimbal({"plan", "--split", "cpu:7=5"}).code, 4) << "there is no such device";
  for (const Args& other : {Args{"--backend", "cpu"}, {"--device", "0"}, {"--gpu-layers", "2"}})
    EXPECT_EQ(gimbal(with({"plan", "--split", "cpu=5"}, other)).code, 2) << other[0];
}

TEST(GpuLayers, AreTheCpusWithoutAGpu) {
  const Ran none = gimbal({"plan", "--backend", "cpu", "--gpu-layers", "0"});
  EXPECT_EQ(none.code, 0);
  EXPECT_EQ(none.err, "") << "nothing was asked for that could not be had";
  const Ran some = gimbal({"plan", "--backend", "cpu", "--gpu-layers", "3"});
  EXPECT_EQ(some.code, 0);
  EXPECT_SAYS(some.err, "--gpu-layers 3: ");
  EXPECT_SAYS(some.err, "all layers run on the CPU");
  EXPECT_EQ(gimbal({"plan", "--backend", "cpu", "--gpu-layers", "3", "--strict"}).code, 4);
}

TEST(OverrideTensor, IsNeverLeftOutInSilence) {
  for (const Args& none : {Args{"--cpu-moe"}, {"-cmoe"}, {"--n-cpu-moe", "2"}, {"-ncmoe", "2"}}) {
    const Ran r = gimbal(with({"plan"}, none));
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_SAYS(r.err, "-cpu-moe");
    EXPECT_SAYS(r.err, "has no effect: the model has no experts there");
    EXPECT_EQ(gimbal(with({"plan", "--strict"}, none)).code, 2);
  }
  EXPECT_EQ(gimbal({"plan", "--backend", "cpu", "--n-cpu-moe", "0"}).err, "");
  const Ran near = gimbal({"plan", "-ot", "ffn_upp=cpu"});
  EXPECT_EQ(near.code, 2);
  EXPECT_SAYS(near.err, "--override-tensor 'ffn_upp=cpu': no tensor of ");
  EXPECT_SAYS(near.err, "near names: blk.0.ffn_up.weight, blk.1.ffn_up.weight");
  const Ran absent = gimbal({"plan", "-ot", "ffn_up=cuda:9"});
  EXPECT_EQ(absent.code, 4);
  EXPECT_SAYS(absent.err, "devices of this machine: ");  // software devices, too
  EXPECT_SAYS(absent.err, "cpu:0");
  for (const char* wrong : {"", "ffn_up", "=cpu", "ffn_up=", "ffn_up=cpu,", "(ffn_up=cpu"})
    EXPECT_EQ(gimbal({"plan", "-ot", wrong}).code, 2) << wrong;
}

// On the CPU alone everything is where it was: the tokens and the plan.
TEST(OverrideTensor, MayNameWhatIsThereAnyway) {
  const Ran whole = gimbal(kStory),
            named = gimbal(with(kStory, {"-ot", "blk\\.[0-2]\\.(attn|ffn)=CPU,norm=cpu:0"}));
  EXPECT_EQ(named.code, 0) << named.err;
  EXPECT_EQ(named.out, whole.out);
  EXPECT_EQ(named.err, whole.err);
  const Ran plan = gimbal({"plan", "--json", "--override-tensor", "ffn=cpu"});
  EXPECT_EQ(json_of(plan)["placement"].size(), 1u);
  EXPECT_EQ(json_of(plan)["devices"][0]["weights"],
            json_of(gimbal({"plan", "--json"}))["devices"][0]["weights"]);
}

}  // namespace
}  // namespace gimbal::test
