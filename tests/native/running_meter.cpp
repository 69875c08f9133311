// The meter of processor time: exact for work that lasts and for work after a pause, of short work
// in between the part that ran of the last measured; never more than the work itself; and anew
// where another thread goes on. The places in time are made up, the processor time is real.
#include <chrono>
#include <ctime>
#include <string>
#include <thread>

#include "loader/telemetry.hpp"
#include "numbered.hpp"

namespace {

using namespace brimful;
using namespace brimful::test;
using std::chrono::microseconds;
using std::chrono::milliseconds;

Clock::duration own_clock() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

// Runs for at least so long, by the thread's own clock.
void run_for(Clock::duration time) {
  const Clock::duration end = own_clock() + time;
  while (own_clock() < end) {
  }
}

void check_between(Clock::duration found, Clock::duration low, Clock::duration high,
                   const std::string& what) {
  check(low <= found && found <= high, what + ": " + std::to_string(to_seconds(found)) + " s");
}

}  // namespace

int main() {
  const Clock::time_point start = Clock::now();
  RunningMeter meter;

  meter.begin(start);
  run_for(milliseconds(3));
  check_between(meter.end(start + milliseconds(100), milliseconds(100)), milliseconds(3),
                milliseconds(50), "3 ms of 100 ran");

  meter.begin(start + milliseconds(101));
  run_for(milliseconds(3));
  check(meter.end(start + milliseconds(102), milliseconds(1)) == milliseconds(1),
        "no more ran than there was to do");

  // Nearly all of this piece was spent waiting, and what it ran is known although its beginning
  // followed the reading before at once.
  meter.begin(start + milliseconds(102));
  run_for(milliseconds(3));
  const Clock::duration ran = meter.end(start + milliseconds(1102), milliseconds(1000));
  check_between(ran, milliseconds(3), milliseconds(500), "3 ms of 1000 ran");

  // Not read for: all that runs here is not counted, and the part of the piece before is.
  meter.begin(start + milliseconds(1102));
  run_for(milliseconds(3));
  const Clock::duration guessed =
      meter.end(start + milliseconds(1102) + microseconds(100), microseconds(100));
  check_between(guessed, microseconds(0), microseconds(50), "a short piece is like the one before");
  check(guessed == std::chrono::duration_cast<Clock::duration>(to_seconds(ran) *
                                                               Clock::duration(microseconds(100))),
        "by the part that ran");

  std::thread([&] {
    meter.begin(start + milliseconds(1102) + microseconds(150));
    run_for(milliseconds(3));
    check_between(meter.end(start + milliseconds(1103), milliseconds(100)), milliseconds(3),
                  milliseconds(50), "another thread's clock is read when it begins");
  }).join();

  // One that has the id of the thread before, whose clock was far ahead.
  std::thread([&] {
    run_for(milliseconds(60));
    meter.begin(start + milliseconds(1200));
    meter.end(start + milliseconds(1201), milliseconds(1));
  }).join();
  std::thread([&] {
    meter.begin(start + milliseconds(1201) + microseconds(50));
    run_for(milliseconds(3));
    check_between(meter.end(start + milliseconds(1301), milliseconds(100)), milliseconds(3),
                  milliseconds(50), "a thread that follows another at once has a clock of its own");
  }).join();
}
