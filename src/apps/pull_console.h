// What happens while a model is fetched, told to people or to programs.
#pragma once
#include <optional>

#include "apps/shared/interrupt.h"
#include "apps/shared/json.h"
#include "apps/shared/terminal.h"
#include "engine/engine.h"
#include "fetch/pull.h"

namespace gimbal {

// A bar and notes on stderr; or, for programs, a line of JSON for each event on stdout. Ctrl-C ends what it
// watches; another one ends the program.
class PullConsole final : public PullWatch {
 public:
  enum class To : uint8_t { People, Programs, Nobody };
  explicit PullConsole(To to) : to_(to) {}
  bool on(const PullEvent&) override;
  // A line of JSON with {"event": name} before the others.
  void tell(const char* name, Json others);

 private:
  void bar(const char* doing, const PullEvent&);
  InterruptGuard guard_;
  To to_;
  std::optional<Progress> bar_;
  std::string bar_of_;
  double told_ = 0;
};

// Whether a model would run here, and what it would take, from its header alone.
struct Outlook {
  std::string text;  // one or two lines for people
  Json json;         // {architecture, layers, context, devices, fits, remedy}
  Status fits;       // or why it does not, or why this version cannot run it
};
Outlook outlook(const ModelFile&, EngineOptions);

}  // namespace gimbal
