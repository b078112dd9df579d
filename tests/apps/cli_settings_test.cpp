// Options that are not typed: the environment and the user's own file, for every command, in one order.
#include <gtest/gtest.h>

#include <filesystem>

#include "support/cli.h"

namespace gimbal::test {
namespace {

namespace fs = std::filesystem;

// A folder for XDG_CONFIG_HOME in which gimbal/config has this text.
std::string own_settings(const std::string& name, const std::string& text) {
  const std::string folder = temporary_path(name);
  fs::create_directories(folder + "/gimbal");
  EXPECT_TRUE(write_file(folder + "/gimbal/config", text));
  return folder;
}

int context_of(Args more, std::map<std::string, std::string> environment) {
  Args plan{"plan", "default", "--json"};
  plan.insert(plan.end(), more.begin(), more.end());
  const Ran r = gimbal(plan, {.environment = std::move(environment)});
  EXPECT_EQ(r.code, 0) << r.err;
  return r.code ? -1 : json_of(r)["context"].get<int>();
}

TEST(Settings, TypedBeforeEnvironmentBeforeFileBeforeDefault) {
  const std::string config = own_settings("own", "# mine\nctx = 100\ntemp = 0.5\nport = 9999\n");
  const int usual = context_of({}, {});
  EXPECT_NE(usual, 100);
  EXPECT_EQ(context_of({}, {{"XDG_CONFIG_HOME", config}}), 100) << "temp and port are of other commands";
  EXPECT_EQ(context_of({}, {{"XDG_CONFIG_HOME", config}, {"GIMBAL_CTX", "200"}}), 200);
  EXPECT_EQ(context_of({"--ctx", "300"}, {{"XDG_CONFIG_HOME", config}, {"GIMBAL_CTX", "200"}}), 300);
  EXPECT_EQ(context_of({"-c", "300"}, {{"GIMBAL_CTX", "200"}}), 300);
  EXPECT_EQ(context_of(
                {}, {{"XDG_CONFIG_HOME", ""}, {"HOME", own_settings("house/.config", "ctx = 50\n") + "/.."}}),
            50);
  EXPECT_EQ(context_of({}, {{"GIMBAL_CTX", ""}}), usual) << "empty is not set";
}

TEST(Settings, EveryCommandReadsThem) {
  const std::map<std::string, std::string> cpu{{"GIMBAL_BACKEND", "metal"}, {"GIMBAL_STRICT", "true"}};
  for (const Args& args : {Args{"run", "-p", "Once", "-n", "1"},
                           {"plan"},
                           {"bench", "-p", "8", "-n", "1"},
                           {"explain"},
                           {"embed", "-p", "Once", "--pooling", "mean"}}) {
    const Ran r = gimbal(args, {.environment = cpu});
    EXPECT_EQ(r.code, 4) << args[0] << r.err;
  }
  const Ran typed = gimbal({"run", "-p", "Once", "-n", "1", "--backend", "cpu"}, {.environment = cpu});
  EXPECT_EQ(typed.code, 0) << typed.err;
  const Ran device = gimbal({"run", "-p", "Once", "-n", "1", "--cpu-device", "0"}, {.environment = cpu});
  EXPECT_EQ(device.code, 0) << device.err;
  const Ran temperature = gimbal({"run", "-p", "Once", "-n", "1"}, {.environment = {{"GIMBAL_TOP_P", "2"}}});
  EXPECT_SAYS(temperature.err, "--top-p");
}

TEST(Settings, MistakesAreNamed) {
  const auto error = [](const Args& args, std::map<std::string, std::string> environment) {
    const Ran r = gimbal(args, {.environment = std::move(environment)});
    EXPECT_EQ(r.code, 2) << r.err;
    return r.err;
  };
  EXPECT_SAYS(error({"run", "-p", "x"}, {{"GIMBAL_CTXX", "1"}}), "did you mean GIMBAL_CTX?");
  EXPECT_SAYS(error({"run", "-p", "x"}, {{"GIMBAL_PROT", "1"}}), "did you mean GIMBAL_PORT?");
  EXPECT_SAYS(error({"run", "-p", "x"}, {{"GIMBAL_CTXX", "http://x"}}), "did you mean GIMBAL_CTX?");
  EXPECT_SAYS(error({"run", "-p", "x"}, {{"GIMBAL_CTX", "many"}}),
              "the environment: GIMBAL_CTX must be a whole number from 1 to 16777216, not 'many'");
  const std::string wrong = own_settings("wrong", "ctx = 100\nctxx = 3\n");
  EXPECT_SAYS(error({"plan"}, {{"XDG_CONFIG_HOME", wrong}}),
              wrong + "/gimbal/config, line 2: gimbal has no option 'ctxx'");
  // The file is for all commands, so the word may be one of another.
  const std::string others = own_settings("others", "prot = 1\n");
  EXPECT_SAYS(error({"plan"}, {{"XDG_CONFIG_HOME", others}}), "did you mean port?");
  // A word of one command is no mistake of another, and nothing is deleted by a name that was not typed.
  EXPECT_EQ(gimbal({"run", "-p", "x", "-n", "1"}, {.environment = {{"GIMBAL_PORT", "1"}}}).code, 0);
  EXPECT_EQ(gimbal({"rm"}, {.environment = {{"GIMBAL_MODEL", "default"}}}).code, 2);
}

}  // namespace
}  // namespace gimbal::test
