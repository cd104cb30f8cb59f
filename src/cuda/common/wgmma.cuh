#pragma once

#include <cute/tensor.hpp>

#include <cstdint>
#include <type_traits>

// wgmma as CuTe's operations are: 64 rows by n columns by 16 of k, both operands in shared memory with k contiguous,
// fp32 sums.
//
// CuTe's own headers leave out most widths, unless CUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED is defined: then they bring
// every width for every pair of types, dense and sparse, in 130,000 lines, and an empty source takes 67 s to compile in
// place of 14. Here a width is two lines, and the machine code is the same.
namespace gatefold::cuda {

using cute::SM90::GMMA::mma_unpack;  // cute::gemm looks for it beside the operation

// fma, for all threads of a warpgroup: the sums d0, d1, ... (n / 2 of a thread) = or += a . b^T, by the descriptors of
// shared memory a and b.
template <class Element, int n>
struct Wgmma;

// clang-format off: tables.
// X of the numbers of a thread's sums but 0: each width adds four.
#define GATEFOLD_SUMS_8(X) X(1) X(2) X(3)
#define GATEFOLD_SUMS_16(X) GATEFOLD_SUMS_8(X) X(4) X(5) X(6) X(7)
#define GATEFOLD_SUMS_24(X) GATEFOLD_SUMS_16(X) X(8) X(9) X(10) X(11)
#define GATEFOLD_SUMS_32(X) GATEFOLD_SUMS_24(X) X(12) X(13) X(14) X(15)
#define GATEFOLD_SUMS_40(X) GATEFOLD_SUMS_32(X) X(16) X(17) X(18) X(19)
#define GATEFOLD_SUMS_48(X) GATEFOLD_SUMS_40(X) X(20) X(21) X(22) X(23)
#define GATEFOLD_SUMS_56(X) GATEFOLD_SUMS_48(X) X(24) X(25) X(26) X(27)
#define GATEFOLD_SUMS_64(X) GATEFOLD_SUMS_56(X) X(28) X(29) X(30) X(31)
#define GATEFOLD_SUMS_72(X) GATEFOLD_SUMS_64(X) X(32) X(33) X(34) X(35)
#define GATEFOLD_SUMS_80(X) GATEFOLD_SUMS_72(X) X(36) X(37) X(38) X(39)
#define GATEFOLD_SUMS_88(X) GATEFOLD_SUMS_80(X) X(40) X(41) X(42) X(43)
#define GATEFOLD_SUMS_96(X) GATEFOLD_SUMS_88(X) X(44) X(45) X(46) X(47)
#define GATEFOLD_SUMS_104(X) GATEFOLD_SUMS_96(X) X(48) X(49) X(50) X(51)
#define GATEFOLD_SUMS_112(X) GATEFOLD_SUMS_104(X) X(52) X(53) X(54) X(55)
#define GATEFOLD_SUMS_120(X) GATEFOLD_SUMS_112(X) X(56) X(57) X(58) X(59)
#define GATEFOLD_SUMS_128(X) GATEFOLD_SUMS_120(X) X(60) X(61) X(62) X(63)
#define GATEFOLD_SUMS_136(X) GATEFOLD_SUMS_128(X) X(64) X(65) X(66) X(67)
#define GATEFOLD_SUMS_144(X) GATEFOLD_SUMS_136(X) X(68) X(69) X(70) X(71)
#define GATEFOLD_SUMS_152(X) GATEFOLD_SUMS_144(X) X(72) X(73) X(74) X(75)
#define GATEFOLD_SUMS_160(X) GATEFOLD_SUMS_152(X) X(76) X(77) X(78) X(79)
#define GATEFOLD_SUMS_168(X) GATEFOLD_SUMS_160(X) X(80) X(81) X(82) X(83)
#define GATEFOLD_SUMS_176(X) GATEFOLD_SUMS_168(X) X(84) X(85) X(86) X(87)
#define GATEFOLD_SUMS_184(X) GATEFOLD_SUMS_176(X) X(88) X(89) X(90) X(91)
#define GATEFOLD_SUMS_192(X) GATEFOLD_SUMS_184(X) X(92) X(93) X(94) X(95)
#define GATEFOLD_SUMS_200(X) GATEFOLD_SUMS_192(X) X(96) X(97) X(98) X(99)
#define GATEFOLD_SUMS_208(X) GATEFOLD_SUMS_200(X) X(100) X(101) X(102) X(103)
#define GATEFOLD_SUMS_216(X) GATEFOLD_SUMS_208(X) X(104) X(105) X(106) X(107)
#define GATEFOLD_SUMS_224(X) GATEFOLD_SUMS_216(X) X(108) X(109) X(110) X(111)
#define GATEFOLD_SUMS_232(X) GATEFOLD_SUMS_224(X) X(112) X(113) X(114) X(115)
#define GATEFOLD_SUMS_240(X) GATEFOLD_SUMS_232(X) X(116) X(117) X(118) X(119)
#define GATEFOLD_SUMS_248(X) GATEFOLD_SUMS_240(X) X(120) X(121) X(122) X(123)
#define GATEFOLD_SUMS_256(X) GATEFOLD_SUMS_248(X) X(124) X(125) X(126) X(127)

#define GATEFOLD_NAME(i) ", %" #i
#define GATEFOLD_PARAMETER(i) , float& d##i
#define GATEFOLD_OPERAND(i) , "+f"(d##i)
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// A, B, KEEP: the numbers of the operands after the sums.
#define GATEFOLD_ISSUE(N, TYPES, A, B, KEEP)                                                      \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #KEEP ", 0;\n"                                \
               "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPES                            \
               " {%0" GATEFOLD_SUMS_##N(GATEFOLD_NAME) "}, %" #A ", %" #B ", p, 1, 1, 0, 0;\n}\n" \
               : "+f"(d0) GATEFOLD_SUMS_##N(GATEFOLD_OPERAND)                                     \
               : "l"(a), "l"(b), "r"(static_cast<std::int32_t>(keep)))
