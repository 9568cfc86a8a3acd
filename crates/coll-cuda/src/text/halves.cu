// Sums and products of narrow floats, a word at a time, mostly by a GPU's arithmetic on two halves at once.
//
// Rounded to a half at once, a sum or product of halves is what it is by way of f32: f32 has more than twice as many bits
// (S. A. Figueroa, When is double rounding innocuous?, 1995). 8-bit floats become halves, are combined, and rounded to 8 bits,
// twice in all, which is as good as once: a half keeps 11 bits. A sum that needs more has one operand so small that no rounding
// to 8 bits sees it, and a product needs 8 at most. A test tries all pairs, as it does on the CPU, which goes the same way.
namespace collc {

#ifdef COLLC_HOST
template <bool PRODUCT> COLLC_FN u32 halves(u32 x, u32 y) {
    u32 both = 0;
    for (int shift = 0; shift < 32; shift += 16) {
        f32 a = f32_of_f16((u16)(x >> shift)), b = f32_of_f16((u16)(y >> shift));
        both |= (u32)f16_of_f32(PRODUCT ? mul(a, b) : add(a, b)) << shift;
    }
    return both;
}
#else
template <bool PRODUCT> COLLC_FN u32 halves(u32 x, u32 y) {
    u32 both;
    if (PRODUCT) {
        asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(both) : "r"(x), "r"(y));
    } else {
        asm("add.rn.f16x2 %0, %1, %2;" : "=r"(both) : "r"(x), "r"(y));
    }
    return both;
}
#endif

// One combination of single elements, by way of f32.
template <class E, bool PRODUCT> COLLC_FN typename E::Bits single(typename E::Bits a, typename E::Bits b) {
    return PRODUCT ? Prod<E>::combine(a, b) : Sum<E>::combine(a, b);
}

template <bool PRODUCT> struct HalfF16 {
    typedef u16 Bits;
    typedef u32 Lane;
    COLLC_FN u16 combine(u16 a, u16 b) { return single<F16, PRODUCT>(a, b); }
    COLLC_FN u32 lane(u32 a, u32 b) { return halves<PRODUCT>(a, b); }
};

// A bf16 is the upper half of an f32, in which it is combined.
template <bool PRODUCT> struct HalfBf16 {
    typedef u16 Bits;
    typedef u32 Lane;
    COLLC_FN u16 combine(u16 a, u16 b) { return single<Bf16, PRODUCT>(a, b); }
    COLLC_FN u32 lane(u32 a, u32 b) {
        u32 odd = rounded(f32_of(a & 0xffff0000u), f32_of(b & 0xffff0000u));
        u32 even = rounded(f32_of(a << 16), f32_of(b << 16));
        return (odd & 0xffff0000u) | even >> 16;
    }
    // To the upper half.
    COLLC_FN u32 rounded(f32 x, f32 y) {
        f32 value = PRODUCT ? mul(x, y) : add(x, y);
        u32 nearest = bits(value) + 0x7fffu + ((bits(value) >> 16) & 1);
        return is_nan(value) ? bits(value) | 0x400000u : nearest;
    }
};

// An E5M2 is the upper byte of a half.
template <bool PRODUCT> struct HalfE5M2 {
    typedef u8 Bits;
    typedef u32 Lane;
    COLLC_FN u8 combine(u8 a, u8 b) { return single<E5M2, PRODUCT>(a, b); }
    COLLC_FN u32 lane(u32 a, u32 b) {
        // Infinite where an operand is, and else at most the largest.
        u32 unbounded = exceeds<u8>(a, 0x7b) | exceeds<u8>(b, 0x7b);
        u32 odd = rounded(halves<PRODUCT>(a & 0xff00ff00u, b & 0xff00ff00u), unbounded);
        u32 even = rounded(halves<PRODUCT>((a << 8) & 0xff00ff00u, (b << 8) & 0xff00ff00u), unbounded << 8);
        return odd | even >> 8;
    }
    // To the upper byte of each half.
    COLLC_FN u32 rounded(u32 x, u32 unbounded) {
        const u32 upper = 0x80008000u;
        u32 nearest = (x & ~upper) + 0x007f007fu + ((x >> 8) & 0x00010001u);
        u32 magnitude = nearest & 0x7f007f00u;
        u32 too_large = (magnitude + 0x04000400u) & ~unbounded & upper;
        u32 nan = below<u16>(exceeds<u16>(x, 0x7c00)) & 0x7f007f00u;
        return (magnitude - (too_large >> 7)) | nan | (x & upper);
    }
};

// An E4M3 is a half times 2^-8 whose exponent's upper bit is not there; a half's too begin at zero. NaN, of which there is
// one, is found in the operands: as a half it is a number.
template <bool PRODUCT> struct HalfE4M3 {
    typedef u8 Bits;
    typedef u32 Lane;
    COLLC_FN u8 combine(u8 a, u8 b) { return single<E4M3, PRODUCT>(a, b); }
    COLLC_FN u32 lane(u32 a, u32 b) {
        u32 odd = combined_halves(a, b), even = combined_halves(a << 8, b << 8);
        u32 nan = below<u8>(exceeds<u8>(a, 0x7e) | exceeds<u8>(b, 0x7e));
        return odd | even >> 8 | nan;
    }
    COLLC_FN u32 combined_halves(u32 a, u32 b) {
        u32 x = widened(a), y = widened(b);
        // 256 in both, so that the product has the factor 2^-8 once.
        return rounded(halves<PRODUCT>(x, PRODUCT ? halves<true>(y, 0x5c005c00u) : y));
    }
    // Of the upper bytes of both halves.
    COLLC_FN u32 widened(u32 x) { return (x & 0x80008000u) | ((x & 0x7f007f00u) >> 1); }
    // To the upper bytes, 0x7e at most.
    COLLC_FN u32 rounded(u32 x) {
        u32 nearest = (x & 0x7fff7fffu) + 0x003f003fu + ((x >> 7) & 0x00010001u);
        u32 magnitude = (nearest >> 7) & 0x00ff00ffu;
        u32 too_large = filled<u16>((magnitude + 0x7f817f81u) & 0x80008000u);
        magnitude = (magnitude & ~too_large) | (0x007e007eu & too_large);
        return magnitude << 8 | (x & 0x80008000u);
    }
};

} // namespace collc
