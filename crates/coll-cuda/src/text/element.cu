// Elements in memory, and the numbers that they are computed as.
namespace collc {

#define COLLC_ELEMENT(Name, bits_type, number_type, loaded, stored)              \
    struct Name {                                                                \
        typedef bits_type Bits;                                                  \
        typedef number_type Number;                                              \
        COLLC_FN Number load(Bits x) { return loaded; }                          \
        COLLC_FN Bits store(Number x) { return stored; }                         \
    };

COLLC_ELEMENT(I8, u8, i8, (i8)x, (u8)x)
COLLC_ELEMENT(U8, u8, u8, x, x)
COLLC_ELEMENT(I16, u16, i16, (i16)x, (u16)x)
COLLC_ELEMENT(U16, u16, u16, x, x)
COLLC_ELEMENT(I32, u32, i32, (i32)x, (u32)x)
COLLC_ELEMENT(U32, u32, u32, x, x)
COLLC_ELEMENT(I64, u64, i64, (i64)x, (u64)x)
COLLC_ELEMENT(U64, u64, u64, x, x)
COLLC_ELEMENT(E4M3, u8, f32, f32_of_e4m3(x), e4m3_of_f32(x))
COLLC_ELEMENT(E5M2, u8, f32, f32_of_e5m2(x), e5m2_of_f32(x))
COLLC_ELEMENT(F16, u16, f32, loaded_f16(x), stored_f16(x))
COLLC_ELEMENT(Bf16, u16, f32, f32_of_bf16(x), bf16_of_f32(x))
COLLC_ELEMENT(F32, u32, f32, f32_of(x), bits(x))
COLLC_ELEMENT(F64, u64, f64, f64_of(x), bits(x))
// Where the bits of a NaN are due too.
COLLC_ELEMENT(F16Exact, u16, f32, f32_of_f16(x), f16_of_f32(x))
COLLC_ELEMENT(F64ByF32, u64, f32, f32_of_f64(f64_of(x)), bits(f64_of_f32(x)))

// Two parts, aligned as one.
template <class Part> struct Pair { Part first, second; };

} // namespace collc
