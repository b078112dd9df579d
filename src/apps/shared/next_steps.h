// What to do next: the last lines of `gimbal doctor`, and of `gimbal serve` on a terminal.
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
  std::string command;  // ready to be typed
};

// At most five, the most useful first. `seen`: the device files of this machine that belong to GPUs, by
// backend ("/dev/nvidia0", "cuda"); `can_pull`: whether this program has the command `pull`.
struct Machine {
  const std::vector<BackendReport>& reports;
  const Result<DeviceChoice>& best;
  const Catalog& models;
  std::vector<std::pair<std::string, std::string>> seen = {};
  bool can_pull = false;
};
std::vector<NextStep> next_steps(const Machine&);

// For Machine::seen, of this machine.
std::vector<std::pair<std::string, std::string>> gpu_device_files();

// The address of a server as this machine reaches it: that of one that listens everywhere is none, and gets
// the name `me`.
std::string from_here(std::string url, const std::string& me = "127.0.0.1");
// A first request to the server at `url` ("http://127.0.0.1:8080"), as a line for a shell. `needs_key`: it is
// taken from $GIMBAL_API_KEY.
std::string first_request(const std::string& url, const std::string& model, bool needs_key);

}  // namespace gimbal
