// The memo of windows gives out the window that it was given last, and no other; once taken it is
// gone, also where several threads ask at once.
#include "plan/window_memo.hpp"

#include <array>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "numbered.hpp"
#include "plan/plan.hpp"

namespace {

using namespace brimful;
using namespace brimful::test;

void one_thread() {
  const auto first = std::make_shared<const WindowPlan>();
  const auto second = std::make_shared<const WindowPlan>();
  WindowMemo memo;
  check(memo.find({}) == nullptr, "an empty memo knows a window");
  memo.keep({1, 2, {}}, first);
  check(memo.find({1, 2, {}}) == first, "the window kept is not found");
  for (const WindowId& other : {WindowId{0, 2, {}}, {1, 3, {}}, {1, 2, {8, 0}}}) {
    check(memo.find(other) == nullptr && memo.take(other) == nullptr, "another window is found");
  }
  memo.keep({1, 3, {}}, second);
  check(memo.find({1, 2, {}}) == nullptr, "more than one window is kept");
  check(memo.take({1, 3, {}}) == second, "the window kept cannot be taken");
  check(memo.take({1, 3, {}}) == nullptr && second.use_count() == 1, "a taken window stays");
}

void many_threads() {
  constexpr int kWindows = 2000;
  WindowMemo memo;
  std::array<std::vector<std::shared_ptr<const WindowPlan>>, 4> taken;  // alive: addresses differ
  {
    std::vector<std::jthread> threads;
    for (auto& mine : taken) {
      threads.emplace_back([&] {
        for (int w = 0; w < kWindows; ++w) {
          memo.keep({0, w, {}}, std::make_shared<const WindowPlan>());
          if (memo.find({0, w, {}}) == nullptr) continue;
          if (auto window = memo.take({0, w, {}})) mine.push_back(std::move(window));
        }
      });
    }
  }
  std::set<const WindowPlan*> different;
  std::size_t all = 0;
  for (const auto& some : taken) {
    for (const auto& window : some) different.insert(window.get());
    all += some.size();
  }
  check(different.size() == all, "a window is taken twice");
}

}  // namespace

int main() {
  end_if_hung();
  one_thread();
  many_threads();
}
