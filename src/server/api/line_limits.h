// Ends an answer by its lines, for editors that insert it into a file: the fields `n_indent` and
// `t_max_predict_ms` of llama.cpp's server, and an answer of no text at all (`n_predict` 0).
#pragma once
#include <string>

namespace gimbal::api {

struct LineLimits {
  int indent = 0;        // spaces and tabs that each line behind the first must begin with
  double seconds = 0;    // from the first token on; then the next line's end ends the answer. 0: no limit
  bool nothing = false;  // the first token ends the answer, and is not part of it

  // Takes the next text and cuts it where the answer ends. True: it ends there.
  bool ends(std::string& text, double seconds_so_far);

  bool any() const { return indent > 0 || seconds > 0 || nothing; }

 private:
  bool begins_line_ = false;
  int found_ = 0;  // of the line's indentation
};

}  // namespace gimbal::api
