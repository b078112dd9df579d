// GET /slots of llama.cpp's server: the texts that a model computes now; and POST /slots/N: the states of the
// last ones, in files.
#include <sys/stat.h>

#include <algorithm>
#include <charconv>

#include "base/clock.h"
#include "base/format.h"
#include "scheduler/saved_prompts.h"
#include "server/api/llama.h"
#include "server/api/text.h"

namespace gimbal::api {
namespace {

Json slot_json(const ServedModel& model, int number, const Slot* slot) {
  Json j = {{"id", number},
            {"id_task", slot ? Json(slot->task) : Json(-1)},
            {"n_ctx", model.context()},
            {"is_processing", slot != nullptr}};
  if (!slot) return j;
  const int told = slot->told, most = slot->max_tokens;
  j["n_prompt_tokens"] = slot->prompt_tokens;
  j["next_token"] = {
      {"has_next_token", true}, {"n_decoded", told}, {"n_remain", most < 0 ? -1 : std::max(0, most - told)}};
  return j;
}

// A name in the operator's folder, and nothing that leads out of it.
bool is_file_name(std::string_view name) {
  return !name.empty() && name.size() <= 200 && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return uint8_t(c) >= 32 && c != 127 && c != '/' && c != '\\' && c != ':';
         });
}

uint64_t bytes_of(const std::string& path) {
  struct stat s {};
  return stat(path.c_str(), &s) == 0 ? uint64_t(s.st_size) : 0;
}

double milliseconds_since(double begin) { return (now() - begin) * 1e3; }

struct SlotFile {
  SavedPrompts& prompts;
  const std::string &model, &name, path;
  int number;
};

Refused save(Call& call, const SlotFile& f, std::span<const Token> text, Json& to) {
  const double begin = now();
  auto draft = DraftFile::create(f.path);
  auto saved = draft ? f.prompts.save(text, *draft) : Result<int>(draft.error());
  if (saved && *saved > 0)
    if (auto ok = draft->commit(); !ok) saved = ok.error();
  if (!saved && saved.error().code == Code::OutOfMemory) return of(saved.error());
  if (!saved) {
    call.record->why = saved.error().message;
    return ApiError{500, "the slot could not be saved; the server's log says more"};
  }
  if (*saved == 0)
    return ApiError{400,
                    "nothing of this slot's last text is kept any more: later requests needed its memory", "",
                    "slot_empty"};
  to["n_saved"] = *saved;
  to["n_written"] = bytes_of(f.path);
  to["timings"] = {{"save_ms", milliseconds_since(begin)}};
  return {};
}

Refused restore(Call& call, const SlotFile& f, Json& to) {
  const double begin = now();
  const auto file = InputFile::open(f.path);
  auto restored = file ? f.prompts.restore(*file) : Result<std::vector<Token>>(file.error());
  if (!restored) {
    const Error& e = restored.error();
    call.record->why = e.message;
    if (e.code == Code::NotFound)
      return ApiError{404, format("there is no saved slot {}", quoted_briefly(f.name)), "filename",
                      "not_found"};
    if (e.code == Code::Usage)
      return wrong_field("filename",
                         format("{} is damaged, or of another model, device, build or cache format",
                                quoted_briefly(f.name)));
    return of(e);
  }
  to["n_restored"] = restored->size();
  to["n_read"] = bytes_of(f.path);
  to["timings"] = {{"restore_ms", milliseconds_since(begin)}};
  call.services.slots.set_last_text(f.model, f.number, std::move(*restored));
  return {};
}

}  // namespace

Refused show_slots(Call& call) {
  ServedModelPtr model;
  if (auto no = model_of_query(call, model)) return no;
  const std::vector<SlotPtr> taken = call.services.slots.taken(model->id());
  // A text that gave up its place for a while keeps its number, so there can be more of them.
  const int last = taken.empty() ? -1 : taken.back()->number;
  const int count = std::max(model->texts_at_once(), last + 1);
  if (query_field(call.request.query, "fail_on_no_slot") && int(taken.size()) >= count)
    return ApiError{503, "no slot is free", "", "", 1};
  Json all = Json::array();
  size_t next = 0;
  for (int number = 0; number < count; number++) {
    const bool is_taken = next < taken.size() && taken[next]->number == number;
    all.push_back(slot_json(*model, number, is_taken ? taken[next].get() : nullptr));
    next += is_taken;
  }
  call.answer_json(all);
  return {};
}

Refused change_slot(Call& call) {
  Fields f(call.body);
  const std::string name = f.text("filename").value_or("");
  if (auto no = f.finish()) return no;
  const std::string action = query_field(call.request.query, "action").value_or("");
  const bool saves = action == "save", erases = action == "erase";
  if (!saves && !erases && action != "restore")
    return wrong_field("action", "the query must have an action: ?action=save, restore or erase");
  ServedModelPtr model;
  if (auto no = model_of_query(call, model)) return no;
  int number = -1;
  const std::string& digits = call.argument;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number < 0 ||
      number >= model->texts_at_once())
    return ApiError{404,
                    format("there is no slot {}: this model has 0 to {}", quoted_briefly(digits),
                           model->texts_at_once() - 1),
                    "", "not_found"};
  if (call.services.slot_save_path.empty())
    return ApiError{501, "this server keeps no slots: its setting 'slot-save-path' names the folder for them",
                    "", "not_supported"};
  SavedPrompts* prompts = model->saved_prompts();
  if (!prompts)
    return ApiError{501, "this model writes no texts: it has no states to save", "", "not_supported"};
  if (!erases && !is_file_name(name))
    return wrong_field("filename", "'filename' must be the name of a file, without folders");
  for (const SlotPtr& slot : call.services.slots.taken(model->id()))
    if (slot->number == number)
      return ApiError{503, format("slot {} computes a text: try again when it has ended", number), "",
                      "slot_busy", 1};
  const std::string id = model->id();
  const SlotFile file{*prompts, id, name, call.services.slot_save_path + "/" + name, number};
  const std::vector<Token> text = call.services.slots.last_text(id, number);
  if (saves && text.empty())
    return ApiError{400, format("slot {} has computed no text yet", number), "", "slot_empty"};
  Json j = {{"id_slot", number}};
  if (!erases) j["filename"] = name;
  Refused no;
  if (saves) no = save(call, file, text, j);
  else if (!erases) no = restore(call, file, j);
  else {
    const Result<int> erased = text.empty() ? Result<int>(0) : prompts->erase(text);
    j["n_erased"] = erased ? *erased : 0;
    call.services.slots.set_last_text(id, number, {});
  }
  if (no) return no;
  call.answer_json(j);
  return {};
}

}  // namespace gimbal::api
