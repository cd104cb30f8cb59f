#include "checkpoint/folder_switch.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <thread>

#include "checkpoint/destination.hpp"
#include "checkpoint/input_error.hpp"
#include "checkpoint/interruption.hpp"

namespace gatefold::checkpoint {
namespace {

namespace fs = std::filesystem;

// Finished files are kept open until all are: one descriptor each.
void allow_many_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

fs::path without_trailing_slash(const fs::path& path) {
  const fs::path absolute = fs::absolute(path).lexically_normal();
  return absolute.has_filename() ? absolute : absolute.parent_path();
}

bool is_mount_point(const fs::path& folder) {
  struct statx status {};
  return ::statx(AT_FDCWD, folder.c_str(), 0, 0, &status) == 0 && (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

// A folder with a hidden name, which is empty and gone at the end.
class HiddenFolder {
 public:
  explicit HiddenFolder(const fs::path& parent) {
    for (int attempt = 0;;) {
      path_ = hidden_name(parent, attempt);
      if (::mkdir(path_.c_str(), 0777) != 0) {
        if (errno == EEXIST) continue;
        throw_input_error(path_.string(), ": cannot create the folder: ", error_text(errno));
      }
      descriptor_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      if (descriptor_ >= 0 && claim(descriptor_)) return;
      ::close(descriptor_);
    }
  }
  HiddenFolder(const HiddenFolder&) = delete;
  HiddenFolder& operator=(const HiddenFolder&) = delete;
  ~HiddenFolder() {
    std::error_code error;
    fs::remove_all(path_, error);  // after the switch it has what the old folder had
    ::close(descriptor_);
  }

  const fs::path& path() const { return path_; }

  void be_like(const fs::path& folder) const {
    struct stat status {};
    if (::stat(folder.c_str(), &status) != 0) return;
    // The owner of a folder that is somebody else's cannot be kept without their rights.
    if (::fchown(descriptor_, status.st_uid, status.st_gid) != 0)
      static_cast<void>(::fchown(descriptor_, -1, status.st_gid));
    if (::fchmod(descriptor_, status.st_mode & 07777) != 0) {
      throw_input_error(folder.string(), ": cannot make a folder like it: ", error_text(errno));
    }
  }

 private:
  fs::path path_;
  int descriptor_ = -1;
};

// The old folder, which has the hidden name after the switch: claimed like whatever has one, so that nobody takes it
// for the leftover of a program that has ended. Somebody who opened it while it was still hidden, as a new folder, has
// its lock for a moment, so this waits; not for ever, since a caller may hold the lock for the whole of our call.
class ClaimedFolder {
 public:
  explicit ClaimedFolder(const fs::path& folder)
      : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    using std::chrono::steady_clock;
    const auto end = steady_clock::now() + std::chrono::seconds(1);
    while (descriptor_ >= 0 && !claim(descriptor_) && steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  ClaimedFolder(const ClaimedFolder&) = delete;
  ClaimedFolder& operator=(const ClaimedFolder&) = delete;
  ~ClaimedFolder() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

 private:
  int descriptor_;
};

}  // namespace

FolderSwitch::FolderSwitch(const fs::path& folder, Belongs belongs)
    : folder_(resolve_links(without_trailing_slash(folder))), belongs_(std::move(belongs)) {
  std::error_code error;
  exists_ = fs::exists(folder_, error);
  workplace_ = exists_ ? folder_ : folder_of(folder_);
  fs::create_directories(workplace_, error);
  if (!error && !fs::is_directory(workplace_)) error = std::make_error_code(std::errc::not_a_directory);
  if (error) throw_input_error(folder.string(), ": cannot create the folder: ", error.message());
  remove_leftovers(workplace_);
  if (exists_) remove_leftovers(folder_of(folder_));
  require_replaceable();
  allow_many_descriptors();
}

bool FolderSwitch::is_empty() const {
  if (!exists_) return true;
  return std::ranges::all_of(fs::directory_iterator(folder_),
                             [](const auto& entry) { return is_hidden_name(entry.path().filename()); });
}

// Says so before hours of writing, not after. Where there is nothing of an old set, new files can be put in one by one.
void FolderSwitch::require_replaceable() const {
  const std::string why_not = why_not_switchable();
  if (why_not.empty()) return;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename();
    if (belongs_(name))
      throw_input_error(folder_.string(), ": cannot replace ", name, " and the rest at once: ", why_not);
  }
}

std::string FolderSwitch::why_not_switchable() const {
  if (!exists_) return "";
  std::error_code error;
  if (fs::equivalent(folder_, ".", error)) return "the folder is the current one";
  if (is_mount_point(folder_)) return "the folder is a mount point";
  if (::access(folder_of(folder_).c_str(), W_OK | X_OK) != 0) {
    return "no folder can be made beside it: " + error_text(errno);
  }
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (entry.is_directory(error) && !entry.is_symlink(error) && !is_hidden_name(entry.path().filename())) {
      return "it has another folder in it, " + entry.path().filename().string();
    }
  }
  return "";
}

void FolderSwitch::add(const std::string& name, AtomicFile file) { files_.emplace_back(name, std::move(file)); }

void FolderSwitch::commit() {
  const Uninterrupted whole;
  if (why_not_switchable().empty()) {
    switch_to_new();
  } else {
    require_replaceable();
    place_in(folder_);
  }
  files_.clear();
}

void FolderSwitch::place_in(const fs::path& folder) {
  for (auto& [name, file] : files_) file.commit_as(folder / name);
}

void FolderSwitch::switch_to_new() {
  const fs::path parent = folder_of(folder_);
  const ClaimedFolder old(folder_);  // until `made` has removed it
  const HiddenFolder made(parent);
  place_in(made.path());
  if (exists_) {
    carry_over(folder_, made.path());
    made.be_like(folder_);
  }
  const unsigned how = exists_ ? RENAME_EXCHANGE : RENAME_NOREPLACE;
  if (::renameat2(AT_FDCWD, made.path().c_str(), AT_FDCWD, folder_.c_str(), how) != 0) {
    throw_input_error(folder_.string(), ": cannot put the new folder in its place: ", error_text(errno));
  }
  flush_folder(parent);
  if (exists_) carry_over(made.path(), folder_);  // what somebody put into the old folder meanwhile
}

// By links, so that the old folder stays as it is.
void FolderSwitch::carry_over(const fs::path& from, const fs::path& to) const {
  for (const auto& entry : fs::directory_iterator(from)) {
    const std::string name = entry.path().filename();
    if (belongs_(name) || is_hidden_name(name)) continue;
    if (::linkat(AT_FDCWD, entry.path().c_str(), AT_FDCWD, (to / name).c_str(), 0) != 0 && errno != EEXIST) {
      throw_input_error(entry.path().string(), ": cannot link it into the new folder: ", error_text(errno));
    }
  }
}

}  // namespace gatefold::checkpoint
