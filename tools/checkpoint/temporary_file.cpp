#include "checkpoint/temporary_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "checkpoint/destination.hpp"
#include "checkpoint/input_error.hpp"
#include "checkpoint/interruption.hpp"

namespace gatefold::checkpoint {
namespace {

namespace fs = std::filesystem;

// By this link a file without a name can be given one.
std::string link_to_descriptor(int descriptor) { return "/proc/self/fd/" + std::to_string(descriptor); }

bool link_descriptor(int descriptor, const std::string& name) {
  return ::linkat(AT_FDCWD, link_to_descriptor(descriptor).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

// Names are used again: between opening and locking, the folder may have changed its name for the one that it replaces,
// and somebody may be filling another one under the old name.
bool is_still(const fs::path& path, int descriptor) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(descriptor, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

}  // namespace

std::string hidden_name(const fs::path& folder, int& attempt) {
  return folder / (".gatefold-" + std::to_string(::getpid()) + "-" + std::to_string(attempt++) + ".partial");
}

bool is_hidden_name(const std::string& name) { return name.starts_with(".gatefold-") && name.ends_with(".partial"); }

bool claim(int descriptor) {
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;  // no locks there: nobody removes
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && status.st_nlink != 0;
}

void remove_leftovers(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> hidden;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (is_hidden_name(entry.path().filename())) hidden.push_back(entry.path());
  }
  for (const fs::path& path : hidden) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) continue;
    const bool its_program_has_ended = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
    if (its_program_has_ended && is_still(path, descriptor)) fs::remove_all(path, error);
    ::close(descriptor);
  }
}

void flush_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

TemporaryFile::TemporaryFile(const fs::path& folder, std::string label) : folder_(folder), label_(std::move(label)) {
  remove_leftovers(folder_);
  if (!open_unnamed()) open_named();
}

// False where the file system, or a missing /proc, leaves no way to name the file later.
bool TemporaryFile::open_unnamed() {
  descriptor_ = ::open(folder_.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor_ < 0) return false;
  if (::access(link_to_descriptor(descriptor_).c_str(), F_OK) == 0) {
    ::flock(descriptor_, LOCK_EX | LOCK_NB);  // for replace(), where it has a hidden name for a moment
    return true;
  }
  ::close(descriptor_);
  return false;
}

void TemporaryFile::open_named() {
  const Uninterrupted whole;
  for (int attempt = 0;;) {
    name_ = hidden_name(folder_, attempt);
    descriptor_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno == EEXIST) continue;
    if (descriptor_ < 0) throw_input_error(label_, ": cannot create: ", error_text(errno));
    if (claim(descriptor_)) break;
    ::close(descriptor_);
  }
  remove_when_interrupted(name_);
}

TemporaryFile::~TemporaryFile() {
  if (!name_.empty()) {
    const Uninterrupted whole;
    ::unlink(name_.c_str());
    keep_when_interrupted(name_);
  }
  if (descriptor_ >= 0) ::close(descriptor_);
}

void TemporaryFile::flush() {
  if (::fsync(descriptor_) != 0) throw_input_error(label_, ": cannot write: ", error_text(errno));
}

void TemporaryFile::replace(const fs::path& path) {
  const Uninterrupted whole;
  if (name_.empty() && link_descriptor(descriptor_, path)) return;
  for (int attempt = 0; name_.empty();) {  // the name is taken: links replace nothing, renaming does
    std::string name = hidden_name(folder_of(path), attempt);
    if (link_descriptor(descriptor_, name)) {
      name_ = std::move(name);
      remove_when_interrupted(name_);
    } else if (errno != EEXIST) {
      throw_input_error(label_, ": cannot replace: ", error_text(errno));
    }
  }
  if (std::rename(name_.c_str(), path.c_str()) != 0) {
    throw_input_error(label_, ": cannot replace: ", error_text(errno));
  }
  keep_when_interrupted(name_);
  name_.clear();
}

}  // namespace gatefold::checkpoint
