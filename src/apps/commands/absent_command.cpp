#include "apps/commands/command.h"

#include "base/result.h"

namespace gimbal {
namespace {

class AbsentCommand final : public Command {
 public:
  explicit AbsentCommand(const char* feature) : feature_(feature) {}
  const char* absent_feature() const override { return feature_; }
  void declare(Arguments&) override {}
  Result<int> run() override { return absent_feature_error("this command", feature_); }

 private:
  const char* feature_;
};

}  // namespace

std::unique_ptr<Command> absent_command(const char* feature) {
  return std::make_unique<AbsentCommand>(feature);
}

}  // namespace gimbal
