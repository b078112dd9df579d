// Finds the request that ends workers. A worker reports each request that it begins to compute. After a
// loss these are suspects, and each runs again alone. Only a loss while a request is alone counts against
// it, so a request that ends every worker does not harm others.
#pragma once

namespace gimbal {

struct Blame {
  int losses = 0;          // consecutive workers lost with it alone, without progress between
  int unbegun = 0;         // consecutive workers lost that had it and had not begun it
  bool begun = false;      // its worker has begun to compute it
  bool suspect = false;    // must run alone
  bool handed_on = false;  // from a replaced worker; its successor has sent nothing yet

  // Its worker is lost; `alone`: it had no other request. False: this was the last of `attempts` such
  // losses; give the request up.
  bool lost(bool alone, int attempts) {
    // A waiting request is innocent as a rule. But reading it or its grammar may end a worker, too.
    unbegun = begun ? 0 : unbegun + 1;
    suspect = suspect || alone || begun || unbegun > 1;
    begun = false;
    return !alone || ++losses < attempts;
  }
  // A token or a vector came.
  void progressed() { *this = {0, 0, begun, false, false}; }
};

}  // namespace gimbal
