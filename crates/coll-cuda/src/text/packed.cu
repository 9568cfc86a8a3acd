// Elements of one or two bytes, four or two in a word: what is done to each must not reach into the next. Flags are the
// upper bits of elements.
namespace collc {

template <class B> struct Packed;
template <> struct Packed<u8> {
    enum : u32 { upper = 0x80808080u, one = 0x01010101u, width = 8 };
};
template <> struct Packed<u16> {
    enum : u32 { upper = 0x80008000u, one = 0x00010001u, width = 16 };
};

// All bits below a flag, and all bits of the element.
template <class B> COLLC_FN u32 below(u32 flags) { return flags - (flags >> (Packed<B>::width - 1)); }
template <class B> COLLC_FN u32 filled(u32 flags) { return flags | below<B>(flags); }

// Flags of elements but for their upper bits that are greater than a number.
template <class B> COLLC_FN u32 exceeds(u32 x, u32 number) {
    const u32 upper = Packed<B>::upper;
    return ((x & ~upper) + (~upper - number * Packed<B>::one)) & upper;
}

// Flags of unsigned elements that are not less than others.
template <class B> COLLC_FN u32 at_least(u32 x, u32 y) {
    const u32 upper = Packed<B>::upper;
    u32 lower = (x | upper) - (y & ~upper);
    return ((x & ~y) | (~(x ^ y) & lower)) & upper;
}

template <class B, bool GREATER> COLLC_FN u32 chosen(u32 x, u32 y, u32 not_less) {
    u32 takes_x = GREATER ? filled<B>(not_less) : ~filled<B>(not_less);
    return (x & takes_x) | (y & ~takes_x);
}

template <class E> struct PackedSum {
    typedef typename E::Bits Bits;
    typedef u32 Lane;
    COLLC_FN Bits combine(Bits a, Bits b) { return Sum<E>::combine(a, b); }
    COLLC_FN u32 lane(u32 a, u32 b) {
        const u32 upper = Packed<Bits>::upper;
        return ((a & ~upper) + (b & ~upper)) ^ ((a ^ b) & upper);
    }
};

template <class E, bool GREATER> struct PackedChoice {
    typedef typename E::Bits Bits;
    typedef u32 Lane;
    COLLC_FN Bits combine(Bits a, Bits b) { return GREATER ? Max<E>::combine(a, b) : Min<E>::combine(a, b); }
    COLLC_FN u32 lane(u32 a, u32 b) {
        // With their signs turned round, signed numbers are ordered as unsigned ones are.
        const u32 signs = is_negative((typename E::Number)-1) ? (u32)Packed<Bits>::upper : 0;
        return chosen<Bits, GREATER>(a, b, at_least<Bits>(a ^ signs, b ^ signs));
    }
};

template <class Signed, int INFINITE, bool GREATER> struct PackedNarrow {
    typedef Narrow<Signed, INFINITE, GREATER> One;
    typedef typename One::Bits Bits;
    typedef u32 Lane;
    COLLC_FN Bits combine(Bits a, Bits b) { return One::combine(a, b); }
    COLLC_FN u32 lane(u32 a, u32 b) {
        const u32 upper = Packed<Bits>::upper;
        // In order, as unsigned numbers.
        u32 x = a ^ below<Bits>(a & upper) ^ upper, y = b ^ below<Bits>(b & upper) ^ upper;
        u32 nan = exceeds<Bits>(a, INFINITE) | exceeds<Bits>(b, INFINITE);
        return chosen<Bits, GREATER>(a, b, at_least<Bits>(x, y)) | filled<Bits>(nan);
    }
};

// One in each element that is not zero.
template <class B> COLLC_FN u32 truths(u32 x) {
    return ((exceeds<B>(x, 0) | x) & Packed<B>::upper) >> (Packed<B>::width - 1);
}

template <class B> struct PackedAnd {
    typedef B Bits;
    typedef u32 Lane;
    COLLC_FN B combine(B a, B b) { return And<B>::combine(a, b); }
    COLLC_FN u32 lane(u32 a, u32 b) { return truths<B>(a) & truths<B>(b); }
};

template <class B> struct PackedOr {
    typedef B Bits;
    typedef u32 Lane;
    COLLC_FN B combine(B a, B b) { return Or<B>::combine(a, b); }
    COLLC_FN u32 lane(u32 a, u32 b) { return truths<B>(a | b); }
};

template <class B> struct PackedXor {
    typedef B Bits;
    typedef u32 Lane;
    COLLC_FN B combine(B a, B b) { return Xor<B>::combine(a, b); }
    COLLC_FN u32 lane(u32 a, u32 b) { return truths<B>(a) ^ truths<B>(b); }
};

} // namespace collc
