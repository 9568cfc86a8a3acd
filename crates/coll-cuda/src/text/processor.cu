// The ground: integers and floats by their widths, and the only lines that tell a GPU from a host compiler.
//
// Arithmetic on floats goes through functions that round each operation by itself, so that no compiler can fuse a product
// and a sum. On a host, COLLC_HOST is defined and -ffp-contract=off says the same.
#ifdef COLLC_HOST
#include <math.h>
#include <string.h>
#define COLLC_FN static inline
#define COLLC_METHOD inline
#define COLLC_ON(device, host) (host)
#else
#define COLLC_FN static __device__ __forceinline__
#define COLLC_METHOD __device__ __forceinline__
#define COLLC_ON(device, host) (device)
#endif

namespace collc {

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef float f32;
typedef double f64;

#ifdef COLLC_HOST
template <class To, class From> static inline To same_bits(From from) {
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
#endif

COLLC_FN u32 bits(f32 x) { return COLLC_ON(__float_as_uint(x), same_bits<u32>(x)); }
COLLC_FN u64 bits(f64 x) { return COLLC_ON((u64)__double_as_longlong(x), same_bits<u64>(x)); }
COLLC_FN f32 f32_of(u32 x) { return COLLC_ON(__uint_as_float(x), same_bits<f32>(x)); }
COLLC_FN f64 f64_of(u64 x) { return COLLC_ON(__longlong_as_double((i64)x), same_bits<f64>(x)); }

COLLC_FN f32 add(f32 x, f32 y) { return COLLC_ON(__fadd_rn(x, y), x + y); }
COLLC_FN f32 sub(f32 x, f32 y) { return COLLC_ON(__fsub_rn(x, y), x - y); }
COLLC_FN f32 mul(f32 x, f32 y) { return COLLC_ON(__fmul_rn(x, y), x * y); }
COLLC_FN f32 div(f32 x, f32 y) { return COLLC_ON(__fdiv_rn(x, y), x / y); }
COLLC_FN f32 sqrt(f32 x) { return COLLC_ON(__fsqrt_rn(x), ::sqrtf(x)); }
COLLC_FN f32 remainder(f32 x, f32 y) { return ::fmodf(x, y); }
COLLC_FN f64 add(f64 x, f64 y) { return COLLC_ON(__dadd_rn(x, y), x + y); }
COLLC_FN f64 sub(f64 x, f64 y) { return COLLC_ON(__dsub_rn(x, y), x - y); }
COLLC_FN f64 mul(f64 x, f64 y) { return COLLC_ON(__dmul_rn(x, y), x * y); }
COLLC_FN f64 div(f64 x, f64 y) { return COLLC_ON(__ddiv_rn(x, y), x / y); }
COLLC_FN f64 sqrt(f64 x) { return COLLC_ON(__dsqrt_rn(x), ::sqrt(x)); }
COLLC_FN f64 remainder(f64 x, f64 y) { return ::fmod(x, y); }

// The upper half of a product of 64-bit integers.
COLLC_FN u64 mul_upper(u64 x, u64 y) {
    return COLLC_ON(__umul64hi(x, y), (u64)(((unsigned __int128)x * y) >> 64));
}

// Kernels see which thread of how many they are. On a host the threads of a launch run one after the other, and an entry
// takes its arguments as cuLaunchKernel is given them: an array of their addresses.
#ifdef COLLC_HOST
static thread_local u64 this_thread, all_threads;
COLLC_FN u64 thread() { return this_thread; }
COLLC_FN u64 threads() { return all_threads; }

template <int... I> struct Places {};
template <int N, int... I> struct First : First<N - 1, N - 1, I...> {};
template <int... I> struct First<0, I...> { typedef Places<I...> All; };

template <class... T, int... I> static void apply(void (*body)(T...), void** args, Places<I...>) {
    body(*(T*)args[I]...);
}

template <class... T> static void launch(void (*body)(T...), void** args, unsigned grid, unsigned block) {
    all_threads = (u64)grid * block;
    for (this_thread = 0; this_thread < all_threads; this_thread++) {
        apply(body, args, typename First<sizeof...(T)>::All());
    }
}
#define COLLC_ENTRY(name, ...)                                            \
    static void name##_body(__VA_ARGS__);                                 \
    extern "C" void name(void** args, unsigned grid, unsigned block) {    \
        collc::launch(name##_body, args, grid, block);                    \
    }                                                                     \
    static void name##_body(__VA_ARGS__)
#else
COLLC_FN u64 thread() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }
COLLC_FN u64 threads() { return (u64)gridDim.x * blockDim.x; }
#define COLLC_ENTRY(name, ...) extern "C" __global__ void name(__VA_ARGS__)
#endif

} // namespace collc
