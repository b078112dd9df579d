#include "apps/worker/load.h"

#include "base/format.h"
#include "huggingface/folder.h"

namespace gimbal::worker {
namespace {

// "0: NVIDIA H200, 1: NVIDIA L4"
std::string devices_of(const gimbal_backend& table, int count) {
  std::string all;
  for (int i = 0; i < count; i++) {
    auto device = Device::open(table, i);
    const char* name = device ? (*device)->describe().name : nullptr;
    all += format("{}{}: {}", i ? ", " : "", i, name ? name : "does not open");
  }
  return all;
}

// The device `index` of one table, and no other.
class SingleDevice final : public Devices {
 public:
  SingleDevice(const gimbal_backend& table, int index, const EngineOptions& options, DeviceRecord& record)
      : table_(table), index_(index), options_(options), record_(record) {}

  Result<PlannedModel> place(const ModelFile& source) override {
    auto device = open();
    if (!device) return device.error();
    // One that is given up has none to take its place.
    for (const Unusable& u : record_.unusable)
      if (u.device == (*device)->id() && u.kernel.empty()) return u.why;
    record_.opened(**device);
    auto plan = make_model_plan(*source.file, **device, record_.run_options());
    if (!plan) return plan.error();
    return PlannedModel{
        source, OpenedDevice{std::move(*device), "the only device", {}, {}}, {}, {}, std::move(*plan)};
  }

  Result<std::unique_ptr<Device>> open_host() override {
    return Error{Code::NoBackend, "this program has no other device to compare with", ""};
  }

 private:
  Result<std::unique_ptr<Device>> open() const {
    // Without any device, opening reports the reason.
    const int count = table_.device_count();
    if (count > 0 && (index_ < 0 || index_ >= count))
      return Error{Code::NoBackend,
                   format("there is no {} device {}: found {} ({})", table_.name, index_,
                          count == 1 ? "one" : format("{}", count), devices_of(table_, count)),
                   "give the number of one of these"};
    const bool host = std::string_view(table_.name) == kHostBackend;
    auto device = Device::open(table_, index_, host ? host_options(options_) : "");
    if (device) return device;
    Error e = device.error();
    if (e.remedy.empty())
      e.remedy = format(
          "this program holds the {} backend alone and computes nowhere else; the program `gimbal` "
          "looks for other devices",
          table_.name);
    return e;
  }

  const gimbal_backend& table_;
  const int index_;
  const EngineOptions& options_;
  DeviceRecord& record_;
};

}  // namespace

Result<Loaded> load_on(const gimbal_backend& table, const Source& from, int index,
                       const EngineOptions& options, const EventSink& events) {
  ModelFile source{from.path, from.path, from.file};
  if (!source.file) {
    auto file = open_source(from.path);
    if (!file) return file.error();
    source.file = std::make_shared<const ModelSource>(std::move(*file));
  }
  Loaded out;
  auto tokenizer = Tokenizer::create(source.file->metadata());
  if (!tokenizer) return tokenizer.error();
  out.tokenizer = std::move(*tokenizer);
  DeviceRecord record(options, events);
  SingleDevice device(table, index, options, record);
  auto loaded = Loader(options, device, record).load(source);
  if (!loaded) return loaded.error();
  out.on = std::move(*loaded);
  return out;
}

}  // namespace gimbal::worker
