#include "fetch/pull_event.h"

#include "base/bytes.h"
#include "base/format.h"
#include "base/text.h"

namespace gimbal {

const char* name_of(PullEvent::Kind kind) {
  switch (kind) {
    case PullEvent::Resumed: return "resumed";
    case PullEvent::Waiting: return "waiting";
    case PullEvent::NoRanges: return "no-ranges";
    case PullEvent::Changed: return "changed";
    case PullEvent::Retried: return "retried";
    case PullEvent::Unchecked: return "unchecked";
    case PullEvent::Hidden: return "token-not-sent";
    case PullEvent::Progress: return "progress";
    case PullEvent::Checking: return "checking";
  }
  return "";
}

std::string sentence(const PullEvent& e) {
  const std::string file = escaped(e.file);
  switch (e.kind) {
    case PullEvent::Resumed:
      return format("{} goes on where an earlier run ended: {} of {} are here", file, human_bytes(e.done),
                    human_bytes(e.total));
    case PullEvent::Waiting: return format("{} is being fetched by another program; waiting for it", file);
    case PullEvent::NoRanges:
      return format(
          "the server sends {} as a whole only: on one connection, and from the beginning when it is "
          "interrupted",
          file);
    case PullEvent::Changed:
      return format("what is here of {} may be of another file than the server's: from the beginning", file);
    case PullEvent::Retried: return format("{} is asked for again: {}", file, escaped(e.text));
    case PullEvent::Unchecked:
      return format("{} has the right length; nobody tells its hash, so that its contents were not checked",
                    file);
    case PullEvent::Hidden:
      return format("{} is asked without your token, which would go over the network in clear (http)",
                    escaped(e.text));
    case PullEvent::Progress:
    case PullEvent::Checking: break;
  }
  return "";
}

}  // namespace gimbal
