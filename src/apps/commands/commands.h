// The table of commands and their options, for the program, completion and the manual.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "apps/commands/command.h"

namespace gimbal {

struct CommandRow {
  const char* name;
  const char* alias;  // "" for none
  const char* group;
  const char* help;  // one line; "" hides a command from users
  MakeCommand make;
};

std::span<const CommandRow> all_commands();
const CommandRow* find_command(const std::string& name);  // by name or alias; nullptr if unknown

// A command with its options, ready to parse or list.
struct DeclaredCommand {
  std::unique_ptr<Command> command;
  std::unique_ptr<Arguments> arguments;
};
DeclaredCommand declare(const CommandRow&);

}  // namespace gimbal
