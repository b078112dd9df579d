// Which request was it that a worker was lost with? The worker says whose rows it begins to compute. After a
// loss those are suspects, and each is tried again with nobody beside it. Only a loss while it is alone
// counts against it, so a request that ends every worker takes no other one with it.
#pragma once

namespace gimbal {

struct Blame {
  int losses = 0;          // workers lost in a row with it alone, without progress between
  int unbegun = 0;         // workers lost in a row that had it and had not begun it
  bool begun = false;      // its worker has begun to compute it
  bool suspect = false;    // to be tried alone
  bool handed_on = false;  // from a worker that was exchanged, and the next one has not told a thing yet

  // The worker that had it is lost; `alone`: and had nothing else. False: it was lost so with `attempts` of
  // them, and is given up.
  bool lost(bool alone, int attempts) {
    // What waits in a worker is innocent as a rule. But reading it or its grammar may be what ends workers.
    unbegun = begun ? 0 : unbegun + 1;
    suspect = suspect || alone || begun || unbegun > 1;
    begun = false;
    return !alone || ++losses < attempts;
  }
  // A token or a vector came.
  void progressed() { *this = {0, 0, begun, false, false}; }
};

}  // namespace gimbal
