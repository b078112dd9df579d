// The decimal numbers that are multiples of a number, as an automaton over digits.
#pragma once
#include "grammar/char_machine.h"
#include "grammar/decimal.h"

namespace gimbal {

// Digits with a sign and a point, of which a text of a number is read: the automaton leaves to others that
// there is a digit at all, and which zeros may lead. At most as many digits after the point as `factor` has.
// Errors: Usage, a factor that needs too many states.
Result<CharMachine> multiples_of(const Decimal& factor);

}  // namespace gimbal
