#pragma once

#include <string>

// One line on stderr that says what is going on, overwritten as it changes; nothing where stderr is not a terminal.
namespace gatefold::cli {

class Progress {
 public:
  Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  void show(const std::string& text);
  void clear();

 private:
  bool terminal_;
  bool shown_ = false;
};

}  // namespace gatefold::cli
