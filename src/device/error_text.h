// The text of a backend's last failure, one for each thread.
#pragma once
#include <string_view>

namespace gimbal {

// Trivially destructible: a thread-local object with a destructor would keep a plugin loaded until the thread
// ends (reload_test). Truncates long texts.
class ErrorText {
 public:
  ErrorText& operator=(std::string_view text) {
    const size_t n = text.size() < sizeof text_ ? text.size() : sizeof text_ - 1;
    text.copy(text_, n);
    text_[n] = 0;
    return *this;
  }
  const char* c_str() const { return text_; }

 private:
  char text_[1024] = {};
};

}  // namespace gimbal
