#pragma once

#include <string>

// What SIGINT, SIGTERM and SIGHUP find when they end the program.
namespace gatefold::checkpoint {

// While one lives, those signals wait for its end: what has to be done whole is done whole. For one thread at a time.
class Uninterrupted {
 public:
  Uninterrupted();
  Uninterrupted(const Uninterrupted&) = delete;
  Uninterrupted& operator=(const Uninterrupted&) = delete;
  ~Uninterrupted();
};

// A file or an empty folder that such a signal removes before it ends the program, until it is called off.
void remove_when_interrupted(const std::string& name);
void keep_when_interrupted(const std::string& name);

}  // namespace gatefold::checkpoint
