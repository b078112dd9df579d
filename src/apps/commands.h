// The table of commands, and what each of them takes: for the program, for completion and for the manual.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "apps/command.h"

namespace gimbal {

struct CommandRow {
  const char* name;
  const char* alias;  // "" for none
  const char* group;
  const char* help;  // one line; "" for what is no command of users
  MakeCommand make;
};

std::span<const CommandRow> all_commands();
const CommandRow* find_command(const std::string& name);  // by name or alias; null when there is none

// A command and its options, ready to be parsed or listed.
struct DeclaredCommand {
  std::unique_ptr<Command> command;
  std::unique_ptr<Arguments> arguments;
};
DeclaredCommand declare(const CommandRow&);

}  // namespace gimbal
