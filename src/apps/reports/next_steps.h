// Suggested next commands: the last lines of `gimbal doctor`, and of `gimbal serve` on a terminal.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "discovery/report.h"
#include "discovery/selection.h"
#include "engine/model_catalog.h"

namespace gimbal {

struct NextStep {
  std::string why;      // a short phrase, such as "a story from the built-in model"
  std::string command;  // ready to type
};

// At most five, the most useful first. `seen`: the device files of this machine's GPUs, with their backend
// ("/dev/nvidia0", "cuda"); `can_pull`: whether this program has the command `pull`.
struct Machine {
  const std::vector<BackendReport>& reports;
  const Result<DeviceChoice>& best;
  const Catalog& models;
  std::vector<std::pair<std::string, std::string>> seen = {};
  bool can_pull = false;
};
std::vector<NextStep> next_steps(const Machine&);

// The value of Machine::seen on this machine.
std::vector<std::pair<std::string, std::string>> gpu_device_files();

// The URL by which this machine reaches a server; replaces a wildcard address, which is not a valid
// destination, by `me`.
std::string from_here(std::string url, const std::string& me = "127.0.0.1");
// A shell line with a first request to the server at `url` ("http://127.0.0.1:8080"). `needs_key`: the line
// uses $GIMBAL_API_KEY.
std::string first_request(const std::string& url, const std::string& model, bool needs_key);

}  // namespace gimbal
