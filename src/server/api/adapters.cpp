// GET and POST /lora-adapters of llama.cpp's server, and the field `lora` of requests.
#include "server/api/adapters.h"

#include <algorithm>
#include <filesystem>

#include "base/format.h"
#include "model/lora.h"
#include "server/api/call.h"
#include "server/api/llama.h"
#include "server/api/text.h"

namespace gimbal::api {
namespace {

constexpr double kMostScale = 1e6;

const std::vector<Adapter>& adapters_of(const ServedModel& model) {
  return model.file().tensors().adapters();
}

std::string name_of(const Adapter& a) { return std::filesystem::path(a.path).filename().string(); }

std::string known_ids(size_t adapters) {
  if (adapters == 0) return "the model has no adapters: --lora loads them when the server starts";
  std::vector<size_t> ids;
  for (size_t i = 0; i < adapters; i++) ids.push_back(i);
  return format("the model's adapters have the ids {}", fmt::join(ids, ", "));
}

}  // namespace

void AdapterScales::set(const std::string& model, std::vector<float> scales) {
  const std::lock_guard lock(mutex_);
  set_[model] = std::move(scales);
}

std::vector<float> AdapterScales::of(const ServedModel& model) const {
  const std::lock_guard lock(mutex_);
  const auto found = set_.find(model.id());
  if (found == set_.end() || found->second.size() != adapters_of(model).size()) return {};
  return found->second;
}

void read_adapters(Fields& f, const ServedModel& model, std::vector<float>& to) {
  const Json* list = f.array("lora");
  if (!list) return;
  const size_t known = adapters_of(model).size();
  std::vector<float> scales(known);
  std::vector<bool> given(known);
  for (size_t i = 0; i < list->size(); i++) {
    const std::string where = format("{}[{}]", f.path("lora"), i);
    const Json& item = (*list)[i];
    if (!item.is_object())
      return f.wrong(where, format("'{}' must be an object with 'id' and 'scale'", where));
    Fields one(item, where);
    one.need("id"), one.need("scale");
    const auto id = one.whole("id", INT32_MIN, INT32_MAX);
    const auto scale = one.number("scale", -kMostScale, kMostScale);
    const bool is_known = id && *id >= 0 && size_t(*id) < known;
    if (one.ok() && !is_known)
      one.wrong("id", format("'{}' is {}, but {}", one.path("id"), *id, known_ids(known)));
    else if (one.ok() && given[size_t(*id)])
      one.wrong("id", format("'{}' is {} a second time", one.path("id"), *id));
    if (auto no = one.finish()) return f.wrong_as(*no);
    if (!is_known || !scale) return;  // of a FieldRecorder, which has no errors
    scales[size_t(*id)] = float(*scale), given[size_t(*id)] = true;
  }
  to = std::move(scales);
}

Json adapters_json(const ServedModel& model, const std::vector<float>& scales) {
  const std::vector<Adapter>& all = adapters_of(model);
  Json list = Json::array();
  for (size_t i = 0; i < all.size(); i++)
    list.push_back({{"id", i}, {"scale", scales.empty() ? all[i].scale : scales[i]}});
  return list;
}

std::vector<std::string> adapter_names(const ServedModel& model) {
  std::vector<std::string> names;
  for (const Adapter& a : adapters_of(model)) names.push_back(std::filesystem::path(a.path).stem().string());
  return names;
}

int adapter_named(const ServedModel& model, const std::string& name) {
  const std::vector<std::string> names = adapter_names(model);
  const auto found = std::find(names.begin(), names.end(), name);
  return std::count(names.begin(), names.end(), name) == 1 ? int(found - names.begin()) : -1;
}

std::vector<float> only_adapter(const ServedModel& model, int adapter) {
  const std::vector<Adapter>& all = adapters_of(model);
  std::vector<float> scales(all.size());
  const float own = all[size_t(adapter)].scale;
  scales[size_t(adapter)] = own == 0 ? 1 : own;
  return scales;
}

Refused show_adapters(Call& call) {
  ServedModelPtr model;
  if (auto no = model_of_query(call, model)) return no;
  Json list = adapters_json(*model, call.services.adapters.of(*model));
  const std::vector<Adapter>& all = adapters_of(*model);
  for (size_t i = 0; i < all.size(); i++) list[i]["path"] = name_of(all[i]);  // no path leaves this machine
  call.answer_json(list);
  return {};
}

// Changes the scales of requests that give none. Those that run keep theirs.
Refused set_adapters(Call& call) {
  Fields f(call.body);
  ServedModelPtr model;
  if (auto no = find_model(call, f, false, model)) return no;
  f.need("lora");
  std::vector<float> scales;
  read_adapters(f, *model, scales);
  if (auto no = f.finish()) return no;
  if (!scales.empty()) call.services.adapters.set(model->id(), std::move(scales));
  call.answer_json({{"success", true}});
  return {};
}

}  // namespace gimbal::api
