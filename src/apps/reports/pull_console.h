// Reports the events of a download to people or programs.
#pragma once
#include <optional>

#include "apps/toolkit/keyboard.h"
#include "apps/toolkit/terminal.h"
#include "base/json.h"
#include "engine/engine.h"
#include "fetch/pull.h"

namespace gimbal {

// A bar and notes on stderr; or, for programs, one JSON line per event on stdout. The first Ctrl-C cancels
// the download; a second one ends the program.
class PullConsole final : public PullWatch {
 public:
  enum class To : uint8_t { People, Programs, Nobody };
  explicit PullConsole(To to) : to_(to) {}
  bool on(const PullEvent&) override;
  // Prints a JSON line: {"event": name}, then `others`.
  void tell(const char* name, Json others);

 private:
  void bar(const char* doing, const PullEvent&);
  InterruptGuard guard_;
  To to_;
  std::optional<Progress> bar_;
  std::string bar_of_;
  double told_ = 0;
};

// Whether a model would run here and its memory needs, from its header alone.
struct FitReport {
  std::string text;  // one or two lines for people
  Json json;         // {architecture, layers, context, devices, fits, remedy}
  Status fits;       // or the reason why it does not fit or is unsupported
};
FitReport fit_report(const ModelFile&, EngineOptions);

}  // namespace gimbal
