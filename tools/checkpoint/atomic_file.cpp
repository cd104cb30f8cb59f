#include "checkpoint/atomic_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "checkpoint/input_error.hpp"

namespace gatefold::checkpoint {
namespace {

// Linux writes at most 2 GiB - 4096 bytes at a time; a smaller round number keeps every call short.
constexpr std::size_t largest_write = std::size_t{1} << 28;

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

// A new file in the folder, under a name that nobody has.
int create_temporary(const std::filesystem::path& path, std::string& name) {
  for (int attempt = 0;; ++attempt) {
    name = folder_of(path) / (".gatefold-" + std::to_string(::getpid()) + "-" + std::to_string(attempt) + ".partial");
    const int descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0) return descriptor;
    if (errno != EEXIST) throw_input_error(path.string(), ": cannot create: ", error_text(errno));
  }
}

// Makes the new name itself last. The rename has happened already, so a file system that cannot flush a folder is no
// failure.
void flush_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

AtomicFile::AtomicFile(const std::filesystem::path& path)
    : path_(path), descriptor_(create_temporary(path, temporary_)) {}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> data) {
  while (!data.empty()) {
    const ::ssize_t written = ::write(descriptor_, data.data(), std::min(data.size(), largest_write));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_input_error(path_.string(), ": cannot write: ", error_text(errno));
    data = data.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void AtomicFile::commit() {
  const bool flushed = ::fsync(descriptor_) == 0;
  const int flush_error = errno;
  const bool closed = ::close(descriptor_) == 0;
  const int close_error = errno;
  descriptor_ = -1;
  if (!flushed || !closed) {
    throw_input_error(path_.string(), ": cannot write: ", error_text(flushed ? close_error : flush_error));
  }
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    throw_input_error(path_.string(), ": cannot replace: ", error_text(errno));
  }
  temporary_.clear();
  flush_folder(folder_of(path_));
}

void write_text_file(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace gatefold::checkpoint
