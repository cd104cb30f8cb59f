#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/atomic_file.hpp"

namespace gatefold::checkpoint {

// Replaces a set of files in a folder at once: whoever looks, and whenever the program is killed, finds the old set or
// the new one. The files are written without names. Then a new folder is made beside the old one, with the new files
// in it and a second link to each file of the old one that does not belong to the set, and the two folders change their
// names in one step.
class FolderSwitch {
 public:
  // Says of a name if it belongs to the set.
  using Belongs = std::function<bool(const std::string& name)>;

  FolderSwitch(const std::filesystem::path& folder, Belongs belongs);  // every function throws InputError

  const std::filesystem::path& folder() const { return folder_; }
  const std::filesystem::path& workplace() const { return workplace_; }  // a folder that is there, on the same disk
  bool is_empty() const;                                                 // but for what killed programs left

  AtomicFile new_file(const std::string& name) const { return {folder_ / name, workplace_}; }
  void add(const std::string& name, AtomicFile file);  // a finished one
  void commit();

 private:
  void require_replaceable() const;
  std::string why_not_switchable() const;
  void place_in(const std::filesystem::path& folder);
  void switch_to_new();
  void carry_over(const std::filesystem::path& from, const std::filesystem::path& to) const;

  std::filesystem::path folder_;  // behind all links
  Belongs belongs_;
  bool exists_;
  std::filesystem::path workplace_;
  std::vector<std::pair<std::string, AtomicFile>> files_;
};

}  // namespace gatefold::checkpoint
