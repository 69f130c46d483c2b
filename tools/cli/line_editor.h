// line_editor.h: a line that a person types at a terminal.
//
// The editing is libedit's (BSD licence): its keys, vi or emacs, and what ~/.editrc says. The hint
// is ours: while a key is waited for, and the cursor is at the end of the line, it stands behind it
// in grey; when the key has come it is wiped away before the editor draws anything, which so needs
// not know of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace skep::cli {

// One at a time in a process. Thread safety: the main thread; while a line is read, it handles
// SIGINT, SIGWINCH and SIGTSTP.
class LineEditor {
 public:
  struct Help {
    // The whole words that the last word of `before` may become.
    std::function<std::vector<std::string>(std::string_view before)> complete;
    // What to show behind a line.
    std::function<std::string(std::string_view line)> hint;
  };
  enum class Event : uint8_t { kLine, kEnd, kInterrupted };

  // Standard input and output are the terminal.
  explicit LineEditor(Help help);
  ~LineEditor();

  // kLine: *line is what was typed, without line end. kEnd: Ctrl-D on an empty line, or the
  // terminal is gone. kInterrupted: Ctrl-C.
  Event Read(const std::string& prompt, std::string* line);
  // For Ctrl-P, Ctrl-R and the arrows.
  void Remember(const std::string& line);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Whether the lines of standard input come from a person, whom standard output reaches.
bool IsConversation();

}  // namespace skep::cli
