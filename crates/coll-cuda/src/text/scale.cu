// What a rank puts in and what is made of the result, where working elements are not the elements: a function from the bits
// of one to the bits of the other, with what it needs to know of the call.
namespace collc {

COLLC_FN u64 at_least_one(u64 x) { return x == 0 ? 1 : x; }

template <class FromBits, class ToBits> struct Function {
    typedef FromBits From;
    typedef ToBits To;
};

template <class E, class W> struct Convert : Function<typename E::Bits, typename W::Bits> {
    COLLC_METHOD typename W::Bits operator()(typename E::Bits x) const {
        return W::store((typename W::Number)E::load(x));
    }
};

template <class B> struct Same : Function<B, B> {
    COLLC_METHOD B operator()(B x) const { return x; }
};

// The lower half first; the upper is the sign.
template <class E> struct Widen128 : Function<u64, Pair<u64> > {
    COLLC_METHOD Pair<u64> operator()(u64 x) const {
        return {x, is_negative(E::load(x)) ? ~(u64)0 : (u64)0};
    }
};

// A float's fraction, in the type that it is computed in. Of a power of two the reciprocal is exact, and so the product is
// the quotient.
template <class E, class W> struct Fraction : Function<typename E::Bits, typename W::Bits> {
    typename W::Number ranks, part;
    bool exact;
    COLLC_METHOD explicit Fraction(u64 all)
        : ranks((typename W::Number)all), part(div((typename W::Number)1, ranks)), exact((all & (all - 1)) == 0) {}
    COLLC_METHOD typename W::Bits operator()(typename E::Bits bits) const {
        typename W::Number x = (typename W::Number)E::load(bits);
        return W::store(exact ? mul(x, part) : div(x, ranks));
    }
};

// A float that was divided by another number than that of its leaves is mended.
template <class W, class E> struct Mended : Function<typename W::Bits, typename E::Bits> {
    f64 ranks, leaves;
    COLLC_METHOD Mended(u64 all, u64 count) : ranks((f64)all), leaves((f64)count) {}
    COLLC_METHOD typename E::Bits operator()(typename W::Bits x) const {
        f64 mean = div(mul((f64)W::load(x), ranks), leaves);
        return E::store(COLLC_ON(__double2float_rn(mean), (f32)mean));
    }
};

struct MendedF64 : Function<u64, u64> {
    f64 factor;
    COLLC_METHOD MendedF64(u64 ranks, u64 leaves) : factor(div((f64)ranks, (f64)leaves)) {}
    COLLC_METHOD u64 operator()(u64 x) const { return bits(mul(f64_of(x), factor)); }
};

// The quotient of an 8-bit float's sum.
template <class E> struct MeanOfF32 : Function<u32, typename E::Bits> {
    f32 leaves;
    COLLC_METHOD explicit MeanOfF32(u64 count) : leaves((f32)count) {}
    COLLC_METHOD typename E::Bits operator()(u32 x) const { return E::store(div(f32_of(x), leaves)); }
};

// An integer's sum divided toward zero. A divisor that exceeds every sum's size leaves zero.
template <class W, class E> struct Mean : Function<typename W::Bits, typename E::Bits> {
    typedef typename W::Bits B;
    B leaves;
    bool beyond;
    COLLC_METHOD explicit Mean(u64 count) : leaves((B)count), beyond(count != (u64)(B)count) {}
    COLLC_METHOD typename E::Bits operator()(B bits) const {
        bool negative = is_negative(W::load(bits));
        B size = negative ? neg(bits) : bits;
        B quotient = beyond ? (B)0 : (B)(size / leaves);
        return (typename E::Bits)(negative ? neg(quotient) : quotient);
    }
};

// Of 128-bit sums, whose quotient has 64 bits: N. Möller and T. Granlund, Improved Division by Invariant Integers, IEEE
// Transactions on Computers 60 (2011), algorithm 4, as the CPU does.
struct Divisor {
    u64 divisor, reciprocal;
    int shift;

    COLLC_METHOD explicit Divisor(u64 by) : divisor(by), reciprocal(0), shift(0) {
        for (; !(divisor >> 63); shift++) divisor <<= 1;
        // (2^128 - 1) / divisor - 2^64, bit by bit: the first rest is less than the divisor, whose upper bit is set.
        u64 rest = ~divisor;
        for (int bit = 0; bit < 64; bit++) {
            bool carries = rest >> 63;
            rest = rest << 1 | 1;
            bool fits = carries || rest >= divisor;
            rest -= fits ? divisor : 0;
            reciprocal = reciprocal << 1 | (u64)fits;
        }
    }

    COLLC_METHOD u64 quotient(u64 upper, u64 lower) const {
        if (shift > 0) {
            upper = upper << shift | lower >> (64 - shift);
            lower <<= shift;
        }
        u64 product = reciprocal * upper, fraction = product + lower;
        u64 estimate = mul_upper(reciprocal, upper) + upper + (fraction < product) + 1;
        u64 rest = lower - estimate * divisor;
        if (rest > fraction) {
            estimate--;
            rest += divisor;
        }
        return rest >= divisor ? estimate + 1 : estimate;
    }
};

template <bool SIGNED> struct Mean128 : Function<Pair<u64>, u64> {
    Divisor leaves;
    COLLC_METHOD explicit Mean128(u64 count) : leaves(count) {}
    COLLC_METHOD u64 operator()(Pair<u64> sum) const {
        u64 sign = SIGNED && sum.second >> 63 ? ~(u64)0 : (u64)0;
        u64 lower = (sum.first ^ sign) - sign;
        u64 upper = (sum.second ^ sign) + (sign != 0 && lower == 0);
        return (leaves.quotient(upper, lower) ^ sign) - sign;
    }
};

// The value times a factor, rounded to the type as any product is.
template <class E, class W> struct Times : Function<typename E::Bits, typename W::Bits> {
    typename W::Number factor;
    COLLC_METHOD explicit Times(f64 by) : factor((typename W::Number)by) {}
    COLLC_METHOD typename W::Bits operator()(typename E::Bits x) const {
        return W::store(mul((typename W::Number)E::load(x), factor));
    }
};

// A large factor may leave the range of f32 even: that is too large, and not infinite.
struct TimesE5M2 : Function<u8, u8> {
    f32 factor;
    COLLC_METHOD explicit TimesE5M2(f64 by) : factor((f32)by) {}
    COLLC_METHOD u8 operator()(u8 bits_of_x) const {
        f32 x = f32_of_e5m2(bits_of_x), product = mul(x, factor);
        u32 largest = (bits_of_x & 0x7cu) == 0x7cu ? 0x7f800000u : 0x7f7fffffu;
        if (!is_nan(product) && bits(abs(product)) > largest) {
            product = f32_of((bits(product) & 0x80000000u) | largest);
        }
        return e5m2_of_f32(product);
    }
};

} // namespace collc
