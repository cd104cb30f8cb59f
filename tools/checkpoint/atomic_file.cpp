#include "checkpoint/atomic_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "checkpoint/destination.hpp"
#include "checkpoint/input_error.hpp"

namespace gatefold::checkpoint {
namespace {

// Linux writes at most 2 GiB - 4096 bytes at a time; a smaller round number keeps every call short.
constexpr std::size_t largest_write = std::size_t{1} << 28;

int open_to_write(const Destination& destination) {
  const bool standard = destination.kind == Destination::Kind::standard_output;
  const int descriptor = standard ? ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
                                  : ::open(destination.path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
  if (descriptor < 0) throw_input_error(destination.path.string(), ": cannot write: ", error_text(errno));
  return descriptor;
}

// A device and a pipe have nothing to flush, and say so.
bool cannot_be_flushed(int error) { return error == EINVAL || error == EROFS || error == ENOTSUP; }

}  // namespace

AtomicFile::AtomicFile(const std::filesystem::path& path) {
  const Destination destination = find_destination(path);
  path_ = destination.kind == Destination::Kind::standard_output ? "stdout" : destination.path;
  if (destination.kind == Destination::Kind::file) {
    file_ = std::make_unique<TemporaryFile>(folder_of(path_), path.string());
  } else {
    descriptor_ = open_to_write(destination);
  }
}

AtomicFile::AtomicFile(const std::filesystem::path& path, const std::filesystem::path& folder)
    : path_(path), file_(std::make_unique<TemporaryFile>(folder, path.string())) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)), file_(std::move(other.file_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void AtomicFile::write(std::span<const std::byte> data) {
  while (!data.empty()) {
    const ::ssize_t written = ::write(descriptor(), data.data(), std::min(data.size(), largest_write));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_input_error(path_.string(), ": cannot write: ", error_text(errno));
    data = data.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void AtomicFile::flush() {
  if (file_) return file_->flush();
  if (::fsync(descriptor_) != 0 && !cannot_be_flushed(errno)) {
    throw_input_error(path_.string(), ": cannot write: ", error_text(errno));
  }
}

void AtomicFile::commit() {
  if (file_) return commit_as(path_);
  flush();
  if (::close(std::exchange(descriptor_, -1)) != 0) {
    throw_input_error(path_.string(), ": cannot write: ", error_text(errno));
  }
}

void AtomicFile::commit_as(const std::filesystem::path& path) {
  file_->flush();
  file_->replace(path);
  flush_folder(folder_of(path));
}

void write_text_file(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace gatefold::checkpoint
