// The library's values as the public ones.
#include "facade/internal.h"

namespace gimbal::v1 {

Fallback to_public(const own::Fallback& f) { return {f.what, f.instead, to_public(f.why)}; }

Event to_public(const own::Event& e) {
  struct Convert {
    Event operator()(const own::Fallback& f) const {
      return {Event::Fallback, f.what, f.instead, to_public(f.why)};
    }
    Event operator()(const event::Chosen& c) const {
      Error why;
      why.message = c.opened.reason();
      return {Event::Chosen, c.opened.device->id(), "", std::move(why)};
    }
    Event operator()(const event::Unfulfilled& u) const {
      Error why{Code::Usage, u.message, "", "", u.field, u.value, "", {}};
      return {Event::Ignored, u.field, "", std::move(why)};
    }
    Event operator()(const event::LongContext& l) const {
      Error why{
          Code::Usage,
          format("the model was trained on {} positions; its text may get worse beyond them", l.trained),
          "",
          "",
          "context",
          format("{}", l.context),
          format("{}", l.trained),
          {}};
      return {Event::Note, "context", "", std::move(why)};
    }
    Event operator()(const event::Progress& p) const {
      const auto kind = p.stage == event::Progress::Verifying   ? Event::Verifying
                        : p.stage == event::Progress::Measuring ? Event::Measuring
                                                                : Event::Loading;
      return {kind, p.device, "", {}, p.done, p.total};
    }
    Event operator()(const event::NotKept& n) const {
      return {Event::Note, "verified", "", to_public(n.why)};
    }
    Event operator()(const event::DraftsEnded& d) const {
      return {Event::Ignored, "draft", "", to_public(d.why)};
    }
    Event operator()(const event::Recovered& r) const {
      return {Event::Recovered, r.from, r.to, to_public(r.why)};
    }
  };
  return std::visit(Convert{}, e);
}

}  // namespace gimbal::v1
