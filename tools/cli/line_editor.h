// line_editor.h: reads a line that a person types at a terminal.
//
// libedit (BSD licence) does the editing: its keys, vi or emacs, and the settings of ~/.editrc. The
// hint is ours: while the editor waits for a key, and the cursor is at the end of the line, the
// hint stands behind the line in grey; when a key arrives it is erased before the editor draws
// anything, so that the editor need not know of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace skep::cli {

// Only one may exist in a process. Thread safety: the main thread only; while a line is read, it
// handles SIGINT, SIGWINCH and SIGTSTP.
class LineEditor {
 public:
  struct Help {
    // Returns the whole words that the last word of `before` may become.
    std::function<std::vector<std::string>(std::string_view before)> complete;
    // Returns the text to show behind a line.
    std::function<std::string(std::string_view line)> hint;
  };
  enum class Event : uint8_t { kLine, kEnd, kInterrupted };

  // Standard input and output must be the terminal.
  explicit LineEditor(Help help);
  ~LineEditor();

  // Reads a line. kLine: *line is the typed line, without its end. kEnd: Ctrl-D on an empty line,
  // or the terminal is gone. kInterrupted: Ctrl-C.
  Event Read(const std::string& prompt, std::string* line);
  // Adds a line to the history, for Ctrl-P, Ctrl-R and the arrows.
  void Remember(const std::string& line);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Returns whether a person types standard input and sees standard output: both are a terminal.
bool IsConversation();

}  // namespace skep::cli
