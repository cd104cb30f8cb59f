#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

// Where writing to a path leads.
namespace gatefold::checkpoint {

struct Destination {
  enum class Kind {
    file,             // regular, or to be made: replaced whole. A symbolic link's target, not the link
    written_to,       // there, and something else: a device, a pipe
    standard_output,  // "-"
  };
  Kind kind = Kind::file;
  std::filesystem::path path;
};
Destination find_destination(const std::filesystem::path& path);  // throws InputError: a folder, a circle of links

// The path behind all symbolic links, also where there is nothing yet. Throws InputError.
std::filesystem::path resolve_links(const std::filesystem::path& path);

// The folder that a path's last name lies in.
std::filesystem::path folder_of(const std::filesystem::path& path);

// What decides if two paths are one file, through any links: device and inode, of a file to come those of its folder
// and its name. Empty where nothing can be lost by using it twice (/dev/null), or where there is no such folder.
struct FileIdentity {
  ::dev_t device = 0;
  ::ino_t inode = 0;
  std::string name{};

  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};
std::optional<FileIdentity> identify(const std::filesystem::path& path);

}  // namespace gatefold::checkpoint
