#include "library/internal.h"

// The library's own names come first: library/internal.h.
#include <gimbal/pull.h>

namespace gimbal::v1 {
namespace {

class Watch final : public own::PullWatch {
 public:
  explicit Watch(const PullOptions& o) : events_(o.events) {}

  bool on(const own::PullEvent& e) override {
    const auto kind = e.kind == own::PullEvent::Progress   ? PullEvent::Progress
                      : e.kind == own::PullEvent::Checking ? PullEvent::Checking
                                                           : PullEvent::Note;
    return tell({kind, e.file, sentence(e), e.done, e.total});
  }
  bool tell(const PullEvent& e) { return go_on_ = go_on_ && (!events_ || events_(e)); }

 private:
  const std::function<bool(const PullEvent&)>& events_;
  bool go_on_ = true;
};

}  // namespace

Result<Pulled> pull(const std::string& address, const PullOptions& o) {
  Watch watch(o);
  auto pull = own::Pull::resolve(address, {o.connections, o.sha256}, watch);
  if (!pull) return to_public(pull.error());
  Pulled done{"", (*pull)->bytes(), (*pull)->missing() > 0};
  watch.tell({PullEvent::Resolved, (*pull)->files()[0].name, "", 0, done.bytes});
  auto path = (*pull)->fetch();
  if (!path) return to_public(path.error());
  done.path = std::move(*path);
  return done;
}

}  // namespace gimbal::v1
