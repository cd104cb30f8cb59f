// Any bytes are either refused with one line, or a file whose tensors lie inside it; and what was read, written again
// and read again, is the same.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "checkpoint/input_error.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint/safetensors_writer.hpp"

namespace {

using namespace gatefold::checkpoint;

void require(bool condition) {
  if (!condition) std::abort();
}

std::optional<SafetensorsContents> parse(std::span<const std::byte> bytes) {
  try {
    return parse_safetensors(bytes, "input");
  } catch (const InputError& error) {
    const std::string line = error.what();
    require(!line.empty() && line.find('\n') == std::string::npos);
    return std::nullopt;
  }
}

// The tensors follow one another to the end of the input. Reads all their data, for the sanitizer to see.
void check_contents(const SafetensorsContents& contents, std::span<const std::byte> bytes) {
  std::size_t sum = 0;
  std::size_t total = 0;
  for (const Tensor& tensor : contents.tensors) {
    require(tensor.bytes == 0 || (tensor.data >= bytes.data() && tensor.bytes <= bytes.size()));
    require(tensor_bytes(tensor.type, tensor.shape) == tensor.bytes);
    for (const std::byte value : tensor.range()) sum += std::to_integer<std::size_t>(value);
    require(AlignedData(tensor).copied() == (!tensor.aligned() && tensor.bytes > 0));
    total += tensor.bytes;
  }
  require(sum <= 255 * bytes.size() && total < bytes.size());
}

void check_round_trip(const SafetensorsContents& contents) {
  static const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("gatefold-fuzz-" + std::to_string(::getpid()) + ".safetensors");
  write_safetensors(path, contents.tensors, contents.metadata);
  const SafetensorsFile file(path);
  require(file.metadata() == contents.metadata && file.tensors().size() == contents.tensors.size());
  for (const Tensor& tensor : contents.tensors) {
    const Tensor& again = file.at(tensor.name);
    require(again.type == tensor.type && again.shape == tensor.shape && again.aligned());
    require(std::ranges::equal(again.range(), tensor.range()));
  }
  std::filesystem::remove(path);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto contents = parse(bytes);
  if (!contents) return 0;
  check_contents(*contents, bytes);
  // A round trip flushes a file to the disk, which is slow: one in sixteen.
  if (size % 16 == 0) check_round_trip(*contents);
  return 0;
}
