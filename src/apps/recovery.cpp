#include "apps/recovery.h"

#include "apps/terminal.h"
#include "base/format.h"

namespace gimbal {

Recovery::Recovery(std::string model, EngineOptions options, RunOptions run, bool quiet)
    : model_(std::move(model)), options_(std::move(options)), run_(std::move(run)), quiet_(quiet) {}

Status Recovery::operator()(Session& session, const Error& lost) {
  if (options_.strict) return lost;
  std::string which;
  for (const Part& part : session.model().blueprint().parts) {
    const std::string id = part.device->id();
    if (std::string(part.device->backend()) == "cpu") continue;  // it cannot be lost
    options_.refused.emplace_back(id, Error{Code::DeviceLost, "it was lost while generating", ""});
    which += (which.empty() ? "" : ", ") + id;
  }
  if (which.empty()) return lost;
  options_.split.reset(), options_.gpu_layers.reset();  // they spoke of the devices that are gone
  auto source = open_model_file(model_);
  if (!source) return source.error();
  auto loaded = load_model(std::move(*source), options_, run_, quiet_);
  if (!loaded) return loaded.error();
  auto moved = session.move_to(*loaded->model);
  if (!moved) return moved;
  note(format("note: {} was lost after {} tokens ({}); going on on {}", which, session.position(),
              printable(lost.message), loaded->model->device().id()));
  replacements_.push_back(std::move(*loaded));
  return Done{};
}

}  // namespace gimbal
