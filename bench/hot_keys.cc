#include "bench/hot_keys.h"

#include <algorithm>
#include <queue>
#include <string>
#include <utility>

namespace skep::bench {

std::vector<uint64_t> FirstKeys(KeyFormat format, uint64_t items, uint32_t count) {
  std::priority_queue<std::pair<std::string, uint64_t>> first;  // the last of them on top
  std::string rendered(format.bytes(), '\0');
  for (uint64_t number = 0; number < items; ++number) {
    format.Render(number, rendered.data());
    const std::string_view key = format.KeyAt(rendered.data());
    if (first.size() == count && key >= first.top().first) continue;
    if (first.size() == count) first.pop();
    first.emplace(key, number);
  }
  std::vector<uint64_t> numbers;
  for (; !first.empty(); first.pop()) numbers.push_back(first.top().second);
  std::ranges::reverse(numbers);
  return numbers;
}

}  // namespace skep::bench
