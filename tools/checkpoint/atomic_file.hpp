#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/temporary_file.hpp"

namespace gatefold::checkpoint {

// A file that appears whole or not at all: written without a name in the same folder, flushed to the disk, then put in
// place. Without commit() an old file of that name stays as it was. A symbolic link stays one: its target is replaced.
// What is no regular file (/dev/null, a pipe, "-": stdout) is written to instead.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);  // every function throws InputError

  // To be put in place by commit_as; until then it lies in `folder`. `path` names it in errors.
  AtomicFile(const std::filesystem::path& path, const std::filesystem::path& folder);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> data);
  void write(std::string_view text);
  void flush();
  void commit();
  void commit_as(const std::filesystem::path& path);

 private:
  int descriptor() const { return file_ ? file_->descriptor() : descriptor_; }

  std::filesystem::path path_;
  std::unique_ptr<TemporaryFile> file_;  // null for what is written to
  int descriptor_ = -1;                  // of what is written to
};

void write_text_file(const std::filesystem::path& path, std::string_view text);

}  // namespace gatefold::checkpoint
