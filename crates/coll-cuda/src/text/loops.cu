// The loops: any number of threads walk over all elements, 16 bytes at a time where every address allows it.
//
// Where all addresses are the same distance from a multiple of 16, what lies before the first multiple and behind the last
// is left for single elements; where they are not, all is. A target may be exactly any of the sources: a thread reads all
// that it combines before it writes.
namespace collc {

struct alignas(16) Vec { u32 words[4]; };

COLLC_FN void take(const Vec& v, int i, u8& to) { to = (u8)(v.words[i / 4] >> (i % 4 * 8)); }
COLLC_FN void take(const Vec& v, int i, u16& to) { to = (u16)(v.words[i / 2] >> (i % 2 * 16)); }
COLLC_FN void take(const Vec& v, int i, u32& to) { to = v.words[i]; }
COLLC_FN void take(const Vec& v, int i, u64& to) { to = v.words[2 * i] | (u64)v.words[2 * i + 1] << 32; }
template <class Part> COLLC_FN void take(const Vec& v, int i, Pair<Part>& to) {
    take(v, 2 * i, to.first);
    take(v, 2 * i + 1, to.second);
}

// Into zeros.
COLLC_FN void put(Vec& v, int i, u8 x) { v.words[i / 4] |= (u32)x << (i % 4 * 8); }
COLLC_FN void put(Vec& v, int i, u16 x) { v.words[i / 2] |= (u32)x << (i % 2 * 16); }
COLLC_FN void put(Vec& v, int i, u32 x) { v.words[i] = x; }
COLLC_FN void put(Vec& v, int i, u64 x) {
    v.words[2 * i] = (u32)x;
    v.words[2 * i + 1] = (u32)(x >> 32);
}
template <class Part> COLLC_FN void put(Vec& v, int i, Pair<Part> x) {
    put(v, 2 * i, x.first);
    put(v, 2 * i + 1, x.second);
}

template <class Op> COLLC_FN Vec combined(const Vec& a, const Vec& b) {
    typedef typename Op::Lane Lane;
    Vec result = {};
#pragma unroll
    for (int i = 0; i < (int)(16 / sizeof(Lane)); i++) {
        Lane x, y;
        take(a, i, x);
        take(b, i, y);
        put(result, i, Op::lane(x, y));
    }
    return result;
}

// target[i] = ((s0[i] + s1[i]) + s2[i]) + ..., whatever + is.
template <class Op, int K>
COLLC_FN void combine(void* target, const void* const (&sources)[K], u64 count) {
    typedef typename Op::Bits Bits;
    u64 apart = 0;
#pragma unroll
    for (int k = 0; k < K; k++) apart |= (u64)target ^ (u64)sources[k];
    u64 before = (0 - (u64)target) % 16, head = before / sizeof(Bits), vectors = 0;
    if (apart % 16 == 0 && before % sizeof(Bits) == 0 && head < count) {
        vectors = (count - head) * sizeof(Bits) / 16;
    }
    for (u64 at = thread(); at < vectors; at += threads()) {
        Vec all[K];
#pragma unroll
        for (int k = 0; k < K; k++) all[k] = ((const Vec*)((const u8*)sources[k] + before))[at];
        Vec result = all[0];
#pragma unroll
        for (int k = 1; k < K; k++) result = combined<Op>(result, all[k]);
        ((Vec*)((u8*)target + before))[at] = result;
    }
    u64 within = vectors * (16 / sizeof(Bits));
    for (u64 at = thread(); at < count - within; at += threads()) {
        u64 element = at < head ? at : at + within;
        Bits all[K];
#pragma unroll
        for (int k = 0; k < K; k++) all[k] = ((const Bits*)sources[k])[element];
        Bits result = all[0];
#pragma unroll
        for (int k = 1; k < K; k++) result = Op::combine(result, all[k]);
        ((Bits*)target)[element] = result;
    }
}

// What is read and written at once where one side is narrower than the other: the wider side has 16 bytes.
template <int BYTES> struct Part;
template <> struct Part<16> {
    COLLC_FN Vec read(const u8* from) { return *(const Vec*)from; }
    COLLC_FN void write(u8* to, const Vec& v) { *(Vec*)to = v; }
};
template <> struct Part<8> {
    COLLC_FN Vec read(const u8* from) {
        u64 x = *(const u64*)from;
        return {{(u32)x, (u32)(x >> 32), 0, 0}};
    }
    COLLC_FN void write(u8* to, const Vec& v) { *(u64*)to = v.words[0] | (u64)v.words[1] << 32; }
};
template <> struct Part<4> {
    COLLC_FN Vec read(const u8* from) { return {{*(const u32*)from, 0, 0, 0}}; }
    COLLC_FN void write(u8* to, const Vec& v) { *(u32*)to = v.words[0]; }
};
template <> struct Part<2> {
    COLLC_FN Vec read(const u8* from) { return {{*(const u16*)from, 0, 0, 0}}; }
    COLLC_FN void write(u8* to, const Vec& v) { *(u16*)to = (u16)v.words[0]; }
};

// to[i] = function(from[i])
template <class F> COLLC_FN void map(void* to, const void* from, u64 count, const F& function) {
    typedef typename F::From From;
    typedef typename F::To To;
    const bool widens = sizeof(To) > sizeof(From);
    const int elements = 16 / (widens ? sizeof(To) : sizeof(From));
    const int from_bytes = elements * sizeof(From), to_bytes = elements * sizeof(To);
    u64 wide = widens ? (u64)to : (u64)from, size = widens ? sizeof(To) : sizeof(From);
    u64 before = (0 - wide) % 16, head = before / size, vectors = 0;
    const u8* source = (const u8*)from + head * sizeof(From);
    u8* target = (u8*)to + head * sizeof(To);
    bool aligned = (u64)source % from_bytes == 0 && (u64)target % to_bytes == 0;
    if (before % size == 0 && aligned && head < count) vectors = (count - head) / elements;
    for (u64 at = thread(); at < vectors; at += threads()) {
        Vec in = Part<from_bytes>::read(source + at * from_bytes), out = {};
#pragma unroll
        for (int i = 0; i < elements; i++) {
            From x;
            take(in, i, x);
            put(out, i, function(x));
        }
        Part<to_bytes>::write(target + at * to_bytes, out);
    }
    u64 within = vectors * elements;
    for (u64 at = thread(); at < count - within; at += threads()) {
        u64 element = at < head ? at : at + within;
        ((To*)to)[element] = function(((const From*)from)[element]);
    }
}

// By the widest words that both addresses allow.
COLLC_FN void copy(void* to, const void* from, u64 bytes) {
    u64 apart = (u64)to ^ (u64)from;
    u64 head = lesser((0 - (u64)to) % 4, bytes), words = (bytes - head) / 4;
    if (apart % 16 == 0 || apart % 4 != 0) return map(to, from, bytes, Same<u8>());
    map((u8*)to + head, (const u8*)from + head, words, Same<u32>());
    u64 rest = bytes - 4 * words;
    for (u64 at = thread(); at < rest; at += threads()) {
        u64 byte = at < head ? at : at + 4 * words;
        ((u8*)to)[byte] = ((const u8*)from)[byte];
    }
}

} // namespace collc
