#include "cli/input.hpp"

#include "checkpoint/input_error.hpp"
#include "cli/options.hpp"
#include "cli/random.hpp"

namespace gatefold::cli {

using checkpoint::throw_input_error;

Input::Input(const std::string& file, const Wanted& wanted) : file_(std::in_place, file) {
  const checkpoint::Tensor& x = file_->at("x");
  const checkpoint::ElementType type = checkpoint::element_type(wanted.dtype);
  if (!(x.type == type)) {
    throw_input_error(file, ": x: dtype ", x.type.name, ", but the checkpoint's weights are ", type.name);
  }
  if (x.shape.size() != 2)
    throw_input_error(file, ": x: shape ", checkpoint::to_string(x.shape), " is not [tokens, hidden_size]");
  if (x.shape[1] != wanted.hidden_size) {
    throw_input_error(file, ": x: shape ", checkpoint::to_string(x.shape), ", but the checkpoint's hidden_size is ",
                      wanted.hidden_size);
  }
  if (wanted.tokens && *wanted.tokens != x.shape[0]) {
    throw_input_error(file, ": x: shape ", checkpoint::to_string(x.shape), ", but --tokens is ", *wanted.tokens);
  }
  aligned_.emplace(x);
  tokens_ = x.shape[0];
  bytes_ = x.bytes;
}

Input::Input(std::uint64_t seed, std::int64_t tokens, const Wanted& wanted)
    : drawn_(static_cast<std::size_t>(tokens * wanted.hidden_size * size_of(wanted.dtype))),
      tokens_(tokens),
      bytes_(drawn_.size()) {
  fill_random(drawn_.data(), wanted.dtype, tokens * wanted.hidden_size, Distribution::normal(1.0), seed);
}

std::span<const std::byte> Input::x() const { return {aligned_ ? aligned_->data() : drawn_.data(), bytes_}; }

}  // namespace gatefold::cli
