// The planes of packing/layout.h that keep the codes of blocks of 256. E is the eighth of the block (32
// columns), i the vector in it.
// codes() is instantiated for each eighth, or for `alike` eighths from E on, with vectors numbered 8 (e - E)
// + i. any_eighth() is a single function for all eighths, with variable shifts.
#pragma once

template <DType T>
struct NibblePlane {
  static constexpr int at = gimbal::cpu::parts256(T).nibbles, sharing = 2, alike = 4;
  static constexpr int from(int e) { return 4 * (e / 4); }  // the bits of the eighth's codes begin here
  template <int E, int To>
  static inline Codes codes(const uint8_t* b, int i) {
    return field<4 * (E / 4), To, 4>(load_codes(b + at + 64 * (8 * (E % 4) + i)));
  }
  template <int To = 0>
  static inline Codes any_eighth(const uint8_t* b, int e, int i) {
    return field_from<To, 4>(load_codes(b + at + 64 * (8 * (e % 4) + i)), from(e));
  }
};
template <DType T>
struct PairPlane {
  static constexpr int at = gimbal::cpu::parts256(T).pairs, sharing = 4, alike = 2;
  static constexpr int from(int e) { return 2 * (e / 2); }
  template <int E, int To>
  static inline Codes codes(const uint8_t* b, int i) {
    return field<2 * (E / 2), To, 2>(load_codes(b + at + 64 * (8 * (E % 2) + i)));
  }
  template <int To = 0>
  static inline Codes any_eighth(const uint8_t* b, int e, int i) {
    return field_from<To, 2>(load_codes(b + at + 64 * (8 * (e % 2) + i)), from(e));
  }
};
template <DType T>
struct BitPlane {
  static constexpr int at = gimbal::cpu::parts256(T).bits, alike = 1;
  static constexpr int from(int e) { return e; }
  template <int E, int To>
  static inline Codes codes(const uint8_t* b, int i) {
    return field<E, To, 1>(load_codes(b + at + 64 * i));
  }
  template <int To = 0>
  static inline Codes any_eighth(const uint8_t* b, int e, int i) {
    return field_from<To, 1>(load_codes(b + at + 64 * i), e);
  }
};
// Codes of one plane, or of two: the upper one shifted by the width of the lower. The codes of eighth e are
// multiplied as they are, or times 2^place, where that spares shifts: sums of products are whole numbers, and
// are shifted back. `sharing` eighths, one every 8 / sharing, are parts of the same vectors.
template <class Low>
struct OnePlane {
  static constexpr int sharing = Low::sharing, alike = Low::alike > 2 ? Low::alike : 1;
  static constexpr int place(int e, int most) { return most << Low::from(e) <= kMaxCode ? Low::from(e) : 0; }
  template <int E, int To = 0>
  static inline Codes codes(const uint8_t* b, int i) {
    return Low::template codes<E, To>(b, i);
  }
  static inline Codes any_eighth(const uint8_t* b, int e, int i) { return Low::any_eighth(b, e, i); }
};
template <class Low, class High, int Shift>
struct TwoPlanes {
  static constexpr int sharing = Low::sharing, alike = High::alike;
  static constexpr int shifts(int e, int to) { return (Low::from(e) != to) + (High::from(e) != to + Shift); }
  static constexpr int place(int e, int most) {
    int best = 0;
    for (int to = 1; most << to <= kMaxCode; to++)
      if (shifts(e, to) < shifts(e, best)) best = to;
    return best;
  }
  template <int E, int To = 0>
  static inline Codes codes(const uint8_t* b, int i) {
    return either(Low::template codes<E, To>(b, i), High::template codes<E, To + Shift>(b, i));
  }
  static inline Codes any_eighth(const uint8_t* b, int e, int i) {
    return either(Low::any_eighth(b, e, i), High::template any_eighth<Shift>(b, e, i));
  }
};

// Codes that name a level, kept as level + Zero.
template <class Plane, Levels L, int Zero>
struct NamedLevels {
  static constexpr int sharing = Plane::sharing, alike = Plane::alike;
  static constexpr int place(int, int) { return 0; }
  template <int E, int To = 0>
  static inline Codes codes(const uint8_t* b, int i) {
    return lookup(Plane::template codes<E, 0>(b, i), kLevelTable<L, Zero>.entry);
  }
  static inline Codes any_eighth(const uint8_t* b, int e, int i) {
    return lookup(Plane::any_eighth(b, e, i), kLevelTable<L, Zero>.entry);
  }
};
template <class Plane>
struct Doubled {
  static constexpr int sharing = Plane::sharing, alike = Plane::alike;
  static constexpr int place(int e, int most) { return Plane::from(e) > 0 && most << 3 <= kMaxCode ? 3 : 0; }
  template <int E, int To = 0>
  static inline Codes codes(const uint8_t* b, int i) {
    return Plane::template codes<E, To + 1>(b, i);
  }
  static inline Codes any_eighth(const uint8_t* b, int e, int i) {
    return Plane::template any_eighth<1>(b, e, i);
  }
};
// 8 trit + shift + 9: the pair in bits 3 and 4, the shift in bit 1.
template <DType T>
struct ShiftedTrits {
  using Plane = PairPlane<T>;
  static constexpr int sharing = Plane::sharing, alike = 1, at = gimbal::cpu::parts256(T).shifts;
  static constexpr int place(int, int) { return 0; }
  template <int E, int To = 0>
  static inline Codes codes(const uint8_t* b, int i) {
    return either(Plane::template codes<E, 3>(b, i), field<E, 1, 1>(spread(load_codes(b + at), i / 2)));
  }
  static inline Codes any_eighth(const uint8_t* b, int e, int i) {
    return either(Plane::template any_eighth<3>(b, e, i),
                  field_from<1, 1>(spread(load_codes(b + at), i / 2), e));
  }
};
