#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace gatefold::checkpoint {

// A whole file, mapped read-only. Nothing is read until it is touched. Like every mapping, it assumes that nobody
// shortens the file meanwhile.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);  // throws InputError
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

  // Drops the resident pages that the range touches. Touched again, they are read again.
  void release(std::span<const std::byte> range) const;

  // Asks the kernel to start reading the range.
  void will_need(std::span<const std::byte> range) const;

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace gatefold::checkpoint
