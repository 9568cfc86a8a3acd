// Narrow floats to and from f32, to nearest, ties to even. A NaN keeps its sign and the upper bits of its payload, as far as
// the format has them.
namespace collc {

// A half's bits as those of an f32 have an exponent that is 112 too small.
COLLC_FN f32 f32_of_f16(u16 half) {
    u32 magnitude = half & 0x7fffu;
    u32 finite = bits(mul(f32_of(magnitude << 13), f32_of((127u + 112) << 23)));
    u32 unbounded = (magnitude << 13) | 0x7f800000u;
    return f32_of((magnitude >= 0x7c00u ? unbounded : finite) | (half & 0x8000u) << 16);
}

// The way of M. Dukhan's FP16 library (2017): adding a power of two so large that the last bit of the sum is the last bit
// of the half lets the processor round, subnormals included. Up and down again, what a half cannot hold becomes infinite.
COLLC_FN u16 f16_of_f32(f32 value) {
    u32 magnitude = bits(value) & 0x7fffffffu;
    f32 scaled = mul(mul(f32_of(magnitude), f32_of((127u + 112) << 23)), f32_of((127u - 110) << 23));
    u32 exponent = greater(magnitude & 0x7f800000u, (127u - 14) << 23);
    u32 rounded = bits(add(f32_of(exponent + (15u << 23)), scaled));
    u32 half = ((rounded >> 13) & 0x7c00u) + (rounded & 0xfffu);
    u32 nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
    return (u16)((magnitude > 0x7f800000u ? nan : half) | ((bits(value) >> 16) & 0x8000u));
}

COLLC_FN f32 f32_of_bf16(u16 brain) { return f32_of((u32)brain << 16); }

COLLC_FN u16 bf16_of_f32(f32 value) {
    u32 x = bits(value);
    u32 rounded = (x + 0x7fffu + ((x >> 16) & 1)) >> 16;
    return (u16)((x & 0x7fffffffu) > 0x7f800000u ? (x >> 16) | 0x40u : rounded);
}

// Its bits as those of an f32 have an exponent that is 120 too small. There is one NaN of each sign, and no infinity.
COLLC_FN f32 f32_of_e4m3(u8 byte) {
    u32 magnitude = byte & 0x7fu;
    u32 finite = bits(mul(f32_of(magnitude << 20), f32_of((127u + 120) << 23)));
    return f32_of((magnitude == 0x7fu ? 0x7ff00000u : finite) | (byte & 0x80u) << 24);
}

// The upper byte of a half.
COLLC_FN f32 f32_of_e5m2(u8 byte) { return f32_of_f16((u16)(byte << 8)); }

// A magnitude, the bits of an f32 within the format's range, as a float of M bits after the point and an exponent that is
// BIAS too large. Among subnormals the last bit is worth 2^(1 - BIAS - M): a number so large that its own last bit is
// worth as much makes the processor round there.
template <int M, int BIAS> COLLC_FN u32 rounded_to(u32 magnitude) {
    const u32 dropped = 23 - M, anchor = (127u + 1 - BIAS - M + 23) << 23;
    u32 nearest = magnitude + ((1u << (dropped - 1)) - 1) + ((magnitude >> dropped) & 1);
    u32 normal = (nearest >> dropped) - ((127u - BIAS) << M);
    u32 subnormal = bits(add(f32_of(magnitude), f32_of(anchor))) - anchor;
    return magnitude < (127u + 1 - BIAS) << 23 ? subnormal : normal;
}

// Too large is the largest, 448.
COLLC_FN u8 e4m3_of_f32(f32 value) {
    u32 magnitude = bits(value) & 0x7fffffffu;
    u32 rounded = rounded_to<3, 7>(lesser(magnitude, 0x43e00000u));
    return (u8)((magnitude > 0x7f800000u ? 0x7fu : rounded) | (bits(value) >> 24 & 0x80u));
}

// Too large is the largest, 57344, but infinity stays what it is.
COLLC_FN u8 e5m2_of_f32(f32 value) {
    u32 magnitude = bits(value) & 0x7fffffffu;
    u32 rounded = rounded_to<2, 15>(lesser(magnitude, 0x47600000u));
    u32 unbounded = magnitude == 0x7f800000u ? 0x7cu : 0x7fu;
    return (u8)((magnitude >= 0x7f800000u ? unbounded : rounded) | (bits(value) >> 24 & 0x80u));
}

COLLC_FN f32 f32_of_f64(f64 value) {
    u64 x = bits(value);
    u32 nan = (u32)(x >> 32 & 0x80000000u) | 0x7fc00000u | (u32)(x >> 29 & 0x3fffffu);
    return is_nan(value) ? f32_of(nan) : COLLC_ON(__double2float_rn(value), (f32)value);
}

COLLC_FN f64 f64_of_f32(f32 value) {
    u64 x = bits(value);
    u64 nan = (x & 0x80000000u) << 32 | 0x7ff8000000000000u | (x & 0x3fffffu) << 29;
    return is_nan(value) ? f64_of(nan) : (f64)value;
}

// For arithmetic, where of a NaN no more is due than that it is one: a GPU converts halves itself.
COLLC_FN f32 loaded_f16(u16 half) {
#ifdef COLLC_HOST
    return f32_of_f16(half);
#else
    f32 wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(half));
    return wide;
#endif
}

COLLC_FN u16 stored_f16(f32 value) {
#ifdef COLLC_HOST
    return f16_of_f32(value);
#else
    u16 half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
#endif
}

} // namespace collc
