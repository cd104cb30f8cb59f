#include "checkpoint/destination.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "checkpoint/input_error.hpp"

namespace gatefold::checkpoint {
namespace {

namespace fs = std::filesystem;

// As many links as Linux itself follows.
constexpr int most_links = 40;

}  // namespace

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

fs::path resolve_links(const fs::path& path) {
  std::error_code error;
  fs::path resolved = path;
  for (int links = 0; fs::is_symlink(fs::symlink_status(resolved, error)); ++links) {
    const fs::path target = fs::read_symlink(resolved, error);
    if (error || links == most_links) throw_input_error(path.string(), ": ", error_text(error ? error.value() : ELOOP));
    resolved = folder_of(resolved) / target;  // an absolute target replaces all
  }
  return resolved;
}

Destination find_destination(const fs::path& path) {
  if (path == "-") return {Destination::Kind::standard_output, path};
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)) {
    return {Destination::Kind::file, resolve_links(path)};
  }
  if (S_ISDIR(status.st_mode)) throw_input_error(path.string(), ": is a folder, expected a file");
  return {Destination::Kind::written_to, path};
}

std::optional<FileIdentity> identify(const fs::path& path) {
  struct stat status {};
  if (path == "-") {
    if (::fstat(STDOUT_FILENO, &status) != 0) return std::nullopt;
    return FileIdentity{status.st_dev, status.st_ino};
  }
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISCHR(status.st_mode)) return std::nullopt;
    return FileIdentity{status.st_dev, status.st_ino};
  }
  const fs::path file = resolve_links(path);
  if (::stat(folder_of(file).c_str(), &status) != 0) return std::nullopt;
  return FileIdentity{status.st_dev, status.st_ino, file.filename()};
}

}  // namespace gatefold::checkpoint
