#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace gatefold::checkpoint {

// A file that appears whole or not at all: written under a temporary name in the same folder, flushed to the disk, then
// renamed. Without commit() the temporary file is removed and an old file of that name stays as it was.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);  // every function throws InputError
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> data);
  void write(std::string_view text);
  void commit();

 private:
  std::filesystem::path path_;
  std::string temporary_;
  int descriptor_ = -1;
};

void write_text_file(const std::filesystem::path& path, std::string_view text);

}  // namespace gatefold::checkpoint
