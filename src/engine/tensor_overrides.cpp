// Tensors on devices of their own: which devices, and whether the model has such tensors.
#include <algorithm>
#include <cctype>

#include "base/format.h"
#include "base/text.h"
#include "device/reason.h"
#include "engine/device_chooser.h"

namespace gimbal {
namespace {

// Names in which the beginning of a word of the pattern is found, for an error that no name matches it.
std::vector<std::string> near_names(const std::string& pattern, const TensorTable& tensors) {
  constexpr size_t kMost = 4, kShortest = 3;
  std::vector<std::string_view> words;
  std::vector<std::string> all;
  for (size_t at = 0, end; at < pattern.size(); at = end + 1) {
    end = at;
    while (end < pattern.size() && (std::isalnum(uint8_t(pattern[end])) || pattern[end] == '_')) end++;
    words.push_back(std::string_view(pattern).substr(at, end - at));
  }
  std::stable_sort(words.begin(), words.end(), [](auto& a, auto& b) { return a.size() > b.size(); });
  auto add = [&](std::string_view part) {
    for (const StoredTensor& t : tensors)
      if (all.size() < kMost && t.name.find(part) != t.name.npos) all.emplace_back(t.name);
    return !all.empty();
  };
  for (std::string_view word : words)
    for (; word.size() >= kShortest; word.remove_suffix(1))
      if (add(word)) return all;
  add("");  // any names are better than none
  return all;
}

}  // namespace

// "cpu:0, vulkan:0, vulkan:1"
std::string DeviceChooser::devices_here() {
  std::string all;
  for (const BackendReport& b : registry_.discover())
    for (const DeviceReport& d : b.devices) all += (all.empty() ? "" : ", ") + d.id;
  return all;
}

// The main device, one of the others, or one that is opened now.
Result<const Device*> DeviceChooser::device_of(const TensorOverride& o, const Device& main,
                                               std::vector<std::unique_ptr<Device>>& others) {
  if (main.id() == o.device.id()) return &main;
  for (const auto& d : others)
    if (d->id() == o.device.id()) return d.get();
  DeviceRequest one = request();
  one.backend = o.device.backend, one.index = o.device.index;
  one.strict = true;  // no other device in its place
  auto opened = open(one);
  if (!opened) {
    Error e = opened.error();
    e.message = format("{}: {}", o.why, e.message);
    e.remedy = "devices of this machine: " + devices_here();
    e.field = o.field, e.value = o.device.id(), e.changes.clear();
    return e;
  }
  others.push_back(std::move(opened->device));
  return others.back().get();
}

Result<std::vector<TensorRule>> DeviceChooser::tensor_rules(const ModelFile& source, const Device& main,
                                                            std::vector<std::unique_ptr<Device>>& others) {
  std::vector<TensorRule> rules;
  const TensorTable& tensors = source.file->tensors();
  for (const TensorOverride& o : options_.overrides) {
    const TensorRule rule{o.pattern, nullptr, o.why, o.layers};
    auto matches = rules_of_tensors(tensors, std::span(&rule, 1));
    if (!matches) return matches.error();
    const bool any = std::find(matches->begin(), matches->end(), 0) != matches->end();
    if (!any && o.field == std::string_view("override_tensor"))
      return Error{Code::Usage,
                   format("{}: no tensor of {} has a name in which {} is found", o.why, source.file->path(),
                          gimbal::quoted(o.pattern)),
                   format("near names: {}",
                          escaped(fmt::format("{}", fmt::join(near_names(o.pattern, tensors), ", ")))),
                   reason::kOutOfRange,
                   "override_tensor",
                   o.pattern};
    if (!any) {
      if (auto ok = without_effect(o, "has no effect: the model has no experts there"); !ok)
        return ok.error();
      continue;
    }
    auto device = device_of(o, main, others);
    if (!device) return device.error();
    rules.push_back(rule), rules.back().device = *device;
  }
  return rules;
}

Status DeviceChooser::without_effect(const TensorOverride& o, const std::string& why) {
  const std::string value = o.field == std::string_view("n_cpu_moe") ? format("{}", o.layers) : "true";
  if (options_.strict)
    return Error{Code::Usage, format("'{}' {}", o.field, why),
                 "",          reason::kOutOfRange,
                 o.field,     value,
                 "",          {{"strict", "false", ""}, {o.field, "", ""}}};
  if (record_.is_news(o.why + why)) record_.emit(event::Unfulfilled{o.field, value, why, false});
  return Done{};
}

}  // namespace gimbal
