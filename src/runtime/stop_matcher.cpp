// One Knuth-Morris-Pratt automaton per stop string, all fed byte by byte.
#include "runtime/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace gimbal {

Status validate_stops(std::span<const std::string> stops) {
  for (const std::string& s : stops) {
    if (s.empty()) {
      return Error{Code::Usage, "'stops' is empty: it would end every text before it begins",
                   "Give it a text, or leave it out.", "", "stops"};
    }
  }
  return Done{};
}

StopMatcher::StopMatcher(std::vector<std::string> stops) {
  for (std::string& text : stops) {
    if (text.empty()) continue;
    Stop stop{std::move(text), {}, 0};
    stop.fallback.assign(stop.text.size() + 1, 0);
    for (size_t n = 1, k = 0; n < stop.text.size(); n++) {
      while (k > 0 && stop.text[n] != stop.text[k]) k = stop.fallback[k];
      if (stop.text[n] == stop.text[k]) k++;
      stop.fallback[n + 1] = k;
    }
    stops_.push_back(std::move(stop));
  }
}

void StopMatcher::advance(Stop& stop, char byte) {
  size_t n = stop.matched;
  while (n > 0 && stop.text[n] != byte) n = stop.fallback[n];
  stop.matched = stop.text[n] == byte ? n + 1 : 0;
}

StopMatcher::Output StopMatcher::push(std::string_view piece) {
  if (stopped_) return {"", true, which_};
  std::string text = std::move(held_);
  held_.clear();
  size_t start = text.size();
  text += piece;
  size_t maybe = 0;  // bytes at the end of the input that may begin a stop string
  for (const Stop& stop : stops_) maybe = std::max(maybe, stop.matched);
  for (size_t i = start; i < text.size(); i++) {
    maybe = 0;
    const Stop* complete = nullptr;
    for (Stop& stop : stops_) {
      advance(stop, text[i]);
      maybe = std::max(maybe, stop.matched);
      if (stop.matched < stop.text.size()) continue;
      if (!complete || stop.text.size() > complete->text.size()) complete = &stop;
    }
    if (complete) {
      stopped_ = true;
      which_ = complete->text;
      text.resize(i + 1 - which_.size());
      return {std::move(text), true, which_};
    }
  }
  held_ = text.substr(text.size() - maybe);
  text.resize(text.size() - maybe);
  return {std::move(text), false, ""};
}

std::string StopMatcher::finish() {
  for (Stop& stop : stops_) stop.matched = 0;
  return std::exchange(held_, "");
}

}  // namespace gimbal
