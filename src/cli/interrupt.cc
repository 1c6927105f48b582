// Ctrl-C ends the work at the next border between passes; a second one ends the program.
#include <atomic>
#include <csignal>

#include "cli/commands.h"

namespace dgemma {
namespace {

std::atomic<bool> raised{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may not lock");

}  // namespace

void catch_interrupt() {
  raised = false;
  std::signal(SIGINT, [](int) {
    raised = true;
    std::signal(SIGINT, SIG_DFL);
  });
}

bool interrupted() { return raised; }

}  // namespace dgemma
