#pragma once

#include "cuda/swap_ffn/passes.hpp"
#include "cuda/swap_ffn/piece.cuh"

// What an event does with one row of s once the router's sums are known, by a warp, whichever kernel has multiplied:
//
//   decide    in double precision: the router's sums are the only thing here that is rounded
//   exchange  the row with its bank in ram, where it swaps; 1/rms of what came in
namespace gatefold::cuda::swap_ffn {

struct RouteParams {
  Route o;
  std::int64_t rows = 0;
  std::int64_t columns = 0;  // D
  std::int64_t width = 0;    // R
  double eps = 0.0;
};

// What a route's sum is multiplied by in the logits; or what is added to them.
struct RouteHead {
  static constexpr int banks = 4;
  float swap;
  float of_banks[banks];
};

// Of route r.
__device__ inline RouteHead route_head(const RouteParams& p, std::int64_t r) {
  RouteHead head;
  head.swap = p.o.swap_w[r];
#pragma unroll
  for (int b = 0; b < RouteHead::banks; ++b) head.of_banks[b] = p.o.bank_w[r * RouteHead::banks + b];
  return head;
}
__device__ inline RouteHead route_bias(const RouteParams& p) {
  RouteHead head;
  head.swap = *p.o.swap_b;
#pragma unroll
  for (int b = 0; b < RouteHead::banks; ++b) head.of_banks[b] = p.o.bank_b[b];
  return head;
}

// A lane's part of a row's, which is divided among the lanes.
struct RouteLogits {
  static constexpr int banks = RouteHead::banks;
  double swap = 0.0;
  double of_banks[banks] = {};
};

template <class Element, bool vectors>
class RouteRow {
 public:
  using ThisPiece = Piece<Element, vectors>;
  static constexpr int elements = ThisPiece::elements;
  static constexpr int banks = RouteLogits::banks;

  __device__ RouteRow(const RouteParams& p, int lane) : p_(p), pieces_(p.columns / elements), lane_(lane) {}

  // z: a route's sum, scaled by 1/rms.
  static __device__ void add(RouteLogits& logits, const RouteHead& head, double z) {
    logits.swap += z * static_cast<double>(head.swap);
#pragma unroll
    for (int b = 0; b < banks; ++b) logits.of_banks[b] += z * static_cast<double>(head.of_banks[b]);
  }

  // When all have been added. map: the row's, as it is; inverse_rms: the row's own, which stays if it does not swap.
  __device__ void finish(RouteLogits& logits, const RouteHead& bias, std::int64_t row, unsigned map,
                         float inverse_rms) const {
    const double swap_logit = warp_sum(logits.swap) + static_cast<double>(bias.swap);
#pragma unroll
    for (int b = 0; b < banks; ++b) {
      logits.of_banks[b] = warp_sum(logits.of_banks[b]) + static_cast<double>(bias.of_banks[b]);
    }
    const unsigned choice = first_largest(logits.of_banks);
    const bool swaps = swap_logit > 0.0;  // sigmoid(v) > 1/2
    const unsigned lane_of_choice = map >> (2 * choice) & 3U;
    if (lane_ == 0 && p_.o.decisions != nullptr) {
      p_.o.decisions[row] = static_cast<std::uint8_t>(choice + (swaps ? 4U : 0U));
    }
    if (swaps) {
      const unsigned difference = (map & 3U) ^ lane_of_choice;
      if (lane_ == 0) {
        p_.o.stream_map[row] = static_cast<std::uint8_t>(map ^ difference ^ (difference << (2 * choice)));
      }
      exchange(row, lane_of_choice);
    } else if (lane_ == 0) {
      p_.o.inverse_rms[row] = inverse_rms;
    }
  }

 private:
  // The first of equals; a NaN counts as the largest.
  static __device__ unsigned first_largest(const double (&values)[banks]) {
    unsigned best = 0;
    double most = values[0];
#pragma unroll
    for (unsigned b = 1; b < banks; ++b) {
      if (values[b] > most || (isnan(values[b]) && !isnan(most))) {
        best = b;
        most = values[b];
      }
    }
    return best;
  }

  __device__ void exchange(std::int64_t row, unsigned bank) const {
    const std::int64_t bytes = p_.columns * static_cast<int>(sizeof(Element));
    std::byte* const s = p_.o.s + row * bytes;
    std::byte* const stored = p_.o.ram + (row * banks + bank) * bytes;
    double squares = 0.0;
    constexpr int batch = 4;  // pieces under way: nothing is stored before all of them have come
    for (std::int64_t first = lane_; first < pieces_; first += 32 * batch) {
      typename ThisPiece::Raw incoming[batch];
      typename ThisPiece::Raw outgoing[batch];
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        const std::int64_t piece = first + 32 * i;
        incoming[i] = piece < pieces_ ? ThisPiece::load(stored, piece) : ThisPiece::nothing();
        outgoing[i] = piece < pieces_ ? ThisPiece::load(s, piece) : ThisPiece::nothing();
      }
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        const std::int64_t piece = first + 32 * i;
        if (piece < pieces_) {
          ThisPiece::store(s, piece, incoming[i]);
          ThisPiece::store(stored, piece, outgoing[i]);
        }
        float values[elements];
        ThisPiece::unpack(incoming[i], values);
        squares = add_squares(squares, values);
      }
    }
    squares = warp_sum(squares);
    if (lane_ == 0) p_.o.inverse_rms[row] = inverse_rms_of(squares, p_.columns, p_.eps);
  }

  const RouteParams& p_;
  std::int64_t pieces_;  // of a row
  int lane_;
};

}  // namespace gatefold::cuda::swap_ffn
