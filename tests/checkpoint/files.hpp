#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/safetensors.hpp"

namespace gatefold::checkpoint::test {

// A folder of its own, gone at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  std::vector<std::string> names() const;  // of the files in it, sorted

 private:
  std::filesystem::path path_;
};

// A safetensors file's bytes: the header's length, or one that lies about it, the header and `data_bytes` bytes of
// data.
std::string file_bytes(const std::string& header, std::size_t data_bytes);
std::string file_bytes(const std::string& header, std::size_t data_bytes, std::uint64_t stated_length);

void write_file(const std::filesystem::path& path, const std::string& bytes);
std::string read_file(const std::filesystem::path& path);

// Expects InputError with one line that contains all the parts.
void expect_input_error(const std::function<void()>& action, const std::vector<std::string>& parts);

// A tensor to write, whose elements are `first`, first + 1, ... as bit patterns.
struct OwnedTensor {
  OwnedTensor(std::string name, gatefold_dtype dtype, Shape shape, unsigned first = 0);

  Tensor view() const;  // valid as long as this object

  std::string name;
  gatefold_dtype dtype;
  Shape shape;
  std::vector<std::byte> memory;
};

void write_tensors(const std::filesystem::path& path, const std::vector<OwnedTensor>& tensors);

}  // namespace gatefold::checkpoint::test
