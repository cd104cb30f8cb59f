#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace gatefold::checkpoint {

// A whole file, mapped read-only. Nothing is read until it is touched. Where another program has shortened the file
// meanwhile, what is behind its end can't be: the program ends with exit code 2 and a line that names the file.
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
  friend class MappedFiles;

  const std::string path_;
  std::span<const std::byte> bytes_;
  MappedFile* next_ = nullptr;  // of all that are mapped
};

}  // namespace gatefold::checkpoint
