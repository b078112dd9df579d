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
      return format("{} is resumed: {} of {} are here", file, human_bytes(e.done), human_bytes(e.total));
    case PullEvent::Waiting: return format("{} is being fetched by another program; waiting for it", file);
    case PullEvent::NoRanges:
      return format(
          "the server sends {} only as a whole: on one connection, and from the beginning after an "
          "interruption",
          file);
    case PullEvent::Changed:
      return format(
          "the partial download of {} may belong to another file than the server's: it starts again", file);
    case PullEvent::Retried: return format("{} is requested again: {}", file, escaped(e.text));
    case PullEvent::Unchecked:
      return format("{} has the right length; its hash is unknown, so its contents were not checked", file);
    case PullEvent::Hidden:
      return format("{} is requested without your token, because http would send it unencrypted",
                    escaped(e.text));
    case PullEvent::Progress:
    case PullEvent::Checking: break;
  }
  return "";
}

}  // namespace gimbal