#else
#define GATEFOLD_ISSUE(N, TYPES, A, B, KEEP) CUTE_INVALID_CONTROL_PATH("wgmma is an instruction of sm_90a")
#endif
#define GATEFOLD_WGMMA(N, A, B, KEEP)                                                 \
  template <class Element>                                                            \
  struct Wgmma<Element, N> {                                                          \
    using DRegisters = void;                                                          \
    using ARegisters = std::uint64_t[1];                                              \
    using BRegisters = std::uint64_t[1];                                              \
    using CRegisters = float[N / 2];                                                  \
    CUTE_HOST_DEVICE static void fma(const std::uint64_t& a, const std::uint64_t& b,  \
                                     float& d0 GATEFOLD_SUMS_##N(GATEFOLD_PARAMETER), \
                                     cute::SM90::GMMA::ScaleOut keep) {               \
      if constexpr (std::is_same_v<Element, cute::bfloat16_t>) {                      \
        GATEFOLD_ISSUE(N, "bf16.bf16", A, B, KEEP);                                   \
      } else {                                                                        \
        static_assert(std::is_same_v<Element, cute::half_t>);                         \
        GATEFOLD_ISSUE(N, "f16.f16", A, B, KEEP);                                     \
      }                                                                               \
    }                                                                                 \
  };

GATEFOLD_WGMMA(8, 4, 5, 6)
GATEFOLD_WGMMA(16, 8, 9, 10)
GATEFOLD_WGMMA(24, 12, 13, 14)
GATEFOLD_WGMMA(32, 16, 17, 18)
GATEFOLD_WGMMA(40, 20, 21, 22)
GATEFOLD_WGMMA(48, 24, 25, 26)
GATEFOLD_WGMMA(56, 28, 29, 30)
GATEFOLD_WGMMA(64, 32, 33, 34)
GATEFOLD_WGMMA(72, 36, 37, 38)
GATEFOLD_WGMMA(80, 40, 41, 42)
GATEFOLD_WGMMA(88, 44, 45, 46)
GATEFOLD_WGMMA(96, 48, 49, 50)
GATEFOLD_WGMMA(104, 52, 53, 54)
GATEFOLD_WGMMA(112, 56, 57, 58)
GATEFOLD_WGMMA(120, 60, 61, 62)
GATEFOLD_WGMMA(128, 64, 65, 66)
GATEFOLD_WGMMA(136, 68, 69, 70)
GATEFOLD_WGMMA(144, 72, 73, 74)
GATEFOLD_WGMMA(152, 76, 77, 78)
GATEFOLD_WGMMA(160, 80, 81, 82)
GATEFOLD_WGMMA(168, 84, 85, 86)
GATEFOLD_WGMMA(176, 88, 89, 90)
GATEFOLD_WGMMA(184, 92, 93, 94)
GATEFOLD_WGMMA(192, 96, 97, 98)
GATEFOLD_WGMMA(200, 100, 101, 102)
GATEFOLD_WGMMA(208, 104, 105, 106)
GATEFOLD_WGMMA(216, 108, 109, 110)
GATEFOLD_WGMMA(224, 112, 113, 114)
GATEFOLD_WGMMA(232, 116, 117, 118)
GATEFOLD_WGMMA(240, 120, 121, 122)
GATEFOLD_WGMMA(248, 124, 125, 126)
GATEFOLD_WGMMA(256, 128, 129, 130)

#undef GATEFOLD_WGMMA
#undef GATEFOLD_ISSUE
#undef GATEFOLD_OPERAND
#undef GATEFOLD_PARAMETER
#undef GATEFOLD_NAME
// clang-format on

}  // namespace gatefold::cuda

template <class Element, int n>
struct cute::MMA_Traits<gatefold::cuda::Wgmma<Element, n>> {
  using ValTypeD = float;
  using ValTypeA = Element;
  using ValTypeB = Element;
  using ValTypeC = float;
  using FrgTypeA = cute::SM90::GMMA::smem_desc<cute::SM90::GMMA::Major::K>;
  using FrgTypeB = cute::SM90::GMMA::smem_desc<cute::SM90::GMMA::Major::K>;
  using Shape_MNK = cute::Shape<cute::_64, cute::Int<n>, cute::_16>;
  using ThrID = cute::Layout<cute::_128>;
  using ALayout = cute::SM90::GMMA::ABLayout<64, 16>;
  using BLayout = cute::SM90::GMMA::ABLayout<n, 16>;
  using CLayout = cute::SM90::GMMA::CLayout_64xN<n>;

  cute::SM90::GMMA::ScaleOut accumulate_ = cute::SM90::GMMA::ScaleOut::One;  // Zero: the sums begin anew
};
