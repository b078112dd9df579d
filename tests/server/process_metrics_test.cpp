// What /metrics says of the process that serves, beside what the system says of this one.
#include <chrono>

#include "server/api_server.h"

namespace gimbal::test {
namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

const double kLoaded = seconds_since_1970();  // when the program began to run

using ProcessMetrics = ApiTest;

TEST_F(ProcessMetrics, TheStartIsThatOfTheProcess) {
  const std::string all = ask(get("/metrics")).body;
  const std::string name = "\nprocess_start_time_seconds ";
  const size_t at = all.find(name);
  ASSERT_NE(at, std::string::npos) << all;
  const double said = std::strtod(all.c_str() + at + name.size(), nullptr);
  EXPECT_LT(said, kLoaded + 2) << "the system counts in whole seconds";
  EXPECT_GT(said, kLoaded - 60);
}

}  // namespace
}  // namespace gimbal::test
