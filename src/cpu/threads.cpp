#include "cpu/threads.hpp"

#include <pthread.h>

namespace gatefold::cpu {
namespace {

// Of this thread. GCC's runtime keeps a team's threads for the thread that led it.
thread_local bool has_led = false;
thread_local bool has_lost_its_team = false;

void lose_team() { has_lost_its_team = has_led; }

}  // namespace

bool may_lead_team() {
  [[maybe_unused]] static const int watched = pthread_atfork(nullptr, nullptr, lose_team);
  has_led = true;
  return !has_lost_its_team;
}

}  // namespace gatefold::cpu
