#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/atomic_file.hpp"
#include "checkpoint/safetensors.hpp"

namespace gatefold::checkpoint {

// What the header says of a tensor to come.
struct TensorSpec {
  std::string name;
  ElementType type;
  Shape shape;
};

// Writes a file piece by piece, for tensors that do not fit in memory. The data follow in the order of the specs.
class SafetensorsWriter {
 public:
  // Throws InputError: a size that overflows, a name twice, a folder that cannot be written.
  SafetensorsWriter(const std::filesystem::path& path, const std::vector<TensorSpec>& specs, const Metadata& metadata);

  // The same into a file that its owner puts in place. `name` names it in errors.
  SafetensorsWriter(const std::string& name, AtomicFile file, const std::vector<TensorSpec>& specs,
                    const Metadata& metadata);

  // The next bytes of the data.
  void append(std::span<const std::byte> data);

  // Puts the finished file in place. Throws std::logic_error unless exactly the announced bytes were appended.
  void commit();

  // In place of commit(): gives the finished file back, flushed to the disk.
  AtomicFile finish() &&;

  std::uint64_t data_bytes() const { return data_bytes_; }  // of all tensors together

 private:
  struct Header {
    std::string text;  // with its length in front
    std::uint64_t data_bytes;
  };
  static Header make_header(const std::string& file, const std::vector<TensorSpec>& specs, const Metadata& metadata);
  SafetensorsWriter(AtomicFile file, const Header& header);
  void require_complete() const;

  AtomicFile file_;
  std::uint64_t data_bytes_;
  std::uint64_t appended_ = 0;
};

// Writes all tensors, those with the widest elements first, so that each is aligned. Either the whole file appears or
// nothing changes. Throws InputError.
void write_safetensors(const std::filesystem::path& path, std::vector<Tensor> tensors, const Metadata& metadata = {});

}  // namespace gatefold::checkpoint
