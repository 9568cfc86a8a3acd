// What one combination computes. An operator works on the bits of elements and, where several elements lie in one word, may
// work on the word: a lane.
namespace collc {

template <class Self, class B> struct Each {
    typedef B Bits;
    typedef B Lane;
    COLLC_FN B lane(B a, B b) { return Self::combine(a, b); }
};

template <class E> struct Sum : Each<Sum<E>, typename E::Bits> {
    typedef typename E::Bits B;
    COLLC_FN B combine(B a, B b) { return E::store(add(E::load(a), E::load(b))); }
};

template <class E> struct Prod : Each<Prod<E>, typename E::Bits> {
    typedef typename E::Bits B;
    COLLC_FN B combine(B a, B b) { return E::store(mul(E::load(a), E::load(b))); }
};

template <class E> struct Min : Each<Min<E>, typename E::Bits> {
    typedef typename E::Bits B;
    COLLC_FN B combine(B a, B b) { return E::store(lesser(E::load(a), E::load(b))); }
};

template <class E> struct Max : Each<Max<E>, typename E::Bits> {
    typedef typename E::Bits B;
    COLLC_FN B combine(B a, B b) { return E::store(greater(E::load(a), E::load(b))); }
};

// The lesser or greater of two narrow floats, without widening them. E4M3 has no infinity: its largest value takes the place.
template <class Signed, int INFINITE, bool GREATER>
struct Narrow : Each<Narrow<Signed, INFINITE, GREATER>, typename Integer<Signed>::Unsigned> {
    typedef typename Integer<Signed>::Unsigned B;
    COLLC_FN B combine(B a, B b) { return (B)ordered<Signed, GREATER>((Signed)a, (Signed)b, (Signed)INFINITE); }
};

template <class B> struct BitAnd {
    typedef B Bits;
    typedef u32 Lane;
    COLLC_FN B combine(B a, B b) { return (B)(a & b); }
    COLLC_FN u32 lane(u32 a, u32 b) { return a & b; }
};

template <class B> struct BitOr {
    typedef B Bits;
    typedef u32 Lane;
    COLLC_FN B combine(B a, B b) { return (B)(a | b); }
    COLLC_FN u32 lane(u32 a, u32 b) { return a | b; }
};

template <class B> struct BitXor {
    typedef B Bits;
    typedef u32 Lane;
    COLLC_FN B combine(B a, B b) { return (B)(a ^ b); }
    COLLC_FN u32 lane(u32 a, u32 b) { return a ^ b; }
};

// Zero is false, anything else true, and the result is 0 or 1.
template <class B> struct And : Each<And<B>, B> {
    COLLC_FN B combine(B a, B b) { return (B)((a != 0) & (b != 0)); }
};

template <class B> struct Or : Each<Or<B>, B> {
    COLLC_FN B combine(B a, B b) { return (B)((a | b) != 0); }
};

template <class B> struct Xor : Each<Xor<B>, B> {
    COLLC_FN B combine(B a, B b) { return (B)((a != 0) ^ (b != 0)); }
};

// Sums of 128-bit integers, the lower half first.
struct WideSum : Each<WideSum, Pair<u64> > {
    COLLC_FN Pair<u64> combine(Pair<u64> a, Pair<u64> b) {
        u64 lower = a.first + b.first;
        return {lower, a.second + b.second + (lower < a.first)};
    }
};

// The product of complex numbers, by the formula of the schoolbook; each operation rounds.
template <class E> struct ComplexProd : Each<ComplexProd<E>, Pair<typename E::Bits> > {
    typedef Pair<typename E::Bits> B;
    COLLC_FN B combine(B a, B b) {
        typedef typename E::Number N;
        N a_real = E::load(a.first), a_imaginary = E::load(a.second);
        N b_real = E::load(b.first), b_imaginary = E::load(b.second);
        N real = sub(mul(a_real, b_real), mul(a_imaginary, b_imaginary));
        N imaginary = add(mul(a_real, b_imaginary), mul(a_imaginary, b_real));
        return {E::store(real), E::store(imaginary)};
    }
};

// The lesser value with its index, or the greater one; of equal values, the lower index. Zeros of both signs are equal. NaN
// beats every number, and of two the lower index wins. Where even the index is equal, the bits decide.
COLLC_FN bool is_nan(i32) { return false; }
COLLC_FN bool is_nan(i64) { return false; }

template <class E, class Index, bool GREATER>
struct Located : Each<Located<E, Index, GREATER>, Pair<typename E::Bits> > {
    typedef Pair<typename E::Bits> B;
    COLLC_FN B combine(B a, B b) {
        typename E::Number x = E::load(a.first), y = E::load(b.first);
        bool x_nan = is_nan(x), y_nan = is_nan(y);
        bool better = (x_nan & !y_nan) | (GREATER ? x > y : x < y);
        bool equal = (x == y) | (x_nan & y_nan);
        Index i = (Index)a.second, j = (Index)b.second;
        bool breaks_tie = GREATER ? a.first <= b.first : a.first >= b.first;
        bool takes_a = better | (equal & ((i < j) | ((i == j) & breaks_tie)));
        return takes_a ? a : b;
    }
};

} // namespace collc
