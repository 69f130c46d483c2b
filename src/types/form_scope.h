// form_scope.h: which form a thread's batch may give to collections, and the requests that it sets
// aside because a collection has, or needs, the large form.
//
// A function at the data sees one value, so it works on a collection in one value only. While a
// FormScope lives on a thread, the batch that the thread executes
//   - refuses values of collections above bytes_max();
//   - if sets_aside(), leaves a request undone, with Verdict::kPostponed, whose function would make
//     a collection too large for one value, or which asks for the bytes of a collection that has
//     the large form, and with it every later request on its key. So whoever does what was set
//     aside, in order, keeps the order of operations on the key.
// Without a scope collections are bounded by kOneValueBytesMax and nothing is set aside.
//
// Thread safety: a scope is seen by the thread that made it. Scopes nest.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace skep::types {

// The bytes that a collection in one value may take where there is no large form.
inline constexpr size_t kOneValueBytesMax = size_t{1} << 20;

class FormScope {
 public:
  FormScope(size_t bytes_max, bool sets_aside)
      : outer_(current_), bytes_max_(bytes_max), sets_aside_(sets_aside) {
    current_ = this;
  }
  ~FormScope() { current_ = outer_; }
  FormScope(const FormScope&) = delete;
  FormScope& operator=(const FormScope&) = delete;

  // The innermost scope of the thread; null if there is none.
  static FormScope* Current() { return current_; }

  size_t bytes_max() const { return bytes_max_; }
  bool sets_aside() const { return sets_aside_; }

  // Notes that a function was refused because its collection would exceed bytes_max().
  void NoteOutgrown() { outgrown_ = true; }
  // Whether that was noted since the last call.
  bool TakeOutgrown() {
    const bool outgrown = outgrown_;
    outgrown_ = false;
    return outgrown;
  }

  // Sets a key aside; the key's bytes must outlive the scope. Cost: a copy of the view.
  void SetAside(std::string_view key) { keys_.push_back(key); }
  // Whether a key was set aside. Cost: a comparison with each key that was, if there is any.
  bool HasSetAside(std::string_view key) const { return !keys_.empty() && IsAmongKeys(key); }
  bool has_set_aside() const { return !keys_.empty(); }

 private:
  // Not inline: every request asks, and hardly any batch has such keys.
  [[gnu::noinline]] bool IsAmongKeys(std::string_view key) const {
    return std::ranges::find(keys_, key) != keys_.end();
  }

  static inline constinit thread_local FormScope* current_ = nullptr;

  FormScope* const outer_;
  const size_t bytes_max_;
  const bool sets_aside_;
  bool outgrown_ = false;
  std::vector<std::string_view> keys_;
};

}  // namespace skep::types
