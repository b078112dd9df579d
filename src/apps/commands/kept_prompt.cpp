#include "apps/commands/kept_prompt.h"

#include <algorithm>
#include <utility>

#include "apps/toolkit/terminal.h"
#include "base/format.h"
#include "base/text.h"

namespace gimbal {

Status KeptPrompt::restore(const LoadedModel& loaded, Session& session) {
  if (!path_) return Done{};
  auto r = restore_prompt(*path_, loaded, session);
  if (!r) return r.error();
  held_ = session.inputs();
  if (!r->why_not.empty()) note(printable(r->why_not));
  else if (r->tokens && !quiet_) note(format("{} tokens read from {}", r->tokens, gimbal::quoted(*path_)));
  return Done{};
}

void KeptPrompt::save(const LoadedModel& loaded, Session& session) {
  if (!path_) return;
  const std::string path = *std::exchange(path_, std::nullopt);
  // After the loss of a device the session belongs to another model, which this file does not fit.
  const Inputs& now = session.inputs();
  if (held_.size() == now.size() && common_prefix(held_, now) == now.size()) return;
  if (&session.model() != loaded.model.get()) return;
  if (auto ok = save_prompt(path, loaded, session.sequence()); !ok)
    note(format("the prompt is not kept: {}", printable(ok.error().message)));
}

}  // namespace gimbal
