#include "checkpoint/interruption.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <vector>

namespace gatefold::checkpoint {
namespace {

std::atomic<bool> held{false};  // by the thread that writes, or for good by the handler that ends the program
std::atomic<int> waiting{0};    // a signal that came meanwhile
int depth = 0;                  // of the Uninterrupted that live

// Never destroyed: a signal may come while the program ends.
std::vector<std::string>& removed_names() {
  static auto* const names = new std::vector<std::string>();
  return *names;
}

// Only calls that a signal handler may make. The signal is blocked in its own handler, so raise() takes effect after
// it.
void end_by(int number) {
  for (const std::string& name : removed_names()) {
    if (::unlink(name.c_str()) != 0) ::rmdir(name.c_str());
  }
  std::signal(number, SIG_DFL);
  ::raise(number);
}

void on_signal(int number) {
  if (held.exchange(true)) {
    waiting = number;
    if (held.exchange(true)) return;  // else it was let go of before it could see the number
  }
  end_by(number);
}

// A signal that somebody ignores (nohup) or handles stays as it is.
void install_handlers() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction current {};
    if (::sigaction(number, nullptr, &current) != 0 || current.sa_handler != SIG_DFL) continue;
    struct sigaction ours {};
    ours.sa_handler = on_signal;
    ::sigemptyset(&ours.sa_mask);
    ours.sa_flags = SA_RESTART;
    ::sigaction(number, &ours, nullptr);
  }
}

}  // namespace

Uninterrupted::Uninterrupted() {
  static const bool installed = (install_handlers(), true);
  static_cast<void>(installed);
  if (depth++ != 0) return;
  while (held.exchange(true)) ::usleep(1000);  // a handler on another thread is about to end the program
}

Uninterrupted::~Uninterrupted() {
  if (--depth != 0) return;
  held = false;
  const int number = waiting.exchange(0);
  if (number != 0 && !held.exchange(true)) end_by(number);
}

void remove_when_interrupted(const std::string& name) {
  const Uninterrupted whole;
  removed_names().push_back(name);
}

void keep_when_interrupted(const std::string& name) {
  const Uninterrupted whole;
  std::erase(removed_names(), name);
}

}  // namespace gatefold::checkpoint
