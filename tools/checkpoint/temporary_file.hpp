#pragma once

#include <filesystem>
#include <string>

namespace gatefold::checkpoint {

// A file to be written that has no name until it is finished (O_TMPFILE), so that whatever ends the program leaves
// nothing of it. Where the file system has no such thing, its name is a hidden one, which signals remove
// (interruption.hpp), and the next program that writes there.
class TemporaryFile {
 public:
  // `label` names it in errors. Throws InputError.
  TemporaryFile(const std::filesystem::path& folder, std::string label);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  int descriptor() const { return descriptor_; }

  void flush();                                        // to the disk
  void replace(const std::filesystem::path& path);     // gives it this name, and takes the name from who has it
  const std::string& label() const { return label_; }  // what errors call it

 private:
  bool open_unnamed();
  void open_named();

  std::filesystem::path folder_;
  std::string label_;
  std::string name_;  // "" while it has none
  int descriptor_ = -1;
};

// A hidden name in the folder that is not in use. `attempt` counts on, past those that are.
std::string hidden_name(const std::filesystem::path& folder, int& attempt);
bool is_hidden_name(const std::string& name);

// Keeps remove_leftovers of other programs away from a file or folder with a hidden name, as long as the descriptor is
// open. False: one of them was there first, and has removed it or is about to.
bool claim(int descriptor);

// Removes what programs that were killed left in the folder.
void remove_leftovers(const std::filesystem::path& folder);

// Makes new names in the folder last. They are there already, so that a file system that cannot flush a folder is no
// failure.
void flush_folder(const std::filesystem::path& folder);

}  // namespace gatefold::checkpoint
