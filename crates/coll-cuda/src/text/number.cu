// What numbers can do, for every type that elements are computed in. Integers wrap; a quotient by zero is zero, and a
// remainder is never negative; least and greatest propagate NaN, and -0 is less than 0.
namespace collc {

template <class T> struct Integer;
template <> struct Integer<i8> { typedef u8 Unsigned; typedef u32 Work; };
template <> struct Integer<u8> { typedef u8 Unsigned; typedef u32 Work; };
template <> struct Integer<i16> { typedef u16 Unsigned; typedef u32 Work; };
template <> struct Integer<u16> { typedef u16 Unsigned; typedef u32 Work; };
template <> struct Integer<i32> { typedef u32 Unsigned; typedef u32 Work; };
template <> struct Integer<u32> { typedef u32 Unsigned; typedef u32 Work; };
template <> struct Integer<i64> { typedef u64 Unsigned; typedef u64 Work; };
template <> struct Integer<u64> { typedef u64 Unsigned; typedef u64 Work; };

// Unsigned, and wide enough that C++ promotes no operand to a signed type.
#define COLLC_WORK(T) typename Integer<T>::Work

template <class T> COLLC_FN T add(T x, T y) { return (T)((COLLC_WORK(T))x + (COLLC_WORK(T))y); }
template <class T> COLLC_FN T sub(T x, T y) { return (T)((COLLC_WORK(T))x - (COLLC_WORK(T))y); }
template <class T> COLLC_FN T mul(T x, T y) { return (T)((COLLC_WORK(T))x * (COLLC_WORK(T))y); }
template <class T> COLLC_FN T neg(T x) { return (T)(0 - (COLLC_WORK(T))x); }
template <class T> COLLC_FN bool is_negative(T x) { return x < (T)1 && x != (T)0; }
template <class T> COLLC_FN T abs(T x) { return is_negative(x) ? neg(x) : x; }
template <class T> COLLC_FN T lesser(T x, T y) { return y < x ? y : x; }
template <class T> COLLC_FN T greater(T x, T y) { return y < x ? x : y; }

// All bits set: of a signed number, minus one, by which the least one cannot be divided.
template <class T> COLLC_FN bool is_minus_one(T x) { return is_negative((T)-1) && x == (T)-1; }

template <class T> COLLC_FN T div(T x, T y) {
    if (y == 0) return 0;
    return is_minus_one(y) ? neg(x) : (T)(x / y);
}

template <class T> COLLC_FN T modulo(T x, T y) {
    if (y == 0 || is_minus_one(y)) return 0;
    T rest = (T)(x % y);
    if (!is_negative(rest)) return rest;
    return is_negative(y) ? sub(rest, y) : add(rest, y);
}

// Distances beyond the width leave nothing but the sign.
template <class T> COLLC_FN bool is_within(T by) { return !is_negative(by) && (u64)by < 8 * sizeof(T); }
template <class T> COLLC_FN T shl(T x, T by) {
    return is_within(by) ? (T)((COLLC_WORK(T))x << (int)by) : (T)0;
}
template <class T> COLLC_FN T shr(T x, T by) {
    return is_within(by) ? (T)(x >> (int)by) : is_negative(x) ? (T)-1 : (T)0;
}

template <class T> COLLC_FN T bit_and(T x, T y) { return (T)(x & y); }
template <class T> COLLC_FN T bit_or(T x, T y) { return (T)(x | y); }
template <class T> COLLC_FN T bit_xor(T x, T y) { return (T)(x ^ y); }

// The bits of floats in order, as integers: with the lower bits turned round where the sign is set they are ordered as the
// numbers are. NaN is what lies above infinity but for the sign; it becomes one with all bits set.
template <class Signed> COLLC_FN Signed turned(Signed x) {
    const int sign = 8 * sizeof(Signed) - 1;
    typedef typename Integer<Signed>::Unsigned Unsigned;
    return (Signed)(x ^ ((x >> sign) & (Signed)((Unsigned)-1 >> 1)));
}

template <class Signed, bool GREATER> COLLC_FN Signed ordered(Signed x, Signed y, Signed infinity) {
    typedef typename Integer<Signed>::Unsigned Unsigned;
    const Signed all = (Signed)((Unsigned)-1 >> 1);
    Signed u = turned(x), v = turned(y);
    Signed chosen = turned(GREATER ? greater(u, v) : lesser(u, v));
    return (x & all) > infinity || (y & all) > infinity ? (Signed)-1 : chosen;
}

COLLC_FN f32 neg(f32 x) { return f32_of(bits(x) ^ 0x80000000u); }
COLLC_FN f64 neg(f64 x) { return f64_of(bits(x) ^ 0x8000000000000000u); }
COLLC_FN f32 abs(f32 x) { return f32_of(bits(x) & 0x7fffffffu); }
COLLC_FN f64 abs(f64 x) { return f64_of(bits(x) & 0x7fffffffffffffffu); }
COLLC_FN f32 lesser(f32 x, f32 y) {
    return f32_of((u32)ordered<i32, false>((i32)bits(x), (i32)bits(y), 0x7f800000));
}
COLLC_FN f32 greater(f32 x, f32 y) {
    return f32_of((u32)ordered<i32, true>((i32)bits(x), (i32)bits(y), 0x7f800000));
}
COLLC_FN f64 lesser(f64 x, f64 y) {
    return f64_of((u64)ordered<i64, false>((i64)bits(x), (i64)bits(y), 0x7ff0000000000000));
}
COLLC_FN f64 greater(f64 x, f64 y) {
    return f64_of((u64)ordered<i64, true>((i64)bits(x), (i64)bits(y), 0x7ff0000000000000));
}

template <class F> COLLC_FN F modulo_of_floats(F x, F y) {
    if (y == 0) return 0;
    F rest = remainder(x, y);
    return rest < 0 ? add(rest, abs(y)) : rest;
}
COLLC_FN f32 modulo(f32 x, f32 y) { return modulo_of_floats(x, y); }
COLLC_FN f64 modulo(f64 x, f64 y) { return modulo_of_floats(x, y); }

COLLC_FN bool is_nan(f32 x) { return (bits(x) & 0x7fffffffu) > 0x7f800000u; }
COLLC_FN bool is_nan(f64 x) { return (bits(x) & 0x7fffffffffffffffu) > 0x7ff0000000000000u; }

} // namespace collc
