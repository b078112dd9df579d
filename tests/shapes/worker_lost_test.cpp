// A worker whose device is lost while it serves: nothing else is there to compute, so it says so and ends.
#include <atomic>
#include <cstdlib>
#include <thread>

#include "apps/worker/service.h"
#include "device/backends.h"
#include "support/fake_hive.h"
#include "support/http_client.h"

namespace gimbal::worker {
namespace {

std::atomic<bool> lost{false};

const gimbal_backend& cpu_table() {
  for (LinkedBackends e = linked_backends(); *e; ++e)
    if (std::string((*e)()->name) == "cpu") return *(*e)();
  std::abort();
}

// The CPU's, until `lost`.
const gimbal_backend& table() {
  static const gimbal_backend t = [] {
    gimbal_backend b = cpu_table();
    b.submit = [](gimbal_device* d, gimbal_executable* e, gimbal_buffer* const* slots, size_t n,
                  gimbal_step s) {
      return lost ? GIMBAL_DEVICE_LOST : cpu_table().submit(d, e, slots, n, s);
    };
    b.last_error = [](gimbal_device* d) { return lost ? "it fell off the bus" : cpu_table().last_error(d); };
    return b;
  }();
  return t;
}

TEST(WorkerService, EndsWithTheReasonWhenItsDeviceIsLost) {
  test::FakeHive hive;
  const About about{"cpu", false,
                    [](const Source& from, int, const EngineOptions& o, const EventSink& events) {
                      return load_on(table(), from, 0, o, events);
                    }};
  ServiceOptions o;
  o.http.port = int(test::FakeHive().port());  // which is free again
  o.hive = hive.url();
  EngineOptions options;
  options.verify = Verify::Never;
  std::optional<Result<int>> done;
  std::thread worker(
      [&] { done = serve(about, o, GIMBAL_SOURCE_DIR "/assets/stories260K.gguf", 0, options, {}, true); });
  hive.wait_for(1, "/v1/heartbeat");
  const auto ask = [&] {
    return test::HttpClient(uint16_t(*o.http.port))
        .ask(test::post("/v1/completions", R"({"model":"stories260K","prompt":"Once","max_tokens":3})"));
  };
  EXPECT_EQ(ask().status, 200);
  lost = true;
  const test::HttpAnswer no = ask();
  EXPECT_EQ(no.status, 500) << no.body;
  EXPECT_EQ(no.body.find("bus"), no.body.npos) << "that is for the log";
  worker.join();
  ASSERT_FALSE(*done);
  EXPECT_EQ(done->error().code, Code::DeviceLost);
  EXPECT_NE(done->error().message.find("it fell off the bus"), std::string::npos) << done->error().message;
  EXPECT_NE(done->error().remedy.find("start it again"), std::string::npos);
  EXPECT_EQ(hive.calls().back().body["health_status"], "degraded");
}

}  // namespace
}  // namespace gimbal::worker
